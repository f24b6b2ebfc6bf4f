/* storm: four processes grow and shrink what they have, as realloc does, and are killed in the midst of it and
 * replaced, one every some milliseconds. */
#include <sys/mman.h>
#include <sys/prctl.h>

#include "case.h"

enum { PROCESSES = 3, KILLS = 24 };

static _Atomic unsigned *steps;

static void grow(unsigned seed)
{
	ll_cu_deviceptr blocks[4] = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct ll_cu_context *context;
	TRY(cuInit(0));
	/* Those that were killed may be on the card for a moment yet. */
	while (!MADE(cuDevicePrimaryCtxRetain(&context, 0)))
		usleep(1000);
	TRY(cuCtxSetCurrent(context));
	struct ll_cu_stream *stream = new_stream();
	for (;; ++*steps) {
		ll_cu_deviceptr next = 0;
		seed = seed * 1103515245 + 12345;
		ll_cu_deviceptr *one = &blocks[seed / 65536 % 4];
		size_t bytes = (1 + seed / 1024 % 120) * MIB;
		bool is_async = seed / 65536 % 4 > 1;
		if (!MADE(is_async ? cuMemAllocAsync(&next, bytes, stream) : cuMemAlloc_v2(&next, bytes)))
			next = 0;
		if (*one)
			TRY(is_async ? cuMemFreeAsync(*one, stream) : cuMemFree_v2(*one));
		*one = next;
	}
}

static pid_t start(unsigned seed)
{
	pid_t pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		grow(seed);
	return pid;
}

int main(void)
{
	pid_t pids[PROCESSES];
	steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(steps != MAP_FAILED);
	for (unsigned i = 0; i < PROCESSES; i++)
		pids[i] = start(i);
	for (unsigned i = 0; i < KILLS; i++) {
		unsigned from = *steps;
		for (int k = 0; *steps < from + 60 + 7 * i; k++) {
			NEED(k < 30000);
			usleep(1000);
		}
		int status;
		pid_t *one = &pids[i % PROCESSES];
		kill(*one, SIGKILL);
		NEED(waitpid(*one, &status, 0) == *one);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			GIVE_UP("a child ended with %d", status);
		*one = start(100 + i);
	}
	for (int i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	begin();
	full();
	return 0;
}
