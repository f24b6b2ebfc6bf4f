#include "cli/status/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/packet.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/stalling.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "driver/cards.h"
#include "hold/command/words.h"
#include "mps/mps.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

/* ---- readings ---- */

static void read_card(struct ll_status_card *status)
{
	const struct ll_card *card = status->card;
	struct ll_power power;
	struct ll_temperature temperature;
	uint64_t energy_mj;
	if (!ll_read_power(card, &power, NULL))
		status->power_watts = power.watts;
	if (!ll_read_energy(card, &energy_mj, NULL))
		status->energy_joules = (double)energy_mj / 1000;
	if (!ll_read_temperature(card, &temperature, NULL)) {
		status->celsius = temperature.celsius;
		status->slowdown_celsius = temperature.slowdown_celsius;
	}
	ll_read_util(card, &status->util_percent, NULL);
	ll_read_power_limit(card, &status->power_limit_watts, NULL);
	status->has_memory = !ll_read_memory(card, &status->memory, NULL);
	status->has_clocks = !ll_read_clocks(card, &status->clocks, NULL);
	status->has_slowdown = !ll_read_slowdown(card, &status->slowdown, NULL);
	status->has_mode = !ll_read_compute_mode(card, &status->mode, NULL);
	status->has_processes = !ll_read_processes(card, LL_PROCESS_ALL, &status->processes, NULL);
}

/* ---- what the words of a claim mean ---- */

const struct ll_status_job *ll_status_job_of(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	for (size_t i = 0; claim->row.job_number && i < status->job_count; i++) {
		if (status->jobs[i].row.job_number == claim->row.job_number)
			return &status->jobs[i];
	}
	return NULL;
}

const char *ll_status_number(const struct ll_status_card *status, const struct ll_status_claim *claim,
			     char ret_number[LL_STATUS_NUMBER_SIZE])
{
	if (claim->priority == LL_PRIORITY_HOLD)
		snprintf(ret_number, LL_STATUS_NUMBER_SIZE, "%s/hold", status->card->label);
	else
		snprintf(ret_number, LL_STATUS_NUMBER_SIZE, "%s/%u", status->card->label, claim->row.index);
	return ret_number;
}

const struct ll_status_claim *ll_status_waits_for(const struct ll_status_card *status,
						  const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	if (claim->row.checkpoint || !claim->row.wanting_ns || !job || !(job->row.flags & LL_CARD_IS_HELD))
		return NULL;
	for (size_t i = 0; i < status->claim_count; i++) {
		const struct ll_status_job *other = ll_status_job_of(status, &status->claims[i]);
		if (other && other->row.flags & LL_CARD_IS_HOLDER && status->claims[i].row.wanting_ns)
			return &status->claims[i];
	}
	return NULL;
}

bool ll_status_is_over_cap(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	return !claim->row.checkpoint && job && job->told.job.limits.compute_permille && job->row.tokens_ns < 0;
}

bool ll_status_has_turn(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	return !claim->row.checkpoint && job && job->row.flags & LL_CARD_IS_HOLDER;
}

bool ll_status_lost(const struct ll_status_card *status, const struct ll_status_job *job, double *ret_seconds)
{
	uint64_t since_ns = job->lost_since_ns;
	*ret_seconds = status->now_ns > since_ns ? (double)(status->now_ns - since_ns) / (double)LL_NS_PER_S : 0;
	return since_ns;
}

bool ll_status_residency_of(const struct ll_status_claim *claim, struct ll_status_residency *ret_residency)
{
	uint64_t used_bytes = claim->row.used_bytes;
	if (claim->row.residency == LL_CLAIM_FIXED)
		return false;
	*ret_residency = (struct ll_status_residency){
	    .resident_bytes = used_bytes > claim->row.away_bytes ? used_bytes - claim->row.away_bytes : 0,
	    .evictable_bytes = claim->row.evictable_bytes,
	    .pinned_bytes = used_bytes > claim->row.evictable_bytes ? used_bytes - claim->row.evictable_bytes : 0,
	    .host_bytes = claim->row.host_bytes,
	    .neighbour_bytes = claim->row.neighbour_bytes,
	    .moves = claim->row.moves,
	};
	return true;
}

