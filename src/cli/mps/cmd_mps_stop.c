#include <stdio.h>

#include "cli/mps/words.h"

struct stop_args {
	bool force;
	uint64_t within_ns;
};

static const struct ll_option options[] = {
    {.name = "force",
     .letter = 'f',
     LL_OPTION_FLAG(struct stop_args, force),
     .help = "End the daemon even if clients are at work or it does not answer. The clients' CUDA "
	     "calls fail from then on. Processes that have not ended after half of the time get "
	     "signals."},
    LL_OPTION_WITHIN(struct stop_args, within_ns,
		     "Give up if the daemon and its servers have not ended within this time."),
    LL_OPTION_END,
};

static int run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct stop_args *args = data;
	struct ll_mps_desk desk;
	struct ll_mps_stopped stopped = {.had_daemon = false};
	(void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = ll_mps_session_stop(&desk.session, args->force, args->within_ns, &stopped, err);
	ll_mps_desk_fini(&desk);
	if (rc)
		return rc;
	if (!stopped.had_daemon)
		puts("no MPS daemon ran here");
	else
		printf("MPS has ended%s\n",
		       stopped.was_signalled ? "; it did not end when asked, so signals ended it" : "");
	if (stopped.restored)
		printf("compute mode restored on %zu card%s\n", stopped.restored, stopped.restored == 1 ? "" : "s");
	return 0;
}

static const struct ll_example examples[] = {
    {"loadline mps stop", "End it if it has no clients."},
    {"loadline mps stop --force --within 5s", "End it within five seconds, with its clients at work or not."},
    {NULL, NULL},
};

const struct ll_command ll_mps_stop = {
    .name = "stop",
    .group = &ll_command_mps,
    .summary = "end the daemon and restore compute modes",
    .description =
	"Ends the daemon and its servers, waits until their processes are gone, and restores the compute "
	"mode that the cards had before `loadline mps start --exclusive`. If clients are at work, it refuses "
	"and names them.\n\n"
	"If an earlier daemon of loadline, or loadline itself, was killed and left cards in exclusive mode, "
	"their mode is restored too.",
    .examples = examples,
    .options = options,
    .args_size = sizeof(struct stop_args),
    .run = run,
};
