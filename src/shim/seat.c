#include "shim/seat.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "ledger/fork.h"
#include "ledger/memory.h"
#include "shim/held.h"
#include "shim/interpose/device_uuid.h"
#include "shim/interpose/real.h"
#include "shim/say.h"
#include "shim/spare.h"
#include "shim/time/agent.h"
#include "shim/trace/trace.h"

enum { SEATS = 64 };

#define RETRY_NS (1000 * LL_NS_PER_MS)

_Atomic int ll_seat_answer;

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* guards taking; reading a seat needs none */
	struct ll_run_settings settings;
	bool is_governed;
	bool is_garbled; /* it was started under settings that cannot be read */
	bool is_held;    /* launches may have to be timed for a trace: the gate is not opened */
	_Atomic(struct ll_seat *) seats[SEATS];
	struct ll_seat *parents[SEATS]; /* a forked child's: of no use, and never freed */
	struct ll_err why[SEATS];       /* there is none */
	bool is_said[SEATS];
	uint64_t retry_ns[SEATS]; /* CLOCK_MONOTONIC: there was no seat to be had, and none is asked for before */
	_Atomic unsigned contexts_ended;
	_Atomic(struct ll_seat *) only; /* the one seat, while there is one */
	unsigned count;
	struct ll_fork_item fork;
} program = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* What stands for all launches, now. Under the lock, or while there is one thread. */
static void set_gate(void)
{
	struct ll_seat *only = atomic_load(&program.only);
	if (program.is_held || (program.is_governed && (!only || only->lost_ns)))
		ll_gate_set(NULL);
	else if (program.is_governed && only->flow)
		ll_gate_set(ll_flow_gate(only->flow));
	else
		ll_gate_set_open();
}

/* No launch needs to be timed for a trace: the gate is what it would be without one. */
static void release_gate(void)
{
	ll_seat_settings();
	pthread_mutex_lock(&program.lock);
	program.is_held = false;
	set_gate();
	pthread_mutex_unlock(&program.lock);
}

/* Claims are closed by the ledger's own fork handler. What a thread of the parent held is kept and not freed: it may be
 * half-way through a change. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&program.lock, NULL);
	for (unsigned i = 0; i < SEATS; i++) {
		struct ll_seat *parents = atomic_exchange(&program.seats[i], NULL);
		if (parents)
			program.parents[i] = parents;
		program.retry_ns[i] = 0;
		program.is_said[i] = false;
	}
	atomic_store(&program.only, NULL);
	program.count = 0;
	ll_seat_forget_contexts();
	program.is_held = ll_trace_holds_gate(release_gate);
	set_gate();
}

static void at_exit(void)
{
	for (unsigned i = 0; i < SEATS; i++) {
		struct ll_seat *seat = atomic_load(&program.seats[i]);
		if (seat && seat->flow)
			ll_flow_end(seat->flow);
	}
}

static void begin(void)
{
	const char *text = getenv(LL_RUN_VARIABLE);
	program.is_garbled = text && ll_run_settings_read(text, &program.settings) < 0;
	program.is_governed = text != NULL;
	program.is_held = ll_trace_holds_gate(release_gate) && !ll_trace_is_without_events();
	if (!program.is_governed) {
		set_gate();
		atomic_store(&ll_seat_answer, -1);
		return;
	}
	program.fork.in_child = forget_in_child;
	ll_fork_add(&program.fork);
	atomic_store(&ll_seat_answer, 1);
}

const struct ll_run_settings *ll_seat_settings(void)
{
	pthread_once(&program.once, begin);
	return program.is_governed ? &program.settings : NULL;
}

static int take_claim(struct ll_seat *seat, struct ll_claim **ret_claim, struct ll_err *err)
{
	unsigned row;
	return ll_run_settings_claim(&program.settings, seat->ledger, seat->uuid, &row, ret_claim, err);
}

/* The ledger is made where the tenant's process on that card has not come to it yet. While the first card is used by
 * nobody of the tenant, turns are taken here alone. */
static void follow_first_card(struct ll_seat *seat)
{
	const char *first = program.settings.first_card;
	if (seat->flow && *first && strcmp(first, seat->uuid) != 0 &&
	    ll_ledger_open(program.settings.folder, first, true, &seat->first, NULL) == 0)
		ll_flow_follow(seat->flow, seat->first, program.settings.id);
}

static int open_seats_ledger(struct ll_seat *seat, struct ll_err *err)
{
	if (program.is_garbled)
		return ll_err_set(err, -EINVAL, LL_RUN_VARIABLE ": garbled; only `loadline run` sets it");
	return ll_ledger_open(program.settings.folder, seat->uuid, true, &seat->ledger, err);
}

