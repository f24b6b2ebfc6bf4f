#include "shim/slices/card_time.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/interpose/hooks.h"
#include "shim/interpose/wait_listener.h"
#include "shim/slices/stays.h"
#include "slices/groups.h"

enum { STACK_BYTES = 128 * 1024 };

/* Without windows: how soon another claim, or a new context, is noticed. */
#define CALM_NS (500 * LL_NS_PER_MS)

/* The thread has been scheduled, and the driver has answered, within this time. */
#define STOP_NS (2 * LL_NS_PER_S)
#define STOP_LOOK_NS (100 * LL_NS_PER_US)

/* A group on this card, with what this thread has done to it. */
struct controlled {
	struct ll_group group;
	bool is_off;
	uint32_t own_slice_us, slice_us; /* as the driver library has set it; in force */
};

struct ll_card_time_thread {
	int device;
	const char *uuid;
	_Atomic(struct ll_claim *) *claim;
	uint32_t changes; /* of the groups, when they were read */
	size_t count;
	struct controlled groups[LL_GROUPS];
	struct ll_card_time time; /* in force */
	bool is_off;
	uint64_t on_since_ns; /* 0: off, or without windows */
	int64_t over_ns;      /* by which the last windows were longer than ordered */
	enum ll_time_lever lever;
	struct ll_stays stays;
	/* ll_card_time_stop: what is asked for, and the last of it that was done */
	_Atomic bool is_stop_asked;
	_Atomic enum stopped { GOES_ON, IS_STOPPED, CANNOT_STOP } stopped;
};

static ll_ioctl_fn next_ioctl(void)
{
	return (ll_ioctl_fn)(uintptr_t)ll_libc_next(LL_LIBC_IOCTL);
}

/* ---- calls of the driver ---- */

/* A context that has just ended says nothing about the driver: its group is about to be read as gone. What has failed
 * once is not relied on again. */
static void note_call(struct ll_card_time_thread *state, int rc)
{
	if (rc != -ESTALE && state->lever != LL_TIME_LEVER_FAILS)
		state->lever = rc ? LL_TIME_LEVER_FAILS : LL_TIME_LEVER_WORKS;
}

static void switch_group(struct ll_card_time_thread *state, struct controlled *at, bool is_off)
{
	int rc = ll_group_switch(next_ioctl(), &at->group, is_off);
	if (!rc)
		at->is_off = is_off;
	note_call(state, rc);
}

/* On some cards a new slice counts only after the group has left the card: hence the second call. */
static void apply_slices(struct ll_card_time_thread *state)
{
	for (size_t i = 0; i < state->count; i++) {
		struct controlled *at = &state->groups[i];
		uint32_t us = state->time.slice_us ? state->time.slice_us : at->own_slice_us;
		if (us == at->slice_us)
			continue;
		int rc = ll_group_set_slice(next_ioctl(), &at->group, us);
		if (!rc)
			rc = ll_group_preempt(next_ioctl(), &at->group);
		at->slice_us = us; /* what was refused is not asked for again and again */
		note_call(state, rc);
	}
}

/* ---- groups ---- */

static struct controlled *find_group(struct controlled *groups, size_t count, const struct ll_group *wanted)
{
	for (size_t i = 0; i < count; i++) {
		if (groups[i].group.client == wanted->client && groups[i].group.group == wanted->group)
			return &groups[i];
	}
	return NULL;
}

static bool is_on_card(const struct ll_card_time_thread *state, const struct ll_group *group)
{
	char uuid[96];
	return ll_group_read_uuid(next_ioctl(), group, uuid, sizeof uuid) == 0 && strcmp(uuid, state->uuid) == 0;
}

/* Reads the groups again, and keeps what was done to those that stay. A group that is being made has no channels yet:
 * the next change is noted with each. A new group is taken off the card and let on at once, which shows whether the
 * driver does what it is asked, before anybody relies on it. */
