/*
 * nvmlInit and nvmlShutdown, versions, and the access of every function to the world.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/hide.h"
#include "card/library.h"
#include "card/status.h"
#include "nvml/local.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_world *world;
static unsigned init_count;
static struct ll_nvml_device handles[SIM_CARDS];

SIM_EXPORT ll_nvml_result nvmlInitWithFlags(unsigned int flags);

/* Functions that are newer than driver 470. A name may be a prefix of several. */
static const struct {
	const char *symbol;
	int since;
} later[] = {
    {"nvmlDeviceGetMemoryInfo_v2", 510},
    {"nvmlDeviceGetComputeRunningProcesses_v3", 510},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", 510},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", 510},
    {"nvmlGpm", 520},
    {"nvmlDeviceGetRunningProcessDetailList", 535},
};

static bool is_newer(const struct sim_world *w, const char *symbol)
{
	int driver = atoi(w->driver_version);
	for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
		if (strncmp(symbol, later[i].symbol, strlen(later[i].symbol)) == 0)
			return later[i].since > driver;
	}
	return false;
}

__attribute__((constructor)) static void on_load(void)
{
	for (uint32_t i = 0; i < SIM_CARDS; i++)
		handles[i].card = i;
	if (sim_world_attach(&world, NULL) == 0)
		sim_hide_symbols(world, is_newer);
}

const char *loadline_sim_world(void)
{
	return sim_world_folder();
}

const char *loadline_sim_trouble(const char **ret_hint)
{
	return sim_world_trouble(ret_hint);
}

struct sim_world *sim_nvml_world(void)
{
	return world;
}

struct ll_nvml_device *sim_nvml_handle(uint32_t card)
{
	return &handles[card];
}

static ll_nvml_result attach_world(void)
{
	struct ll_err err = {0};
	if (!world && sim_world_attach(&world, &err) < 0) {
		fprintf(stderr, "loadline-sim: %s%s%s\n", err.text, err.hint[0] ? "; " : "", err.hint);
		return LL_NVML_ERROR_DRIVER_NOT_LOADED;
	}
	return LL_NVML_SUCCESS;
}

static void *idle_main(void *has_begun)
{
	sem_post(has_begun);
	for (;;)
		pause();
	return NULL;
}

/* The real library starts a thread here, with the signal mask of its caller. So a program that blocks its signals later
 * finds that this thread handles them. The function returns when the thread runs, so that a fork directly afterwards
 * finds no lock of a starting thread. */
static void start_idle_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sem_t has_begun;
	sem_init(&has_begun, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	bool is_there = pthread_create(&thread, &attr, idle_main, &has_begun) == 0;
	pthread_attr_destroy(&attr);
	while (is_there && sem_wait(&has_begun) != 0)
		; /* interrupted by a signal */
	sem_destroy(&has_begun);
}

ll_nvml_result nvmlInit_v2(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start_idle_thread);

	LL_SCOPE_LOCK(&lock);
	ll_nvml_result status = attach_world();
	if (status == LL_NVML_SUCCESS)
		status = (ll_nvml_result)sim_fault_check(world, __func__);
	if (status == LL_NVML_SUCCESS)
		__atomic_fetch_add(&init_count, 1, __ATOMIC_RELEASE);
	return status;
}

ll_nvml_result nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

ll_nvml_result nvmlShutdown(void)
{
	LL_SCOPE_LOCK(&lock);
	if (!init_count)
		return LL_NVML_ERROR_UNINITIALIZED;
	__atomic_fetch_sub(&init_count, 1, __ATOMIC_RELEASE);
	return LL_NVML_SUCCESS;
}

const char *nvmlErrorString(ll_nvml_result status)
{
	return sim_nvml_status_text(status);
}

ll_nvml_result sim_nvml_enter(const char *function)
{
	if (!__atomic_load_n(&init_count, __ATOMIC_ACQUIRE))
		return LL_NVML_ERROR_UNINITIALIZED;
	__atomic_fetch_add(&world->nvml_calls, 1, __ATOMIC_RELAXED);
	return (ll_nvml_result)sim_fault_check(world, function);
}

ll_nvml_result sim_nvml_open(const char *function, struct ll_nvml_device *device, struct sim_nvml_view *ret_view)
{
	ll_nvml_result status = sim_nvml_enter(function);
	if (status)
		return status;
	if (device < handles || device >= handles + SIM_CARDS || device->card >= world->slot_count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	sim_lock(world);
	sim_advance_to_now(world);
	struct sim_card *card = &world->cards[device->card];
	uint32_t physical = card->parent == SIM_NONE ? device->card : card->parent;
	if (world->cards[physical].is_gone) {
		sim_unlock(world);
		return LL_NVML_ERROR_GPU_IS_LOST;
	}
	*ret_view = (struct sim_nvml_view){
	    .w = world,
	    .card = card,
	    .index = device->card,
	    .is_slice = card->parent != SIM_NONE,
	    .physical = physical,
	};
	return LL_NVML_SUCCESS;
}

void sim_nvml_close(const struct sim_nvml_view *view)
{
	sim_unlock(view->w);
}

static ll_nvml_result answer_text(char *ret_text, unsigned size, const char *text)
{
	if (!ret_text)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= size)
		return LL_NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(ret_text, text, strlen(text) + 1);
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlSystemGetDriverVersion(char *ret_text, unsigned int size)
{
	SIM_NVML_ENTER();
	return answer_text(ret_text, size, world->driver_version);
}

ll_nvml_result nvmlSystemGetNVMLVersion(char *ret_text, unsigned int size)
{
	SIM_NVML_ENTER();
	char text[64];
	snprintf(text, sizeof text, "%u.%s", world->cuda_version / 1000, world->driver_version);
	return answer_text(ret_text, size, text);
}

ll_nvml_result nvmlSystemGetCudaDriverVersion(int *ret_version)
{
	SIM_NVML_ENTER();
	if (!ret_version)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*ret_version = (int)world->cuda_version;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlSystemGetCudaDriverVersion_v2(int *ret_version)
{
	SIM_NVML_ENTER();
	return nvmlSystemGetCudaDriverVersion(ret_version);
}

ll_nvml_result nvmlSystemGetProcessName(unsigned int pid, char *ret_name, unsigned int size)
{
	SIM_NVML_ENTER();
	char path[40], text[4096] = "";
	if (!ret_name || !size)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	if (!file)
		return LL_NVML_ERROR_NOT_FOUND;
	size_t n = fread(text, 1, sizeof text - 1, file);
	text[n] = '\0';
	snprintf(ret_name, size, "%s", text);
	return LL_NVML_SUCCESS;
}
