/*
 * mps.h - MPS in the model: servers, their clients, and what ends them.
 *
 * A server is a process with a small context on each of its cards. Contexts of its clients take their turns on a card
 * together with it, as one tenant. So their kernels run at the same time, each within the SMs that the client may use.
 * What a client may use is settled when it starts, and kept while it lives; mps_limits.h reads it.
 * nvidia-cuda-mps-control (mps/daemon.h) starts servers. The clients are processes with libcuda.so.1
 * (cuda/local/mps.h).
 *
 * All functions are called with the world locked and advanced. Statuses are CUDA's. A server is named by its slot in
 * the world, a client by the slot of its process.
 */
#ifndef LOADLINE_SIM_CARD_MPS_H
#define LOADLINE_SIM_CARD_MPS_H

#include "card/world.h"

enum { SIM_MPS_CLIENTS = 60 }; /* of one server, as the driver has it since Volta */

/* Takes a slot for a server that a daemon is about to start. control: the slot of the daemon's process. wanted: whom
 * the server serves, its cards, and what its clients may have; the function fills in the rest. SIM_NONE: there are too
 * many servers. */
uint32_t sim_mps_server_new(struct sim_world *w, uint32_t control, const struct sim_mps_server *wanted);

/* Makes the contexts of a server whose process has joined the world. Errors are those of sim_context_new: -EBUSY,
 * -ENOMEM and -ENOSPC. */
int sim_mps_server_open(struct sim_world *w, uint32_t index, uint32_t proc);

/* Frees a server's slot. Its clients lose their contexts. */
void sim_mps_server_free(struct sim_world *w, uint32_t server);

/* Makes a process a client of a server. wishes: the percentage, priority, limits and partition that the client asks
 * for; 0 stands for what it does not ask for. The client gets no more than the server gives. Returns 0, or the status
 * that says why the server refuses. */
uint32_t sim_mps_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc,
		      const struct sim_mps_client *wishes);

/* Clears away what a process that goes is to MPS: client, server or daemon. */
void sim_mps_leave(struct sim_world *w, uint32_t proc);

/* Puts a server into FAULT after a fatal fault on a card (SIM_NONE: on any card). Clients with a context there lose all
 * their contexts, which answer `error`. The server takes no new clients until the lost ones are gone and for_ns have
 * passed. */
void sim_mps_fault(struct sim_world *w, uint32_t server, uint32_t card, uint32_t error, uint64_t for_ns);

/* Ends a server's FAULT if its time has passed and no client is left that saw the fault. Whoever asks for a server's
 * state calls it first. */
void sim_mps_recover(struct sim_world *w, uint32_t server);

/* Ends the contexts of one client. It may make others afterwards. */
void sim_mps_terminate(struct sim_world *w, uint32_t client);

/* Returns the number of a server's clients. */
unsigned sim_mps_client_count(const struct sim_world *w, uint32_t server);

/* Returns the server whose process has this pid. control: the daemon whose servers count, or SIM_NONE for all.
 * SIM_NONE: there is no such server. */
uint32_t sim_mps_find_server(const struct sim_world *w, uint32_t control, int32_t pid);

/* Returns the server's client whose process has this pid. SIM_NONE: there is no such client. */
uint32_t sim_mps_find_client(const struct sim_world *w, uint32_t server, int32_t pid);

#endif