const char *ll_status_state(const struct ll_status_claim *claim)
{
	if (claim->row.checkpoint == LL_CHECKPOINT_EVICTED)
		return N_("evicted (checkpoint)");
	if (claim->row.checkpoint == LL_CHECKPOINT_SUSPENDED)
		return N_("suspended");
	if (claim->row.residency == LL_CLAIM_EVICTED)
		return N_("evicted");
	if (claim->row.residency == LL_CLAIM_STOPPED || claim->is_stopped)
		return N_("stopped");
	return ll_claim_state_name(claim->priority, claim->row.state);
}

static void fill_recent(const struct ll_status_card *status, uint64_t before_ns, uint64_t now_ns,
			struct ll_status_recent *ret_recent)
{
	uint64_t passed_ns = status->now_ns - status->earlier->now_ns;
	uint64_t had_ns = now_ns > before_ns ? now_ns - before_ns : 0;
	ret_recent->seconds = (double)passed_ns / (double)LL_NS_PER_S;
	ret_recent->percent = 100 * (double)had_ns / (double)passed_ns;
}

bool ll_status_recent_job(const struct ll_status_card *status, const struct ll_status_job *job,
			  struct ll_status_recent *ret_recent)
{
	const struct ll_status_card *earlier = status->earlier;
	for (size_t i = 0; earlier && status->now_ns > earlier->now_ns && i < earlier->job_count; i++) {
		if (earlier->jobs[i].told.job.token[0] != job->told.job.token[0])
			continue;
		fill_recent(status, earlier->jobs[i].row.gpu_time_ns, job->row.gpu_time_ns, ret_recent);
		return true;
	}
	return false;
}

bool ll_status_recent_hold(const struct ll_status_card *status, const struct ll_status_claim *hold,
			   struct ll_status_recent *ret_recent)
{
	const struct ll_status_card *earlier = status->earlier;
	for (size_t i = 0; earlier && status->now_ns > earlier->now_ns && i < earlier->claim_count; i++) {
		const struct ll_status_claim *before = &earlier->claims[i];
		if (before->priority != LL_PRIORITY_HOLD || before->pid != hold->pid)
			continue;
		fill_recent(status, before->synthetic_busy_ns, hold->synthetic_busy_ns, ret_recent);
		return true;
	}
	return false;
}

/* ---- What loadlined knows of the claims and jobs of a card, and what its synthetic load says ---- */

static uint64_t time_of_age(const struct ll_status_card *status, uint64_t age_ns)
{
	return status->now_ns > age_ns ? status->now_ns - age_ns : 1;
}

unsigned ll_status_weight(const struct ll_message_job_row *job)
{
	unsigned weight = job->job.limits.weight_permille;
	return job->number && !weight ? LL_DEFAULT_WEIGHT_PERMILLE : weight;
}

unsigned ll_status_slowdown(const struct ll_message_job_row *job)
{
	unsigned slowdown = job->job.limits.slowdown_permille;
	return job->number && !slowdown ? LL_DEFAULT_SLOWDOWN_PERMILLE : slowdown;
}

static void fill_claim(const struct ll_status_card *status, const struct ll_daemon_view *view,
		       const struct ll_message_claim_row *row, struct ll_status_claim *ret_claim)
{
	const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
	*ret_claim = (struct ll_status_claim){
	    .row = *row,
	    .pid = (pid_t)row->pid,
	    .is_pid_ours = row->pid && ll_daemon_view_pids_are_ours(view),
	    .priority = job ? ll_priority_of_class(job->job.limits.priority) : LL_PRIORITY_NORMAL,
	    .taken_ns = time_of_age(status, row->taken_age_ns),
	};
	if (job)
		ret_claim->told = *job;
}

static void fill_job(const struct ll_status_card *status, const struct ll_daemon_view *view,
		     const struct ll_message_card_row *row, struct ll_status_job *ret_job)
{
	const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
	*ret_job = (struct ll_status_job){
	    .row = *row,
	    .priority = job ? ll_priority_of_class(job->job.limits.priority) : LL_PRIORITY_NORMAL,
	    .lost_since_ns = row->flags & LL_CARD_IS_LOST ? time_of_age(status, row->lost_ns) : 0,
	    .measured_wall_ns = row->measured_age_ns ? ll_wall_ns() - row->measured_age_ns : 0,
	};
	if (!job)
		return;
	ret_job->told = *job;
	ret_job->held_permille = row->held_permille;
	ret_job->seen_permille = row->slowdown_permille;
	ret_job->target_permille = ll_status_slowdown(job);
}

