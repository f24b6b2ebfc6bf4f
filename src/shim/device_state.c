#include "shim/device_state.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/interpose/device_uuid.h"
#include "shim/interpose/real.h"
#include "shim/say.h"
#include "shim/slices/card_time.h"
#include "shim/time/agent.h"

enum { DEVICES = 64 };

#define RETRY_NS (1000 * LL_NS_PER_MS)
#define FREEZE_PAUSE_NS (20 * LL_NS_PER_US)
#define FREEZE_MOST_NS (200 * LL_NS_PER_MS)
/* For loadlined, when a claim is taken in place of a lost one. The calling thread may be the agent. */
#define RETAKE_WAIT_NS (100 * LL_NS_PER_MS)

_Atomic int ll_device_state_answer;

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* guards making and changing device states; reading one needs no lock */
	struct ll_run_settings settings;
	bool is_governed;
	bool is_garbled; /* the program was started under settings that cannot be read */
	bool is_jobless; /* it is in a container of loadline, and loadlined tells of no job (is_garbled) */
	atomic_flag is_ungoverned_said;
	_Atomic(struct ll_device_state *) devs[DEVICES];
	struct ll_device_state
	    *parents[DEVICES];      /* in a forked child: the parent's device states, which are never used nor freed */
	struct ll_err why[DEVICES]; /* why a device state or claim could not be had */
	bool is_said[DEVICES];
	_Atomic bool is_silence_said;          /* loadlined does not answer; said once until it does */
	_Atomic ll_cu_result answers[DEVICES]; /* the driver's, when it was asked which card that is */
	uint64_t retry_ns[DEVICES]; /* CLOCK_MONOTONIC: no device state could be made; before this time the library does
				       not try again */
	_Atomic unsigned contexts_ended;
	_Atomic(struct ll_device_state *) only; /* the device state, while there is exactly one; else NULL */
	unsigned count;
	struct ll_fork_item fork;
} program = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .is_ungoverned_said = ATOMIC_FLAG_INIT};

/* Sets the gate of all launches. Under the lock, or while there is one thread. */
static void set_gate(void)
{
	struct ll_device_state *only = atomic_load(&program.only);
	if (program.is_governed && (!only || only->lost_ns))
		ll_gate_set(NULL);
	else if (program.is_governed && only->flow)
		ll_gate_set(ll_flow_gate(only->flow));
	else
		ll_gate_set_open();
}

/* The link's own fork handler ends the claims. The parent's device states are kept and not freed, because a thread
 * of the parent may have been half-way through a change. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&program.lock, NULL);
	for (unsigned i = 0; i < DEVICES; i++) {
		struct ll_device_state *parents = atomic_exchange(&program.devs[i], NULL);
		if (parents)
			program.parents[i] = parents;
		program.retry_ns[i] = 0;
		program.is_said[i] = false;
	}
	atomic_store(&program.only, NULL);
	program.count = 0;
	ll_device_state_forget_contexts();
	set_gate();
}

static void at_exit(void)
{
	for (unsigned i = 0; i < DEVICES; i++) {
		struct ll_device_state *dev = atomic_load(&program.devs[i]);
		if (!dev)
			continue;
		ll_card_time_go_on(dev->card_time); /* the driver may wait for its work */
		if (dev->flow)
			ll_flow_end(dev->flow);
	}
}

static void read_settings(void)
{
	bool is_in_container = ll_port_is_in_container(), may_go_on = false;
	int rc = is_in_container ? ll_port_find_container_job(&program.settings, &may_go_on)
				 : ll_run_settings_find(&program.settings);
	if (rc == -ENOENT && !is_in_container)
		rc = ll_port_find_job(&program.settings);
	program.is_jobless = is_in_container && rc && !may_go_on;
	rc = program.is_jobless ? -EINVAL : rc;
	program.is_garbled = rc == -EINVAL;
	program.is_governed = rc != -ENOENT;
	if (!program.is_governed) {
		set_gate();
		atomic_store(&ll_device_state_answer, -1);
		return;
	}
	program.fork.in_child = forget_in_child;
	ll_fork_add(&program.fork);
	atomic_store(&ll_device_state_answer, 1);
}

const struct ll_run_settings *ll_device_state_settings(void)
{
	pthread_once(&program.once, read_settings);
	return program.is_governed ? &program.settings : NULL;
}

