#include "daemon/accounts/low_use.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/jobs/claims.h"
#include "daemon/machine/events.h"
#include "daemon/queue/admission.h"
#include "rules/share/use_window.h"

/* Who held cards for less than this part of the time is left out. */
enum { HELD_PART = 10, WHOLE_PERMILLE = 1000, OF_USER = 1, PERMILLE_TO_PERCENT = 10 };

struct user_window {
	struct user_window *next;
	char tenant[LL_NAME_SIZE]; /* of a tenant */
	uint32_t uid;              /* of a user */
	uint64_t told_ns;
	struct ll_use_window window;
};

struct ll_low_use {
	uint64_t over_ns;
	int of;
	struct user_window *windows;
};

/* ---- windows ---- */

static struct user_window *find_window(struct ll_low_use *state, const struct ll_job *job, uint64_t now_ns)
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

static void free_windows(struct ll_low_use *state)
{
	while (state->windows) {
		struct user_window *window = state->windows;
		state->windows = window->next;
		free(window);
	}
}

void ll_low_use_free(struct ll_low_use *state)
{
	if (state)
		free_windows(state);
	free(state);
}

/* ---- counting ---- */

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

static void count_job(const struct ll_server *server, struct ll_low_use *state, struct ll_job *job, uint64_t now_ns)
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

/* ---- telling ---- */

static void tell_window(const struct ll_server *server, const struct ll_low_use *state, struct user_window *window,
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
	if (state->of == OF_USER)
		ll_events_tell(server, LL_EVENT_LOW_USE, &(struct ll_event_about){.has_uid = true, .uid = window->uid},
			       "the jobs of user %u have used %.1f %% of the card time that they held in the last %s",
			       window->uid, mean_permille / PERMILLE_TO_PERCENT, over);
	else
		ll_events_tell(server, LL_EVENT_LOW_USE, &(struct ll_event_about){.tenant = window->tenant},
			       "the jobs of tenant %s have used %.1f %% of the card time that they held in the last %s",
			       window->tenant, mean_permille / PERMILLE_TO_PERCENT, over);
}

void ll_low_use_look(const struct ll_server *server, struct ll_low_use **state, uint64_t now_ns)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	if (!policy || !policy->low_use.from || policy->low_use.over_ns < LL_USE_WINDOW_STEPS) {
		ll_low_use_free(*state);
		*state = NULL;
		return;
	}
	if (!*state && !(*state = calloc(1, sizeof **state)))
		return;
	if ((*state)->over_ns != policy->low_use.over_ns || (*state)->of != policy->low_use.of)
		free_windows(*state);
	(*state)->over_ns = policy->low_use.over_ns;
	(*state)->of = policy->low_use.of;
	for (struct ll_job *job = server->books.jobs; job; job = job->next)
		count_job(server, *state, job, now_ns);
	for (struct user_window *window = (*state)->windows; window; window = window->next)
		tell_window(server, *state, window, now_ns);
}