static void note_card(struct ll_status_card *status, const struct ll_daemon_view *view,
		      const struct ll_message_card_row *row)
{
	struct ll_status_job *job = &status->jobs[status->job_count++];
	enum ll_way way;
	fill_job(status, view, row, job);
	way = job->told.job.limits.space_permille ? LL_WAY_SPACE : LL_WAY_SLICES;
	job->has_other_way = status->earlier_runs && ll_other_way_find(status->earlier_runs, row, way, &job->other_way);
	status->sharing = (enum ll_sharing)row->sharing;
	status->visits_permille = row->visits_permille;
}

/* Those beneath a higher class learn for whom they are held. */
static void note_held(struct ll_status_card *status, struct ll_status_job *job)
{
	for (size_t i = 0; i < status->job_count; i++) {
		const struct ll_status_job *other = &status->jobs[i];
		if (other->priority >= job->priority || other->row.held_permille <= job->held_permille)
			continue;
		job->held_for = other->told.job.tenant;
		job->held_permille = other->row.held_permille;
		job->target_permille = ll_status_slowdown(&other->told);
		job->seen_permille = other->row.slowdown_permille;
	}
}

static int compare_claims(const void *left, const void *right)
{
	const struct ll_status_claim *first = left, *second = right;
	return first->row.index < second->row.index ? -1 : first->row.index > second->row.index;
}

/* ---- The synthetic load of a card, as it says itself ---- */

static void fill_hold(const struct ll_status_card *status, const struct ll_hold_owner *owner,
		      struct ll_status_claim *ret_claim)
{
	const struct ll_hold_report *report = &owner->report;
	*ret_claim = (struct ll_status_claim){
	    .pid = owner->pid,
	    .is_pid_ours = owner->pid > 0,
	    .priority = LL_PRIORITY_HOLD,
	    .row = {.state = report->state,
		    .used_bytes = report->memory_bytes,
		    .gpu_time_ns = report->gpu_time_ns,
		    .idle_ns = UINT64_MAX},
	    .told.job.limits.weight_permille = LL_DEFAULT_WEIGHT_PERMILLE,
	    .target_permille = report->target_permille,
	    .target_watts = report->target_watts,
	    .synthetic_busy_ns = report->synthetic_busy_ns,
	    .energy_mj = report->energy_mj,
	    .yields = report->yields,
	    .taken_ns = status->now_ns > report->taken_age_ns ? status->now_ns - report->taken_age_ns : 1,
	};
	snprintf(ret_claim->told.job.tenant, sizeof ret_claim->told.job.tenant, "%s", LL_HOLD_TENANT);
	snprintf(ret_claim->payload, sizeof ret_claim->payload, "%s", report->payload);
	snprintf(ret_claim->metric, sizeof ret_claim->metric, "%s", report->metric);
	snprintf(ret_claim->row.note, sizeof ret_claim->row.note, "%s",
		 owner->has_report ? report->note : N_("does not answer"));
}

/* Adds the card's synthetic load to the claims, which have room for it. */
static void read_hold(struct ll_status_card *status)
{
	struct ll_hold_owner owner;
	const char *sim_folder = ll_driver_sim_folder(status->card->driver);
	if (ll_hold_query(status->card, sim_folder, &owner, &status->sitter, NULL) == 0)
		fill_hold(status, &owner, &status->claims[status->claim_count++]);
}

/* Takes claims and jobs from the view, and asks the card's synthetic load. */
static int read_claims(struct ll_status_card *status, const struct ll_daemon_view *view, struct ll_err *err)
{
	const struct ll_list *list = &view->list;
	const char *uuid = status->card->uuid;
	status->claims = calloc(list->claim_count + 1, sizeof *status->claims);
	status->jobs = calloc(list->card_count + 1, sizeof *status->jobs);
	status->earlier_runs =
	    list->card_count > 1 ? ll_other_way_read(ll_driver_sim_folder(status->card->driver)) : NULL;
	if (!status->claims || !status->jobs)
		return ll_err_set(err, -ENOMEM, "claims: %s", strerror(ENOMEM));
	for (size_t i = 0; i < list->claim_count; i++) {
		if (strcmp(list->claims[i].uuid, uuid) == 0)
			fill_claim(status, view, &list->claims[i], &status->claims[status->claim_count++]);
	}
	for (size_t i = 0; i < list->card_count; i++) {
		if (strcmp(list->cards[i].uuid, uuid) == 0)
			note_card(status, view, &list->cards[i]);
	}
	for (size_t i = 0; i < status->job_count; i++)
		note_held(status, &status->jobs[i]);
	qsort(status->claims, status->claim_count, sizeof *status->claims, compare_claims);
	read_hold(status);
	return 0;
}

