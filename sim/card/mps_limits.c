#include "card/mps_limits.h"

#include <stdio.h>
#include <string.h>

#include "card/defaults.h"

#define MIB (UINT64_C(1) << 20)

/* The result is whole pairs of SMs (TPCs), rounded down, but at least eight SMs (doc/facts.md). */
uint32_t sim_mps_sms(const struct sim_card *card, uint32_t permille)
{
	uint32_t sms = (uint32_t)((uint64_t)card->sm_count * permille / 1000) & ~UINT32_C(1);
	uint32_t least = card->sm_count < SIM_MPS_LEAST_SMS ? card->sm_count : SIM_MPS_LEAST_SMS;
	return permille >= 1000 ? card->sm_count : sms > least ? sms : least;
}

uint32_t sim_mps_chunks(const struct sim_card *card)
{
	return card->sm_count / SIM_MPS_CHUNK_SMS;
}

/* Returns the memory of a client's context without stack, by its share of the card: six measured points (doc/facts.md)
 * with linear interpolation. */
static uint64_t bytes_without_stack(uint32_t permille)
{
	static const struct {
		uint32_t permille, tenths_mib;
	} points[] = {{0, 418}, {10, 420}, {50, 428}, {100, 488}, {250, 828}, {500, 1448}, {1000, 2568}};
	unsigned i = 1;
	while (points[i].permille < permille)
		i++;
	uint32_t from = points[i - 1].permille, length = points[i].permille - from;
	uint64_t rise = (uint64_t)(points[i].tenths_mib - points[i - 1].tenths_mib) * MIB * (permille - from) / length;
	return (points[i - 1].tenths_mib * MIB + rise) / 10;
}

static uint32_t server_of_process(const struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		if (w->mps_servers[i].is_used && w->mps_servers[i].proc == proc)
			return i;
	}
	return SIM_NONE;
}

bool sim_mps_context_bytes(const struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes,
			   uint64_t *ret_bytes)
{
	const struct sim_proc *proc = &w->procs[context->proc];
	if (proc->role == SIM_ROLE_MPS_SERVER)
		*ret_bytes = SIM_MPS_SERVER_BYTES - SIM_PROCESS_BYTES;
	else if (proc->mps.server)
		*ret_bytes = bytes_without_stack(proc->mps.permille) + stack_bytes * 2048 * context->sm_limit;
	else
		return false;
	return true;
}

void sim_mps_context_init(const struct sim_world *w, struct sim_context *context)
{
	const struct sim_proc *proc = &w->procs[context->proc];
	const struct sim_card *card = &w->cards[context->card];
	uint32_t server = proc->mps.server ? proc->mps.server - 1 : server_of_process(w, context->proc);
	if (server == SIM_NONE)
		return;
	context->tenant = SIM_CONTEXTS + server;
	if (!proc->mps.server)
		return;
	context->client_priority = proc->mps.priority;
	context->partition = proc->mps.partition;
	context->sm_limit = sim_mps_sms(card, proc->mps.permille);
	if (proc->mps.partition)
		context->sm_limit = w->mps_partitions[proc->mps.partition - 1].chunks * SIM_MPS_CHUNK_SMS;
}

uint32_t sim_mps_owner(const struct sim_world *w, uint32_t proc)
{
	uint32_t server = w->procs[proc].mps.server;
	return server ? w->mps_servers[server - 1].proc : proc;
}

void sim_mps_partition_name(const struct sim_mps_partition *partition, char name[SIM_MPS_PARTITION_NAME_BYTES])
{
	snprintf(name, SIM_MPS_PARTITION_NAME_BYTES, "Dx%010llxAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		 (unsigned long long)partition->id);
}

uint32_t sim_mps_partition_find(const struct sim_world *w, const char *name)
{
	const char *slash = strchr(name, '/');
	for (uint32_t i = 0; slash && i < SIM_MPS_PARTITIONS; i++) {
		const struct sim_mps_partition *partition = &w->mps_partitions[i];
		char own[SIM_MPS_PARTITION_NAME_BYTES];
		sim_mps_partition_name(partition, own);
		if (partition->is_used && strcmp(own, slash + 1) == 0 &&
		    strncmp(w->cards[partition->card].uuid, name, (size_t)(slash - name)) == 0)
			return i + 1;
	}
	return 0;
}
