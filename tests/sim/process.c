#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct cuda cu;
struct nvml nv;

static int ready_fd = -1;

_Noreturn void give_up(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	_exit(1);
}

_Noreturn void give_up_numbers(const char *file, int line, const char *what, long long a, long long b)
{
	fprintf(stderr, "%s:%d: %s: %lld, %lld\n", file, line, what, a, b);
	_exit(1);
}

_Noreturn void give_up_doubles(const char *file, int line, const char *what, double a, double b)
{
	fprintf(stderr, "%s:%d: %s: %g, %g\n", file, line, what, a, b);
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t deadline_in_s(unsigned s)
{
	double load[1] = {0};
	getloadavg(load, 1);
	return now_ns() + (uint64_t)(s * 1e9 * (1 + load[0] / (double)sysconf(_SC_NPROCESSORS_ONLN)));
}

bool is_past(uint64_t deadline_ns)
{
	return now_ns() > deadline_ns;
}

void sleep_ms(unsigned ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void write_scenario(const char *path, const char *scenario)
{
	FILE *file = fopen(path, "we");
	if (!file)
		give_up(__FILE__, __LINE__, path);
	/* What makes cards comes first: QUICK's "card all" is to reach them. */
	bool has_cards = scenario && strncmp(scenario, "cards", 5) == 0;
	size_t first = has_cards ? strcspn(scenario, "\n") + 1 : 0;
	if (has_cards)
		fprintf(file, "%.*s", (int)first, scenario);
	fprintf(file, "%s%s\n", QUICK, scenario ? scenario + first : "");
	fclose(file);
}

static int wait_status(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "process %d ended by signal %d\n", (int)pid, WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* A child that leaves the ordinary way, so that sanitizers and the library see it go. */
static _Noreturn void run_child(void (*body)(void))
{
	/* cmocka would catch these and go on with the next test, here. */
	const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		signal(signals[i], SIG_DFL);
	body();
	exit(0);
}

void in_world(const char *scenario, void (*body)(void))
{
	char folder[] = "/tmp/loadline-simtest.XXXXXX", path[64];
	if (!mkdtemp(folder))
		give_up(__FILE__, __LINE__, folder);
	snprintf(path, sizeof path, "%s/scenario", folder);
	write_scenario(path, scenario);
	fflush(NULL);
	/* A group of its own, for the end of what a body left that gave up: it would keep the world, and the output
	 * that the test's runner waits for. */
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		setenv("LOADLINE_SIM_DIR", folder, 1);
		setenv("LOADLINE_SIM_SCENARIO", path, 1);
		run_child(body);
	}
	int status = wait_status(pid);
	kill(-pid, SIGKILL);
	nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(status, 0);
}

pid_t spawn(void (*body)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		run_child(body);
	CHECK(pid > 0);
	return pid;
}

void join(pid_t pid)
{
	CHECK_EQUAL(wait_status(pid), 0);
}

pid_t spawn_ready(void (*body)(void))
{
	int fds[2];
	char byte;
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		ready_fd = fds[1];
		run_child(body);
	}
	close(fds[1]);
	CHECK_EQUAL(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

void ready(void)
{
	CHECK_EQUAL(write(ready_fd, "", 1), 1);
	close(ready_fd);
}

void spawn_and_kill(void (*body)(void))
{
	int status;
	pid_t pid = spawn_ready(body);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
}

static void *open_library(const char *name)
{
	char path[512];
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		give_up(__FILE__, __LINE__, dlerror());
	return library;
}

struct row {
	const char *symbol;
	size_t offset;
};

static const struct row cuda_rows[] = {
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) {#symbol, offsetof(struct cuda, name)},
#include "abi/cuda.def"
};

static const struct row nvml_rows[] = {
#define LL_NVML_OPENED(ret, name, symbol, need, hook, params) {#symbol, offsetof(struct nvml, name)},
#include "abi/nvml.def"
};

static unsigned look_up(void *library, const struct row *rows, size_t count, void *table)
{
	unsigned missing = 0;
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(library, rows[i].symbol);
		missing += !found;
		memcpy((char *)table + rows[i].offset, &found, sizeof found);
	}
	return missing;
}

unsigned open_cuda(void)
{
	if (!cu.library)
		cu.library = open_library("libcuda.so.1");
	return look_up(cu.library, cuda_rows, sizeof cuda_rows / sizeof cuda_rows[0], &cu);
}

unsigned open_nvml(void)
{
	if (!nv.library)
		nv.library = open_library("libnvidia-ml.so.1");
	return look_up(nv.library, nvml_rows, sizeof nvml_rows / sizeof nvml_rows[0], &nv);
}

struct ll_cu_context *open_context(ll_cu_device device)
{
	struct ll_cu_context *context;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, device), 0);
	return context;
}

static const char kernels[] = ".version 7.4\n"
			      ".target sm_50\n"
			      ".address_size 64\n"
			      ".visible .global .align 4 .u32 stop_epoch = 0;\n"
			      ".visible .entry spin_ns(.param .u64 length_ns, .param .u64 record,\n"
			      "	.param .u64 late_after, .param .u64 gap_limit, .param .u64 epoch_seq)\n"
			      "{ ret; }\n"
			      ".visible .entry spin_ns_plain(.param .u64 length_ns) { ret; }\n"
			      ".visible .entry work_ns(.param .u64 length_ns) { ret; }\n"
			      ".visible .entry meet_ns(.param .u64 length_ns, .param .u64 meeting) { ret; }\n"
			      ".visible .entry fma_ns(.param .u64 length_ns, .param .u64 record,\n"
			      "	.param .u64 late_after, .param .u64 gap_limit, .param .u64 epoch_seq) { ret; }\n"
			      ".visible .entry other_kernel(.param .u32 count) { ret; }\n";

