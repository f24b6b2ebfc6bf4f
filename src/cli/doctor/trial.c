/*
 * Whether limits hold on a card, and whether programs can set their own time on it.
 *
 * The trial of limits is loadline itself, started with TRIAL_WORD as its argument. Its environment is that of a
 * tenant with MEMORY_BYTES of memory, contexts not counted, and CAP_PERMILLE of time. It reaches the driver by dlopen
 * and dlsym, as other programs do. It prints one line for each limit: "memory REFUSED_BYTES" or "memory 0", then
 * "compute PERMILLE". It tries the memory limit by all other ways to the driver too, each with its line. An earlier
 * failure is an error like that of any command.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/env_sim.h"
#include "cli/common/still.h"
#include "cli/doctor/doctor.h"
#include "cli/run/run.h"
#include "driver/library.h"
#include "driver/readings.h"
#include "hold/payload.h"
#include "protocol/client.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

#define TRIAL_WORD "limit-trial"

enum {
	MEMORY_BYTES = 64 << 20,
	FIRST_BYTES = 16 << 20,  /* within the limit */
	SECOND_BYTES = 64 << 20, /* exceeds the limit together with the first */
	CAP_PERMILLE = 250,
	RUN_MS = 500,
};

/* ---- the other ways to the driver ---- */

/*
 * The ways by which the trial of limits reaches the driver, besides the plain one.
 *
 * A limit holds if the program gets the library's functions by each of them. The trial tries to exceed its memory limit
 * by each, and prints a line: "way REFUSED_BYTES NAME", or "way 0 NAME" if the limit does not hold, or "untried NAME"
 * if it could not be tried. A way that this driver or C library does not have gets no line. By each way that finds a
 * dlsym, NVML's functions are looked up too, and must be the library's.
 *
 * Two ways need processes of their own: the driver behind a libcuda.so.1 that only forwards to it, and a program that
 * lost LOADLINE_RUN. They are this program again, with the trial's word and their own.
 */

enum { FIRST_VERSION = 11030, SECOND_VERSION = 12000 }; /* CUDA's, of which cuGetProcAddress is asked */

typedef void *(*find_fn)(void *handle, const char *name);
typedef void *(*find_version_fn)(void *handle, const char *name, const char *version);
typedef __typeof__(((struct ll_cuda *)NULL)->cuMemAlloc) alloc_fn;

/* As programs that are linked to cuda.h have it: a pointer to data becomes one to a function. */
#define AS_FUNCTION(type, address)                                                                                     \
	__extension__({                                                                                                \
		void *address_ = (address);                                                                            \
		type function_;                                                                                        \
		memcpy(&function_, &address_, sizeof function_);                                                       \
		function_;                                                                                             \
	})

/* ---- a dlsym ---- */

static find_fn plain_dlsym(void)
{
	return dlsym;
}

/* As libraries do that stand in front of dlsym. */
static find_fn dlsym_by_version(void)
{
	static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
	find_version_fn find_version = AS_FUNCTION(find_version_fn, dlsym(RTLD_DEFAULT, "dlvsym"));
	void *found = NULL;
	for (size_t i = 0; find_version && !found && i < sizeof versions / sizeof *versions; i++)
		found = find_version(RTLD_NEXT, "dlsym", versions[i]);
	return AS_FUNCTION(find_fn, found);
}

static find_fn dlsym_of_libc(void)
{
	static const char *const files[] = {"libc.so.6", "libdl.so.2"}; /* it moved to libc in glibc 2.34 */
	void *found = NULL;
	for (size_t i = 0; !found && i < sizeof files / sizeof *files; i++) {
		void *libc = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
		found = libc ? dlsym(libc, "dlsym") : NULL;
	}
	return AS_FUNCTION(find_fn, found);
}

static const struct {
	const char *name;
	find_fn (*find)(void);
} finders[] = {
    {"dlsym", plain_dlsym},
    {"a dlsym found by dlvsym", dlsym_by_version},
    {"a dlsym found in libc", dlsym_of_libc},
};

/* ---- an allocation by each ---- */

