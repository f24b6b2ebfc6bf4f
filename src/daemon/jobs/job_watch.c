#include "daemon/jobs/job_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/accounts/low_use.h"
#include "daemon/arbiter/how_shared.h"
#include "daemon/core/server.h"
#include "daemon/jobs/claims.h"
#include "daemon/machine/events.h"
#include "daemon/queue/admission.h"
#include "daemon/residency/memory.h"

enum { LOOKS = 4, LOOK_MIN_MS = 500, LOOK_MAX_MS = 30000 };

struct ll_job_watch {
	struct ll_server *server;
	uv_timer_t timer;
	struct ll_low_use *low_use;
};

/* ---- idle holders ---- */

/* When the job last had work, or took its claim; UINT64_MAX: it has some now. */
static uint64_t last_work_ns(const struct ll_job *job)
{
	uint64_t last_ns = 0;
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		for (const struct ll_job_claim *claim = job->claims->cards[i]->claims; claim; claim = claim->next) {
			const struct ll_page_slot *slot = ll_claim_slot(claim);
			uint64_t activity_ns = slot->activity_ns, taken_ns = slot->taken_ns;
			if (activity_ns == LL_ACTIVITY_NOW)
				return UINT64_MAX;
			activity_ns = activity_ns > taken_ns ? activity_ns : taken_ns;
			last_ns = activity_ns > last_ns ? activity_ns : last_ns;
		}
	}
	return last_ns;
}

static uint64_t memory_of(const struct ll_job *job)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++)
		bytes += ll_memory_used_bytes(job->claims->cards[i]);
	return bytes;
}

static void look_at_holder(const struct ll_server *server, const struct ll_config_idle_holder *policy,
			   struct ll_job *job, uint64_t now_ns)
{
	char idle[LL_EVENT_DURATION_SIZE];
	uint64_t last_ns = last_work_ns(job), bytes = memory_of(job);
	if (!last_ns || last_ns >= now_ns || now_ns - last_ns < policy->idle_ns || bytes < policy->memory_bytes ||
	    (job->idle_told_ns && now_ns - job->idle_told_ns < policy->again_ns))
		return;
	job->idle_told_ns = now_ns;
	ll_event_duration(now_ns - last_ns, idle);
	ll_events_tell(server, LL_EVENT_IDLE_HOLDER, &(struct ll_event_about){.job = job},
		       "job %" PRIu64 " holds %.1f GiB of memory, and has had no work for %s", job->number,
		       (double)bytes / (double)(UINT64_C(1) << 30), idle);
}

/* ---- kernels without end ---- */

/* Whether the process has work on the card that nothing keeps from running. */
static bool is_at_work(const struct ll_job_claim *claim, uint64_t now_ns)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	struct ll_card_claim_view view;
	struct ll_share_how how;
	if (slot->activity_ns != LL_ACTIVITY_NOW || slot->residency == LL_CLAIM_STOPPED ||
	    slot->residency == LL_CLAIM_EVICTED)
		return false;
	ll_card_claim_read(claim->share, &view);
	ll_card_job_read_how(claim->card->share, now_ns, &how);
	return !view.is_held && !how.is_capped;
}

static void tell_endless(struct ll_server *server, const struct ll_config_endless_kernel *policy,
			 const struct ll_job_claim *claim, uint64_t runs_ns)
{
	const struct ll_job_card *card = claim->card;
	char runs[LL_EVENT_DURATION_SIZE];
	bool is_stop = policy->action == LL_CONFIG_ACTION_STOP;
	ll_event_duration(runs_ns, runs);
	ll_events_tell(server, LL_EVENT_ENDLESS_KERNEL, &(struct ll_event_about){.job = card->job, .card = card->uuid},
		       "job %" PRIu64 " has had work on card %s for %s, and none of it has been completed%s",
		       card->job->number, card->uuid, runs, is_stop ? "; it is stopped" : "");
	if (is_stop && !ll_admission_stop_job(server, card->job, "a kernel of it does not end"))
		ll_warn("job %" PRIu64 " cannot be stopped: it has no place in the queue and no control group",
			card->job->number);
}

