#include "daemon/machine/mismatch.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/queue/admission.h"
#include "daemon/residency/memory.h"

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

static bool is_stop_configured(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	return policy && policy->mismatch.action == LL_CONFIG_ACTION_STOP;
}

static void stop_job(struct ll_server *server, struct ll_job *job, const char *why)
{
	if (is_stop_configured(server) && !ll_admission_stop_job(server, job, why))
		ll_warn("mismatch: job %llu cannot be stopped: it has no place in the queue and no control group",
			(unsigned long long)job->number);
}

void ll_mismatch_stop(struct ll_server *server, const struct ll_message_sense_process *process)
{
	struct ll_job *job = ll_books_after(&server->books, process->job_number - 1);
	if (job && job->number == process->job_number)
		stop_job(server, job, "a process of it uses a card without limits");
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

static const struct ll_message_sense_card *find_row(const struct ll_server *server, const char *uuid)
{
	size_t count;
	const struct ll_message_sense_card *rows = ll_machine_rows(server, &count);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[i].uuid, uuid) == 0)
			return &rows[i];
	}
	return NULL;
}

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

static void say_time(const struct ll_job_card *card, uint64_t gpu_ns, uint64_t busy_ns, uint64_t period_ns)
{
	ll_warn(
	    "job %llu of user %u, tenant %s, card %s: the job reports %.1f s of GPU time in %.1f s, and the card had "
	    "work for %.1f s",
	    (unsigned long long)card->job->number, card->job->facts.uid, card->job->facts.tenant, card->uuid,
	    (double)gpu_ns / (double)LL_NS_PER_S, (double)period_ns / (double)LL_NS_PER_S,
	    (double)busy_ns / (double)LL_NS_PER_S);
}

/* A sensor that has started anew, or has missed samples, has not watched the whole period. */
static void check_time(const struct ll_server *server, struct ll_job_card *card, uint64_t now_ns)
{
	struct ll_mismatch *state = &card->mismatch;
	const struct ll_message_sense_card *row = find_row(server, card->uuid);
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
		say_time(card, state->checked_gpu_ns, state->checked_busy_ns, period_ns);
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