static int try_alloc(const struct ll_cuda *cuda, alloc_fn alloc, const char *name, bool is_governed, struct ll_err *err)
{
	ll_cu_deviceptr address;
	ll_cu_result status = alloc(&address, SECOND_BYTES);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return ll_cuda_fail(cuda, status, err, "allocate past the limit, by %s", name);
	if (status == LL_CUDA_SUCCESS)
		cuda->cuMemFree(address);
	printf("way %d %s\n", is_governed && status != LL_CUDA_SUCCESS ? SECOND_BYTES : 0, name);
	fflush(stdout);
	return 0;
}

/* The first function of that name is the library's, because it is preloaded. */
static bool is_nvml_governed(find_fn find)
{
	static const char name[] = "nvmlDeviceGetMemoryInfo";
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
	return !nvml || find(nvml, name) == dlsym(RTLD_DEFAULT, name);
}

static int try_finders(const struct ll_cuda *cuda, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < sizeof finders / sizeof *finders; i++) {
		find_fn find = finders[i].find();
		void *found = find ? find(cuda->library, "cuMemAlloc_v2") : NULL;
		if (found)
			rc =
			    try_alloc(cuda, AS_FUNCTION(alloc_fn, found), finders[i].name, is_nvml_governed(find), err);
	}
	return rc;
}

/* Tries the ways that look a function up. The program has a context, and FIRST_BYTES of memory. */
static int try_look_ups(const struct ll_cuda *cuda, struct ll_err *err)
{
	void *found;
	int rc = try_finders(cuda, err);
	if (!rc && cuda->cuGetProcAddress_v1 && !cuda->cuGetProcAddress_v1("cuMemAlloc", &found, FIRST_VERSION, 0))
		rc = try_alloc(cuda, AS_FUNCTION(alloc_fn, found), "cuGetProcAddress", true, err);
	if (!rc && cuda->cuGetProcAddress && !cuda->cuGetProcAddress("cuMemAlloc", &found, SECOND_VERSION, 0, NULL) &&
	    found)
		rc = try_alloc(cuda, AS_FUNCTION(alloc_fn, found), "cuGetProcAddress_v2", true, err);
	return rc;
}

/* ---- processes of their own ---- */

static const char forward_name[] = "a libcuda.so.1 that forwards", lost_name[] = "an environment without LOADLINE_RUN";

static int try_context(const struct ll_cuda *cuda, const char *name, struct ll_err *err)
{
	struct ll_cu_context *context;
	ll_cu_device device;
	ll_cu_deviceptr first;
	ll_cu_result status = cuda->cuInit(0);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuDeviceGet(&device, 0);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuDevicePrimaryCtxRetain(&context, device);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxSetCurrent(context);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemAlloc(&first, FIRST_BYTES);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(NULL, status, err, "allocate within the limit, by %s", name);
	int rc = try_alloc(cuda, cuda->cuMemAlloc, name, true, err);
	cuda->cuMemFree(first);
	return rc;
}

extern const unsigned char ll_forward_library[];
extern const size_t ll_forward_library_bytes;

/* In the trial's folder, which is removed with all that is in it. */
static int write_forward(const char *folder, char *path, size_t size, struct ll_err *err)
{
	int length = snprintf(path, size, "%s/libcuda.so.1", folder);
	if (length < 0 || (size_t)length >= size)
		return ll_err_set(err, -ENAMETOOLONG, "%s: %s", folder, strerror(ENAMETOOLONG));
	LL_SCOPE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	ssize_t written = write(fd, ll_forward_library, ll_forward_library_bytes);
	return written == (ssize_t)ll_forward_library_bytes ? 0 : ll_err_set(err, -EIO, "%s: cannot be written", path);
}

/* Takes only what the forwarding library answers. False: the driver has no cuGetProcAddress. */
static bool fill_forwarded(struct ll_cuda *cuda)
{
	const struct {
		const char *name;
		void *member;
	} wanted[] = {
	    {"cuInit", &cuda->cuInit},
	    {"cuDeviceGet", &cuda->cuDeviceGet},
	    {"cuDevicePrimaryCtxRetain", &cuda->cuDevicePrimaryCtxRetain},
	    {"cuCtxSetCurrent", &cuda->cuCtxSetCurrent},
	    {"cuMemAlloc", &cuda->cuMemAlloc},
	    {"cuMemFree", &cuda->cuMemFree},
	};
	__typeof__(cuda->cuGetProcAddress_v1) get =
	    AS_FUNCTION(__typeof__(get), dlsym(cuda->library, "cuGetProcAddress"));
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		void *found = NULL;
		if (get(wanted[i].name, &found, FIRST_VERSION, 0) != LL_CUDA_SUCCESS || !found)
			return false;
		memcpy(wanted[i].member, &found, sizeof found);
	}
	return true;
}

