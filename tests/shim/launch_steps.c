/*
 * What an open gate costs a launch, counted: the instructions of ours between the program's call and the driver's
 * function. The parent steps a governed child through launches (ptrace).
 */
#include "launching.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "ledger/turn.h"

#define ID 7

enum {
	LAUNCHES = 300,
	STEPS_MAX = 5000, /* more than a launch takes that finds the gate open */
	/* gcc's and clang's code of ll_gate_passes and of handing the arguments on; no call, no lock */
	FREE_STEPS = 42,
#if defined(__OPTIMIZE__) && !defined(LL_HAS_SANITIZER)
	WANTED_STEPS = FREE_STEPS,
#else
	WANTED_STEPS = STEPS_MAX - 1,
#endif
};

/* Addresses of a library's code, from the lowest to behind the highest. */
struct range {
	uint64_t from, to;
};

static struct range find_library(pid_t pid, const char *name)
{
	char path[64], line[4352];
	struct range found = {0};
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "r");
	CHECK(maps);
	while (maps && fgets(line, sizeof line, maps)) {
		uint64_t from, to;
		char may[8];
		if (!strstr(line, name) || sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, may) != 3 ||
		    may[2] != 'x')
			continue;
		found.from = found.from ? found.from : from;
		found.to = to;
	}
	if (maps)
		fclose(maps);
	CHECK(found.to);
	return found;
}

static bool is_in(struct range range, uint64_t address)
{
	return address >= range.from && address < range.to;
}

static uint64_t place_of(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec vector = {&registers, sizeof registers};
	CHECK_EQUAL(ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &vector), 0);
#if defined(__x86_64__)
	return registers.rip;
#else
	return registers.pc;
#endif
}

/* Until the gate is open, and what such a launch takes is known: after a pause it is shut, or asks for a mark. */
static void open_gate(struct ll_cu_function *work, struct ll_cu_stream *stream, void **params)
{
	uint64_t deadline_ns = deadline_in_s(30);
	while (!claim_of(ID) || claim_of(ID)->gate != LL_GATE_OPEN) {
		CHECK(!is_past(deadline_ns));
		CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
}

/* Launches into an open gate, each after a stop. */
static void be_stepped(void)
{
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test"});
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *stream = new_stream();
	uint64_t ns = 1000;
	void *params[] = {&ns};
	CHECK_EQUAL(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
	for (;;) {
		open_gate(work, stream, params);
		raise(SIGSTOP);
		CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
	}
}

/* Of one launch, from a stop on: instructions in the shim before the first one in the driver. STEPS_MAX: it takes
 * another way. */
static unsigned count_steps(pid_t child, struct range shim, struct range driver)
{
	unsigned ours = 0;
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		int status;
		CHECK_EQUAL(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		CHECK_EQUAL(waitpid(child, &status, 0), child);
		CHECK(WIFSTOPPED(status));
		uint64_t place = place_of(child);
		if (is_in(driver, place))
			return ours;
		ours += is_in(shim, place);
	}
	return STEPS_MAX;
}

/* The gate asks for a mark now and then, and a stepped launch is slow: sooner or later one goes through it. */
static void body_steps(void)
{
	unsigned least = STEPS_MAX;
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child)
		be_stepped();
	CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
	struct range shim = find_library(child, "/libloadline-cuda.so"), driver = find_library(child, "/libcuda.so");
	for (int i = 0; i < LAUNCHES && least > WANTED_STEPS; i++) {
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		unsigned steps = count_steps(child, shim, driver);
		least = steps < least ? steps : least;
		CHECK_EQUAL(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
		CHECK_EQUAL(waitpid(child, &status, 0), child);
	}
	CHECK_EQUAL(kill(child, SIGKILL), 0);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	printf("%u instructions\n", least);
	fflush(stdout);
	CHECK(least > 0);
	CHECK(least <= WANTED_STEPS);
}

static bool may_trace(void)
{
	int status = 0;
	pid_t child = fork();
	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? LL_EXIT_SKIPPED : 0);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void a_launch_through_the_open_gate_takes_some_instructions(void **state)
{
	(void)state;
	if (!may_trace())
		skip();
	in_world(NULL, body_steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_launch_through_the_open_gate_takes_some_instructions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
