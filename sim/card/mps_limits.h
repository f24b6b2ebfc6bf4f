/*
 * mps_limits.h - the limits that MPS gives a process on a card: SMs, memory, turns, and static partitions.
 *
 * A client's limits are set when it starts (sim_mps_join in mps.h). The functions here read them. All are called with
 * the world locked.
 */
#ifndef LOADLINE_SIM_CARD_MPS_LIMITS_H
#define LOADLINE_SIM_CARD_MPS_LIMITS_H

#include "card/world.h"

enum {
	SIM_MPS_SERVER_BYTES = 66 << 20,    /* memory of a server on a card, including that of a first process */
	SIM_MPS_UNCOUNTED_BYTES = 10538189, /* 10.05 MiB of a client that its memory limit does not count */
	SIM_MPS_CHUNK_SMS = 8,              /* the unit of static partitions from Hopper on */
	SIM_MPS_LEAST_SMS = 8,              /* of a client, for any percentage */
	SIM_MPS_PARTITION_NAME_BYTES = 48,
};

/* Returns the SMs that a share of a card has: in pairs (TPCs), rounded down, at least SIM_MPS_LEAST_SMS (doc/facts.md).
 */
uint32_t sim_mps_sms(const struct sim_card *card, uint32_t permille);

/* Returns how many chunks of SIM_MPS_CHUNK_SMS a card has for static partitions. */
uint32_t sim_mps_chunks(const struct sim_card *card);

/* Returns the process for which a process's contexts count in exclusive mode. For a client it is the server's process,
 * otherwise the process itself. */
uint32_t sim_mps_owner(const struct sim_world *w, uint32_t proc);

/* Computes the bytes that a context takes if it belongs to a server or a client. Returns false, and computes nothing,
 * if it belongs to neither. */
bool sim_mps_context_bytes(const struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes,
			   uint64_t *ret_bytes);

/* Sets the fields of a new context that depend on MPS: its tenant, its SMs, its partition and its priority. A context
 * without MPS is unchanged. */
void sim_mps_context_init(const struct sim_world *w, struct sim_context *context);

/* Writes the name by which users call a partition. Its length is that of the real driver's names. */
void sim_mps_partition_name(const struct sim_mps_partition *partition, char name[SIM_MPS_PARTITION_NAME_BYTES]);

/* Returns the slot of "UUID/PARTITION" (CUDA_MPS_SM_PARTITION) plus 1. 0: there is no such partition. */
uint32_t sim_mps_partition_find(const struct sim_world *w, const char *name);

#endif