static int be_forwarded(const struct ll_run_settings *settings, struct ll_err *err)
{
	char path[LL_FOLDER_SIZE + 16];
	struct ll_cuda cuda = {0};
	int rc = write_forward(settings->folder, path, sizeof path, err);
	if (rc)
		return rc;
	cuda.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!cuda.library)
		return ll_err_set(err, -ENOEXEC, "%s", dlerror());
	return fill_forwarded(&cuda) ? try_context(&cuda, forward_name, err) : 0;
}

static const char forward_word[] = "forwarded", lost_word[] = "lost";

static void start_other(const char *word, const char *name, const char *const *environment)
{
	const char *const words[] = {"loadline", TRIAL_WORD, word, NULL};
	const struct ll_child child = {.words = words,
				       .environment = environment,
				       .in = LL_CHILD_NULL,
				       .out = STDOUT_FILENO,
				       .err = STDERR_FILENO,
				       .flags = LL_CHILD_MORTAL};
	pid_t pid;
	int status = -1;
	fflush(stdout);
	if (!ll_child_start(&child, &pid, NULL)) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (status)
		printf("untried %s\n", name);
}

/* Starts the processes, and waits for each. */
static void start_others(void)
{
	size_t count = 0, used = 0;
	while (environ[count])
		count++;
	LL_SCOPE_FREE const char **left = calloc(count + 1, sizeof *left);
	start_other(forward_word, forward_name, NULL);
	for (size_t i = 0; left && i < count; i++) {
		bool is_settings = strncmp(environ[i], LL_RUN_VARIABLE "=", sizeof LL_RUN_VARIABLE) == 0;
		if (!is_settings)
			left[used++] = environ[i];
	}
	if (left)
		start_other(lost_word, lost_name, left);
}

/* ---- the trial ---- */

#define KERNEL_NS (1 * LL_NS_PER_MS)

enum { PAGE_BYTES = 4096 }; /* the kernel rounds the address of its record down to this, to find the stop word */

extern const unsigned char ll_spin_ptx[];

struct trial {
	struct ll_cuda cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *spin;
	void *page;
	ll_cu_deviceptr record;
	uint32_t launches;
};

static int make_context(struct trial *trial, struct ll_err *err)
{
	const struct ll_cuda *cuda = &trial->cuda;
	ll_cu_device device;
	ll_cu_result status = cuda->cuDeviceGet(&device, 0);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxCreate(&trial->context, LL_CU_CTX_SCHED_BLOCKING_SYNC | LL_CU_CTX_MAP_HOST, device);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "make a context");
}

static int try_memory(struct trial *trial, struct ll_err *err)
{
	const struct ll_cuda *cuda = &trial->cuda;
	ll_cu_deviceptr first;
	ll_cu_deviceptr second;
	ll_cu_result status = cuda->cuMemAlloc(&first, FIRST_BYTES);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "allocate within the limit");
	status = cuda->cuMemAlloc(&second, SECOND_BYTES);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return ll_cuda_fail(cuda, status, err, "allocate past the limit");
	bool is_refused = status == LL_CUDA_ERROR_OUT_OF_MEMORY;
	printf("memory %d\n", is_refused ? SECOND_BYTES : 0);
	if (!is_refused)
		cuda->cuMemFree(second);
	int rc = try_look_ups(cuda, err);
	cuda->cuMemFree(first);
	return rc;
}

static int load_kernel(struct trial *trial, struct ll_err *err)
{
	const struct ll_cuda *cuda = &trial->cuda;
	struct ll_cu_module *module;
	trial->page = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
	if (!trial->page)
		return ll_err_set(err, -ENOMEM, "host memory: %s", strerror(ENOMEM));
	memset(trial->page, 0, PAGE_BYTES);
	ll_cu_result status = cuda->cuModuleLoadData(&module, ll_spin_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&trial->spin, module, "spin_ns");
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostRegister(trial->page, PAGE_BYTES, LL_CU_MEMHOSTREGISTER_DEVICEMAP);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostGetDevicePointer(&trial->record, trial->page, 0);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "load a kernel");
}