void ll_device_state_say_ungoverned(void)
{
	if (!ll_device_state_settings() && !atomic_flag_test_and_set(&program.is_ungoverned_said))
		ll_say("this program is not governed: " LL_RUN_VARIABLE
		       " is not set, and neither a descriptor nor a parent process nor a control group shows a tenant; "
		       "only `loadline run` sets limits");
}

/* ---- what the process has of the card's memory ---- */

static struct ll_charge_counter *own_counter(struct ll_device_state *dev)
{
	uint64_t self = (uint64_t)pthread_self();
	return &dev->counters[(self * UINT64_C(0x9e3779b97f4a7c15)) >> 60];
}

_Static_assert(LL_CHARGE_COUNTERS == 16, "four bits choose one");

/* Returns the claim to change; it stays the one until end_change, if the freeze does not take too long. */
static struct ll_claim *begin_change(struct ll_device_state *dev, struct ll_charge_counter *counter)
{
	uint64_t give_up_ns = 0;
	for (;;) {
		atomic_fetch_add(&counter->changing, 1);
		if (!atomic_load(&dev->is_frozen))
			break;
		uint64_t now_ns = ll_now_ns();
		give_up_ns = give_up_ns ? give_up_ns : now_ns + FREEZE_MOST_NS;
		if (now_ns >= give_up_ns)
			break;
		atomic_fetch_sub(&counter->changing, 1);
		ll_sleep_until_ns(now_ns + FREEZE_PAUSE_NS);
	}
	return atomic_load(&dev->claim);
}

static void end_change(struct ll_charge_counter *counter)
{
	atomic_fetch_sub(&counter->changing, 1);
}

/* Before and after a change of claims. In between no reservation or release is half-way, unless its thread is stopped.
 * Returns what the process has. The lock is held. */
static uint64_t freeze_charges(struct ll_device_state *dev)
{
	uint64_t now_ns = ll_now_ns(), give_up_ns = now_ns + FREEZE_MOST_NS, sum = 0;
	atomic_store(&dev->is_frozen, true);
	for (int i = 0; i < LL_CHARGE_COUNTERS; i++) {
		while (atomic_load(&dev->counters[i].changing) && now_ns < give_up_ns) {
			ll_sleep_until_ns(now_ns + FREEZE_PAUSE_NS);
			now_ns = ll_now_ns();
		}
	}
	for (int i = 0; i < LL_CHARGE_COUNTERS; i++)
		sum += atomic_load(&dev->counters[i].charged_bytes);
	return sum;
}

static void thaw_charges(struct ll_device_state *dev)
{
	atomic_store(&dev->is_frozen, false);
}

static int reserve_once(struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_charge_counter *counter = own_counter(dev);
	int rc = ll_port_reserve(begin_change(dev, counter), bytes);
	if (rc == 0)
		atomic_fetch_add(&counter->charged_bytes, bytes);
	end_change(counter);
	return rc;
}

/* Without a claim the limit is read from the orders, which `loadline set` changes. If there are none, it is the one of
 * the settings. */
static bool has_memory_limit(const struct ll_device_state *dev)
{
	const struct ll_run_settings *settings = ll_device_state_settings();
	uint64_t limit_bytes;
	if (!settings)
		return false;
	if (!ll_port_read_limit(dev->port, &limit_bytes))
		limit_bytes = settings->memory_limit_bytes;
	return limit_bytes;
}

/* ---- device states ---- */

/* While the tenant does not use its first card, it takes its turns on this card alone. */
static void set_first_card(struct ll_device_state *dev)
{
	const char *first = program.settings.first_card;
	if (dev->flow && *first && strcmp(first, dev->uuid) != 0)
		ll_flow_set_secondary_card(dev->flow);
}

static int open_port(struct ll_device_state *dev, struct ll_err *err)
{
	if (program.is_jobless)
		return ll_err_set(err, -ENOENT,
				  "loadlined knows no job of this container, or does not answer at its socket");
	if (program.is_garbled)
		return ll_err_set(err, -EINVAL, LL_RUN_VARIABLE ": garbled; only `loadline run` sets it");
	return ll_port_open(&program.settings, dev->uuid, true, &dev->port, err);
}