/* ---- what /proc tells of processes ---- */

enum { STATUS_SIZE = 2048, NAME_SIZE = 32 };

/* ---- what waits for no lock of the process ---- */

/* The owner of the folder is root if the process cannot be dumped. */
static void read_user(pid_t pid, char *user, size_t size)
{
	char text[STATUS_SIZE];
	uint32_t uids[4];
	ll_process_read_file(pid, "status", text, sizeof text);
	if (ll_process_parse_uids(text, uids))
		ll_user_name(uids[0], user, size);
}

static void read_stat(pid_t pid, struct ll_status_process *process)
{
	struct ll_process_stat stat;
	uint64_t now_ns = ll_boot_ns(), ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	process->age_ns = LL_AGE_UNKNOWN;
	if (ll_process_stat_of(pid, &stat))
		return;
	uint64_t start_ns = stat.start_ticks / ticks * LL_NS_PER_S + stat.start_ticks % ticks * LL_NS_PER_S / ticks;
	process->age_ns = now_ns > start_ns ? now_ns - start_ns : 0;
	process->is_stopped = stat.is_stopped;
}

/* ---- what does ---- */

struct slow {
	char command[LL_STATUS_COMMAND_SIZE];
	char tenant[LL_TENANT_NAME_SIZE];
	bool is_older;
};

/* Goes without the folder of the program, which would fill the column. */
static void read_command(pid_t pid, char *command, size_t size)
{
	char text[LL_STATUS_COMMAND_SIZE + 256];
	ssize_t length = ll_process_read_file(pid, "cmdline", text, sizeof text);
	const char *slash = strrchr(text, '/'); /* in the first word, which a NUL ends */
	for (ssize_t i = 0; i < length; i++)
		text[i] = !text[i] || text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
	snprintf(command, size, "%.*s", LL_STATUS_COMMAND_SIZE - 1, slash ? slash + 1 : text);
}

static void read_slow(pid_t pid, void *ret_result)
{
	struct slow *slow = ret_result;
	struct ll_run_settings settings;
	read_command(pid, slow->command, sizeof slow->command);
	slow->is_older = ll_process_is_of_older(pid);
	if (ll_run_settings_of_process(pid, &settings) == 0)
		snprintf(slow->tenant, sizeof slow->tenant, "%s", settings.tenant);
}

/* ---- both ---- */

/* As ps writes the name of a program whose command line cannot be read. A program without a command line has one too.
 */
static void describe(pid_t pid, const struct slow *slow, bool is_read, struct ll_status_process *ret_process)
{
	char name[NAME_SIZE];
	*ret_process = (struct ll_status_process){.pid = pid, .is_stalled = !is_read};
	read_stat(pid, ret_process);
	read_user(pid, ret_process->user, sizeof ret_process->user);
	ll_process_read_file(pid, "comm", name, sizeof name);
	name[strcspn(name, "\n")] = '\0';
	if (slow->command[0])
		snprintf(ret_process->command, sizeof ret_process->command, "%s", slow->command);
	else if (name[0])
		snprintf(ret_process->command, sizeof ret_process->command, is_read ? "%s" : "[%s]", name);
	snprintf(ret_process->tenant, sizeof ret_process->tenant, "%s", slow->tenant);
	ret_process->is_older = slow->is_older;
	ll_utf8_clean(ret_process->user);
	ll_utf8_clean(ret_process->command);
}

/* A process whose memory lock is held is waited for 250 ms at most (cli/common/stalling.h). NULL: no memory. */
static struct ll_status_process *read_processes(const pid_t *pids, size_t count)
{
	LL_SCOPE_FREE struct slow *slow = calloc(count + 1, sizeof *slow);
	LL_SCOPE_FREE bool *are_read = calloc(count + 1, sizeof *are_read);
	struct ll_status_process *processes = calloc(count + 1, sizeof *processes);
	if (slow && are_read && processes)
		ll_stalling_read(pids, count, read_slow, sizeof *slow, slow, are_read);
	for (size_t i = 0; slow && are_read && processes && i < count; i++)
		describe(pids[i], &slow[i], are_read[i], &processes[i]);
	return processes;
}