static int launch_one(struct trial *trial, struct ll_err *err)
{
	uint64_t length_ns = KERNEL_NS, never = 0, epoch_and_sequence = UINT64_C(1) << 32 | ++trial->launches;
	void *params[] = {&length_ns, &trial->record, &never, &never, &epoch_and_sequence};
	ll_cu_result status = trial->cuda.cuLaunchKernel(trial->spin, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(&trial->cuda, status, err, "run a kernel");
}

/* It launches ahead and does not wait for each kernel: on a busy host such waits look like a limit. The kernels that
 * are still queued at the end are waited for, and their wait counts. */
static int try_compute(struct trial *trial, struct ll_err *err)
{
	const uint64_t run_ns = RUN_MS * LL_NS_PER_MS;
	int rc = load_kernel(trial, err);
	uint64_t start_ns = ll_now_ns();
	while (!rc && trial->launches < run_ns / KERNEL_NS && ll_now_ns() - start_ns < run_ns)
		rc = launch_one(trial, err);
	ll_cu_result status = rc ? LL_CUDA_SUCCESS : trial->cuda.cuCtxSynchronize();
	if (status != LL_CUDA_SUCCESS)
		rc = ll_cuda_fail(&trial->cuda, status, err, "wait for kernels");
	if (!rc)
		printf("compute %llu\n",
		       (unsigned long long)(trial->launches * KERNEL_NS * 1000 / (ll_now_ns() - start_ns)));
	return rc;
}

bool ll_trial_is_asked(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], TRIAL_WORD) == 0;
}

int ll_trial_main(const char *word, struct ll_err *err)
{
	struct trial trial = {0};
	struct ll_run_settings settings;
	if (ll_run_settings_find(&settings) < 0) {
		ll_err_set(err, -EINVAL, TRIAL_WORD ": is for loadline itself");
		return ll_err_hint(err, "use 'loadline doctor'");
	}
	if (word && strcmp(word, lost_word) != 0)
		return be_forwarded(&settings, err);
	int rc = ll_cuda_init(&trial.cuda, err);
	if (word)
		return rc ? rc : try_context(&trial.cuda, lost_name, err);
	if (!rc)
		rc = make_context(&trial, err);
	if (!rc)
		rc = try_memory(&trial, err);
	if (!rc)
		rc = try_compute(&trial, err);
	if (trial.context)
		trial.cuda.cuCtxDestroy(trial.context);
	free(trial.page);
	if (!rc)
		start_others();
	return rc;
}

/* ---- a loadlined for the trial ---- */

/*
 * A loadlined for doctor's trial of limits alone, so that the trial does not appear in the user's one.
 *
 * It has a place of its own, named after the trial's folder as that of a simulated world is. This process registers the
 * trial as its job, as a monitor does, and the daemon ends with the trial.
 */
struct trial_daemon {
	struct ll_run_talk talk; /* this process is the job's monitor */
	int lifeline[2];
};

