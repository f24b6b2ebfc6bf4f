#include "daemon/machine/machine.h"

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
#include "daemon/jobs/jobs.h"
#include "daemon/queue/queue.h"
#include "daemon/residency/residency.h"

#define PROCESS_TOLERANCE_BYTES (UINT64_C(1) << 30)
#define PERIOD_NS (20 * LL_NS_PER_S)
enum { MEMORY_TOLERANCE_PERCENT = 2, TIME_TOLERANCE_PERCENT = 20, ROUNDS = 2 };

bool ll_mismatch_has_memory(const struct ll_job_card *card)
{
	return card->mismatch.memory_rounds >= ROUNDS;
}

bool ll_mismatch_has_time(const struct ll_job_card *card)
{
	return card->mismatch.is_time_wrong;
}

/* ---- what is done about it ---- */

static void stop_job(struct ll_server *server, struct ll_job *job, const char *why)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	if (policy && policy->mismatch.action == LL_CONFIG_ACTION_STOP && !ll_admission_stop_job(server, job, why))
		ll_warn("mismatch: job %llu cannot be stopped: it has no place in the queue and no control group",
			(unsigned long long)job->number);
}

/* ---- memory ---- */

/* Returns false if the driver does not tell the memory of one of the job's processes, or none is on the card. */
static bool count_driver(const struct ll_server *server, const struct ll_job_card *card, uint64_t *ret_bytes,
			 unsigned *ret_processes)
{
	size_t count;
	const struct ll_message_sense_process *processes = ll_machine_processes(server, &count);
	uint64_t bytes = 0;
	unsigned found = 0;
	for (size_t i = 0; i < count; i++) {
		if (processes[i].job_number != card->job->number || strcmp(processes[i].uuid, card->uuid) != 0)
			continue;
		if (processes[i].used_bytes == UINT64_MAX)
			return false;
		bytes += processes[i].used_bytes;
		found++;
	}
	*ret_bytes = bytes;
	*ret_processes = found;
	return found > 0;
}

static void check_memory(struct ll_server *server, struct ll_job_card *card)
{
	uint64_t driver_bytes = 0;
	unsigned processes = 0;
	bool is_known = count_driver(server, card, &driver_bytes, &processes);
	uint64_t used_bytes = ll_memory_used_bytes(card);
	uint64_t allowed_bytes =
	    used_bytes + used_bytes / 100 * MEMORY_TOLERANCE_PERCENT + processes * PROCESS_TOLERANCE_BYTES;
	card->mismatch.driver_bytes = is_known ? driver_bytes : 0;
	if (!is_known || driver_bytes <= allowed_bytes) {
		card->mismatch.memory_rounds = 0;
		return;
	}
	if (++card->mismatch.memory_rounds != ROUNDS)
		return;
	ll_warn("job %llu of user %u, tenant %s, card %s: the driver counts %llu bytes for its processes, and "
		"the job reports %llu",
		(unsigned long long)card->job->number, card->job->facts.uid, card->job->facts.tenant, card->uuid,
		(unsigned long long)driver_bytes, (unsigned long long)used_bytes);
	stop_job(server, card->job, "the driver counts more memory for it than it reports");
}

/* ---- time ---- */

static uint64_t gpu_time_of(const struct ll_job_card *card)
{
	return card->job->pages.page->cards[card->index].gpu_time_ns;
}

static void begin_period(struct ll_job_card *card, const struct ll_message_sense_card *row, uint64_t now_ns)
{
	card->mismatch.begin_ns = now_ns;
	card->mismatch.gpu_ns = gpu_time_of(card);
	card->mismatch.busy_ns = row->busy_ns;
}

/* A sensor that has started anew, or has missed samples, has not watched the whole period. */
static void check_time(const struct ll_server *server, struct ll_job_card *card, uint64_t now_ns)
{
	struct ll_mismatch *state = &card->mismatch;
	size_t count;
	const struct ll_message_sense_card *rows = ll_machine_rows(server, &count), *row = NULL;
	for (size_t i = 0; i < count && !row; i++)
		row = strcmp(rows[i].uuid, card->uuid) == 0 ? &rows[i] : NULL;
	uint64_t period_ns = now_ns - state->begin_ns, gpu_ns = gpu_time_of(card);
	if (!row || !row->watched_ns) {
		state->begin_ns = 0;
		state->is_time_wrong = false;
		return;
	}
	if (!state->begin_ns || row->watched_ns < period_ns || row->busy_ns < state->busy_ns ||
	    gpu_ns < state->gpu_ns) {
		begin_period(card, row, now_ns);
		return;
	}
	if (period_ns < PERIOD_NS)
		return;
	state->checked_ns = period_ns;
	state->checked_gpu_ns = gpu_ns - state->gpu_ns;
	state->checked_busy_ns = row->busy_ns - state->busy_ns;
	bool is_wrong = state->checked_gpu_ns > state->checked_busy_ns + period_ns / 100 * TIME_TOLERANCE_PERCENT;
	if (is_wrong && !state->is_time_wrong)
		ll_warn(
		    "job %llu of user %u, tenant %s, card %s: the job reports %.1f s of GPU time in %.1f s, and the "
		    "card had work for %.1f s",
		    (unsigned long long)card->job->number, card->job->facts.uid, card->job->facts.tenant, card->uuid,
		    (double)state->checked_gpu_ns / (double)LL_NS_PER_S, (double)period_ns / (double)LL_NS_PER_S,
		    (double)state->checked_busy_ns / (double)LL_NS_PER_S);
	state->is_time_wrong = is_wrong;
	begin_period(card, row, now_ns);
}