/* Returns the device state with that flow; NULL: it is not published yet. */
static struct ll_device_state *dev_of_flow(const struct ll_flow *flow)
{
	for (unsigned i = 0; i < DEVICES; i++) {
		struct ll_device_state *dev = atomic_load(&program.devs[i]);
		if (dev && dev->flow == flow)
			return dev;
	}
	return NULL;
}

static bool retake_claim(const struct ll_flow *flow)
{
	struct ll_device_state *dev = dev_of_flow(flow);
	return dev && ll_device_state_retake(dev);
}

static bool (*_Atomic give_up_of_pools)(struct ll_device_state *dev);

void ll_device_state_set_reserve(bool (*give_up)(struct ll_device_state *dev))
{
	atomic_store(&give_up_of_pools, give_up);
}

bool ll_device_state_give_up_reserve(struct ll_device_state *dev)
{
	bool (*give_up)(struct ll_device_state *) = atomic_load(&give_up_of_pools);
	return give_up && give_up(dev);
}

static void (*_Atomic tend_memory)(struct ll_device_state *dev);

void ll_device_state_set_tend(void (*tend)(struct ll_device_state *dev))
{
	atomic_store(&tend_memory, tend);
}

static void tend_memory_of(const struct ll_flow *flow)
{
	void (*tend)(struct ll_device_state *) = atomic_load(&tend_memory);
	struct ll_device_state *dev = tend ? dev_of_flow(flow) : NULL;
	if (dev)
		tend(dev);
}

static void give_up_reserve_of(const struct ll_flow *flow)
{
	struct ll_device_state *dev = dev_of_flow(flow);
	if (dev)
		ll_device_state_give_up_reserve(dev);
	tend_memory_of(flow);
}

static const struct ll_flow_owner flow_owner = {
    .retake_claim = retake_claim, .give_up_reserve = give_up_reserve_of, .tend_memory = tend_memory_of};

static struct ll_device_state *make_dev(ll_cu_device device, const char *uuid, struct ll_err *err)
{
	struct ll_device_state *dev = calloc(1, sizeof *dev);
	if (!dev)
		return NULL;
	dev->device = device;
	snprintf(dev->uuid, sizeof dev->uuid, "%s", uuid);
	if (open_port(dev, err) < 0) {
		free(dev);
		return NULL;
	}
	struct ll_claim *claim;
	if (ll_port_claim(dev->port, LL_PORT_PATIENCE_NS, &claim, err) < 0) {
		ll_port_close(dev->port);
		free(dev);
		return NULL;
	}
	atomic_store(&dev->claim, claim);
	if (ll_flow_new(claim, program.count ? &dev->count : &ll_gate_line.count, &flow_owner, &dev->flow) < 0)
		dev->flow = NULL;
	else
		ll_flow_limit_kernels(dev->flow, program.settings.max_kernel_ns, program.settings.kills_at_max_kernel);
	set_first_card(dev);
	/* Without the thread, loadlined sees that no order is in force. */
	ll_card_time_start(dev->device, dev->uuid, &dev->claim, &dev->card_time);
	return dev;
}

static void publish_dev(struct ll_device_state *dev, ll_cu_device device)
{
	atomic_store(&program.devs[device], dev);
	program.count++;
	bool is_only = program.count == 1;
	if (is_only) /* after cuInit, because the function that is registered last runs first, while the driver still
			works */
		atexit(at_exit);
	atomic_store(&program.only, is_only ? dev : NULL);
	set_gate();
}

/* The claim was taken away, and there is no other one. The program goes on without limits meanwhile. */
static void say_lost(struct ll_device_state *dev)
{
	ll_port_note_lost(dev->port, ll_now_ns());
	if (dev->lost_ns)
		return;
	dev->lost_ns = ll_now_ns();
	set_gate(); /* the gate's word may belong to another tenant by now */
	ll_say("the limits of `loadline run` are not in force on card %d: the program lost its claim, and gets no "
	       "other: %s",
	       dev->device, program.why[dev->device].text);
}

static void say_had_again(struct ll_device_state *dev)
{
	if (!dev->lost_ns)
		return;
	/* Before it is said: who reads the line and looks with `status` shall find the same there. */
	ll_port_note_had(dev->port);
	ll_say("the limits of `loadline run` are in force again on card %d, after %.1f s", dev->device,
	       (double)(ll_now_ns() - dev->lost_ns) / (double)LL_NS_PER_S);
	dev->lost_ns = 0;
}

/* ---- the claim ---- */

