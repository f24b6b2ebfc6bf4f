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
     .help =
	 "Also with clients at work, whose CUDA calls fail from then on, and also a daemon that does not answer: what "
	 "has not ended after half of the time is ended by signals."},
    LL_OPTION_WITHIN(struct stop_args, within_ns, "Give up when daemon and servers have not ended by then."),
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
		       stopped.was_signalled ? "; it did not when asked, and was ended by signals" : "");
	if (stopped.restored)
		printf("compute mode put back on %zu card%s\n", stopped.restored, stopped.restored == 1 ? "" : "s");
	return 0;
}

static const struct ll_example examples[] = {
    {"loadline mps stop", "End it if it has no clients."},
    {"loadline mps stop --force --within 5s", "End it whatever there is, within five seconds."},
    {NULL, NULL},
};

const struct ll_command ll_mps_stop = {
    .name = "stop",
    .group = &ll_command_mps,
    .summary = "end the daemon and put compute modes back",
    .description =
	"Ends the daemon and its servers, waits until their processes are gone, and gives the cards the compute mode "
	"back that they had before `loadline mps start --exclusive`. With clients at work it refuses and names "
	"them.\n\n"
	"Where an earlier daemon of loadline's was killed, or loadline itself was, and cards were left in exclusive "
	"mode, they are put back too.",
    .examples = examples,
    .options = options,
    .args_size = sizeof(struct stop_args),
    .run = run,
};
