#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/arbiter/how_shared.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/queue/queue.h"
#include "daemon/residency/residency.h"
#include "rules/share/use_window.h"

enum { LOOKS = 4, LOOK_MIN_MS = 500, LOOK_MAX_MS = 30000 };

/* ---- idle holders ---- */

uint64_t ll_job_last_work_ns(const struct ll_job *job)
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

static void look_at_holder(const struct ll_server *server, const struct ll_config_idle_holder *policy,
			   struct ll_job *job, uint64_t now_ns)
{
	char idle[LL_EVENT_DURATION_SIZE];
	uint64_t last_ns = ll_job_last_work_ns(job), bytes = 0;
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++)
		bytes += ll_memory_used_bytes(job->claims->cards[i]);
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
	return !view.is_held && !view.is_suspended && !how.is_capped;
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

/* ---- low use ---- */

/* Who held cards for less than this part of the time is left out. */
enum { HELD_PART = 10, WHOLE_PERMILLE = 1000, OF_USER = 1, PERMILLE_TO_PERCENT = 10 };

struct user_window {
	struct user_window *next;
	char tenant[LL_NAME_SIZE]; /* of a tenant */
	uint32_t uid;              /* of a user */
	uint64_t told_ns;
	struct ll_use_window window;
};

struct low_use {
	uint64_t over_ns;
	int of;
	struct user_window *windows;
};

struct ll_job_watch {
	struct ll_server *server;
	uv_timer_t timer;
	struct low_use low_use;
};

static struct user_window *find_window(struct low_use *state, const struct ll_job *job, uint64_t now_ns)
{
	struct user_window *window = state->windows;
	while (window && (state->of == OF_USER ? window->uid != job->facts.uid
					       : strcmp(window->tenant, job->department_tenant) != 0))
		window = window->next;
	if (window)
		return window;
	window = calloc(1, sizeof *window);
	if (!window)
		return NULL;
	memcpy(window->tenant, job->department_tenant, sizeof window->tenant);
	window->uid = job->facts.uid;
	ll_use_window_init(&window->window, state->over_ns, now_ns);
	window->next = state->windows;
	state->windows = window;
	return window;
}

static void free_windows(struct low_use *state)
{
	while (state->windows) {
		struct user_window *window = state->windows;
		state->windows = window->next;
		free(window);
	}
}

/* A long kernel is counted at its end: so what is new may be as long as the time since it was last new. */
static uint64_t used_on_card(struct ll_job_card *card, uint64_t now_ns)
{
	struct ll_watched_card *watched = &card->watched;
	uint64_t gpu_ns = card->job->pages.page->cards[card->index].gpu_time_ns, used_ns = 0;
	if (!watched->grown_ns || gpu_ns < watched->gpu_time_ns) {
		watched->grown_ns = now_ns;
	} else if (gpu_ns > watched->gpu_time_ns) {
		uint64_t most_ns = now_ns - watched->grown_ns;
		used_ns = gpu_ns - watched->gpu_time_ns;
		used_ns = used_ns < most_ns ? used_ns : most_ns;
		watched->grown_ns = now_ns;
	}
	watched->gpu_time_ns = gpu_ns;
	return used_ns;
}

static void count_job(const struct ll_server *server, struct low_use *state, struct ll_job *job, uint64_t now_ns)
{
	const struct ll_job_claims *claims = job->claims;
	uint64_t permille = job->facts.limits.compute_permille ? job->facts.limits.compute_permille : WHOLE_PERMILLE;
	uint64_t passed_ns = job->watched_ns ? now_ns - job->watched_ns : 0, used_ns = 0;
	unsigned placed = ll_admission_card_count(server, job), cards = 0;
	struct user_window *window = find_window(state, job, now_ns);
	for (unsigned i = 0; claims && i < claims->card_count; i++) {
		used_ns += used_on_card(claims->cards[i], now_ns);
		cards += claims->cards[i]->claim_count > 0;
	}
	job->watched_ns = now_ns;
	if (window)
		ll_use_window_add(&window->window, now_ns,
				  passed_ns / WHOLE_PERMILLE * permille * (placed ? placed : cards), used_ns);
}

static void tell_window(const struct ll_server *server, const struct low_use *state, struct user_window *window,
			uint64_t now_ns)
{
	const struct ll_config_low_use *policy = &ll_department_policy(&server->department)->low_use;
	uint64_t held_ns, used_ns;
	char over[LL_EVENT_DURATION_SIZE];
	bool is_known = ll_use_window_read(&window->window, now_ns, &held_ns, &used_ns);
	if (!is_known || held_ns < state->over_ns / HELD_PART || !held_ns ||
	    (window->told_ns && now_ns - window->told_ns < state->over_ns))
		return;
	double mean_permille = (double)used_ns / (double)held_ns * WHOLE_PERMILLE;
	if (mean_permille >= (double)policy->mean_permille)
		return;
	window->told_ns = now_ns;
	ll_event_duration(state->over_ns, over);
	bool is_user = state->of == OF_USER;
	char uid[16];
	snprintf(uid, sizeof uid, "%u", window->uid);
	const struct ll_event_about about = {
	    .tenant = is_user ? NULL : window->tenant, .has_uid = is_user, .uid = is_user ? window->uid : 0};
	ll_events_tell(server, LL_EVENT_LOW_USE, &about,
		       "the jobs of %s %s have used %.1f %% of the card time that they held in the last %s",
		       is_user ? "user" : "tenant", is_user ? uid : window->tenant, mean_permille / PERMILLE_TO_PERCENT,
		       over);
}

static void look_at_low_use(const struct ll_server *server, struct low_use *state, uint64_t now_ns)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	bool is_configured = policy && policy->low_use.from && policy->low_use.over_ns >= LL_USE_WINDOW_STEPS;
	if (!is_configured || state->over_ns != policy->low_use.over_ns || state->of != policy->low_use.of)
		free_windows(state);
	if (!is_configured)
		return;
	state->over_ns = policy->low_use.over_ns;
	state->of = policy->low_use.of;
	for (struct ll_job *job = server->books.jobs; job; job = job->next)
		count_job(server, state, job, now_ns);
	for (struct user_window *window = state->windows; window; window = window->next)
		tell_window(server, state, window, now_ns);
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
		for (unsigned i = 0; policy->endless_kernel.from && job->claims && i < job->claims->card_count; i++) {
			for (struct ll_job_claim *at = job->claims->cards[i]->claims; at; at = at->next)
				look_at_claim(server, &policy->endless_kernel, at, now_ns);
		}
	}
	look_at_low_use(server, &watch->low_use, now_ns);
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
	free_windows(&watch->low_use);
	free(watch);
}

void ll_job_watch_free(struct ll_job_watch *watch)
{
	if (watch)
		uv_close((uv_handle_t *)&watch->timer, free_watch);
}
