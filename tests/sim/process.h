/*
 * process.h - what the simulator's tests share: a fresh world in a folder of its own, processes in it, and the two
 * libraries opened as a program opens them.
 *
 * A test's body runs in a child process (in_world), because a process is in one world for its whole life; what CHECK
 * finds there ends the child, and the test fails with it. cmocka's own asserts belong to the parent.
 *
 * No test depends on how fast this machine is: what is measured is the model's own time, and waiting is for a condition
 * with a generous deadline.
 */
#ifndef LOADLINE_TESTS_SIM_PROCESS_H
#define LOADLINE_TESTS_SIM_PROCESS_H

#include <sys/types.h>

#include "abi/cuda.h"
#include "abi/cuda_copy.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_memory.h"
#include "abi/nvml.h"
#include "test.h"

struct cuda {
	void *library;
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
};

struct nvml {
	void *library;
#define LL_NVML_OPENED(ret, name, symbol, need, hook, params) ret(*name) params;
#include "abi/nvml.def"
};

/* Filled by open_cuda and open_nvml. */
extern struct cuda cu;
extern struct nvml nv;

/* What every scenario of these tests begins with: nothing takes real time for the sake of looking real. */
#define QUICK "init-time 0s\ncard all context-time 0s\ncard all context-work 0s\n"

/* Runs body in a child in a fresh world made from QUICK and scenario (NULL: nothing more), then removes the world. */
void in_world(const char *scenario, void (*body)(void));

/* In a child: starts another process of the same world that runs body; waits for it and checks that it ended well. */
pid_t spawn(void (*body)(void));
void join(pid_t pid);
/* Starts one and kills it with SIGKILL when it calls ready(). */
void spawn_and_kill(void (*body)(void));
/* Tells the parent that was waiting in spawn_ready, or is about to kill. Blocks for ever in the second case. */
pid_t spawn_ready(void (*body)(void));
void ready(void);

/* In a child: ends the test with what was wrong. */
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			give_up(__FILE__, __LINE__, #condition);                                                       \
	} while (0)
#define CHECK_EQUAL(a, b)                                                                                              \
	do {                                                                                                           \
		long long a_ = (long long)(a), b_ = (long long)(b);                                                    \
		if (a_ != b_)                                                                                          \
			give_up_numbers(__FILE__, __LINE__, #a " == " #b, a_, b_);                                     \
	} while (0)
/* a within b ± tolerance. */
#define CHECK_NEAR(a, b, tolerance)                                                                                    \
	do {                                                                                                           \
		double a_ = (double)(a), b_ = (double)(b);                                                             \
		if (!(a_ >= b_ - (tolerance) && a_ <= b_ + (tolerance)))                                               \
			give_up_doubles(__FILE__, __LINE__, #a " near " #b, a_, b_);                                   \
	} while (0)
/* Waits until the condition holds; gives up after 60 s. */
#define WAIT_FOR(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t deadline_ = deadline_in_s(60);                                                                \
		while (!(condition)) {                                                                                 \
			if (is_past(deadline_))                                                                        \
				give_up(__FILE__, __LINE__, "not within 60 s: " #condition);                           \
			sleep_ms(1);                                                                                   \
		}                                                                                                      \
	} while (0)

_Noreturn void give_up(const char *file, int line, const char *what);
_Noreturn void give_up_numbers(const char *file, int line, const char *what, long long a, long long b);
_Noreturn void give_up_doubles(const char *file, int line, const char *what, double a, double b);
/* So many seconds from now on a host that is free; later, the more programs wait for its processors. */
uint64_t deadline_in_s(unsigned s);
bool is_past(uint64_t deadline_ns);
void sleep_ms(unsigned ms);

/* Opens a library and looks every function up; what it lacks is NULL. Returns how many it lacks. */
unsigned open_cuda(void);
unsigned open_nvml(void);

/* cuInit, a context on that card, current. */
struct ll_cu_context *open_context(ll_cu_device device);
/* A module with the kernels spin_ns, spin_ns_plain, work_ns, fma_ns, other_kernel, in the current context; and one
 * kernel of a module of its own. */
struct ll_cu_module *load_kernels(void);
struct ll_cu_function *get_kernel(const char *name);
struct ll_cu_stream *new_stream(void);
/* Eight SMs of device 0, for a green context. */
struct ll_cu_resource_desc *new_green_desc(void);
struct ll_nvml_device *open_card(unsigned index);

/* A shell's line, run without what is preloaded into this program. Returns its exit status. */
int run_outside(const char *line);

/* loadline-simctl with this command line. Returns its exit status. */
int simctl(const char *command);

/* nvidia-cuda-mps-control: with these options, or with this command on its standard input. What it prints, on either
 * output, is put in answer. Returns its exit status, 124 when it took longer than seconds. */
int mps_start(const char *options, char *answer, size_t size);
int mps_ask(const char *command, unsigned seconds, char *answer, size_t size);

/* Whether the simulated driver answers within a second: a process that was stopped while it held the world's lock keeps
 * everybody waiting, as no real driver does. */
bool sim_answers(void);

/* Stops a child at a moment when it is not inside the simulated driver. */
void stop_outside_the_driver(pid_t pid);

/* What a kernel with a record writes (src/hold/payload.h). */
struct record {
	uint64_t start_ns, end_ns, gap_ns;
	uint32_t flags;
	_Atomic uint32_t sequence;
};
enum { LATE = 1, GAP = 2, STOPPED = 4 };

struct record *new_records(unsigned count);
void launch_spin(struct ll_cu_function *function, struct ll_cu_stream *stream, uint64_t length_ns,
		 struct record *record, uint64_t late_after_ns, uint64_t gap_limit_ns, uint32_t epoch,
		 uint32_t sequence);
/* A kernel with one u64 parameter, on `blocks` x `threads`. */
void launch_timed(struct ll_cu_function *function, struct ll_cu_stream *stream, uint64_t length_ns, unsigned blocks,
		  unsigned threads);
/* For spawn_ready: a process whose kernels of 1 ms on the full card never end. */
void be_a_stranger(void);

#endif
