#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/translate.h"
#include "cli/common/still.h"
#include "cli/mps/words.h"
#include "mps/servers.h"

/* ---- stop ---- */

struct stop_args {
	bool force;
	uint64_t within_ns;
};

static const struct ll_option stop_options[] = {
    {.name = "force",
     .letter = 'f',
     LL_OPTION_FLAG(struct stop_args, force),
     .help = N_("End the daemon even if clients are at work or it does not answer. The clients' CUDA "
		"calls fail from then on. Processes that have not ended after half of the time get "
		"signals.")},
    LL_OPTION_TIMEOUT(struct stop_args, within_ns,
		      N_("Give up if the daemon and its servers have not ended within this time.")),
    LL_OPTION_END,
};

static int run_stop(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct stop_args *args = data;
	struct ll_mps_desk desk;
	struct ll_mps_stopped stopped = {.had_daemon = false};
	struct ll_still still = {.is_begun = false};
	(void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc) {
		ll_still_begin(&still, N_("waits for the end of the MPS daemon at %s"), desk.place.pipe);
		rc = ll_mps_session_stop(&desk.session, args->force, args->within_ns, &stopped, err);
	}
	ll_still_end(&still);
	ll_mps_desk_fini(&desk);
	if (rc)
		return rc;
	if (!stopped.had_daemon)
		puts(_("no MPS daemon ran here"));
	else
		puts(stopped.was_signalled ? _("MPS has ended; it did not end when asked, so signals ended it")
					   : _("MPS has ended"));
	if (stopped.restored)
		printf(ll_translate_count("compute mode restored on %zu card\n", "compute mode restored on %zu cards\n",
					  stopped.restored),
		       stopped.restored);
	return 0;
}

static const struct ll_example stop_examples[] = {
    {"loadline mps stop", N_("End it if it has no clients.")},
    {"loadline mps stop --force --timeout 5s", N_("End it within five seconds, with its clients at work or not.")},
    {NULL, NULL},
};

const struct ll_command ll_mps_stop = {
    .name = "stop",
    .group = &ll_command_mps,
    .summary = N_("end the daemon and restore compute modes"),
    .description =
	N_("Ends the daemon and its servers, waits until their processes are gone, and restores the compute "
	   "mode that the cards had before `loadline mps start --exclusive`. If clients are at work, it refuses "
	   "and names them.\n\n"
	   "If an earlier daemon of loadline, or loadline itself, was killed and left cards in exclusive mode, "
	   "their mode is restored too."),
    .examples = stop_examples,
    .options = stop_options,
    .args_size = sizeof(struct stop_args),
    .run = run_stop,
};

/* ---- kill ---- */

struct kill_args {
	uint64_t within_ns;
};

static const struct ll_option kill_options[] = {
    LL_OPTION_TIMEOUT(struct kill_args, within_ns,
		      N_("Give up if the daemon has not ended the client within this time.")),
    LL_OPTION_END,
};

static int run_kill(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct kill_args *args = data;
	struct ll_mps_desk desk;
	struct ll_still still;
	uint64_t pid;
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "mps kill: %s",
				  operands->count ? _("one client at a time") : _("no client named"));
	if (ll_parse_uint(operands->words[0], 1, INT_MAX, &pid, NULL) < 0)
		return ll_err_set(err, -EINVAL, "mps kill: '%.60s': not a process id", operands->words[0]);
	uint64_t from_ns = ll_now_ns();
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = ll_mps_desk_need_daemon(&desk, from_ns + args->within_ns, err);
	uint64_t used_ns = ll_now_ns() - from_ns;
	ll_still_begin(&still, N_("waits for the MPS daemon at %s to end client %d"), desk.place.pipe, (int)pid);
	if (!rc)
		rc = ll_mps_client_end(&desk.place, (pid_t)pid,
				       used_ns < args->within_ns ? args->within_ns - used_ns : 0, err);
	ll_still_end(&still);
	ll_mps_desk_fini(&desk);
	if (!rc)
		printf(_("client %d is off MPS: its contexts are gone, its process goes on\n"), (int)pid);
	return rc;
}

const struct ll_command ll_mps_kill = {
    .name = "kill",
    .group = &ll_command_mps,
    .summary = N_("take one client off its server"),
    .operands = "PID",
    .description =
	N_("Asks the daemon to destroy the contexts of one client (terminate_client). The client's process gets "
	   "an error from its next CUDA call. Other clients go on.\n\n"
	   "terminate_client has been seen to hang, and it refuses concurrent callers. So it is tried up to "
	   "three times, one caller after the other, within the given time. If it fails, loadline reports that "
	   "and does nothing stronger: it never kills the process itself."),
    .options = kill_options,
    .args_size = sizeof(struct kill_args),
    .run = run_kill,
};
