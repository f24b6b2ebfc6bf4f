#include "daemon/machine/ungoverned.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/process_id.h"
#include "daemon/core/server.h"
#include "daemon/jobs/users.h"
#include "daemon/machine/events.h"
#include "daemon/machine/mismatch.h"

#define AGAIN_NS (30 * LL_NS_PER_S)
/* After the start of loadlined the monitors register their jobs anew, within 5 s. */
#define SETTLED_NS (10 * LL_NS_PER_S)

/* A process that was seen. One on several cards has one entry. */
struct ll_ungoverned {
	struct ll_ungoverned *next;
	uint32_t pid, uid;
	uint64_t start_ticks;
	uint64_t first_ns, asked_ns,
	    signal_ns; /* asked_ns: when it got its first signal, signal_ns: its last; 0: not yet */
	char command[LL_COMMAND_SIZE];
	bool is_there, is_told;
};

static const struct ll_config_ungoverned *policy_of(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	return policy ? &policy->ungoverned : NULL;
}

/* MPS's server works for its clients, each of which is on the card too. */
static bool is_mps_server(const char *program)
{
	const char *name = strrchr(program, '/');
	return name && strcmp(name, "/nvidia-cuda-mps-server") == 0;
}

static bool is_allowed(const struct ll_config_ungoverned *policy, const struct ll_message_sense_process *row)
{
	if (is_mps_server(row->program))
		return true;
	for (size_t i = 0; policy && row->program[0] && i < policy->allow.count; i++) {
		if (strcmp(policy->allow.items[i], row->program) == 0)
			return true;
	}
	return false;
}

static struct ll_ungoverned *find_seen(struct ll_server *server, const struct ll_message_sense_process *row)
{
	struct ll_ungoverned *seen = server->ungoverned;
	while (seen && (seen->pid != row->pid || seen->start_ticks != row->start_ticks))
		seen = seen->next;
	return seen;
}

static struct ll_ungoverned *add_seen(struct ll_server *server, const struct ll_message_sense_process *row)
{
	struct ll_ungoverned *seen = calloc(1, sizeof *seen);
	if (!seen)
		return NULL;
	*seen = (struct ll_ungoverned){.next = server->ungoverned,
				       .pid = row->pid,
				       .uid = row->uid,
				       .start_ticks = row->start_ticks,
				       .first_ns = ll_now_ns()};
	memcpy(seen->command, row->command, sizeof seen->command);
	server->ungoverned = seen;
	return seen;
}

static void tell_once(struct ll_server *server, const struct ll_message_sense_process *row, struct ll_ungoverned *seen)
{
	if (seen->is_told)
		return;
	seen->is_told = true;
	if (row->job_number)
		ll_warn("mismatch: process %u of job %llu of user %u (%s) uses card %s without limits", row->pid,
			(unsigned long long)row->job_number, row->uid, row->command, row->uuid);
	else
		ll_events_tell(server, LL_EVENT_UNGOVERNED,
			       &(struct ll_event_about){
				   .card = row->uuid, .command = row->command, .has_uid = true, .uid = row->uid},
			       "process %u of user %u (%s) uses card %s outside of jobs", row->pid, row->uid,
			       row->command, row->uuid);
}

/* ---- signals ---- */

static void on_signalled(struct ll_server *server, int code, const char *reason, uint64_t pid)
{
	(void)server;
	if (code)
		ll_warn("ungoverned: process %u: the keeper refuses the signal: %s", (unsigned)pid, reason);
}

/* Whether the process that the descriptor is of is the one that was seen: another one may have its number now. */
static bool is_same(const struct ll_ungoverned *seen)
{
	struct ll_process_stat stat;
	return seen->start_ticks && ll_process_stat_of((pid_t)seen->pid, &stat) == 0 &&
	       stat.start_ticks == seen->start_ticks;
}

