/*
 * mps.h - MPS in the model: servers, their clients, and their ends.
 *
 * A server is a process with a small context on each of its cards. The server and its clients take turns on a card
 * together, as one tenant. So the clients' kernels run at the same time, each within the SMs that the client may use. A
 * client's limits are set when it starts, and do not change; mps_limits.h reads them.
 *
 * nvidia-cuda-mps-control (mps/daemon.h) starts servers. The clients are processes with libcuda.so.1
 * (cuda/local/mps.h).
 *
 * All functions are called with the world locked and advanced. Statuses are CUDA's. A server is identified by its slot
 * in the world, a client by the slot of its process.
 */
#ifndef LOADLINE_SIM_CARD_MPS_H
#define LOADLINE_SIM_CARD_MPS_H

#include "card/world.h"

enum { SIM_MPS_CLIENTS = 60 }; /* limit of one server, as in the driver since Volta */

/* Takes a slot for a server that a daemon is about to start. control: the slot of the daemon's process. wanted: the
 * user that it serves, its cards, and the limits of its clients; the function sets the rest. SIM_NONE: there are too
 * many servers. */
uint32_t sim_mps_server_new(struct sim_world *w, uint32_t control, const struct sim_mps_server *wanted);

/* Makes the contexts of a server whose process has joined the world. Errors are those of sim_context_new: -EBUSY,
 * -ENOMEM and -ENOSPC. */
int sim_mps_server_open(struct sim_world *w, uint32_t index, uint32_t proc);

/* Frees a server's slot. Its clients lose their contexts. */
void sim_mps_server_free(struct sim_world *w, uint32_t server);

/* Makes a process a client of a server. wishes: the percentage, priority, limits and partition that the client
 * requests; 0: no wish. The client gets at most what the server gives. Returns 0, or the status with which the server
 * refuses. */
uint32_t sim_mps_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc,
		      const struct sim_mps_client *wishes);

/* Removes a process that ends from MPS, be it a client, a server or a daemon. */
void sim_mps_leave(struct sim_world *w, uint32_t proc);

/* Puts a server into FAULT after a fatal fault on a card (SIM_NONE: on any card). Clients with a context there lose all
 * their contexts, which return `error`. The server accepts no new clients until the affected ones have ended and for_ns
 * have passed. */
void sim_mps_fault(struct sim_world *w, uint32_t server, uint32_t card, uint32_t error, uint64_t for_ns);

/* Ends a server's FAULT if its time has passed and no affected client is left. Call it before a server's state is
 * read. */
void sim_mps_recover(struct sim_world *w, uint32_t server);

/* Ends the contexts of one client. The client may make others afterwards. */
void sim_mps_terminate(struct sim_world *w, uint32_t client);

/* Returns the number of a server's clients. */
unsigned sim_mps_client_count(const struct sim_world *w, uint32_t server);

/* Returns the server whose process has this pid. control: the daemon whose servers count, or SIM_NONE for all.
 * SIM_NONE: there is no such server. */
uint32_t sim_mps_find_server(const struct sim_world *w, uint32_t control, int32_t pid);

/* Returns the server's client whose process has this pid. SIM_NONE: there is no such client. */
uint32_t sim_mps_find_client(const struct sim_world *w, uint32_t server, int32_t pid);

#endif