const struct ll_status_process *ll_status_process_of(const struct ll_status_card *status, pid_t pid)
{
	static const struct ll_status_process unknown = {.user = "", .age_ns = LL_AGE_UNKNOWN};
	for (size_t i = 0; i < status->known_count; i++) {
		if (status->known[i].pid == pid)
			return &status->known[i];
	}
	return &unknown;
}

/* Whether the process belongs to the claim. A hold's contexts are in a child of the claim's owner. */
static bool is_process_of(const struct ll_status_claim *claim, pid_t pid)
{
	struct ll_process_stat stat;
	return claim->pid == pid ||
	       (claim->priority == LL_PRIORITY_HOLD && !ll_process_stat_of(pid, &stat) && stat.parent == claim->pid);
}

static bool has_claim(const struct ll_status_card *status, pid_t pid)
{
	for (size_t i = 0; i < status->claim_count; i++) {
		if (is_process_of(&status->claims[i], pid))
			return true;
	}
	return false;
}

/* The kernel cuts names at 15 characters, and MPS's daemon and server have the same first 15. */
enum { KERNEL_NAME = 15 };

static void describe_stranger(const struct ll_process *process, struct ll_status_stranger *ret_stranger)
{
	char program[64];
	*ret_stranger = (struct ll_status_stranger){.pid = process->pid, .memory_bytes = process->memory_bytes};
	ll_mps_process_name(process->pid, program, sizeof program);
	ret_stranger->is_mps_server = strcmp(program, "nvidia-cuda-mps-server") == 0;
	snprintf(ret_stranger->name, sizeof ret_stranger->name, "%.*s", KERNEL_NAME, program);
	ll_utf8_clean(ret_stranger->name);
}

uint64_t ll_status_card_bytes(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	uint64_t bytes = LL_MEMORY_UNKNOWN;
	for (size_t i = 0; claim->is_pid_ours && i < status->processes.count; i++) {
		const struct ll_process *process = &status->processes.items[i];
		if (process->memory_bytes != LL_MEMORY_UNKNOWN && is_process_of(claim, process->pid))
			bytes = (bytes == LL_MEMORY_UNKNOWN ? 0 : bytes) + process->memory_bytes;
	}
	return bytes;
}

static void find_strangers(struct ll_status_card *status)
{
	const struct ll_process_list *processes = &status->processes;
	for (size_t i = 0; i < status->claim_count; i++) {
		/* NVML's process ids are those of the machine's first PID namespace. This claim has a process id of
		 * another namespace, so they cannot be compared. */
		if (!status->claims[i].is_pid_ours)
			return;
	}
	status->strangers = calloc(processes->count + 1, sizeof *status->strangers);
	if (!status->strangers)
		return;
	for (size_t i = 0; i < processes->count; i++) {
		if (!has_claim(status, processes->items[i].pid))
			describe_stranger(&processes->items[i], &status->strangers[status->stranger_count++]);
	}
}

/* Removes those of other users, and counts them: loadlined hides other users' jobs, and so it is not known which of
 * them are jobs. */
static void hide_others(struct ll_status_card *status)
{
	size_t kept = 0;
	for (size_t i = 0; i < status->stranger_count; i++) {
		uid_t owner = ll_mps_process_user(status->strangers[i].pid);
		if (owner == (uid_t)-1 || owner == geteuid())
			status->strangers[kept++] = status->strangers[i];
	}
	status->hidden_count = status->stranger_count - kept;
	status->stranger_count = kept;
}

/* ---- what /proc tells of them, and of the claims' processes ---- */

static size_t list_pids(const struct ll_status_card *status, pid_t *pids)
{
	size_t count = 0;
	for (size_t i = 0; i < status->claim_count; i++) {
		if (status->claims[i].is_pid_ours)
			pids[count++] = status->claims[i].pid;
	}
	for (size_t i = 0; i < status->stranger_count; i++)
		pids[count++] = status->strangers[i].pid;
	return count;
}