static void send_signal(struct ll_server *server, struct ll_ungoverned *seen, int signal_number)
{
	const struct ll_keeper_request request = {
	    .call = LL_KEEPER_SIGNAL_OUTSIDE, .uid = seen->uid, .pid = (int32_t)seen->pid, .signal = signal_number};
	int fd = ll_process_open_pidfd((pid_t)seen->pid);
	bool is_first = !seen->signal_ns;
	seen->signal_ns = ll_now_ns();
	seen->asked_ns = is_first ? seen->signal_ns : seen->asked_ns;
	if (fd < 0)
		return;
	bool is_sent = is_same(seen) && ll_keeper_link_send(server, &request, fd, on_signalled, seen->pid);
	close(fd);
	if (is_sent && is_first)
		ll_events_tell(server, LL_EVENT_STOPPED,
			       &(struct ll_event_about){.command = seen->command, .has_uid = true, .uid = seen->uid},
			       "process %u of user %u (%s) is stopped: it uses a card outside of jobs", seen->pid,
			       seen->uid, seen->command);
	if (is_sent)
		ll_warn("ungoverned: process %u of user %u (%s) gets %s", seen->pid, seen->uid, seen->command,
			signal_number == SIGKILL ? "SIGKILL" : "SIGTERM");
	else if (is_first)
		ll_warn("ungoverned: process %u of user %u (%s) cannot be ended: there is no keeper", seen->pid,
			seen->uid, seen->command);
}

static void act_on_process(struct ll_server *server, const struct ll_config_ungoverned *policy,
			   struct ll_ungoverned *seen)
{
	uint64_t now_ns = ll_now_ns();
	if (!policy || policy->action == LL_CONFIG_REPORT || seen->uid == 0 || seen->uid == geteuid() ||
	    now_ns - server->born_ns < SETTLED_NS || now_ns - seen->first_ns < policy->after_ns)
		return;
	/* As a job that is stopped. */
	uint64_t kill_ns = seen->asked_ns + ll_job_stop_grace_ns(server);
	bool is_kill = policy->action == LL_CONFIG_ACTION_KILL || (seen->asked_ns && now_ns >= kill_ns);
	bool is_first_kill = is_kill && seen->signal_ns < kill_ns;
	if (!seen->signal_ns || now_ns - seen->signal_ns >= AGAIN_NS ||
	    (policy->action == LL_CONFIG_ACTION_STOP && is_first_kill))
		send_signal(server, seen, is_kill ? SIGKILL : SIGTERM);
}

/* ---- a round ---- */

static bool has_claim(const struct ll_server *server, uint32_t pid)
{
	for (const struct ll_user *user = server->users; user; user = user->next) {
		if (user->pid == pid)
			return true;
	}
	return false;
}

static void deal_with(struct ll_server *server, const struct ll_config_ungoverned *policy,
		      struct ll_message_sense_process *row, struct ll_ungoverned *seen)
{
	tell_once(server, row, seen);
	if (!row->job_number) {
		act_on_process(server, policy, seen);
	} else if (!seen->signal_ns) {
		seen->signal_ns = ll_now_ns();
		ll_mismatch_stop(server, row);
	}
}

static void look_at(struct ll_server *server, struct ll_message_sense_process *row)
{
	const struct ll_config_ungoverned *policy = policy_of(server);
	if (row->job_number && has_claim(server, row->pid))
		return;
	if (!row->job_number)
		row->flags |= LL_SENSE_IS_UNGOVERNED;
	if (is_allowed(policy, row)) {
		row->flags |= LL_SENSE_IS_ALLOWED;
		return;
	}
	/* What is in one report alone may be of a job that is not known yet, or that has just ended. */
	struct ll_ungoverned *seen = find_seen(server, row);
	if (seen && !seen->is_there)
		deal_with(server, policy, row, seen);
	if (!seen)
		seen = add_seen(server, row);
	if (seen)
		seen->is_there = true;
}

static void drop_ended(struct ll_server *server)
{
	for (struct ll_ungoverned **at = &server->ungoverned; *at;) {
		struct ll_ungoverned *seen = *at;
		if (seen->is_there) {
			at = &seen->next;
			continue;
		}
		*at = seen->next;
		free(seen);
	}
}

void ll_ungoverned_look(struct ll_server *server, struct ll_message_sense_process *rows, size_t count)
{
	for (struct ll_ungoverned *seen = server->ungoverned; seen; seen = seen->next)
		seen->is_there = false;
	for (size_t i = 0; i < count; i++)
		look_at(server, &rows[i]);
	drop_ended(server);
}

void ll_ungoverned_fini(struct ll_server *server)
{
	for (struct ll_ungoverned *seen = server->ungoverned; seen; seen = seen->next)
		seen->is_there = false;
	drop_ended(server);
}