static void read_groups(struct ll_card_time_thread *state)
{
	uint32_t changes = ll_groups_changes();
	if (changes == state->changes)
		return;
	struct ll_group *now = calloc(LL_GROUPS, sizeof *now);
	struct controlled *kept = calloc(LL_GROUPS, sizeof *kept);
	size_t count = now && kept ? ll_groups_read(now) : 0, kept_count = 0;
	for (size_t i = 0; i < count && i < LL_GROUPS; i++) {
		const struct controlled *before = find_group(state->groups, state->count, &now[i]);
		if (!before && (!now[i].channel_count || !now[i].slice_us || !is_on_card(state, &now[i])))
			continue;
		struct controlled *at = &kept[kept_count++];
		at->is_off = before && before->is_off;
		at->own_slice_us = before ? before->own_slice_us : now[i].slice_us;
		at->slice_us = before ? before->slice_us : now[i].slice_us;
		at->group = now[i];
		if (!before) {
			switch_group(state, at, true);
			switch_group(state, at, false);
		}
	}
	/* What was not noted cannot be taken off the card. */
	bool is_partial = count > LL_GROUPS;
	for (size_t i = 0; i < kept_count; i++)
		is_partial |= kept[i].group.channel_count > LL_RM_DISABLE_MAX;
	if (is_partial)
		state->lever = LL_TIME_LEVER_FAILS;
	if (now && kept) {
		memcpy(state->groups, kept, sizeof state->groups);
		state->count = kept_count;
		state->changes = changes;
	}
	free(now);
	free(kept);
}

/* ---- windows ---- */

/* Whether the contexts shall be on the card now; *ret_until_ns: the next change. The window is shorter by the time that
 * the last ones were too long. */
static bool is_window(const struct ll_card_time_thread *state, uint64_t now_ns, uint64_t *ret_until_ns)
{
	const struct ll_card_time *time = &state->time;
	*ret_until_ns = UINT64_MAX;
	if (!time->period_ns || time->window_ns >= time->period_ns)
		return true;
	if (!time->window_ns)
		return false;
	int64_t half_ns = (int64_t)time->window_ns / 2;
	int64_t over_ns = state->over_ns > half_ns ? half_ns : state->over_ns < -half_ns ? -half_ns : state->over_ns;
	uint64_t window_ns = time->window_ns - (uint64_t)over_ns;
	uint64_t since_ns = now_ns > time->from_ns ? (now_ns - time->from_ns) % time->period_ns
						   : time->period_ns - (time->from_ns - now_ns) % time->period_ns;
	bool is_on = since_ns < window_ns;
	*ret_until_ns = now_ns - since_ns + (is_on ? window_ns : time->period_ns);
	return is_on;
}

/* The time on the card begins when the driver has let the contexts on, and ends when it has taken them off. */
static void apply_window(struct ll_card_time_thread *state, struct ll_claim *claim, bool is_off)
{
	bool is_new = state->is_off != is_off;
	uint64_t called_ns = ll_now_ns();
	for (size_t i = 0; i < state->count; i++) {
		if (state->groups[i].is_off != is_off)
			switch_group(state, &state->groups[i], is_off);
	}
	if (!is_new || !state->count)
		return;
	state->is_off = is_off;
	uint64_t now_ns = ll_now_ns();
	/* The time of a program that is suspended is not one of waiting for its turn. */
	bool is_wait = atomic_load(&state->stopped) != IS_STOPPED;
	uint64_t waited_since_ns = ll_port_note_off(claim, is_off, is_wait, called_ns, now_ns);
	ll_wait_listener *listener = waited_since_ns ? ll_wait_listener_find() : NULL;
	if (listener)
		listener(state->device, state->uuid, waited_since_ns, now_ns);
	if (is_off && state->on_since_ns) {
		uint64_t on_ns = now_ns - state->on_since_ns;
		state->over_ns += (int64_t)on_ns - (int64_t)state->time.window_ns;
	}
	state->on_since_ns = is_off ? 0 : now_ns;
}

/* ---- the thread ---- */

