/*
 * mps.h - MPS in the model: servers, their clients, and what a client may use of a card.
 *
 * A server is a process with a small context on each of its cards. Contexts of its clients take their turns on a card
 * together with it, as one tenant, so their kernels run at the same time, each within the SMs that the client may use.
 * What a client may use is settled when it starts and kept while it lives. nvidia-cuda-mps-control (mps/daemon.h)
 * starts servers; the clients are processes with libcuda.so.1 (cuda/mps.h).
 *
 * All called with the world locked and advanced. Statuses are CUDA's.
 */
#ifndef LOADLINE_SIM_CARD_MPS_H
#define LOADLINE_SIM_CARD_MPS_H

#include "card/world.h"

enum {
	SIM_MPS_CLIENTS = 60,               /* of one server, as the driver has it since Volta */
	SIM_MPS_SERVER_BYTES = 66 << 20,    /* what a server takes of a card, with all that a first process takes */
	SIM_MPS_UNCOUNTED_BYTES = 10538189, /* 10.05 MiB of a client that its memory limit does not see */
	SIM_MPS_CHUNK_SMS = 8,              /* the unit of static partitions from Hopper on */
	SIM_MPS_LEAST_SMS = 8,              /* of a client, however small its percentage */
};

/* A server slot for a daemon that is about to start its process. SIM_NONE: too many. `wanted` says whom it serves, its
 * cards and what its clients may have; the rest is filled in. */
uint32_t sim_mps_server_new(struct sim_world *w, uint32_t control, const struct sim_mps_server *wanted);
/* The process of the server in slot `index` has joined the world: its contexts. -EBUSY, -ENOMEM and -ENOSPC as
 * sim_context_new. */
int sim_mps_server_open(struct sim_world *w, uint32_t index, uint32_t proc);
/* Frees the slot; its clients lose their contexts. */
void sim_mps_server_free(struct sim_world *w, uint32_t server);

/* Makes a process a client of the server in slot `index`. wishes: percentage, priority, limits and partition as it
 * asked for them, 0 for what it did not; it gets no more than the server gives. Answers why not. */
uint32_t sim_mps_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc,
		      const struct sim_mps_client *wishes);
/* A process that goes, whatever it is to MPS. */
void sim_mps_leave(struct sim_world *w, uint32_t proc);

/* A fatal fault: clients with a context on the card (SIM_NONE: on any) lose them all, and the server takes no new ones
 * until those are gone, and for_ns have passed. */
void sim_mps_fault(struct sim_world *w, uint32_t server, uint32_t card, uint32_t error, uint64_t for_ns);
/* A server that had a fault goes on when nobody is left who saw it: called by whoever asks for its state. */
void sim_mps_recover(struct sim_world *w, uint32_t server);
/* Ends one client's contexts. */
void sim_mps_terminate(struct sim_world *w, uint32_t client);

unsigned sim_mps_client_count(const struct sim_world *w, uint32_t server);
/* A daemon's server (control SIM_NONE: anybody's) by the pid of its process, a server's client by its own. SIM_NONE:
 * there is none. */
uint32_t sim_mps_find_server(const struct sim_world *w, uint32_t control, int32_t pid);
uint32_t sim_mps_find_client(const struct sim_world *w, uint32_t server, int32_t pid);

/* SMs of a share of a card, rounded down, at least one. */
uint32_t sim_mps_sms(const struct sim_card *card, uint32_t permille);
/* Chunks for static partitions that a card has. */
uint32_t sim_mps_chunks(const struct sim_card *card);

/* The process that a process's contexts count for in exclusive mode: of a client its server. */
uint32_t sim_mps_owner(const struct sim_world *w, uint32_t proc);
/* What the process may still take of a card under its memory limit; UINT64_MAX without one. */
uint64_t sim_mps_room_bytes(struct sim_world *w, uint32_t card, uint32_t proc);
/* What the context of a server or a client takes; false: it is neither's. */
bool sim_mps_context_bytes(const struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes,
			   uint64_t *ret_bytes);
/* Fills in whose turns a new context shares, and which SMs it may use. */
void sim_mps_context_init(const struct sim_world *w, struct sim_context *context);

/* How users call a partition: opaque to them, and as long as the real one's names. */
enum { SIM_MPS_PARTITION_NAME_BYTES = 48 };
void sim_mps_partition_name(const struct sim_mps_partition *partition, char name[SIM_MPS_PARTITION_NAME_BYTES]);
/* The slot of "UUID/PARTITION" (CUDA_MPS_SM_PARTITION) + 1; 0: there is none. World locked. */
uint32_t sim_mps_partition_find(const struct sim_world *w, const char *name);

#endif