/* NULL: none yet. */
static struct ll_seat *seat_of_flow(const struct ll_flow *flow)
{
	for (unsigned i = 0; i < SEATS; i++) {
		struct ll_seat *seat = atomic_load(&program.seats[i]);
		if (seat && seat->flow == flow)
			return seat;
	}
	return NULL;
}

static bool retake_claim(const struct ll_flow *flow)
{
	struct ll_seat *seat = seat_of_flow(flow);
	return seat && ll_seat_retake(seat);
}

static void give_up_reserve(const struct ll_flow *flow)
{
	struct ll_seat *seat = seat_of_flow(flow);
	if (seat)
		ll_spare_give_up(seat);
}

static const struct ll_flow_owner flow_owner = {.retake_claim = retake_claim, .give_up_reserve = give_up_reserve};

static struct ll_seat *make_seat(ll_cu_device device, const char *uuid, struct ll_err *err)
{
	struct ll_seat *seat = calloc(1, sizeof *seat);
	if (!seat)
		return NULL;
	seat->device = device;
	snprintf(seat->uuid, sizeof seat->uuid, "%s", uuid);
	if (open_seats_ledger(seat, err) < 0) {
		free(seat);
		return NULL;
	}
	struct ll_claim *claim;
	if (take_claim(seat, &claim, err) < 0) {
		ll_ledger_close(seat->ledger);
		free(seat);
		return NULL;
	}
	atomic_store(&seat->claim, claim);
	ll_claim_set_state(claim, LL_CLAIM_RUNNING);
	if (ll_flow_new(claim, program.count ? &seat->count : &ll_gate_line.count, &flow_owner, &seat->flow) < 0)
		seat->flow = NULL;
	else
		ll_flow_limit_kernels(seat->flow, program.settings.max_kernel_ns, program.settings.kills_at_max_kernel);
	follow_first_card(seat);
	return seat;
}

static void publish(struct ll_seat *seat, ll_cu_device device)
{
	atomic_store(&program.seats[device], seat);
	program.count++;
	bool is_only = program.count == 1;
	if (is_only) /* after cuInit: what is registered last runs first, while the driver still works */
		atexit(at_exit);
	atomic_store(&program.only, is_only ? seat : NULL);
	set_gate();
}

/* Others have cleared the claim, and there is no other: what goes on is not held to anything meanwhile. */
static void say_lost(struct ll_seat *seat)
{
	ll_tenant_note_lost(seat->ledger, program.settings.id, ll_now_ns());
	if (seat->lost_ns)
		return;
	seat->lost_ns = ll_now_ns();
	set_gate(); /* the word is another's by now */
	ll_say("the limits of `loadline run` are not in force on card %d: the program lost its claim, and gets no "
	       "other: %s",
	       seat->device, program.why[seat->device].text);
}

static void say_had_again(struct ll_seat *seat)
{
	if (!seat->lost_ns)
		return;
	ll_say("the limits of `loadline run` are in force again on card %d, after %.1f s", seat->device,
	       (double)(ll_now_ns() - seat->lost_ns) / (double)LL_NS_PER_S);
	ll_tenant_note_had(seat->ledger, program.settings.id);
	seat->lost_ns = 0;
}

/* Nothing of the lost one's slot is touched: it is nobody's or another's by now. */
static void succeed(struct ll_seat *seat, struct ll_claim *claim)
{
	struct ll_claim *lost = atomic_load(&seat->claim);
	uint64_t bytes = ll_held_freeze(seat);
	ll_memory_charge(claim, bytes);
	ll_claim_set_state(claim, LL_CLAIM_RUNNING);
	ll_claim_succeed(claim, lost);
	atomic_store(&seat->claim, claim);
	ll_held_thaw(seat);
	if (seat->flow)
		ll_agent_move(seat->flow, claim);
	set_gate();
}

/* The lock is held. */
static bool retake(struct ll_seat *seat)
{
	struct ll_claim *claim;
	uint64_t now_ns = ll_now_ns();
	if (ll_seat_of(seat->device) != seat) /* a parent's */
		return false;
	if (!ll_claim_is_lost(seat->claim)) /* another thread was faster */
		return true;
	if (now_ns < seat->retry_ns || seat->is_given_back)
		return false;
	seat->retry_ns = now_ns + RETRY_NS;
	if (take_claim(seat, &claim, &program.why[seat->device]) < 0) {
		say_lost(seat);
		return false;
	}
	say_had_again(seat);
	succeed(seat, claim);
	seat->retry_ns = 0;
	return true;
}