static bool is_own_context(const void *of, uint32_t context)
{
	const struct ll_card_time_thread *state = of;
	for (size_t i = 0; i < state->count; i++) {
		const struct ll_group *group = &state->groups[i].group;
		for (uint32_t c = 0; c < group->channel_count && c < LL_RM_DISABLE_MAX; c++) {
			if (group->contexts[c] == context)
				return true;
		}
	}
	return false;
}

static void note_stop(struct ll_card_time_thread *state, bool is_asked)
{
	bool are_off = state->count;
	for (size_t i = 0; i < state->count; i++)
		are_off &= state->groups[i].is_off;
	bool is_stopped = is_asked && are_off && state->lever == LL_TIME_LEVER_WORKS;
	atomic_store(&state->stopped, is_stopped ? IS_STOPPED : is_asked ? CANNOT_STOP : GOES_ON);
}

static void *time_main(void *arg)
{
	struct ll_card_time_thread *state = arg;
	pthread_setname_np(pthread_self(), "ll-card-time");
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		struct ll_claim *claim = atomic_load(state->claim);
		uint64_t now_ns = ll_now_ns(), until_ns;
		struct ll_card_time time;
		uint32_t count = ll_port_read_time(claim, now_ns, &time);
		if (!ll_card_time_is_same(&time, &state->time))
			state->over_ns = 0;
		state->time = time;
		bool is_on = is_window(state, now_ns, &until_ns);
		read_groups(state);
		apply_slices(state);
		bool is_stop_asked = atomic_load(&state->is_stop_asked);
		apply_window(state, claim, !is_on || is_stop_asked);
		note_stop(state, is_stop_asked);
		if (!ll_port_obeys_off(claim))
			state->lever = LL_TIME_LEVER_FAILS;
		ll_port_report_time(claim, state->lever, state->is_off);
		bool is_following = ll_stays_follow(&state->stays, next_ioctl(), state->uuid, claim,
						    state->count && ll_port_has_company(claim), is_own_context, state);
		uint64_t look_ns = now_ns + (is_following                     ? LL_STAYS_READ_NS
					     : ll_card_time_is_ordered(&time) ? LL_PORT_TIME_LOOK_NS
									      : CALM_NS);
		ll_port_sleep_for_time(claim, count, until_ns < look_ns ? until_ns : look_ns);
	}
	return NULL;
}

/* ---- forks ---- */

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	ll_groups_forget();
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

int ll_card_time_start(int device, const char *uuid, _Atomic(struct ll_claim *) *claim,
		       struct ll_card_time_thread **ret_thread)
{
	struct ll_card_time_thread *state = calloc(1, sizeof *state);
	if (!state)
		return -ENOMEM;
	ll_fork_add(&fork_item);
	state->device = device;
	state->uuid = uuid;
	state->claim = claim;
	state->changes = ll_groups_changes() - 1;
	int rc = ll_guest_thread_start(STACK_BYTES, time_main, state, NULL);
	if (rc)
		free(state);
	else
		*ret_thread = state;
	return rc;
}

/* The thread may be about to sleep when it is woken, so it is woken again and again. */
static enum stopped ask_thread(struct ll_card_time_thread *state, bool is_stop)
{
	enum stopped stopped;
	uint64_t deadline_ns = ll_now_ns() + STOP_NS;
	atomic_store(&state->is_stop_asked, is_stop);
	do {
		ll_port_wake_for_time(atomic_load(state->claim));
		ll_sleep_until_ns(ll_now_ns() + STOP_LOOK_NS);
		stopped = atomic_load(&state->stopped);
	} while ((stopped != GOES_ON) != is_stop && ll_now_ns() < deadline_ns);
	return stopped;
}

int ll_card_time_stop(struct ll_card_time_thread *thread)
{
	if (!thread)
		return -ENOTSUP;
	if (ask_thread(thread, true) == IS_STOPPED)
		return 0;
	ask_thread(thread, false);
	return -ENOTSUP;
}

void ll_card_time_go_on(struct ll_card_time_thread *thread)
{
	if (thread && atomic_load(&thread->is_stop_asked))
		ask_thread(thread, false);
}
