/* crowd [COUNT]: 200 processes of one tenant, or COUNT, each with a context and 2 MiB. Those that get none get an
 * answer of CUDA. */
#include <poll.h>
#include <sys/prctl.h>

#include "case.h"

enum { PROCESSES = 200, TOGETHER = 10, HANGS_MS = 300000 };

static int ask(void)
{
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	ll_cu_result status = cuInit(0);
	if (!status)
		status = cuDevicePrimaryCtxRetain(&context, 0);
	if (!status)
		status = cuCtxSetCurrent(context);
	return status ? (int)status : (int)cuMemAlloc_v2(&address, 2 * MIB);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : PROCESSES;
	int answers[2], served = 0, refused = 0;
	NEED(pipe(answers) == 0);
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			int answer = ask();
			NEED(write(answers[1], &answer, sizeof answer) == sizeof answer);
			stay();
			_exit(0);
		}
		bool is_last = i == count - 1 || i % TOGETHER == TOGETHER - 1;
		for (int k = 0; is_last && k <= i % TOGETHER; k++) {
			int answer;
			struct pollfd look = {answers[0], POLLIN, 0};
			NEED(poll(&look, 1, HANGS_MS) == 1 &&
			     read(answers[0], &answer, sizeof answer) == sizeof answer);
			answer ? refused++ : served++;
		}
	}
	printf("full: served %d, refused %d\n", served, refused);
	fflush(stdout);
	stay();
	while (wait(NULL) > 0)
		;
	return 0;
}
