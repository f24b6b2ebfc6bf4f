/*
 * What an open gate costs a launch, counted: the instructions of ours between the program's call and the driver's
 * function, and between the driver's return and the program. And what it does not: until it is back in the program no
 * instruction of ours calls anybody but the driver, so nothing is allocated and no lock of libc's is taken; none enters
 * the kernel or locks memory. The parent steps a governed child through launches (ptrace).
 */
#include "launching.h"
#include "skipped.h"

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

#define ID 7

enum {
	LAUNCHES = 300,
	STEPS_MAX = 5000, /* more than a launch takes that finds the gate open */
	/* gcc's and clang's code of entering, of ll_gate_passes, of handing the arguments on, and of leaving; no call,
	 * no lock */
	FREE_STEPS = 66,
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

static struct user_regs_struct registers_of(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec vector = {&registers, sizeof registers};
	CHECK_EQUAL(ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &vector), 0);
	return registers;
}

static uint64_t word_at(pid_t pid, uint64_t place)
{
	errno = 0;
	long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)place, NULL);
	CHECK_EQUAL(errno, 0);
	return (uint64_t)word;
}

static void put_word(pid_t pid, uint64_t place, uint64_t word)
{
	CHECK_EQUAL(ptrace(PTRACE_POKETEXT, pid, (void *)(uintptr_t)place, (void *)(uintptr_t)word), 0);
}

#if defined(__x86_64__)
#define PLACE rip
#define BREAK_BYTES 1
#define BREAK UINT64_C(0xcc)
#else
#define PLACE pc
#define BREAK_BYTES 4
#define BREAK UINT64_C(0xd4200000)
#endif

/* Where the child is: what it does next. */
static uint64_t place_of(pid_t pid)
{
	return registers_of(pid).PLACE;
}

/* Of the function that the child is about to begin. */
static uint64_t return_place_of(pid_t pid)
{
#if defined(__x86_64__)
	return word_at(pid, registers_of(pid).rsp);
#else
	return registers_of(pid).regs[30];
#endif
}

