#include "mps/answer.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "abi/cuda.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "card/mps.h"
#include "card/mps_pipe.h"
#include "card/process.h"
#include "mps/partition.h"

enum { MAX_WORDS = 8 };

struct call {
	struct sim_mps_daemon *daemon;
	struct sim_world *w;
	struct sim_mps_peer *peer;
	struct ll_strbuf *answer;
	int count; /* words after the command */
	const char *word[MAX_WORDS];
};

static int32_t pid_at(const struct call *call, int i)
{
	return i < call->count ? (int32_t)strtol(call->word[i], NULL, 10) : 0;
}

/* Returns the server whose pid is word i. NULL: there is none, and the answer says so. */
static struct sim_mps_server *server_at(const struct call *call, int i)
{
	uint32_t slot = sim_mps_find_server(call->w, call->daemon->proc, pid_at(call, i));
	if (slot == SIM_NONE)
		ll_strbuf_addf(call->answer, "Server %s not found\n", i < call->count ? call->word[i] : "");
	return slot == SIM_NONE ? NULL : &call->w->mps_servers[slot];
}

static bool is_own(const struct call *call, uint32_t server)
{
	const struct sim_mps_server *s = &call->w->mps_servers[server];
	return s->is_used && s->control == call->daemon->proc;
}

static void get_server_list(const struct call *call)
{
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		if (is_own(call, i))
			ll_strbuf_addf(call->answer, "%d\n", call->w->mps_servers[i].pid);
	}
}

static void get_server_status(const struct call *call)
{
	static const char *const names[] = {"INITIALIZING", "ACTIVE", "FAULT"};
	const struct sim_mps_server *server = server_at(call, 0);
	if (server)
		ll_strbuf_addf(call->answer, "%s\n", names[server->state]);
}

static void start_server(const struct call *call)
{
	char *end = NULL;
	if (call->count < 2 || strcmp(call->word[0], "-uid") != 0 || !isdigit((unsigned char)call->word[1][0])) {
		ll_strbuf_adds(call->answer, "A user id (UID) is required to start a new server\n");
		return;
	}
	uint32_t uid = (uint32_t)strtoul(call->word[1], &end, 10);
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		const struct sim_mps_server *server = &call->w->mps_servers[i];
		if (server->is_used && server->control == call->daemon->proc) {
			ll_strbuf_addf(call->answer, "A server for user %u already exists\n", server->uid);
			return;
		}
	}
	if (sim_mps_daemon_start_server(call->daemon, uid) == SIM_NONE)
		ll_strbuf_adds(call->answer, "Failed to start server\n");
}

static void shutdown_server(const struct call *call)
{
	struct sim_mps_server *server = server_at(call, 0);
	if (!server)
		return;
	if (call->count > 1 && strcmp(call->word[1], "-f") == 0)
		sim_mps_daemon_end_server(call->daemon, (uint32_t)(server - call->w->mps_servers));
	else
		SIM_EDIT(call->w, server)->is_closing = 1;
}

static void get_client_list(const struct call *call)
{
	const struct sim_mps_server *server = server_at(call, 0);
	for (uint32_t i = 0; server && i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &call->w->procs[i];
		if (proc->is_used && proc->mps.server == server - call->w->mps_servers + 1)
			ll_strbuf_addf(call->answer, "%d\n", sim_proc_pid(call->w, i));
	}
}

static void list_device_clients(const struct call *call, uint32_t slot)
{
	const struct sim_mps_server *server = &call->w->mps_servers[slot];
	for (uint32_t c = 0; c < server->card_count; c++) {
		const struct sim_card *card = &call->w->cards[server->cards[c]];
		ll_strbuf_addf(call->answer, "[%u] %02x:%02x.0, %s\n", c, card->pci_domain & 0xff, card->pci_bus & 0xff,
			       card->name);
		for (uint32_t i = 0; i < SIM_PROCS; i++) {
			const struct sim_proc *proc = &call->w->procs[i];
			if (proc->is_used && proc->mps.server == slot + 1 && proc->cards >> server->cards[c] & 1)
				ll_strbuf_addf(call->answer, "%d.%u\n", sim_proc_pid(call->w, i), proc->mps.number);
		}
	}
}

static void get_device_client_list(const struct call *call)
{
	const struct sim_mps_server *server = call->count ? server_at(call, 0) : NULL;
	if (call->count && !server)
		return;
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		if (is_own(call, i) && (!server || server == &call->w->mps_servers[i]))
			list_device_clients(call, i);
	}
}

static unsigned long pid_namespace(int32_t pid)
{
	char path[40];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
	return stat(path, &st) == 0 ? (unsigned long)st.st_ino : 0;
}

static void command_of(int32_t pid, char *text, size_t size)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	size_t n = file ? fread(text, 1, size - 1, file) : 0;
	text[n] = '\0'; /* only the first word, with a NUL */
}