static int register_job(struct trial_daemon *daemon, const struct ll_run_settings *settings, struct ll_err *err)
{
	union ll_message message;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	LL_SCOPE_CLOSE int process_fd = ll_process_open(getpid());
	const struct ll_client_self self = {LOADLINE_VERSION, LL_ROLE_MONITOR, process_fd, NULL};
	const struct ll_run_job job = {.settings = settings, .command = "limit-trial"};
	if (process_fd < 0)
		return ll_err_set(err, process_fd, "this process: %s", strerror(-process_fd));
	if (pipe2(daemon->lifeline, O_CLOEXEC | O_NONBLOCK) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	const int fds[] = {process_fd, daemon->lifeline[0]};
	ll_run_job_describe(&job, &message);
	int rc = ll_client_open(&daemon->talk.client, &daemon->talk.place, &self, deadline_ns, err);
	return rc ? rc : ll_client_request(&daemon->talk.client, &message, fds, 2, NULL, deadline_ns, err);
}

/* Starts it, registers the job of the settings, binds it to the card, and writes the place into the settings. The
 * folder is the settings'. The caller calls end in each case. */
static int start_daemon(struct trial_daemon *daemon, struct ll_run_settings *settings, const struct ll_card *card,
			struct ll_err *err)
{
	const struct ll_card *none;
	struct ll_daemon_paths paths;
	const struct ll_run_binding binding = {
	    .settings = settings, .cards = &card, .count = 1, .may_overcommit = true};
	*daemon = (struct trial_daemon){.talk = LL_RUN_TALK_NONE, .lifeline = {-1, -1}};
	int rc = ll_place_find(settings->folder, &daemon->talk.place, err);
	if (!rc)
		rc = ll_daemon_paths_find(&paths, err);
	if (!rc)
		rc = ll_daemon_start(&daemon->talk.place, &paths.programs, err);
	if (!rc)
		rc = register_job(daemon, settings, err);
	if (rc)
		return rc;
	memcpy(settings->place, daemon->talk.place.name, sizeof settings->place);
	return ll_run_bind(&daemon->talk, &binding, &none, err);
}

/* Whether the job has had GPU time, which it has only if a library charged it. */
static bool has_charged(const struct trial_daemon *daemon)
{
	struct ll_client client;
	struct ll_list list = {0};
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	bool is_charged = false;
	int rc = ll_client_open(&client, &daemon->talk.place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	if (!rc)
		rc = ll_client_list(&client, &list, deadline_ns, NULL);
	for (size_t i = 0; !rc && i < list.card_count; i++)
		is_charged |= list.cards[i].gpu_time_ns > 0;
	ll_list_fini(&list);
	ll_client_close(&client);
	return is_charged;
}

static void close_end(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* The daemon would end by itself some seconds later. It lives as long as the connection, and its number is its own: who
 * connects before it listens sees this process as the other side, which made the socket. */
static void end_daemon(struct trial_daemon *daemon)
{
	if (daemon->talk.client.fd >= 0 && daemon->talk.client.welcome.pid)
		kill((pid_t)daemon->talk.client.welcome.pid, SIGTERM);
	ll_run_talk_end(&daemon->talk);
	close_end(daemon->lifeline[0]);
	close_end(daemon->lifeline[1]);
}

/* ---- limits ---- */

/* PERMILLE_SLACK: the trial lasts half a second, and on a busy host the share measured in so short a time may exceed
 * the cap by up to a tenth of the card. */
enum { DEADLINE_S = 60, PERMILLE_SLACK = 100 };

static const char advice[] = N_("do not rely on `loadline run` here: it does not hold programs to their limits");

struct outcome {
	struct ll_strbuf text; /* all that the trial printed, errors included */
	bool is_late;
	bool has_joined; /* the library took a slot of the loadlined that was started for the trial */
};

struct endings {
	sigset_t before; /* the signal mask before; the trial gets it, and this thread gets it back */
	int fd;          /* a signalfd, readable when one of the signals has come; -1: it could not be made */
};

static void __attribute__((format(printf, 2, 3))) fail_limit(struct ll_doctor *doctor, const char *fmt, ...)
{
	char detail[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, ll_translate(fmt), ap);
	va_end(ap);
	doctor->limit_fails++;
	ll_doctor_fail(doctor, advice, "%s", detail);
}

/* The trial leaves nothing behind. */
static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}

/* Runs the trial in the environment that `run` would give it. */
static int run_trial(const struct ll_run_settings *settings, const struct ll_card *card, const char *shim,
		     const struct endings *endings, struct outcome *outcome, struct ll_err *err)
{
	static const char *const words[] = {"loadline", TRIAL_WORD, NULL};
	char **environment = NULL;
	int status = 0;
	int rc = ll_run_environment_make(
	    &(struct ll_run_environment){.settings = settings, .shim = shim, .visible = card->uuid}, &environment, err);
	if (rc)
		return rc;
	struct ll_child_run run = {.child = {.words = words,
					     .environment = (const char *const *)environment,
					     .in = LL_CHILD_NULL,
					     .out = LL_CHILD_COLLECTED,
					     .err = LL_CHILD_COLLECTED,
					     .mask = &endings->before},
				   .deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S,
				   .stop_fd = &endings->fd};
	rc = ll_child_run(&run, &outcome->text, &status, err);
	ll_run_environment_free(environment);
	outcome->is_late = rc == -ETIMEDOUT;
	if (rc == -ETIMEDOUT || rc == -EINTR)
		return 0;
	return rc ? ll_err_wrap(err, "start the trial") : 0;
}

/* Makes the job as `run` does, with a loadlined of its own. */
static int try_in_folder(struct ll_run_settings *settings, const struct ll_card *card, const char *shim,
			 const struct endings *endings, struct outcome *outcome, struct ll_err *err)
{
	struct trial_daemon daemon;
	int rc = start_daemon(&daemon, settings, card, err);
	if (!rc)
		rc = run_trial(settings, card, shim, endings, outcome, err);
	if (!rc)
		outcome->has_joined = has_charged(&daemon);
	end_daemon(&daemon);
	return rc;
}

static int make_folder(char ret_folder[LL_FOLDER_SIZE], struct ll_err *err)
{
	const char *temporary = getenv("TMPDIR");
	int length = snprintf(ret_folder, LL_FOLDER_SIZE, "%s/loadline-doctor-XXXXXX",
			      temporary && *temporary ? temporary : "/tmp");
	if (length >= LL_FOLDER_SIZE)
		return ll_err_set(err, -ENAMETOOLONG, "TMPDIR: %s", strerror(ENAMETOOLONG));
	return mkdtemp(ret_folder) ? 0 : ll_err_set(err, -errno, "%s: %s", ret_folder, strerror(errno));
}

static int try_limits(const struct ll_card *card, const char *shim, struct outcome *outcome, struct ll_err *err)
{
	struct ll_run_settings settings = {
	    .id = (uint64_t)getpid(),
	    .tenant = "doctor",
	    .priority = LL_PRIORITY_NORMAL,
	    .memory_limit_bytes = MEMORY_BYTES,
	    .compute_cap_permille = CAP_PERMILLE,
	    .weight_permille = 1000,
	};
	/* They end this program when the trial's folder is removed. */
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct endings endings;
	endings.fd = ll_endings_block(signals, sizeof signals / sizeof *signals, &endings.before);
	int rc = make_folder(settings.folder, err);
	if (!rc) {
		rc = try_in_folder(&settings, card, shim, &endings, outcome, err);
		remove_folder(settings.folder);
	}
	if (endings.fd >= 0)
		close(endings.fd);
	/* A blocked signal that has come takes effect here. */
	pthread_sigmask(SIG_SETMASK, &endings.before, NULL);
	return rc;
}

/* Finds the line that begins with word, and returns the number after it. -1: there is no such line. */
static long find_number(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *line = text; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
		if (strncmp(line, word, length) == 0 && line[length] == ' ')
			return strtol(line + length, NULL, 10);
	}
	return -1;
}

static void say_memory(struct ll_doctor *doctor, long refused_bytes)
{
	doctor->check = "memory limit";
	const int mib = 1 << 20;
	if (refused_bytes > 0)
		ll_doctor_ok(doctor,
			     "in force: a program with a limit of %d MiB was refused %ld MiB after it had %d MiB",
			     MEMORY_BYTES / mib, refused_bytes / mib, FIRST_BYTES / mib);
	else
		fail_limit(doctor, "not in force: a program with a limit of %d MiB got %d MiB", MEMORY_BYTES / mib,
			   (FIRST_BYTES + SECOND_BYTES) / mib);
}

static void say_compute(struct ll_doctor *doctor, long permille)
{
	doctor->check = "compute limit";
	double percent = (double)permille / 10;
	if (permille <= CAP_PERMILLE + PERMILLE_SLACK)
		ll_doctor_ok(doctor, "in force: kernels of a program with a cap of %d %% ran %.0f %% of the time",
			     CAP_PERMILLE / 10, percent);
	else
		fail_limit(doctor, "not in force: kernels of a program with a cap of %d %% ran %.0f %% of the time",
			   CAP_PERMILLE / 10, percent);
}

/* Adds the names on the lines that begin with the word, and for "way" whose number is 0, or is not. */
static void add_names(struct ll_strbuf *names, const char *text, const char *word, bool is_refused)
{
	size_t length = strlen(word);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, word, length) != 0)
			continue;
		char *name = (char *)line + length;
		bool fits = strtol(name, &name, 10) > 0 ? is_refused : !is_refused;
		if (fits)
			ll_strbuf_addf(names, "%s%.*s", names->length ? ", " : "", (int)strcspn(name + 1, "\n"),
				       name + 1);
	}
}