void ll_mismatch_look(struct ll_server *server)
{
	uint64_t now_ns = ll_now_ns();
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		const struct ll_job_claims *claims = job->claims;
		for (unsigned i = 0; claims && i < claims->card_count; i++) {
			check_memory(server, claims->cards[i]);
			check_time(server, claims->cards[i], now_ns);
		}
	}
}

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
	bool is_there, is_told, is_nested;
};

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

/* ---- processes outside of jobs: signals ---- */

static void on_signalled(struct ll_server *server, int code, const char *reason, uint64_t pid)
{
	(void)server;
	if (code)
		ll_warn("ungoverned: process %u: the keeper refuses the signal: %s", (unsigned)pid, reason);
}

static void send_signal(struct ll_server *server, struct ll_ungoverned *seen, int signal_number)
{
	const struct ll_keeper_request request = {
	    .call = LL_KEEPER_SIGNAL_OUTSIDE, .uid = seen->uid, .pid = (int32_t)seen->pid, .signal = signal_number};
	struct ll_process_stat stat;
	int fd = ll_process_open_pidfd((pid_t)seen->pid);
	bool is_first = !seen->signal_ns;
	seen->signal_ns = ll_now_ns();
	seen->asked_ns = is_first ? seen->signal_ns : seen->asked_ns;
	if (fd < 0)
		return;
	/* Another process than the one that was seen may have its number now. */
	bool is_same = seen->start_ticks && ll_process_stat_of((pid_t)seen->pid, &stat) == 0 &&
		       stat.start_ticks == seen->start_ticks;
	bool is_sent = is_same && ll_keeper_link_send(&server->keeper, &request, fd, on_signalled, seen->pid);
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
	if (!policy || policy->action == LL_CONFIG_REPORT || (seen->uid == 0 && !seen->is_nested) ||
	    seen->uid == geteuid() || now_ns - server->born_ns < SETTLED_NS ||
	    now_ns - seen->first_ns < policy->after_ns)
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

static void look_at(struct ll_server *server, struct ll_message_sense_process *row)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	const struct ll_user *user = server->users;
	while (user && user->pid != row->pid)
		user = user->next;
	if (row->job_number && user) /* it has a claim */
		return;
	if (!row->job_number)
		row->flags |= LL_SENSE_IS_UNGOVERNED;
	/* MPS's server works for its clients, each of which is on the card too. */
	const char *name = strrchr(row->program, '/');
	bool is_allowed = name && strcmp(name, "/nvidia-cuda-mps-server") == 0;
	for (size_t i = 0; policy && row->program[0] && i < policy->ungoverned.allow.count; i++)
		is_allowed |= strcmp(policy->ungoverned.allow.items[i], row->program) == 0;
	if (is_allowed) {
		row->flags |= LL_SENSE_IS_ALLOWED;
		return;
	}
	struct ll_ungoverned *seen = server->ungoverned;
	while (seen && (seen->pid != row->pid || seen->start_ticks != row->start_ticks))
		seen = seen->next;
	if (!seen) {
		seen = calloc(1, sizeof *seen);
		if (!seen)
			return;
		*seen = (struct ll_ungoverned){.next = server->ungoverned,
					       .pid = row->pid,
					       .uid = row->uid,
					       .start_ticks = row->start_ticks,
					       .first_ns = ll_now_ns(),
					       .is_there = true,
					       .is_nested = ll_process_is_nested((pid_t)row->pid)};
		memcpy(seen->command, row->command, sizeof seen->command);
		server->ungoverned = seen;
		return;
	}
	if (seen->is_there) /* in this round */
		return;
	/* What is in one report alone may be of a job that is not known yet, or that has just ended. */
	seen->is_there = true;
	tell_once(server, row, seen);
	if (!row->job_number) {
		act_on_process(server, policy ? &policy->ungoverned : NULL, seen);
	} else if (!seen->signal_ns) {
		seen->signal_ns = ll_now_ns();
		struct ll_job *job = ll_books_find_number(&server->books, row->job_number);
		if (job)
			stop_job(server, job, "a process of it uses a card without limits");
	}
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