static void list_processes(const struct call *call)
{
	bool is_chosen = call->count > 1 && strcmp(call->word[0], "-p") == 0;
	if (call->count && !is_chosen) {
		ll_strbuf_adds(call->answer, "Usage: ps [-p <PID>]\n");
		return;
	}
	/* -p takes a server. */
	if (is_chosen && sim_mps_find_server(call->w, call->daemon->proc, pid_at(call, 1)) == SIM_NONE) {
		ll_strbuf_addf(call->answer, "Server %s not found\nServer %s not found\n\n", call->word[1],
			       call->word[1]);
		return;
	}
	ll_strbuf_addf(call->answer, "%-10s%-10s%-15s%-26s%-15s%-15s\n", "PID", "ID", "SERVER", "DEVICE", "NAMESPACE",
		       "COMMAND");
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &call->w->procs[i];
		char command[200];
		if (!proc->is_used || !proc->mps.server || !is_own(call, proc->mps.server - 1))
			continue;
		const struct sim_mps_server *server = &call->w->mps_servers[proc->mps.server - 1];
		if (is_chosen && server->pid != pid_at(call, 1))
			continue;
		command_of(proc->pid, command, sizeof command);
		for (uint32_t c = 0; c < SIM_CARDS; c++) {
			if (proc->cards >> c & 1)
				ll_strbuf_addf(call->answer, "%-9d %-9u %-14d %-25.22s %-14lu %s\n", proc->pid,
					       proc->mps.number, server->pid, call->w->cards[c].uuid,
					       pid_namespace(proc->pid), command);
		}
	}
}

static void list_devices(const struct call *call, const char *title, const uint32_t *cards, uint32_t count)
{
	ll_strbuf_addf(call->answer, "%s\n%-16s%-15s%-42s%-34sAttributes\n", title, "Device Ordinal", "PCI IDs", "UUID",
		       "Name");
	for (uint32_t i = 0; i < count; i++) {
		const struct sim_card *card = &call->w->cards[cards[i]];
		char pci[16];
		snprintf(pci, sizeof pci, "%04x:%02x.%02x.00", card->pci_domain & 0xffff, card->pci_bus & 0xff,
			 card->pci_device & 0xff);
		ll_strbuf_addf(call->answer, "%-16u%-15s%-42s%-34sN/A\n", i, pci, card->uuid, card->name);
	}
}

static void device_query(const struct call *call)
{
	char title[40] = "Default";
	list_devices(call, title, call->daemon->defaults.cards, call->daemon->defaults.card_count);
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++) {
		const struct sim_mps_server *server = &call->w->mps_servers[i];
		if (!is_own(call, i))
			continue;
		snprintf(title, sizeof title, "Server %d", server->pid);
		list_devices(call, title, server->cards, server->card_count);
	}
}

/* The answer is 0 when the client's contexts are destroyed, otherwise a status of CUDA. The client's process
 * continues. */