static void say_ways(struct ll_doctor *doctor, const char *text)
{
	doctor->check = "ways to the driver";
	LL_SCOPE_STRBUF struct ll_strbuf held = LL_STRBUF_INIT, past = LL_STRBUF_INIT, untried = LL_STRBUF_INIT;
	add_names(&held, text, "way", true);
	add_names(&past, text, "way", false);
	add_names(&untried, text, "untried", false);
	if (past.length)
		fail_limit(doctor, "programs get past a memory limit by %s", past.buf);
	else if (held.length)
		ll_doctor_say(doctor, untried.length ? LL_FINDING_WARN : LL_FINDING_OK, NULL,
			      "a memory limit is in force by %s%s%s", held.buf,
			      untried.length ? _("; not tried: ") : "", untried.buf);
}

static void say_library(struct ll_doctor *doctor, const char *shim)
{
	doctor->check = "limits";
	doctor->limit_fails++;
	ll_doctor_fail(doctor, N_("install all of loadline, and unset LOADLINE_SHIM"),
		       "%.300s took no claim: the library and this program have different versions", shim);
}

/* The trial ended before it tried the limit. The advice is the one in its error. */
static void say_failed(struct ll_doctor *doctor, const char *check, struct outcome *outcome)
{
	doctor->check = check;
	char *why = strstr(outcome->text.buf, "loadline: ");
	why = why ? why + strlen("loadline: ") : outcome->text.buf;
	why[strcspn(why, "\n")] = '\0';
	char *todo = strstr(why, "; ");
	if (todo)
		*todo = '\0';
	doctor->limit_fails++;
	doctor->untried++;
	ll_doctor_fail(doctor, todo ? todo + 2 : NULL, "the trial %s%s%s", outcome->is_late ? _("hangs") : _("failed"),
		       *why ? ": " : "", why);
}

