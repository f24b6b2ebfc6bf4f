#include "mps_setup.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct page *page;

static void (*current_body)(void);
static bool starts_daemon;

static int daemon_pid(void)
{
	char path[300];
	int pid = 0;
	snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", getenv("CUDA_MPS_PIPE_DIRECTORY"));
	FILE *file = fopen(path, "re");
	if (file && fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid;
}

static void set_folder(const char *variable, const char *name)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", getenv("LOADLINE_SIM_DIR"), name);
	setenv(variable, path, 1);
}

static void surround(void)
{
	char answer[400];
	int status;
	set_folder("CUDA_MPS_PIPE_DIRECTORY", "pipe");
	set_folder("CUDA_MPS_LOG_DIRECTORY", "log");
	page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	if (starts_daemon && mps_start("-d", answer, sizeof answer) != 0)
		give_up(__FILE__, __LINE__, answer);
	pid_t pid = spawn(current_body);
	CHECK(waitpid(pid, &status, 0) == pid);
	page->is_over = 1;
	int left = daemon_pid();
	if (left)
		kill(left, SIGKILL);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		give_up(__FILE__, __LINE__, "the test's own process failed");
}

void in_folder(const char *scenario, void (*body)(void))
{
	current_body = body;
	starts_daemon = false;
	in_world(scenario, surround);
}

void in_mps(const char *scenario, void (*body)(void))
{
	current_body = body;
	starts_daemon = true;
	in_world(scenario, surround);
}

void expect(const char *command, const char *answer)
{
	char text[8192];
	int status = mps_ask(command, 30, text, sizeof text);
	if (status == 0 && strcmp(text, answer) == 0)
		return;
	fprintf(stderr, "%s: '%s', not '%s'\n", command, text, answer);
	CHECK_EQUAL(status, 0);
	give_up(__FILE__, __LINE__, command);
}

int ask_number(const char *command)
{
	char text[400], rest;
	int number = 0;
	CHECK_EQUAL(mps_ask(command, 30, text, sizeof text), 0);
	if (sscanf(text, "%d %c", &number, &rest) != 1)
		give_up(__FILE__, __LINE__, text);
	return number;
}

const char *about(const char *name, int pid)
{
	return about_two(name, pid, "");
}

const char *about_two(const char *name, int pid, const char *rest)
{
	static char command[200];
	snprintf(command, sizeof command, "%s %d %s", name, pid, rest);
	return command;
}

static _Noreturn void stay(void)
{
	ready();
	while (!page->is_over)
		sleep_ms(1);
	exit(0);
}

void stay_with_context(void)
{
	open_context(0);
	stay();
}

void stay_busy(void)
{
	enum { KERNELS = 1000 };
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < KERNELS; i++)
		launch_timed(work, stream, 10000000, 1, 32);
	stay();
}

void work_until_it_fails(void)
{
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *stream = new_stream();
	uint64_t length_ns = 100000;
	void *params[] = {&length_ns};
	ll_cu_result status = LL_CUDA_SUCCESS;
	ready();
	while (!status && !page->is_over) {
		status = cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
		if (!status)
			status = cu.cuStreamSynchronize(stream);
	}
	page->values[0] = (int)status;
	while (!page->is_over)
		sleep_ms(1);
}

void kill_now(pid_t pid)
{
	int status;
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
}

void tell_used_bytes(void)
{
	struct ll_nvml_memory_v2 memory = {.version = LL_NVML_MEMORY_V2};
	struct ll_nvml_device *device = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo_v2(device, &memory), 0);
	page->used_bytes = memory.used_bytes;
}

unsigned long long used_bytes(void)
{
	join(spawn(tell_used_bytes));
	return page->used_bytes;
}
