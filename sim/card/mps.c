#include "card/mps.h"

#include "abi/cuda.h"
#include "card/context.h"
#include "card/process.h"

uint32_t sim_mps_server_new(struct sim_world *w, uint32_t control, const struct sim_mps_server *wanted)
{
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		struct sim_mps_server *server = &w->mps_servers[i];
		if (server->is_used)
			continue;
		uint32_t generation = SIM_EDIT(w, server)->generation + 1;
		*server = *wanted;
		server->is_used = 1;
		server->generation = generation;
		server->state = SIM_MPS_INITIALIZING;
		server->control = control;
		server->proc = SIM_NONE;
		return i;
	}
	return SIM_NONE;
}

int sim_mps_server_open(struct sim_world *w, uint32_t index, uint32_t proc)
{
	struct sim_mps_server *server = SIM_EDIT(w, &w->mps_servers[index]);
	struct sim_proc *process = SIM_EDIT(w, &w->procs[proc]);
	server->proc = proc;
	process->role = SIM_ROLE_MPS_SERVER;
	for (uint32_t i = 0; i < server->card_count; i++) {
		uint32_t context;
		process->cards |= UINT64_C(1) << server->cards[i];
		int rc = sim_context_new(w, server->cards[i], proc, 0, &context);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* From now on every context of the process returns `error`, and so does making another one, unless the client was
 * terminated. */
static void lose_client(struct sim_world *w, uint32_t proc, uint32_t error)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		if (w->contexts[i].is_used && w->contexts[i].proc == proc)
			sim_context_lose(w, i, error);
	}
	SIM_EDIT(w, &w->procs[proc].mps)->error = error;
}

static bool is_client_of(const struct sim_world *w, uint32_t proc, uint32_t server)
{
	return w->procs[proc].is_used && w->procs[proc].mps.server == server + 1;
}

void sim_mps_server_free(struct sim_world *w, uint32_t server)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (!is_client_of(w, i, server))
			continue;
		if (!w->procs[i].mps.error)
			lose_client(w, i, LL_CUDA_ERROR_MPS_RPC_FAILURE);
		SIM_EDIT(w, &w->procs[i].mps)->server = 0;
		sim_commit(w);
	}
	SIM_EDIT(w, &w->mps_servers[server])->is_used = 0;
}

static uint64_t smaller_limit(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

uint32_t sim_mps_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc,
		      const struct sim_mps_client *wishes)
{
	struct sim_mps_server *server = &w->mps_servers[index];
	if (!server->is_used || server->generation != generation || server->state != SIM_MPS_ACTIVE ||
	    server->is_closing)
		return LL_CUDA_ERROR_MPS_SERVER_NOT_READY;
	if (sim_mps_client_count(w, index) >= SIM_MPS_CLIENTS)
		return LL_CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
	struct sim_mps_client *client = SIM_EDIT(w, &w->procs[proc].mps);
	*client = *wishes;
	client->server = index + 1;
	client->number = SIM_EDIT(w, server)->next_number++;
	if (!client->permille || client->permille > server->permille)
		client->permille = server->permille;
	if (client->priority < server->priority)
		client->priority = server->priority;
	for (uint32_t i = 0; i < SIM_CARDS; i++)
		client->limit_bytes[i] = smaller_limit(client->limit_bytes[i], server->limit_bytes[i]);
	return LL_CUDA_SUCCESS;
}

void sim_mps_recover(struct sim_world *w, uint32_t server)
{
	const struct sim_mps_server *s = &w->mps_servers[server];
	if (!s->is_used || s->state != SIM_MPS_FAULT || s->fault_until_ns > w->now_ns)
		return;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (is_client_of(w, i, server) && w->procs[i].mps.error &&
		    w->procs[i].mps.error != LL_CUDA_ERROR_MPS_CLIENT_TERMINATED)
			return;
	}
	SIM_EDIT(w, &w->mps_servers[server])->state = SIM_MPS_ACTIVE;
}

void sim_mps_leave(struct sim_world *w, uint32_t proc)
{
	uint32_t client_of = w->procs[proc].mps.server;
	if (client_of) {
		SIM_EDIT(w, &w->procs[proc].mps)->server = 0;
		sim_mps_recover(w, client_of - 1);
	}
	for (uint32_t i = 0; i < SIM_MPS_SERVERS && w->procs[proc].role != SIM_ROLE_CUDA; i++) {
		const struct sim_mps_server *server = &w->mps_servers[i];
		bool is_orphan = server->proc == SIM_NONE && server->control == proc;
		if (server->is_used && (server->proc == proc || is_orphan))
			sim_mps_server_free(w, i);
	}
	for (uint32_t i = 0; i < SIM_MPS_PARTITIONS && w->procs[proc].role == SIM_ROLE_MPS_CONTROL; i++) {
		if (w->mps_partitions[i].is_used && w->mps_partitions[i].control == proc)
			SIM_EDIT(w, &w->mps_partitions[i])->is_used = 0;
	}
}

static bool is_on(const struct sim_world *w, uint32_t proc, uint32_t card)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS && card != SIM_NONE; i++) {
		if (w->contexts[i].is_used && w->contexts[i].proc == proc && w->contexts[i].card == card)
			return true;
	}
	return card == SIM_NONE;
}

void sim_mps_fault(struct sim_world *w, uint32_t server, uint32_t card, uint32_t error, uint64_t for_ns)
{
	SIM_EDIT(w, &w->mps_servers[server])->state = SIM_MPS_FAULT;
	w->mps_servers[server].fault_until_ns = w->now_ns + for_ns;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (is_client_of(w, i, server) && !w->procs[i].mps.error && is_on(w, i, card))
			lose_client(w, i, error);
	}
	sim_mps_recover(w, server);
}

void sim_mps_terminate(struct sim_world *w, uint32_t client)
{
	lose_client(w, client, LL_CUDA_ERROR_MPS_CLIENT_TERMINATED);
}

unsigned sim_mps_client_count(const struct sim_world *w, uint32_t server)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		count += is_client_of(w, i, server);
	return count;
}

uint32_t sim_mps_find_server(const struct sim_world *w, uint32_t control, int32_t pid)
{
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		const struct sim_mps_server *server = &w->mps_servers[i];
		if (server->is_used && (control == SIM_NONE || server->control == control) && server->pid == pid)
			return i;
	}
	return SIM_NONE;
}

uint32_t sim_mps_find_client(const struct sim_world *w, uint32_t server, int32_t pid)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (is_client_of(w, i, server) && sim_proc_pid(w, i) == pid)
			return i;
	}
	return SIM_NONE;
}