static void say_outcome(struct ll_doctor *doctor, const char *shim, struct outcome *outcome)
{
	long refused_bytes = find_number(outcome->text.buf, "memory");
	long permille = find_number(outcome->text.buf, "compute");
	if (refused_bytes >= 0)
		say_memory(doctor, refused_bytes);
	if (permille >= 0)
		say_compute(doctor, permille);
	if (refused_bytes >= 0)
		say_ways(doctor, outcome->text.buf);
	if (permille >= 0 && !outcome->has_joined)
		say_library(doctor, shim);
	if (refused_bytes >= 0 && permille >= 0)
		return;
	say_failed(doctor, refused_bytes < 0 ? "memory limit" : "compute limit", outcome);
}

/* The trial is skipped if its context would be refused, or would lock other programs out. */
static const char *reason_to_skip(const struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	enum ll_compute_mode mode;
	ll_cu_device device;
	if (doctor->is_refusing)
		return _("`loadline run` refuses, so no program was started");
	if (ll_read_compute_mode(card, &mode, NULL) == 0 && mode != LL_MODE_DEFAULT)
		return _("the card's compute mode allows one program at most");
	/* The trial's CUDA_VISIBLE_DEVICES names its slice alone. If the variable is not set here, it does not matter
	 * which slice CUDA shows to this process. */
	bool is_hidden = card->is_mig ? getenv("CUDA_VISIBLE_DEVICES") != NULL : true;
	if (is_hidden && ll_card_cuda_device(card, NULL, &device, NULL) < 0)
		return _("CUDA does not show the card");
	return NULL;
}

void ll_doctor_check_limits(struct ll_doctor *doctor)
{
	char shim[PATH_MAX];
	struct outcome outcome = {.text = LL_STRBUF_INIT};
	struct ll_err err = {0};
	const char *reason = reason_to_skip(doctor);
	if (reason)
		ll_doctor_ok(doctor, "skipped: %s", reason);
	else if (ll_run_find_shim(shim, &err) < 0) {
		doctor->limit_fails++;
		ll_doctor_say_err(doctor, LL_FINDING_FAIL, &err);
	} else if (try_limits(doctor->card, shim, &outcome, &err) < 0)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
	else
		say_outcome(doctor, shim, &outcome);
	ll_strbuf_fini(&outcome.text);
}