static void run_to(pid_t pid, uint64_t place)
{
	const uint64_t mask = (UINT64_C(1) << 8 * BREAK_BYTES) - 1, word = word_at(pid, place);
	int status;
	put_word(pid, place, (word & ~mask) | BREAK);
	CHECK_EQUAL(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	CHECK_EQUAL(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	put_word(pid, place, word);
	struct user_regs_struct registers = registers_of(pid);
	struct iovec vector = {&registers, sizeof registers};
	registers.PLACE = place;
	CHECK_EQUAL(ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &vector), 0);
}

static void step_one(pid_t pid)
{
	int status;
	CHECK_EQUAL(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	CHECK_EQUAL(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status));
}

/* Until the gate is open, and what such a launch takes is known: after a pause it is shut, or asks for a timing event.
 */
static void open_gate(struct ll_cu_function *work, struct ll_cu_stream *stream, void **params)
{
	uint64_t deadline_ns = deadline_in_s(30);
	while (!claim_of(ID) || claim_of(ID)->gate != LL_GATE_OPEN) {
		CHECK(!is_past(deadline_ns));
		CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
}

/* Whether an instruction locks memory, or enters the kernel. */
static bool is_lock_or_system_call(pid_t pid, uint64_t place)
{
	const uint64_t word = word_at(pid, place);
	unsigned char code[sizeof word];
	memcpy(code, &word, sizeof code);
#if defined(__x86_64__)
	static const unsigned char prefixes[] = {0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3};
	size_t i = 0;
	while (i < 4 && memchr(prefixes, code[i], sizeof prefixes))
		i++;
	if (code[i] == 0xf0)
		return true;
	i += (code[i] & 0xf0) == 0x40;                                                 /* REX */
	bool is_exchange = (code[i] == 0x86 || code[i] == 0x87) && code[i + 1] < 0xc0; /* locks without being told */
	bool is_system_call = (code[i] == 0x0f && (code[i + 1] == 0x05 || code[i + 1] == 0x34)) || code[i] == 0xcd;
	return is_exchange || is_system_call;
#else
	uint32_t instruction;
	memcpy(&instruction, code, sizeof instruction);
	bool is_exclusive =
	    (instruction & 0x3f000000) == 0x08000000; /* also ordered loads and stores, which we do not need */
	bool is_atomic = (instruction & 0x3b200c00) == 0x38200000,
	     is_system_call = (instruction & 0xffe0001f) == 0xd4000001;
	return is_exclusive || is_atomic || is_system_call;
#endif
}

enum entry { LAUNCH, LAUNCH_EX, COOPERATIVE, MEMSET, COPY_WITHIN, ENTRIES };

static const char *const entry_names[ENTRIES] = {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
						 "cuMemsetD8Async", "cuMemcpyDtoDAsync"};

enum { BYTES = 4096 };

/* Launches into an open gate, each after a stop. */
static void be_stepped(enum entry entry)
{
	ll_cu_deviceptr memory;
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test"});
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *stream = new_stream();
	uint64_t ns = 1000;
	void *params[] = {&ns};
	struct ll_cu_launch_config config = {1, 1, 1, 32, 1, 1, 0, stream, NULL, 0};
	CHECK_EQUAL(cu.cuMemAlloc(&memory, 2 * BYTES), 0);
	CHECK_EQUAL(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
	for (;;) {
		open_gate(work, stream, params);
		raise(SIGSTOP);
		ll_cu_result status =
		    entry == LAUNCH        ? cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL)
		    : entry == LAUNCH_EX   ? cu.cuLaunchKernelEx(&config, work, params, NULL)
		    : entry == COOPERATIVE ? cu.cuLaunchCooperativeKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params)
		    : entry == MEMSET      ? cu.cuMemsetD8Async(memory, 1, BYTES, stream)
					   : cu.cuMemcpyDtoDAsync(memory + BYTES, memory, BYTES, stream);
		CHECK_EQUAL(status, 0);
	}
}

/* One launch. */
struct passage {
	unsigned
	    steps; /* instructions in the shim before the first one in the driver; STEPS_MAX: it takes another way */
	unsigned steps_back; /* and after the driver has returned */
	unsigned calls;      /* of the shim's, that lead neither to the driver nor back to the program */
	unsigned locked;     /* its instructions that lock memory or enter the kernel */
	bool is_back;
};

/* From a stop on. What the driver does is not stepped through. */
static struct passage follow(pid_t child, struct range program, struct range shim, struct range driver)
{
	struct passage passage = {.steps = STEPS_MAX};
	unsigned ours = 0;
	bool was_ours = false;
	for (unsigned i = 0; i < STEPS_MAX && !passage.is_back; i++) {
		step_one(child);
		uint64_t place = place_of(child);
		if (was_ours && is_in(driver, place)) {
			passage.steps = passage.steps == STEPS_MAX ? ours : passage.steps;
			run_to(child, return_place_of(child));
			place = place_of(child);
		}
		bool is_ours = is_in(shim, place);
		passage.steps_back += is_ours && passage.steps < STEPS_MAX;
		passage.is_back = passage.steps < STEPS_MAX && is_in(program, place);
		passage.calls += was_ours && !is_ours && !passage.is_back;
		passage.locked += is_ours && is_lock_or_system_call(child, place);
		ours += is_ours;
		was_ours = is_ours;
	}
	return passage;
}

static bool is_free(const struct passage *passage)
{
#if defined(LL_HAS_SANITIZER) /* which calls its own */
	return passage->steps < STEPS_MAX;
#else
	return passage->steps < STEPS_MAX && passage->is_back && !passage->calls && !passage->locked;
#endif
}

/* The gate asks for a timing event now and then, and a stepped launch is slow: sooner or later one goes through it. */
static void step(enum entry entry, unsigned wanted_steps)
{
	struct passage best = {.steps = STEPS_MAX};
	bool is_found = false;
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child)
		be_stepped(entry);
	CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
	struct range program = find_library(child, "/shim_launch_steps");
	struct range shim = find_library(child, "/libloadline-cuda.so"), driver = find_library(child, "/libcuda.so");
	for (int i = 0; i < LAUNCHES && !is_found; i++) {
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		struct passage passage = follow(child, program, shim, driver);
		if (passage.steps + passage.steps_back < best.steps + best.steps_back)
			best = passage;
		is_found = passage.steps + passage.steps_back <= wanted_steps && is_free(&passage);
		CHECK_EQUAL(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
		CHECK_EQUAL(waitpid(child, &status, 0), child);
	}
	CHECK_EQUAL(kill(child, SIGKILL), 0);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	printf("%s: %u instructions, %u of them after the driver; %u calls, %u locked\n", entry_names[entry],
	       best.steps + best.steps_back, best.steps_back, best.calls, best.locked);
	fflush(stdout);
	CHECK(best.steps > 0);
	CHECK(is_found);
}

static void body_steps(void)
{
	step(LAUNCH, WANTED_STEPS);
}

static void body_entries(void)
{
	for (enum entry entry = LAUNCH_EX; entry < ENTRIES; entry++)
		step(entry, STEPS_MAX - 1);
}

static bool may_trace(void)
{
	int status = 0;
	pid_t child = fork();
	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? LL_EXIT_SKIPPED : 0);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

TEST(a_launch_through_the_open_gate_takes_some_instructions)
{
	if (!may_trace())
		SKIP_TEST("no process may be traced here");
	in_world(NULL, body_steps);
}

TEST(what_passes_the_open_gate_calls_nobody_but_the_driver)
{
	if (!may_trace())
		SKIP_TEST("no process may be traced here");
	in_world(NULL, body_entries);
}