struct ll_cu_module *load_kernels(void)
{
	struct ll_cu_module *module;
	CHECK_EQUAL(cu.cuModuleLoadData(&module, kernels), 0);
	return module;
}

struct ll_cu_function *get_kernel(const char *name)
{
	struct ll_cu_function *function;
	CHECK_EQUAL(cu.cuModuleGetFunction(&function, load_kernels(), name), 0);
	return function;
}

struct ll_cu_resource_desc *new_green_desc(void)
{
	struct ll_cu_resource all, group;
	struct ll_cu_resource_desc *desc;
	unsigned count = 1;
	CHECK_EQUAL(cu.cuDeviceGetDevResource(0, &all, LL_CU_DEV_RESOURCE_TYPE_SM), 0);
	CHECK_EQUAL(cu.cuDevSmResourceSplitByCount(&group, &count, &all, NULL, 0, 8), 0);
	CHECK_EQUAL(cu.cuDevResourceGenerateDesc(&desc, &group, 1), 0);
	return desc;
}

struct ll_cu_stream *new_stream(void)
{
	struct ll_cu_stream *stream;
	CHECK_EQUAL(cu.cuStreamCreate(&stream, LL_CU_STREAM_NON_BLOCKING), 0);
	return stream;
}

struct ll_nvml_device *open_card(unsigned index)
{
	struct ll_nvml_device *device;
	if (!nv.library) {
		open_nvml();
		CHECK_EQUAL(nv.nvmlInit(), 0);
	}
	CHECK_EQUAL(nv.nvmlDeviceGetHandleByIndex(index, &device), 0);
	return device;
}

/* A library that is preloaded into this program, and built with its sanitizer, does not load into a shell. */
int run_outside(const char *line)
{
	const char *preload = getenv("LD_PRELOAD");
	char *kept = preload ? strdup(preload) : NULL;
	unsetenv("LD_PRELOAD");
	int status = system(line);
	if (kept)
		setenv("LD_PRELOAD", kept, 1);
	free(kept);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int simctl(const char *command)
{
	char line[600];
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	snprintf(line, sizeof line, "%s/loadline-simctl %s 2>&1", folder ? folder : ".", command);
	return run_outside(line);
}

/* The shell's words before it, and what comes behind. */
static int run_mps(const char *before, const char *options, char *answer, size_t size)
{
	char line[1200], path[300];
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	snprintf(path, sizeof path, "%s/answer.%d", getenv("LOADLINE_SIM_DIR"), (int)getpid());
	snprintf(line, sizeof line, "%s %s/nvidia-cuda-mps-control %s >%s 2>&1", before, folder ? folder : ".", options,
		 path);
	int status = run_outside(line);
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(answer, 1, size - 1, file) : 0;
	answer[n] = '\0';
	if (file)
		fclose(file);
	unlink(path);
	return status;
}

int mps_start(const char *options, char *answer, size_t size)
{
	return run_mps("", options, answer, size);
}

int mps_ask(const char *command, unsigned seconds, char *answer, size_t size)
{
	char before[400];
	snprintf(before, sizeof before, "echo '%s' | timeout %u", command, seconds);
	return run_mps(before, "", answer, size);
}

bool sim_answers(void)
{
	char line[600];
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	snprintf(line, sizeof line, "timeout 1 %s/loadline-simctl show >/dev/null 2>&1", folder ? folder : ".");
	return run_outside(line) == 0;
}

void stop_outside_the_driver(pid_t pid)
{
	int status;
	for (;;) {
		CHECK_EQUAL(kill(pid, SIGSTOP), 0);
		CHECK_EQUAL(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status));
		if (sim_answers())
			return;
		CHECK_EQUAL(kill(pid, SIGCONT), 0);
		sleep_ms(5); /* one that is stopped again at once does not come out of the driver before */
	}
}

struct record *new_records(unsigned count)
{
	void *records;
	CHECK_EQUAL(cu.cuMemHostAlloc(&records, count * sizeof(struct record), LL_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	return records;
}

void launch_spin(struct ll_cu_function *function, struct ll_cu_stream *stream, uint64_t length_ns,
		 struct record *record, uint64_t late_after_ns, uint64_t gap_limit_ns, uint32_t epoch,
		 uint32_t sequence)
{
	uint64_t address = (uintptr_t)record, epoch_and_sequence = (uint64_t)epoch << 32 | sequence;
	void *params[] = {&length_ns, &address, &late_after_ns, &gap_limit_ns, &epoch_and_sequence};
	CHECK_EQUAL(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
}

void launch_timed(struct ll_cu_function *function, struct ll_cu_stream *stream, uint64_t length_ns, unsigned blocks,
		  unsigned threads)
{
	void *params[] = {&length_ns};
	CHECK_EQUAL(cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL), 0);
}

void be_a_stranger(void)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	ready();
	for (;;) {
		launch_timed(work, s, 1000000, 132, 1024);
		CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	}
}
