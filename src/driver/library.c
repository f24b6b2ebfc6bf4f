#include "driver/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translate.h"

static const char nvml_name[] = "libnvidia-ml.so.1";
static const char cuda_name[] = "libcuda.so.1";

enum need { required, optional };

/* Writes the address into *slot, a function pointer. *missing gets the first required symbol that is missing. */
static void find_symbol(void *library, const char *symbol, enum need need, void *slot, const char **missing)
{
	void *address = dlsym(library, symbol);
	memcpy(slot, &address, sizeof address);
	if (!address && need == required && !*missing)
		*missing = symbol;
}

/* dlerror returns "libX.so.1: cannot open shared object file: ...". The name is removed, because the caller adds it. */
static const char *loader_error(const char *name)
{
	const char *text = dlerror();
	size_t length = strlen(name);
	if (!text)
		return "cannot be opened";
	if (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
		return text + length + 2;
	return text;
}

static int open_library(const char *name, void **ret_library, struct ll_err *err)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		ll_err_set(err, -ENODEV, "no NVIDIA driver: %s: %s", name, loader_error(name));
		return -ENODEV;
	}
	*ret_library = library;
	return 0;
}

/* The vendor's libraries do not export this symbol. */
bool ll_library_is_simulated(void *library)
{
	return dlsym(library, "loadline_sim_world") != NULL;
}

static int fail_missing(struct ll_err *err, void *library, const char *name, const char *symbol, const char *version)
{
	ll_err_set(err, -ENOSYS, "%s of driver %s lacks %s", name, version, symbol);
	ll_err_hint(err, ll_library_is_simulated(library)
			     ? N_("the scenario makes the simulated driver so: use another scenario")
			     : N_("install driver 470 or newer"));
	return -ENOSYS;
}

