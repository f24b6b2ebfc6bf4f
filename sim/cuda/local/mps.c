#include "cuda/local/mps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "card/engine.h"
#include "card/mps.h"
#include "card/mps_limits.h"
#include "card/mps_pipe.h"
#include "card/process.h"

ll_cu_result sim_mps_ask(struct sim_world *w, struct sim_mps_offer *ret_offer)
{
	*ret_offer = (struct sim_mps_offer){.server = SIM_NONE, .fd = -1};
	int fd = sim_mps_connect(w);
	if (fd < 0)
		return LL_CUDA_SUCCESS; /* silently: the real driver does not report either that MPS was wanted */
	uint32_t refused = sim_fault_check(w, "mps/connect");
	char text[64];
	snprintf(text, sizeof text, "client %u", sim_proc_own_uid());
	if (!refused && (!sim_mps_send(fd, text) || !sim_mps_receive(fd, text, sizeof text)))
		refused = LL_CUDA_ERROR_MPS_CONNECTION_FAILED;
	struct sim_mps_offer offer = {.fd = fd};
	if (!refused && sscanf(text, "server %u %u", &offer.server, &offer.generation) != 2 &&
	    sscanf(text, "refused %u", &refused) != 1)
		refused = LL_CUDA_ERROR_MPS_CONNECTION_FAILED;
	if (refused) {
		close(fd);
		return (ll_cu_result)refused;
	}
	*ret_offer = offer;
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_mps_accept(struct sim_world *w, const struct sim_mps_offer *offer, uint32_t proc)
{
	const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	const char *limits = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	const char *priority = getenv("CUDA_MPS_CLIENT_PRIORITY");
	const char *partition = getenv("CUDA_MPS_SM_PARTITION");
	const struct sim_mps_server *server = &w->mps_servers[offer->server];
	struct sim_mps_client wishes = {.priority = priority && strcmp(priority, "1") == 0};
	if (percent)
		sim_mps_parse_percent(percent, &wishes.permille);
	sim_mps_parse_limits(w, limits, sim_cuda.devices, (uint32_t)sim_cuda.device_count, wishes.limit_bytes);
	if (server->is_partitioned) {
		/* A client that names no existing partition passes cuInit, but cannot make a context. */
		wishes.partition = partition ? sim_mps_partition_find(w, partition) : 0;
		wishes.error = wishes.partition ? 0 : LL_CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	}
	return (ll_cu_result)sim_mps_join(w, offer->server, offer->generation, proc, &wishes);
}

bool sim_cuda_is_mps_client(void)
{
	return sim_cuda.proc != SIM_NONE && sim_cuda.world->procs[sim_cuda.proc].mps.server;
}

uint32_t sim_cuda_sms(uint32_t card)
{
	struct sim_world *w = sim_cuda.world;
	if (!sim_cuda_is_mps_client())
		return w->cards[card].sm_count;
	const struct sim_mps_client *client = &w->procs[sim_cuda.proc].mps;
	if (client->partition)
		return w->mps_partitions[client->partition - 1].chunks * SIM_MPS_CHUNK_SMS;
	return sim_mps_sms(&w->cards[card], client->permille);
}
