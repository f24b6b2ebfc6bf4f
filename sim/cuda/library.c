/*
 * cuInit, versions, texts of statuses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/process.h"
#include "card/status.h"
#include "card/visible.h"
#include "cuda/enter.h"
#include "cuda/inject.h"
#include "cuda/local/mps.h"

static ll_cu_result attach_world(void)
{
	struct ll_err err = {0};
	struct sim_world *world = NULL;
	if (sim_world_attach(&world, &err) < 0) {
		/* A status code cannot name the wrong line of a scenario, so this library prints the error. */
		fprintf(stderr, "loadline-sim: %s%s%s\n", err.text, err.hint[0] ? "; " : "", err.hint);
		return LL_CUDA_ERROR_SYSTEM_NOT_READY;
	}
	__atomic_store_n(&sim_cuda.world, world, __ATOMIC_RELEASE);
	return LL_CUDA_SUCCESS;
}

/* A client of MPS sees and counts its server's cards. */
static int visible_cards(const struct sim_world *w, const struct sim_mps_offer *offer)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	if (offer->server == SIM_NONE)
		return sim_visible_cards(w, list, sim_cuda.devices);
	const struct sim_mps_server *server = &w->mps_servers[offer->server];
	return sim_visible_among(w, server->cards, (int)server->card_count, list, sim_cuda.devices);
}

/* Takes a slot in the world, and accepts the MPS daemon's offer if there is one. */
static ll_cu_result join_with(struct sim_world *w, struct sim_mps_offer *offer, uint64_t *ret_init_ns)
{
	uint64_t cards = 0;
	ll_cu_result status = LL_CUDA_SUCCESS;
	sim_lock(w);
	sim_advance_to_now(w);
	sim_cuda.device_count = visible_cards(w, offer);
	sim_cuda.proc = sim_cuda.device_count ? sim_proc_join(w) : SIM_NONE;
	for (int i = 0; i < sim_cuda.device_count; i++)
		cards |= UINT64_C(1) << sim_cuda.devices[i];
	if (sim_cuda.proc != SIM_NONE)
		SIM_EDIT(w, &w->procs[sim_cuda.proc])->cards = cards;
	if (sim_cuda.proc != SIM_NONE && offer->server != SIM_NONE)
		status = sim_mps_accept(w, offer, sim_cuda.proc);
	bool is_first = true;
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		is_first &= !w->procs[i].is_used || i == sim_cuda.proc || w->procs[i].role == SIM_ROLE_MPS_CONTROL;
	if (status) {
		sim_proc_leave(w, sim_cuda.proc);
		sim_cuda.proc = SIM_NONE;
	}
	*ret_init_ns = w->init_ns / (is_first ? 1 : 10);
	sim_unlock(w);
	if (offer->fd >= 0 && (status || sim_cuda.proc == SIM_NONE))
		close(offer->fd);
	if (sim_cuda.device_count == 0)
		return LL_CUDA_ERROR_NO_DEVICE;
	if (status)
		return status;
	if (sim_cuda.proc == SIM_NONE)
		return LL_CUDA_ERROR_OPERATING_SYSTEM;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result join_world(struct sim_world *w)
{
	enum { TRIES = 3 };
	struct sim_mps_offer offer;
	uint64_t init_ns = 0;
	ll_cu_result status = LL_CUDA_ERROR_MPS_SERVER_NOT_READY;
	for (int i = 0; i < TRIES && status == LL_CUDA_ERROR_MPS_SERVER_NOT_READY; i++) {
		status = sim_mps_ask(w, &offer);
		if (status)
			return status;
		/* "Not ready" again: the offered server has ended meanwhile, and the daemon will offer another one. */
		status = join_with(w, &offer, &init_ns);
	}
	if (status == LL_CUDA_SUCCESS)
		ll_sleep_until_ns(ll_now_ns() + init_ns);
	return status;
}

ll_cu_result cuInit(unsigned int flags)
{
	if (flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_cuda.lock);
	ll_cu_result status = sim_cuda.is_dead ? LL_CUDA_ERROR_NOT_INITIALIZED : LL_CUDA_SUCCESS;
	if (status == LL_CUDA_SUCCESS && !sim_cuda.is_initialised) {
		status = sim_cuda.world ? LL_CUDA_SUCCESS : attach_world();
		if (status == LL_CUDA_SUCCESS)
			status = (ll_cu_result)sim_fault_check(sim_cuda.world, __func__);
		if (status == LL_CUDA_SUCCESS)
			status = join_world(sim_cuda.world);
		if (status == LL_CUDA_SUCCESS)
			__atomic_store_n(&sim_cuda.is_initialised, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&sim_cuda.lock);
	if (status == LL_CUDA_SUCCESS)
		sim_inject();
	return status;
}

ll_cu_result cuDriverGetVersion(int *ret_version)
{
	if (!ret_version)
		return LL_CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_cuda.lock);
	ll_cu_result status = sim_cuda.world ? LL_CUDA_SUCCESS : attach_world();
	if (status == LL_CUDA_SUCCESS)
		*ret_version = (int)sim_cuda.world->cuda_version;
	pthread_mutex_unlock(&sim_cuda.lock);
	return status;
}

ll_cu_result cuGetErrorName(ll_cu_result status, const char **ret_text)
{
	if (!ret_text)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_text = sim_cuda_status_name(status);
	return *ret_text ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuGetErrorString(ll_cu_result status, const char **ret_text)
{
	if (!ret_text)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_text = sim_cuda_status_text(status);
	return *ret_text ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
}

/* The CUDA runtime requests tables that only NVIDIA knows. It passes the refusal to its caller as an error. */
ll_cu_result cuGetExportTable(const void **ret_table, const struct ll_cu_uuid *id)
{
	if (!ret_table || !id)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_table = NULL;
	return LL_CUDA_ERROR_NOT_SUPPORTED;
}

ll_cu_result cuProfilerStart(void)
{
	SIM_ENTER();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuProfilerStop(void)
{
	SIM_ENTER();
	return LL_CUDA_SUCCESS;
}