static void hide_command(struct ll_status_card *status, pid_t pid)
{
	for (size_t i = 0; i < status->known_count; i++) {
		if (status->known[i].pid == pid)
			status->known[i].command[0] = '\0';
	}
}

static void hide_commands(struct ll_status_card *status)
{
	for (size_t i = 0; i < status->claim_count; i++) {
		if (status->claims[i].is_pid_ours && status->claims[i].told.number &&
		    !status->claims[i].told.job.command[0])
			hide_command(status, status->claims[i].pid);
	}
	for (size_t i = 0; i < status->stranger_count; i++) {
		if (status->strangers[i].is_command_hidden)
			hide_command(status, status->strangers[i].pid);
	}
}

static void know_processes(struct ll_status_card *status)
{
	LL_SCOPE_FREE pid_t *pids = calloc(status->claim_count + status->stranger_count + 1, sizeof *pids);
	size_t count = pids ? list_pids(status, pids) : 0;
	status->known = count ? read_processes(pids, count) : NULL;
	status->known_count = status->known ? count : 0;
	for (size_t i = 0; i < status->known_count && i < status->claim_count; i++) {
		struct ll_status_process *process = &status->known[i];
		for (size_t k = 0; process->is_stalled && k < status->claim_count; k++) {
			const struct ll_status_claim *claim = &status->claims[k];
			if (claim->is_pid_ours && claim->pid == process->pid && claim->told.job.pid == claim->row.pid &&
			    claim->told.job.command[0])
				snprintf(process->command, sizeof process->command, "%s", claim->told.job.command);
		}
	}
	for (size_t i = 0; i < status->claim_count; i++) {
		struct ll_status_claim *claim = &status->claims[i];
		claim->is_stopped = claim->is_pid_ours && ll_status_process_of(status, claim->pid)->is_stopped;
	}
	for (size_t i = 0; i < status->stranger_count; i++) {
		struct ll_status_stranger *stranger = &status->strangers[i];
		const struct ll_status_process *process = ll_status_process_of(status, stranger->pid);
		if (stranger->is_mps_server)
			continue;
		stranger->is_older = process->is_older;
		snprintf(stranger->tenant, sizeof stranger->tenant, "%s",
			 stranger->sensed_tenant[0] ? stranger->sensed_tenant : process->tenant);
	}
	hide_commands(status);
}

/* ---- what the sensor tells ---- */

static void take_sensed(struct ll_status_card *status, const struct ll_daemon_view *view)
{
	for (size_t i = 0; ll_daemon_view_pids_are_ours(view) && i < status->stranger_count; i++) {
		struct ll_status_stranger *stranger = &status->strangers[i];
		const struct ll_message_sense_process *row =
		    ll_sensed_find(&view->sensed, status->card->uuid, (uint32_t)stranger->pid);
		if (!row)
			continue;
		stranger->sensed = (enum ll_sense_last)row->last;
		stranger->sensed_ns = row->last_ns + view->sensed.end.silent_ns;
		stranger->is_command_hidden = !row->command[0];
		const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
		if (job)
			snprintf(stranger->sensed_tenant, sizeof stranger->sensed_tenant, "%s", job->job.tenant);
	}
}

struct ll_status_last ll_status_last_sensed(const struct ll_status_stranger *stranger, struct ll_status_last seen_here)
{
	bool is_longer_here = seen_here.kind == LL_LAST_AT_LEAST && seen_here.ago_ns > stranger->sensed_ns;
	/* The sensor's report may be older than this reading, which sees work now. */
	if (seen_here.is_card_busy && stranger->sensed != LL_SENSE_LAST_NOW)
		return seen_here;
	switch (stranger->sensed) {
	case LL_SENSE_LAST_UNKNOWN:
		return seen_here;
	case LL_SENSE_LAST_BUSY:
		return seen_here.kind == LL_LAST_UNKNOWN
			   ? (struct ll_status_last){.kind = LL_LAST_UNKNOWN, .is_card_busy = true}
			   : seen_here;
	case LL_SENSE_LAST_NOW:
		return (struct ll_status_last){.kind = LL_LAST_RUNNING};
	case LL_SENSE_LAST_AGO:
		return (struct ll_status_last){.kind = LL_LAST_AGO, .ago_ns = stranger->sensed_ns};
	case LL_SENSE_LAST_AT_LEAST:
		break;
	}
	return is_longer_here ? seen_here
			      : (struct ll_status_last){.kind = LL_LAST_AT_LEAST, .ago_ns = stranger->sensed_ns};
}