/* Does not touch the lost claim's slot, which is free or another process's by now. */
static void move_to_claim(struct ll_device_state *dev, struct ll_claim *claim)
{
	uint64_t bytes = freeze_charges(dev);
	ll_port_charge_memory(claim, bytes);
	atomic_store(&dev->claim, claim);
	thaw_charges(dev);
	if (dev->flow)
		ll_agent_move(dev->flow, claim);
	set_gate();
}

/* The lock is held. wait_ns: for loadlined. */
static bool replace_lost_claim(struct ll_device_state *dev, uint64_t wait_ns)
{
	struct ll_claim *claim;
	uint64_t now_ns = ll_now_ns();
	if (ll_device_state_of(dev->device) != dev) /* the parent's, in a forked child */
		return false;
	if (!ll_port_is_lost(dev->claim)) /* another thread was faster */
		return true;
	if (now_ns < dev->retry_ns || dev->is_given_back)
		return false;
	dev->retry_ns = now_ns + RETRY_NS;
	if (ll_port_claim(dev->port, wait_ns, &claim, &program.why[dev->device]) < 0) {
		say_lost(dev);
		return false;
	}
	say_had_again(dev);
	move_to_claim(dev, claim);
	dev->retry_ns = 0;
	return true;
}

void ll_device_state_give_back(struct ll_device_state *dev)
{
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	bool has_nothing =
	    freeze_charges(dev) == 0 && program.settings.counts_context; /* then it has no context either */
	if (has_nothing && !ll_port_is_lost(dev->claim)) {
		dev->is_given_back = true;
		ll_port_leave(dev->claim);
	}
	thaw_charges(dev);
	pthread_mutex_unlock(&program.lock);
}

/* The lock is held. Nobody has taken the claim away: it is asked for as the first one was. */
static void ask_again(struct ll_device_state *dev)
{
	dev->is_given_back = false;
	dev->retry_ns = 0;
	replace_lost_claim(dev, LL_PORT_PATIENCE_NS);
}

bool ll_device_state_retake(struct ll_device_state *dev)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	bool is_good = replace_lost_claim(dev, RETAKE_WAIT_NS);
	pthread_mutex_unlock(&program.lock);
	errno = code;
	return is_good;
}

struct ll_device_state *ll_device_state_of(ll_cu_device device)
{
	return device >= 0 && device < DEVICES ? atomic_load(&program.devs[device]) : NULL;
}

/* The lock is held. */
static struct ll_device_state *find_or_make_dev(ll_cu_device device)
{
	struct ll_device_state *dev = ll_device_state_of(device);
	char uuid[sizeof dev->uuid];
	if (dev && dev->is_given_back)
		ask_again(dev);
	if (dev || ll_now_ns() < program.retry_ns[device])
		return dev;
	ll_cu_result status = ll_device_find_uuid(device, uuid, sizeof uuid);
	atomic_store(&program.answers[device], status);
	if (status != LL_CUDA_SUCCESS)
		return NULL;
	dev = make_dev(device, uuid, &program.why[device]);
	if (dev)
		publish_dev(dev, device);
	else
		program.retry_ns[device] = ll_now_ns() + RETRY_NS;
	return dev;
}

struct ll_device_state *ll_device_state_get(ll_cu_device device)
{
	struct ll_device_state *dev = ll_device_state_of(device);
	if ((dev && !dev->is_given_back) || !ll_device_state_settings() || device < 0 || device >= DEVICES)
		return dev;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&program.lock);
	dev = find_or_make_dev(device);
	pthread_mutex_unlock(&program.lock);
	return dev;
}

