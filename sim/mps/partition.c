#include "mps/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "card/mps_limits.h"
#include "card/mps_pipe.h"
#include "mps/servers.h"

static bool is_own(const struct sim_mps_daemon *daemon, const struct sim_mps_partition *partition)
{
	return partition->is_used && partition->control == daemon->proc;
}

static uint32_t used_chunks(const struct sim_mps_daemon *daemon, uint32_t card)
{
	uint32_t used = 0;
	for (uint32_t i = 0; i < SIM_MPS_PARTITIONS; i++) {
		const struct sim_mps_partition *partition = &daemon->w->mps_partitions[i];
		used += is_own(daemon, partition) && partition->card == card ? partition->chunks : 0;
	}
	return used;
}

static bool has_clients(const struct sim_world *w, uint32_t partition)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (w->procs[i].is_used && w->procs[i].mps.server && w->procs[i].mps.partition == partition + 1)
			return true;
	}
	return false;
}

void sim_mps_partition_list(const struct sim_mps_daemon *daemon, struct ll_strbuf *answer)
{
	const struct sim_world *w = daemon->w;
	ll_strbuf_addf(answer, "%-14s%-46s%-7s%-7s%-6s%-6s%s\n", "GPU", "Partition", "free", "used", "free", "used",
		       "clients");
	ll_strbuf_addf(answer, "%-60s%-7s%-7s%-6s%s\n", "", "chunk", "chunk", "SM", "SM");
	for (uint32_t c = 0; c < daemon->defaults.card_count && daemon->defaults.is_partitioned; c++) {
		uint32_t index = daemon->defaults.cards[c], used = used_chunks(daemon, index);
		const struct sim_card *card = &w->cards[index];
		ll_strbuf_addf(answer, "%-14.12s%-46s%-7u%-7u%-6u%-6u-\n", card->uuid, "-", sim_mps_chunks(card) - used,
			       used, card->sm_count - used * SIM_MPS_CHUNK_SMS, used * SIM_MPS_CHUNK_SMS);
		for (uint32_t i = 0; i < SIM_MPS_PARTITIONS; i++) {
			const struct sim_mps_partition *partition = &w->mps_partitions[i];
			char name[SIM_MPS_PARTITION_NAME_BYTES];
			if (!is_own(daemon, partition) || partition->card != index)
				continue;
			sim_mps_partition_name(partition, name);
			ll_strbuf_addf(answer, "%-14.12s%-46s%-7s%-7u%-6s%-6u%s\n", card->uuid, name, "-",
				       partition->chunks, "-", partition->chunks * SIM_MPS_CHUNK_SMS,
				       has_clients(w, i) ? "Yes" : "No");
		}
	}
}

static void add_partition(const struct sim_mps_daemon *daemon, uint32_t card, const char *text,
			  struct ll_strbuf *answer)
{
	struct sim_world *w = daemon->w;
	unsigned long chunks = strtoul(text, NULL, 10);
	uint32_t slot = 0, free_chunks = sim_mps_chunks(&w->cards[card]) - used_chunks(daemon, card);
	while (slot < SIM_MPS_PARTITIONS && w->mps_partitions[slot].is_used)
		slot++;
	if (chunks < 1 || chunks > free_chunks || slot == SIM_MPS_PARTITIONS) {
		ll_strbuf_addf(answer,
			       "Failed to fulfill the requested SM partition of %s chunks, error "
			       "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION\n",
			       text);
		return;
	}
	struct sim_mps_partition *partition = SIM_EDIT(w, &w->mps_partitions[slot]);
	*partition = (struct sim_mps_partition){
	    .is_used = 1,
	    .control = daemon->proc,
	    .card = card,
	    .chunks = (uint32_t)chunks,
	    .id = ++*SIM_EDIT(w, &w->next_partition),
	};
	char name[SIM_MPS_PARTITION_NAME_BYTES];
	sim_mps_partition_name(partition, name);
	ll_strbuf_addf(answer, "Partition %s/%s created\n", w->cards[card].uuid, name);
}

static void remove_partition(const struct sim_mps_daemon *daemon, uint32_t card, const char *text,
			     struct ll_strbuf *answer)
{
	struct sim_world *w = daemon->w;
	const char *slash = strchr(text, '/'), *wanted = slash ? slash + 1 : text;
	for (uint32_t i = 0; i < SIM_MPS_PARTITIONS; i++) {
		struct sim_mps_partition *partition = &w->mps_partitions[i];
		char name[SIM_MPS_PARTITION_NAME_BYTES];
		sim_mps_partition_name(partition, name);
		if (!is_own(daemon, partition) || partition->card != card || strcmp(name, wanted) != 0)
			continue;
		if (has_clients(w, i)) {
			ll_strbuf_addf(answer, "Partition %s is in use\n", wanted);
			return;
		}
		SIM_EDIT(w, partition)->is_used = 0;
		ll_strbuf_addf(answer, "Partition %s/%s removed\n", w->cards[card].uuid, name);
		return;
	}
	ll_strbuf_addf(answer, "Partition %s not found\n", wanted);
}

void sim_mps_partition_command(const struct sim_mps_daemon *daemon, const char *const *words, int count,
			       struct ll_strbuf *answer)
{
	if (!daemon->defaults.is_partitioned) {
		ll_strbuf_adds(answer, "Static partitioning mode is not enabled\n");
		return;
	}
	uint32_t card =
	    count < 3 ? SIM_NONE
		      : sim_mps_parse_card(daemon->w, words[1], daemon->defaults.cards, daemon->defaults.card_count);
	if (count < 3)
		ll_strbuf_adds(answer, "Usage: sm_partition add <device> <chunks> | rm <device> <partition>\n");
	else if (card == SIM_NONE)
		ll_strbuf_addf(answer, "Invalid device: %s\n", words[1]);
	else if (strcmp(words[0], "add") == 0)
		add_partition(daemon, card, words[2], answer);
	else if (strcmp(words[0], "rm") == 0)
		remove_partition(daemon, card, words[2], answer);
	else
		ll_strbuf_addf(answer, "Unknown command: sm_partition %s\n", words[0]);
}