/* Cards that this user may not open, as behind the fence: what loadlined's sensor tells of them. */

static const struct ll_message_sense_card *find_row(const struct ll_sensed *sensed, const char *uuid)
{
	for (size_t i = 0; sensed->end.silent_ns < LL_SENSED_FRESH_NS && i < sensed->card_count; i++) {
		if (strcmp(sensed->cards[i].uuid, uuid) == 0)
			return &sensed->cards[i];
	}
	return NULL;
}

static void take_processes(struct ll_status_card *status, const struct ll_sensed *sensed)
{
	status->processes.items = calloc(sensed->process_count + 1, sizeof *status->processes.items);
	status->processes.capacity = status->processes.items ? sensed->process_count : 0;
	for (size_t i = 0; i < status->processes.capacity; i++) {
		const struct ll_message_sense_process *row = &sensed->processes[i];
		if (strcmp(row->uuid, status->card->uuid) == 0)
			status->processes.items[status->processes.count++] = (struct ll_process){
			    .pid = (pid_t)row->pid, .kinds = LL_PROCESS_COMPUTE, .memory_bytes = row->used_bytes};
	}
	status->has_processes = status->processes.items != NULL;
}

static void note_drained(struct ll_status_card *status, const struct ll_daemon_view *view)
{
	const struct ll_sensed *sensed = &view->sensed;
	for (size_t i = 0; i < sensed->drained_count; i++) {
		const struct ll_message_sense_drained *row = &sensed->drained[i];
		if (row->index != status->card->index || row->since_s > ll_wall_ns() / LL_NS_PER_S)
			continue;
		status->is_drained = true;
		memcpy(status->drained, row->reason, sizeof status->drained);
	}
}

/* Takes memory and processes of a card that cannot be opened from the view. False: the sensor does not tell of it. */
static bool take_from_sensor(struct ll_status_card *status, const struct ll_daemon_view *view)
{
	const struct ll_message_sense_card *row = find_row(&view->sensed, status->card->uuid);
	if (!row || row->flags & LL_SENSE_IS_LOST)
		return false;
	status->has_memory = row->memory_bytes != 0;
	status->memory = (struct ll_memory){
	    .total_bytes = row->memory_bytes,
	    .used_bytes = row->used_bytes,
	    .free_bytes = row->memory_bytes > row->used_bytes ? row->memory_bytes - row->used_bytes : 0};
	if (ll_daemon_view_pids_are_ours(view))
		take_processes(status, &view->sensed);
	return true;
}

/* ---- the card ---- */

int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, const struct ll_daemon_view *view,
			struct ll_err *err)
{
	const double unknown = (double)NAN;
	*status = (struct ll_status_card){
	    .card = card,
	    .is_simulated = ll_driver_sim_folder(card->driver) != NULL,
	    .util_percent = unknown,
	    .power_watts = unknown,
	    .power_limit_watts = unknown,
	    .energy_joules = unknown,
	    .celsius = unknown,
	    .slowdown_celsius = unknown,
	    .now_ns = ll_now_ns(),
	};
	note_drained(status, view);
	if (card->fault && !take_from_sensor(status, view))
		return 0;
	if (!card->fault) {
		read_card(status);
		ll_status_read_idle(status);
	}
	int rc = read_claims(status, view, err);
	/* Without an answer there is no telling who is governed. */
	bool is_known = view->answer != LL_DAEMON_SILENT && view->answer != LL_DAEMON_BROKEN;
	if (!rc && is_known && !card->has_slices)
		find_strangers(status);
	if (view->list.end.hides_others)
		hide_others(status);
	take_sensed(status, view);
	know_processes(status);
	return rc;
}

void ll_status_card_fini(struct ll_status_card *status)
{
	free(status->claims);
	free(status->jobs);
	free(status->strangers);
	free(status->known);
	free(status->earlier_runs);
	ll_process_list_fini(&status->processes);
	status->claims = NULL;
	status->jobs = NULL;
	status->earlier_runs = NULL;
	status->strangers = NULL;
	status->known = NULL;
	status->claim_count = status->job_count = status->stranger_count = status->known_count = 0;
}
