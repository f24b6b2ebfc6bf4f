/* after_fork: children that are forked when their parent has a context and a part of the limit: one asks the driver
 * there and then, one begins a new program, and a grandchild whose parent has gone does. The driver refuses the first
 * one. */
#include "case.h"

/* Where a child says that it has what it gets. */
enum { TOLD = 100 };

static void ask_at_once(void)
{
	ll_cu_deviceptr address;
	ll_cu_result status = cuMemAlloc_v2(&address, 1500 * MIB);
	printf("in a forked child: %d\n", (int)status);
	fflush(stdout);
	_exit(status == 0);
}

static void take_anew(char *self, bool is_grandchild)
{
	char child[] = "child", *words[] = {self, child, NULL};
	if (is_grandchild && fork())
		_exit(0);
	execv("/proc/self/exe", words);
	_exit(9);
}

/* The two share what is left: one may get no context. */
static void be_child(void)
{
	struct ll_cu_context *context;
	TRY(cuInit(0));
	if (MADE(cuDevicePrimaryCtxRetain(&context, 0))) {
		TRY(cuCtxSetCurrent(context));
		fill();
	}
	NEED(write(TOLD, "", 1) == 1);
	stay();
}

int main(int argc, char **argv)
{
	int told[2];
	char byte;
	ll_cu_deviceptr address;
	if (argc > 1) {
		be_child();
		return 0;
	}
	NEED(pipe(told) == 0 && dup2(told[1], TOLD) == TOLD);
	begin();
	TRY(cuMemAlloc_v2(&address, 300 * MIB));
	pid_t pid = fork();
	if (pid == 0)
		ask_at_once();
	join(pid);
	for (int i = 0; i < 2; i++) {
		pid_t next = fork();
		if (next == 0)
			take_anew(argv[0], i == 1);
		if (i == 1)
			join(next);
	}
	for (int i = 0; i < 2; i++)
		NEED(read(told[0], &byte, 1) == 1);
	TRY(cuMemFree_v2(address));
	full();
	return 0;
}