void ll_seat_give_back(struct ll_seat *seat)
{
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	bool has_nothing = ll_held_freeze(seat) == 0 && program.settings.counts_context; /* so no context either */
	if (has_nothing && !ll_claim_is_lost(seat->claim)) {
		seat->is_given_back = true;
		ll_claim_leave(seat->claim);
	}
	ll_held_thaw(seat);
	pthread_mutex_unlock(&program.lock);
}

/* The lock is held. */
static void ask_again(struct ll_seat *seat)
{
	seat->is_given_back = false;
	seat->retry_ns = 0;
	retake(seat);
}

bool ll_seat_retake(struct ll_seat *seat)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	bool is_good = retake(seat);
	pthread_mutex_unlock(&program.lock);
	errno = code;
	return is_good;
}

struct ll_seat *ll_seat_of(ll_cu_device device)
{
	return device >= 0 && device < SEATS ? atomic_load(&program.seats[device]) : NULL;
}

/* The lock is held. */
static struct ll_seat *take(ll_cu_device device)
{
	struct ll_seat *seat = ll_seat_of(device);
	char uuid[sizeof seat->uuid];
	if (seat && seat->is_given_back)
		ask_again(seat);
	if (seat || ll_now_ns() < program.retry_ns[device] || !ll_device_uuid(device, uuid, sizeof uuid))
		return seat;
	seat = make_seat(device, uuid, &program.why[device]);
	if (seat)
		publish(seat, device);
	else
		program.retry_ns[device] = ll_now_ns() + RETRY_NS;
	return seat;
}

struct ll_seat *ll_seat_take(ll_cu_device device)
{
	struct ll_seat *seat = ll_seat_of(device);
	if ((seat && !seat->is_given_back) || !ll_seat_settings() || device < 0 || device >= SEATS)
		return seat;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	seat = take(device);
	pthread_mutex_unlock(&program.lock);
	return seat;
}

/* The lock is held. */
static bool has_good_claim(ll_cu_device device)
{
	struct ll_seat *seat = ll_seat_of(device);
	return seat && (!ll_claim_is_lost(seat->claim) || retake(seat));
}

static void say_refusal(ll_cu_device device)
{
	const char *why = program.why[device].text;
	if (!program.is_said[device])
		ll_say("no contexts on card %d under the limits of `loadline run` (CUDA error %d, not permitted): %s",
		       device, LL_CUDA_ERROR_NOT_PERMITTED, *why ? why : "the ledger cannot be used");
	program.is_said[device] = true;
}

bool ll_seat_refuses(ll_cu_device device)
{
	const struct ll_run_settings *settings = ll_seat_settings();
	if (!settings || device < 0 || device >= SEATS ||
	    (!program.is_garbled && !ll_run_settings_ask_limits(settings)))
		return false;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	bool is_refused = !has_good_claim(device);
	if (is_refused)
		say_refusal(device);
	pthread_mutex_unlock(&program.lock);
	return is_refused;
}

/* A thread launches in the same context most of the time: then which one that is, is all that it asks. */
static _Thread_local struct {
	struct ll_cu_context *context;
	struct ll_seat *seat;
	unsigned contexts_ended; /* of the program, then */
} last __attribute__((tls_model("initial-exec")));

void ll_seat_forget_contexts(void)
{
	atomic_fetch_add(&program.contexts_ended, 1);
}

struct ll_seat *ll_seat_known(const struct ll_cu_context *context)
{
	bool is_last = last.context == context && last.contexts_ended == atomic_load(&program.contexts_ended);
	return is_last && context ? last.seat : NULL;
}

struct ll_seat *ll_seat_in(struct ll_cu_context *current)
{
	ll_cu_device device;
	unsigned contexts_ended = atomic_load(&program.contexts_ended);
	if (!ll_seat_is_governed())
		return NULL;
	if (last.context == current && last.contexts_ended == contexts_ended)
		return last.seat;
	if (ll_real()->cuCtxGetDevice(&device) != LL_CUDA_SUCCESS)
		return NULL;
	struct ll_seat *seat = ll_seat_take(device);
	last.context = seat ? current : NULL;
	last.seat = seat;
	last.contexts_ended = contexts_ended;
	return seat;
}

struct ll_seat *ll_seat_current(struct ll_cu_context **ret_context)
{
	if (!ll_seat_is_governed() || ll_real()->cuCtxGetCurrent(ret_context) != LL_CUDA_SUCCESS || !*ret_context)
		return NULL;
	return ll_seat_in(*ret_context);
}
