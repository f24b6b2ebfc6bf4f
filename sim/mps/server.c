/*
 * nvidia-cuda-mps-server: it has a small context on each of its cards, and with it the tenant in which its clients'
 * kernels run together. nvidia-cuda-mps-control starts it. It ends when that tells it to, or has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/mps.h"
#include "card/mps_pipe.h"
#include "card/process.h"

static void log_start(const struct sim_world *w, const struct sim_mps_server *server)
{
	for (uint32_t i = 0; i < server->card_count; i++)
		sim_mps_log("Server", "Creating server context on device %u (%s)", i, w->cards[server->cards[i]].name);
	sim_mps_log("Server", "Created anonymous shared memory region mps.shm.%u.%d", server->uid, (int)getpid());
	sim_mps_log("Server", "CUDA MPS Server for Linux/Unix. Binary version: %u", w->cuda_version);
	sim_mps_log("Server", "Display Driver version: %d", atoi(w->driver_version));
	sim_mps_log("Server", "Active Threads Percentage set to %.1f", server->permille / 10.0);
	for (uint32_t i = 0; i < server->card_count; i++) {
		uint64_t bytes = server->limit_bytes[server->cards[i]];
		if (bytes)
			sim_mps_log("Server", "Device pinned memory limit for device %u set to 0x%llx bytes", i,
				    (unsigned long long)bytes);
	}
	sim_mps_log("Server", "Server Priority set to %d", server->priority);
}

/* Makes the server's contexts, and returns its slot; SIM_NONE: they cannot be made. */
static uint32_t open_server(struct sim_world *w)
{
	char text[64];
	uint32_t slot;
	if (!sim_mps_receive(SIM_MPS_SERVER_FD, text, sizeof text) || sscanf(text, "start %u", &slot) != 1 ||
	    slot >= SIM_MPS_SERVERS)
		return SIM_NONE;
	sim_mps_log("Other", "Startup");
	sim_mps_log("Other", "Connecting to control daemon on socket: %s/control", sim_mps_pipe_folder());
	sim_mps_log("Other", "Initializing server process");
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t proc = sim_proc_join(w);
	int rc = proc == SIM_NONE ? -ENOSPC : sim_mps_server_open(w, slot, proc);
	struct sim_mps_server server = w->mps_servers[slot];
	uint64_t wait_ns = w->init_ns / 10;
	for (uint32_t i = 0; i < server.card_count; i++)
		wait_ns += w->cards[server.cards[i]].context_ns;
	if (rc < 0 && proc != SIM_NONE)
		sim_proc_leave(w, proc);
	sim_unlock(w);
	if (rc < 0)
		return SIM_NONE;
	ll_sleep_until_ns(ll_now_ns() + wait_ns);
	log_start(w, &server);
	return slot;
}

static void serve_daemon(void)
{
	char text[128];
	int pid;
	while (sim_mps_receive(SIM_MPS_SERVER_FD, text, sizeof text) && strcmp(text, "exit") != 0) {
		if (sscanf(text, "client %d", &pid) == 1) {
			sim_mps_log("Server", "Received new client request for {PID: %d, Context ID: 0}", pid);
			sim_mps_log("Server", "Client {PID: %d, Context ID: 0} connected", pid);
			sim_mps_log("Server", "Creating worker thread for client {PID: %d, Context ID: 0}", pid);
		} else if (sscanf(text, "gone %d", &pid) == 1) {
			sim_mps_log("Server", "Client {PID: %d, Context ID: 0} disconnected", pid);
		}
	}
}

int main(void)
{
	struct ll_err err = {0};
	struct sim_world *w;
	sim_mps_log_open("server.log", false);
	if (sim_world_attach(&w, &err) < 0) {
		sim_mps_log("Other", "MPS server failed to start: %s", err.text);
		return EXIT_FAILURE;
	}
	uint32_t slot = open_server(w);
	if (slot == SIM_NONE) {
		sim_mps_log("Server", "MPS server failed to start");
		return EXIT_FAILURE;
	}
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t proc = w->mps_servers[slot].proc;
	SIM_EDIT(w, &w->mps_servers[slot])->state = SIM_MPS_ACTIVE;
	sim_unlock(w);
	sim_mps_log("Server", "Server has started");
	if (sim_mps_send(SIM_MPS_SERVER_FD, "ready"))
		serve_daemon();
	sim_mps_log("Server", "Exit");
	sim_lock(w);
	sim_advance_to_now(w);
	sim_proc_leave(w, proc);
	sim_unlock(w);
	return EXIT_SUCCESS;
}
