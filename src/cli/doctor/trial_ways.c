#include "cli/doctor/trial_ways.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/doctor/limit_trial.h"
#include "driver/library.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

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

static void print_way(const char *name, bool is_refused)
{
	printf("way %d %s\n", is_refused ? LL_TRIAL_SECOND_BYTES : 0, name);
	fflush(stdout);
}

static int try_alloc(const struct ll_cuda *cuda, alloc_fn alloc, const char *name, bool is_governed, struct ll_err *err)
{
	ll_cu_deviceptr address;
	ll_cu_result status = alloc(&address, LL_TRIAL_SECOND_BYTES);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return ll_cuda_fail(cuda, status, err, "allocate past the limit, by %s", name);
	if (status == LL_CUDA_SUCCESS)
		cuda->cuMemFree(address);
	print_way(name, is_governed && status != LL_CUDA_SUCCESS);
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

int ll_trial_try_look_ups(const struct ll_cuda *cuda, struct ll_err *err)
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
		status = cuda->cuMemAlloc(&first, LL_TRIAL_FIRST_BYTES);
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

static int be_lost(struct ll_err *err)
{
	struct ll_cuda cuda;
	int rc = ll_cuda_init(&cuda, err);
	return rc ? rc : try_context(&cuda, lost_name, err);
}

static const char forward_word[] = "forwarded", lost_word[] = "lost";

int ll_trial_be_other(const char *word, struct ll_err *err)
{
	struct ll_run_settings settings;
	if (ll_run_settings_find(&settings) < 0) {
		ll_err_set(err, -EINVAL, LL_TRIAL_WORD ": is for loadline itself");
		return ll_err_hint(err, "use 'loadline doctor'");
	}
	return strcmp(word, lost_word) == 0 ? be_lost(err) : be_forwarded(&settings, err);
}

static void start_other(const char *word, const char *name, const char *const *environment)
{
	const char *const words[] = {"loadline", LL_TRIAL_WORD, word, NULL};
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

void ll_trial_start_others(void)
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
