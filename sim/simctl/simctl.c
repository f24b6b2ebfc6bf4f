#include "simctl/simctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "card/command.h"
#include "card/engine.h"

static const char usage[] =
    "usage: loadline-simctl COMMAND...\n"
    "  card N|all PROPERTY VALUE...   temperature 90 [over 5s] | mode exclusive | xid 31 | gone on | used 10G | ...\n"
    "  fail FUNCTION STATUS [for D] [after N] [count N],  hang FUNCTION D ...,  heal,  suspend D\n"
    "  mps hang COMMAND D | refuse [STATUS] | fault [STATUS] [for D] | die daemon|server | heal\n"
    "  at D COMMAND...                put a command off\n"
    "  busy CARD [PERCENT] [kernel D] [sleep D] [for D] [count N] [blocks N] [threads N] [memory SIZE]\n"
    "  show | folder | reset          (reset makes the world anew from LOADLINE_SIM_SCENARIO)\n"
    "The world is LOADLINE_SIM_DIR, else the user's default one. sim/README.md has it all.\n";

static int run_line(int count, char **words, struct ll_err *err)
{
	char line[256] = "";
	size_t n = 0;
	for (int i = 0; i < count; i++) {
		int added = snprintf(line + n, sizeof line - n, "%s%s", i ? " " : "", words[i]);
		if (added < 0 || (size_t)added >= sizeof line - n)
			return ll_err_set(err, -EINVAL, "command too long");
		n += (size_t)added;
	}
	struct sim_world *w;
	int rc = sim_world_attach(&w, err);
	if (rc < 0)
		return rc;
	sim_lock(w);
	sim_advance_to_now(w);
	rc = sim_command_run(w, line, SIM_COMMAND_LIVE, err);
	sim_unlock(w);
	return rc;
}

static int print_folder(struct ll_err *err)
{
	const char *folder = sim_world_folder();
	if (!folder)
		return ll_err_set(err, -ENOENT, "the world's folder cannot be had");
	puts(folder);
	return 0;
}

int main(int argc, char **argv)
{
	struct ll_err err = {0};
	int rc;
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? LL_EXIT_USAGE : LL_EXIT_OK;
	}
	if (strcmp(argv[1], "show") == 0)
		rc = simctl_show(&err);
	else if (strcmp(argv[1], "folder") == 0)
		rc = print_folder(&err);
	else if (strcmp(argv[1], "reset") == 0)
		rc = sim_world_reset(&err);
	else if (strcmp(argv[1], "busy") == 0)
		rc = simctl_busy(argc - 2, argv + 2, &err);
	else
		rc = run_line(argc - 1, argv + 1, &err);
	if (rc < 0)
		fprintf(stderr, "loadline-simctl: %s\n", err.text);
	return ll_err_exit_code(rc);
}
