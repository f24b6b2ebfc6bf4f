#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/mps/words.h"
#include "mps/terminate.h"

struct kill_args {
	uint64_t within_ns;
};

static const struct ll_option options[] = {
    LL_OPTION_WITHIN(struct kill_args, within_ns, "Give up if the daemon has not ended the client within this time."),
    LL_OPTION_END,
};

static int run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct kill_args *args = data;
	struct ll_mps_desk desk;
	uint64_t pid;
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "mps kill: %s",
				  operands->count ? "one client at a time" : "no client named");
	if (ll_parse_uint(operands->words[0], 1, INT_MAX, &pid, NULL) < 0)
		return ll_err_set(err, -EINVAL, "mps kill: '%.60s': not a process id", operands->words[0]);
	uint64_t from_ns = ll_now_ns();
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = ll_mps_desk_need_daemon(&desk, from_ns + args->within_ns, err);
	uint64_t used_ns = ll_now_ns() - from_ns;
	if (!rc)
		rc = ll_mps_client_end(&desk.place, (pid_t)pid,
				       used_ns < args->within_ns ? args->within_ns - used_ns : 0, err);
	ll_mps_desk_fini(&desk);
	if (!rc)
		printf("client %d is off MPS: its contexts are gone, its process goes on\n", (int)pid);
	return rc;
}

const struct ll_command ll_mps_kill = {
    .name = "kill",
    .group = &ll_command_mps,
    .summary = "take one client off its server",
    .operands = "PID",
    .description =
	"Asks the daemon to destroy the contexts of one client (terminate_client). The client's process gets "
	"an error from its next CUDA call. Other clients go on.\n\n"
	"terminate_client has been seen to hang, and it refuses concurrent callers. So it is tried up to "
	"three times, one caller after the other, within the given time. If it fails, loadline reports that "
	"and does nothing stronger: it never kills the process itself.",
    .options = options,
    .args_size = sizeof(struct kill_args),
    .run = run,
};