static const char *find_nvml(struct ll_nvml *nvml)
{
	const char *missing = NULL;
#define LL_NVML_OPENED(ret, name, symbol, need, hook, params)                                                          \
	find_symbol(nvml->library, #symbol, need, &nvml->name, &missing);
#include "abi/nvml.def"
	return missing;
}

static const char *find_cuda(struct ll_cuda *cuda)
{
	const char *missing = NULL;
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args)                                  \
	find_symbol(cuda->library, #symbol, need, &cuda->name, &missing);
#include "abi/cuda.def"
	return missing;
}

static void read_driver_version(struct ll_nvml *nvml)
{
	char text[LL_NVML_VERSION_BUFFER_SIZE] = "";
	if (!nvml->nvmlSystemGetDriverVersion || nvml->nvmlSystemGetDriverVersion(text, sizeof text) != LL_NVML_SUCCESS)
		snprintf(text, sizeof text, "of unknown version");
	text[sizeof nvml->driver_version - 1] = '\0';
	memcpy(nvml->driver_version, text, sizeof nvml->driver_version);
}

static int hint_nvml_start(const struct ll_nvml *nvml, ll_nvml_result status, struct ll_err *err, int code)
{
	if (ll_library_is_simulated(nvml->library)) {
		ll_err_hint(err, "the scenario makes the simulated driver so: use another scenario");
		return code;
	}
	switch (status) {
	case LL_NVML_ERROR_DRIVER_NOT_LOADED:
		ll_err_hint(err, "load the kernel module (modprobe nvidia), or try --sim");
		break;
	case LL_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		ll_err_hint(err, "the driver was updated: restart the machine, or reload its kernel modules");
		break;
	case LL_NVML_ERROR_NO_PERMISSION:
		ll_err_hint(err, "this user may not open /dev/nvidia*: see `loadline doctor`");
		break;
	default:
		ll_err_hint(err, "see `loadline doctor`");
		break;
	}
	return code;
}

/* A thread that a library starts inherits the signal mask. With all signals blocked, it handles none of this program's
 * signals. */
static void block_signals(sigset_t *ret_before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

static void unblock_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* The simulated driver reports why it cannot start. */
static int check_simulator(void *library, struct ll_err *err)
{
	const char *(*trouble)(const char **ret_hint);
	void *address = dlsym(library, "loadline_sim_trouble");
	memcpy(&trouble, &address, sizeof address);
	const char *hint = "";
	const char *text = trouble ? trouble(&hint) : NULL;
	if (!text)
		return 0;
	ll_err_set(err, -ENODEV, "%s", text);
	return ll_err_hint(err, "%s", hint);
}

static int start_nvml(struct ll_nvml *nvml, const char *missing, struct ll_err *err)
{
	int rc = check_simulator(nvml->library, err);
	if (rc)
		return rc;
	if (!nvml->nvmlInit || !nvml->nvmlShutdown)
		return fail_missing(err, nvml->library, nvml_name, missing, "of unknown version");
	sigset_t before;
	block_signals(&before);
	ll_nvml_result status = nvml->nvmlInit();
	unblock_signals(&before);
	if (status != LL_NVML_SUCCESS)
		return hint_nvml_start(nvml, status, err, ll_nvml_fail(nvml, status, err, "start NVML"));
	read_driver_version(nvml);
	if (!missing)
		return 0;
	nvml->nvmlShutdown();
	return fail_missing(err, nvml->library, nvml_name, missing, nvml->driver_version);
}

int ll_nvml_init(struct ll_nvml *nvml, struct ll_err *err)
{
	struct ll_nvml table = {0};
	int rc = open_library(nvml_name, &table.library, err);
	if (rc) {
		ll_err_hint(err, "install the driver, or try --sim");
		return rc;
	}
	const char *missing = find_nvml(&table);
	rc = start_nvml(&table, missing, err);
	if (rc) {
		dlclose(table.library);
		return rc;
	}
	*nvml = table;
	return 0;
}

void ll_nvml_fini(struct ll_nvml *nvml)
{
	if (!nvml->library)
		return;
	nvml->nvmlShutdown();
	dlclose(nvml->library);
	*nvml = (struct ll_nvml){0};
}

static const char *version_text(int version, char text[24])
{
	if (version > 0)
		snprintf(text, 24, "for CUDA %d.%d", version / 1000, version % 1000 / 10);
	else
		snprintf(text, 24, "of unknown version");
	return text;
}

static int hint_cuda_start(const struct ll_cuda *cuda, ll_cu_result status, struct ll_err *err, int code)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	if (status == LL_CUDA_ERROR_NO_DEVICE && visible)
		ll_err_hint(err, "CUDA_VISIBLE_DEVICES=%.100s hides the cards", visible);
	else if (status == LL_CUDA_ERROR_SYSTEM_NOT_READY && !ll_library_is_simulated(cuda->library))
		ll_err_hint(err, "start the nvidia-fabricmanager service");
	else if (status >= LL_CUDA_ERROR_MPS_CONNECTION_FAILED && status <= LL_CUDA_ERROR_MPS_CLIENT_TERMINATED)
		ll_err_hint(err, "an MPS control daemon is in the way: see CUDA_MPS_PIPE_DIRECTORY");
	else
		ll_err_hint(err, "see `loadline doctor`");
	return code;
}

static int start_cuda(struct ll_cuda *cuda, const char *missing, struct ll_err *err)
{
	char version[24];
	if (cuda->cuDriverGetVersion && cuda->cuDriverGetVersion(&cuda->version) != LL_CUDA_SUCCESS)
		cuda->version = 0;
	if (missing)
		return fail_missing(err, cuda->library, cuda_name, missing, version_text(cuda->version, version));
	sigset_t before;
	block_signals(&before);
	ll_cu_result status = cuda->cuInit(0);
	unblock_signals(&before);
	if (status != LL_CUDA_SUCCESS)
		return hint_cuda_start(cuda, status, err, ll_cuda_fail(cuda, status, err, "start CUDA"));
	return 0;
}

int ll_cuda_init(struct ll_cuda *cuda, struct ll_err *err)
{
	struct ll_cuda table = {0};
	int rc = open_library(cuda_name, &table.library, err);
	if (rc) {
		ll_err_hint(err, "install the driver's CUDA library, or try --sim");
		return rc;
	}
	const char *missing = find_cuda(&table);
	rc = start_cuda(&table, missing, err);
	if (rc)
		return rc;
	*cuda = table;
	return 0;
}

void ll_cuda_fini(struct ll_cuda *cuda)
{
	*cuda = (struct ll_cuda){0};
}
