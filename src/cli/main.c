/*
 * main.c - the program loadline.
 */
#include "cli/common/language.h"
#include "cli/doctor/doctor.h"
#include "cli/options/program.h"
#include "hold/pacer.h"
#include "hold/payload.h"

static bool serve(int argc, char **argv, int *ret_rc, struct ll_err *err)
{
	if (ll_worker_is_asked(argc, argv)) {
		ll_language_init();
		*ret_rc = ll_worker_main(ll_payloads, err);
	} else if (ll_trial_is_asked(argc, argv)) {
		*ret_rc = ll_trial_main(argv[2], err);
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static const struct ll_program loadline = {.commands = ll_commands, .parts = ll_command_parts, .serve = serve};
	return ll_program_main(&loadline, argc, argv);
}