/* ---- slices ---- */

/* Whether programs can set their own time on a card: what loadline-sensor's trial measures (sensor/sensor.h). */
/* What is taken for 1 : 1. */
static const double ignored_most = 1.25;

/* Gives the trial's only line: the result, or why there is none. */
static int measure_slices(const struct ll_card *card, struct ll_strbuf *text, struct ll_err *err)
{
	static const char *const places[] = {"src/sensor", "../lib/loadline", ".", NULL};
	char path[PATH_MAX];
	int status = 0;
	int rc = ll_beside_find(places, "loadline-sensor", path);
	if (rc)
		return ll_err_set(err, rc, "loadline-sensor: %s", strerror(-rc));
	const char *words[] = {"loadline-sensor", "--trial", card->uuid, NULL};
	struct ll_child_run run = {.child = {.path = path,
					     .words = words,
					     .in = LL_CHILD_NULL,
					     .out = LL_CHILD_COLLECTED,
					     .err = LL_CHILD_COLLECTED,
					     .flags = LL_CHILD_MORTAL}};
	rc = ll_child_run(&run, text, &status, err);
	text->buf[strcspn(text->buf, "\n")] = '\0';
	if (!rc && status)
		rc = ll_err_set(err, -EIO, "%s", *text->buf ? text->buf : _("the trial has ended without a word"));
	return rc;
}

static void say_result(struct ll_doctor *doctor, const char *text)
{
	static const char less_exact[] = N_("shares of time are less exact here");
	int slices = 0, needs_commit = 0, off = 0, was_full = 0;
	double ratio = 0, off_us = 0, on_us = 0;
	json_int_t kernels = 0, wrong = 0;
	json_t *result = json_loads(text, 0, NULL);
	if (!result || json_unpack(result, "{s:b, s:b, s:b, s:b, s:F, s:F, s:F, s:I, s:I}", "slices", &slices,
				   "needs_commit", &needs_commit, "off", &off, "card_was_full", &was_full, "ratio",
				   &ratio, "off_us", &off_us, "on_us", &on_us, "kernels", &kernels, "wrong", &wrong))
		ll_doctor_warn(doctor, NULL, "the trial's result cannot be read: %s", text);
	else if (wrong)
		ll_doctor_fail(doctor, N_("the card loses work when programs share it; report it to its vendor"),
			       "%lld of %lld kernels had a wrong result", (long long)wrong, (long long)kernels);
	else if (slices && off)
		ll_doctor_ok(doctor,
			     "set by programs themselves: slices of 4 : 1 gave %.2f : 1%s; off the card in %.1f ms and "
			     "on again in %.1f ms; %lld kernels, all results right",
			     ratio, needs_commit ? _(" after a preemption") : "", off_us / 1e3, on_us / 1e3,
			     (long long)kernels);
	else if (!slices && (!was_full || ratio > ignored_most))
		ll_doctor_warn(doctor, N_("try again when the machine is quiet"),
			       "not clear: slices of 4 : 1 gave %.2f : 1", ratio);
	else
		ll_doctor_warn(doctor, less_exact,
			       slices ? N_("slices of 4 : 1 gave %.2f : 1; this driver takes no program off the card")
				      : N_("slices of 4 : 1 gave %.2f : 1, so this card or driver ignores them"),
			       ratio);
	json_decref(result);
}

/* Beside other work nothing would be measured. */
void ll_doctor_check_slices(struct ll_doctor *doctor)
{
	const struct ll_card *card = doctor->card;
	struct ll_process_list list = {0};
	struct ll_err err = {0};
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	if (card->is_mig || doctor->has_no_cuda)
		return;
	size_t count = ll_read_processes(card, LL_PROCESS_ALL, &list, NULL) ? 0 : list.count;
	ll_process_list_fini(&list);
	if (count)
		ll_doctor_ok(doctor, "not tried: processes on the card: %zu", count);
	else if (measure_slices(card, &text, &err))
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
	else
		say_result(doctor, text.buf);
}
