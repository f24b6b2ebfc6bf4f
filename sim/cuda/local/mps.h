/*
 * mps.h - this process as a client of MPS. cuInit decides that, once.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_MPS_H
#define LOADLINE_SIM_CUDA_LOCAL_MPS_H

#include "cuda/local/state.h"

/* A daemon's reply. server SIM_NONE: there is none, and the process runs without MPS. */
struct sim_mps_offer {
	uint32_t server;
	uint32_t generation;
	int fd; /* kept open while the process lives; its end informs the daemon */
};

/* Requests a server from the daemon of the pipe folder. It may take long: the daemon starts a server, or waits until
 * another user's server has ended. The world must not be locked. Returns the status of a daemon that refuses. */
ll_cu_result sim_mps_ask(struct sim_world *w, struct sim_mps_offer *ret_offer);

/* Accepts the offer for a process that has joined the world with these visible cards. The world must be locked. Returns
 * the status of a server that refuses. */
ll_cu_result sim_mps_accept(struct sim_world *w, const struct sim_mps_offer *offer, uint32_t proc);

/* Whether this process is a client of MPS. */
bool sim_cuda_is_mps_client(void);

/* Returns the SMs of a card that this process may use. */
uint32_t sim_cuda_sms(uint32_t card);

#endif