static void terminate_client(const struct call *call)
{
	const struct sim_mps_server *server = server_at(call, 0);
	if (!server) {
		ll_strbuf_addf(call->answer, "Server %s not found!\n%d\n", call->count ? call->word[0] : "",
			       LL_CUDA_ERROR_INVALID_VALUE);
		return;
	}
	for (int i = 0; i < call->daemon->peer_count; i++) {
		const struct sim_mps_peer *peer = &call->daemon->peers[i];
		if (peer != call->peer && peer->fd >= 0 && peer->due_ns &&
		    strncmp(peer->command, "terminate_client", 16) == 0) {
			ll_strbuf_adds(call->answer, "Another client is being terminated\n");
			return;
		}
	}
	uint32_t slot = (uint32_t)(server - call->w->mps_servers);
	uint32_t client = sim_mps_find_client(call->w, slot, pid_at(call, 1));
	if (client == SIM_NONE) {
		ll_strbuf_addf(call->answer, "%d\n", LL_CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	sim_mps_terminate(call->w, client);
	ll_strbuf_adds(call->answer, "0\n");
}

/* A wrong value changes nothing. The answer is the present value. */
static void set_percent(const struct call *call, int i, uint32_t *permille)
{
	if (i < call->count)
		sim_mps_parse_percent(call->word[i], permille);
	ll_strbuf_addf(call->answer, "%.1f\n", *permille / 10.0);
}

static void set_default_active_thread_percentage(const struct call *call)
{
	set_percent(call, 0, &call->daemon->defaults.permille);
}

static void get_default_active_thread_percentage(const struct call *call)
{
	ll_strbuf_addf(call->answer, "%.1f\n", call->daemon->defaults.permille / 10.0);
}

static void set_active_thread_percentage(const struct call *call)
{
	struct sim_mps_server *server = server_at(call, 0);
	if (server)
		set_percent(call, 1, SIM_EDIT(call->w, &server->permille));
}

static void get_active_thread_percentage(const struct call *call)
{
	const struct sim_mps_server *server = server_at(call, 0);
	if (server)
		ll_strbuf_addf(call->answer, "%.1f\n", server->permille / 10.0);
}

/* Returns the card of word i, by the ordinals of a server or of the daemon. If there is none, the daemon ignores the
 * limit without a message, like NVIDIA's. */
static uint32_t card_at(const struct call *call, int i, const struct sim_mps_server *of)
{
	return i < call->count ? sim_mps_parse_card(call->w, call->word[i], of->cards, of->card_count) : SIM_NONE;
}

static void set_limit(const struct call *call, int i, struct sim_mps_server *of)
{
	uint64_t bytes;
	uint32_t card = card_at(call, i, of);
	if (card == SIM_NONE)
		return;
	if (i + 1 < call->count && sim_mps_parse_limit(call->word[i + 1], &bytes))
		of->limit_bytes[card] = bytes;
}

static void get_limit(const struct call *call, int i, const struct sim_mps_server *of)
{
	uint32_t card = card_at(call, i, of);
	if (card == SIM_NONE)
		return;
	uint64_t bytes = of->limit_bytes[card];
	if (!bytes)
		return;
	if (bytes % (UINT64_C(1) << 30))
		ll_strbuf_addf(call->answer, "%lluM\n", (unsigned long long)(bytes >> 20));
	else
		ll_strbuf_addf(call->answer, "%lluG\n", (unsigned long long)(bytes >> 30));
}

static void set_default_device_pinned_mem_limit(const struct call *call)
{
	set_limit(call, 0, &call->daemon->defaults);
}

static void get_default_device_pinned_mem_limit(const struct call *call)
{
	get_limit(call, 0, &call->daemon->defaults);
}

static void set_device_pinned_mem_limit(const struct call *call)
{
	struct sim_mps_server *server = server_at(call, 0);
	if (server)
		set_limit(call, 1, SIM_EDIT(call->w, server));
}

static void get_device_pinned_mem_limit(const struct call *call)
{
	const struct sim_mps_server *server = server_at(call, 0);
	if (server)
		get_limit(call, 1, server);
}

static void set_default_client_priority(const struct call *call)
{
	const char *value = call->count ? call->word[0] : "";
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		ll_strbuf_adds(call->answer, "Invalid priority value - must be 0 or 1!\n");
	else
		call->daemon->defaults.priority = value[0] - '0';
}

static void get_default_client_priority(const struct call *call)
{
	ll_strbuf_addf(call->answer, "%d\n", call->daemon->defaults.priority);
}

static void answer_lspart(const struct call *call)
{
	sim_mps_partition_list(call->daemon, call->answer);
}

static void sm_partition(const struct call *call)
{
	sim_mps_partition_command(call->daemon, call->word, call->count, call->answer);
}

/* The daemon's end replaces the answer. */
static void quit_daemon(const struct call *call)
{
	if (call->count > 1 && strcmp(call->word[0], "-t") == 0)
		call->daemon->force_ns = ll_now_ns() + strtoul(call->word[1], NULL, 10) * LL_NS_PER_S;
	call->daemon->is_quitting = true;
	call->peer->waits_for_quit = true;
}

static const struct {
	const char *name;
	void (*run)(const struct call *);
	uint32_t since; /* the CUDA version that introduced it */
} commands[] = {
    {"get_server_list", get_server_list, 0},
    {"get_server_status", get_server_status, 0},
    {"start_server", start_server, 0},
    {"shutdown_server", shutdown_server, 0},
    {"get_client_list", get_client_list, 0},
    {"get_device_client_list", get_device_client_list, 0},
    {"ps", list_processes, 0},
    {"device_query", device_query, 0},
    {"terminate_client", terminate_client, 0},
    {"set_default_active_thread_percentage", set_default_active_thread_percentage, 0},
    {"get_default_active_thread_percentage", get_default_active_thread_percentage, 0},
    {"set_active_thread_percentage", set_active_thread_percentage, 0},
    {"get_active_thread_percentage", get_active_thread_percentage, 0},
    {"set_default_device_pinned_mem_limit", set_default_device_pinned_mem_limit, 0},
    {"get_default_device_pinned_mem_limit", get_default_device_pinned_mem_limit, 0},
    {"set_device_pinned_mem_limit", set_device_pinned_mem_limit, 0},
    {"get_device_pinned_mem_limit", get_device_pinned_mem_limit, 0},
    {"set_default_client_priority", set_default_client_priority, 0},
    {"get_default_client_priority", get_default_client_priority, 0},
    {"lspart", answer_lspart, SIM_MPS_PARTITIONS_SINCE},
    {"sm_partition", sm_partition, SIM_MPS_PARTITIONS_SINCE},
    {"quit", quit_daemon, 0},
};

void sim_mps_answer(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, struct ll_strbuf *answer)
{
	struct call call = {.daemon = daemon, .w = daemon->w, .peer = peer, .answer = answer};
	char text[sizeof peer->command], *save = NULL;
	snprintf(text, sizeof text, "%s", peer->command);
	const char *name = strtok_r(text, " \t\r\n", &save);
	for (char *word; call.count < MAX_WORDS && (word = strtok_r(NULL, " \t\r\n", &save));)
		call.word[call.count++] = word;
	for (uint32_t i = 0; i < SIM_MPS_SERVERS; i++)
		sim_mps_recover(daemon->w, i);
	for (size_t i = 0; name && i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(name, commands[i].name) == 0 && commands[i].since <= daemon->w->cuda_version) {
			commands[i].run(&call);
			return;
		}
	}
	if (name)
		ll_strbuf_addf(answer, "Unknown command \"%s\"\n", name);
}