ll_cu_result ll_device_state_answer_of(ll_cu_device device)
{
	if (device < 0 || device >= DEVICES || ll_device_state_of(device))
		return LL_CUDA_SUCCESS;
	ll_cu_result status = atomic_load(&program.answers[device]);
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

/* The lock is held. */
static bool has_good_claim(ll_cu_device device)
{
	struct ll_device_state *dev = ll_device_state_of(device);
	return dev && (!ll_port_is_lost(dev->claim) || replace_lost_claim(dev, RETAKE_WAIT_NS));
}

static void say_refusal(ll_cu_device device)
{
	const char *why = program.why[device].text;
	if (!program.is_said[device])
		ll_say("no contexts on card %d under the limits of `loadline run` (CUDA error %d, not permitted): %s",
		       device, LL_CUDA_ERROR_NOT_PERMITTED, *why ? why : "loadlined cannot be reached");
	program.is_said[device] = true;
}

bool ll_device_state_refuses(ll_cu_device device)
{
	const struct ll_run_settings *settings = ll_device_state_settings();
	if (!settings || device < 0 || device >= DEVICES ||
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

/* ---- memory ---- */

/* What needs no answer of loadlined's goes on; the rest is refused. */
static int refuse_unanswered(const struct ll_device_state *dev, int rc)
{
	if (rc == 0 || rc == -ENOMEM)
		atomic_store_explicit(&program.is_silence_said, false, memory_order_relaxed);
	if (rc != -ETIMEDOUT)
		return rc;
	if (!atomic_exchange(&program.is_silence_said, true))
		ll_say("loadlined does not answer: the program gets no more memory on card %d than it was granted",
		       dev->device);
	return -ENOMEM;
}

int ll_device_state_reserve(struct ll_device_state *dev, uint64_t bytes)
{
	int rc = reserve_once(dev, bytes);
	if (rc == -ESTALE && ll_device_state_retake(dev))
		rc = reserve_once(dev, bytes);
	rc = refuse_unanswered(dev, rc);
	return rc == -ESTALE && has_memory_limit(dev) ? -ENOMEM
						      : rc; /* a process without a claim is held to no limit */
}

/* A lost claim takes no charge. The claim that succeeds it is charged the sum. */
void ll_device_state_charge(struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_charge_counter *counter = own_counter(dev);
	ll_port_charge_memory(begin_change(dev, counter), bytes);
	atomic_fetch_add(&counter->charged_bytes, bytes);
	end_change(counter);
}

void ll_device_state_release(struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_charge_counter *counter = own_counter(dev);
	ll_port_release(begin_change(dev, counter), bytes);
	atomic_fetch_sub(&counter->charged_bytes, bytes);
	end_change(counter);
}

bool ll_device_state_request_siblings(struct ll_device_state *dev, uint64_t bytes)
{
	return refuse_unanswered(dev, ll_port_request_reserves(dev->claim, bytes)) == 0;
}

/* ---- contexts ---- */

/* Most of the time a thread launches in the same context. Then it only asks which context that is. */
static _Thread_local struct {
	struct ll_cu_context *context;
	struct ll_device_state *dev;
	unsigned contexts_ended; /* program.contexts_ended at that time */
} last __attribute__((tls_model("initial-exec")));

void ll_device_state_forget_contexts(void)
{
	atomic_fetch_add(&program.contexts_ended, 1);
}

struct ll_device_state *ll_device_state_known(const struct ll_cu_context *context)
{
	bool is_last = last.context == context && last.contexts_ended == atomic_load(&program.contexts_ended);
	return is_last && context ? last.dev : NULL;
}

ll_cu_result ll_device_state_find_in(struct ll_cu_context *current, struct ll_device_state **ret_dev)
{
	ll_cu_device device;
	unsigned contexts_ended = atomic_load(&program.contexts_ended);
	struct ll_device_state *dev = ll_device_state_is_governed() ? ll_device_state_known(current) : NULL;
	*ret_dev = dev;
	if (dev || !ll_device_state_is_governed())
		return LL_CUDA_SUCCESS;
	ll_cu_result status = ll_real()->cuCtxGetDevice(&device);
	if (status != LL_CUDA_SUCCESS)
		return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
	*ret_dev = dev = ll_device_state_get(device);
	last.context = dev ? current : NULL;
	last.dev = dev;
	last.contexts_ended = contexts_ended;
	return ll_device_state_answer_of(device);
}

ll_cu_result ll_device_state_find(struct ll_cu_context **ret_context, struct ll_device_state **ret_dev)
{
	*ret_dev = NULL;
	if (!ll_device_state_is_governed())
		return LL_CUDA_SUCCESS;
	ll_cu_result status = ll_real()->cuCtxGetCurrent(ret_context);
	if (status != LL_CUDA_SUCCESS)
		return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
	return *ret_context ? ll_device_state_find_in(*ret_context, ret_dev) : LL_CUDA_SUCCESS;
}

struct ll_device_state *ll_device_state_current(struct ll_cu_context **ret_context)
{
	struct ll_device_state *dev;
	ll_device_state_find(ret_context, &dev);
	return dev;
}