static void look_at_claim(struct ll_server *server, const struct ll_config_endless_kernel *policy,
			  struct ll_job_claim *claim, uint64_t now_ns)
{
	struct ll_watched_claim *watched = &claim->watched;
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	uint64_t completed = slot->completed_launches + slot->gpu_time_ns;
	if (!watched->since_ns || completed != watched->completed || !is_at_work(claim, now_ns)) {
		*watched = (struct ll_watched_claim){.since_ns = now_ns, .completed = completed};
	} else if (!watched->is_told && now_ns - watched->since_ns >= policy->after_ns) {
		watched->is_told = true;
		tell_endless(server, policy, claim, now_ns - watched->since_ns);
	}
}

static void look_at_claims(struct ll_server *server, const struct ll_config_endless_kernel *policy,
			   const struct ll_job *job, uint64_t now_ns)
{
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		for (struct ll_job_claim *claim = job->claims->cards[i]->claims; claim; claim = claim->next)
			look_at_claim(server, policy, claim, now_ns);
	}
}

/* ---- the timer ---- */

static uint64_t shorter_of(uint64_t one_ns, bool has_other, uint64_t other_ns)
{
	return has_other && other_ns < one_ns ? other_ns : one_ns;
}

/* 0: nothing is configured. */
static uint64_t period_ms(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	uint64_t shortest_ns = UINT64_MAX;
	if (!policy)
		return 0;
	shortest_ns = shorter_of(shortest_ns, policy->idle_holder.from, policy->idle_holder.idle_ns);
	shortest_ns = shorter_of(shortest_ns, policy->endless_kernel.from, policy->endless_kernel.after_ns);
	shortest_ns = shorter_of(shortest_ns, policy->low_use.from, policy->low_use.over_ns);
	uint64_t period = shortest_ns / LOOKS / LL_NS_PER_MS;
	if (shortest_ns == UINT64_MAX)
		return 0;
	return period < LOOK_MIN_MS ? LOOK_MIN_MS : period > LOOK_MAX_MS ? LOOK_MAX_MS : period;
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_job_watch *watch = timer->data;
	struct ll_server *server = watch->server;
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	uint64_t now_ns = ll_now_ns();
	for (struct ll_job *job = server->books.jobs; policy && job; job = job->next) {
		if (policy->idle_holder.from)
			look_at_holder(server, &policy->idle_holder, job, now_ns);
		if (policy->endless_kernel.from)
			look_at_claims(server, &policy->endless_kernel, job, now_ns);
	}
	ll_low_use_look(server, &watch->low_use, now_ns);
	ll_job_watch_wake(watch);
}

void ll_job_watch_wake(struct ll_job_watch *watch)
{
	uint64_t period = watch && watch->server->books.job_count ? period_ms(watch->server) : 0;
	if (period && !uv_is_active((uv_handle_t *)&watch->timer))
		uv_timer_start(&watch->timer, on_timer, period, 0);
}

/* ---- start and end ---- */

int ll_job_watch_new(struct ll_server *server, struct ll_job_watch **ret_watch)
{
	*ret_watch = NULL;
	if (!server->is_system)
		return 0;
	struct ll_job_watch *watch = calloc(1, sizeof *watch);
	if (!watch)
		return -ENOMEM;
	watch->server = server;
	watch->timer.data = watch;
	*ret_watch = watch;
	return uv_timer_init(&server->loop, &watch->timer);
}

static void free_watch(uv_handle_t *handle)
{
	struct ll_job_watch *watch = handle->data;
	ll_low_use_free(watch->low_use);
	free(watch);
}

void ll_job_watch_free(struct ll_job_watch *watch)
{
	if (watch)
		uv_close((uv_handle_t *)&watch->timer, free_watch);
}
