#include "shim/time/agent.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "ledger/port.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/time/flow_state.h"
#include "shim/time/watch.h"

enum { STACK_BYTES = 256 * 1024, STOP_NS = 200000000, STOP_PAUSE_NS = 50000 };
/* A program that closes our descriptors loses its claim to whoever looks before the next beat. */
#define BEAT_NS (100 * LL_NS_PER_MS)

/* The time is taken under the lock: no other thread has looked at a later one then. */
static uint64_t look_at_flow(struct ll_flow *flow, uint32_t *ret_wake_count, uint64_t *ret_now_ns)
{
	pthread_mutex_lock(&flow->lock.mutex);
	uint64_t now_ns = *ret_now_ns = ll_now_ns();
	*ret_wake_count = ll_port_wake_count(flow->claim);
	uint64_t next_ns = 0;
	if (!flow->is_ending) {
		ll_flow_close_tails(flow);
		ll_flow_tend_blind(flow, now_ns);
		next_ns = ll_flow_tick(flow, now_ns);
		ll_watch_kernels(flow, now_ns);
	}
	pthread_mutex_unlock(&flow->lock.mutex);
	return next_ns;
}

/* Others have cleared it. Until another is had the program goes on without: nobody waits for a lost claim's turn. */
static void replace_claim(struct ll_flow *flow)
{
	bool is_lost = !flow->owner->retake_claim(flow);
	pthread_mutex_lock(&flow->lock.mutex);
	flow->is_lost = is_lost;
	if (is_lost)
		ll_flow_leave_gates(flow);
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_agent_move(struct ll_flow *flow, struct ll_claim *claim)
{
	pthread_mutex_lock(&flow->lock.mutex);
	ll_port_wake(flow->claim); /* the agent may sleep for that; to whoever has the slot it is one look too many */
	ll_flow_leave_gates(flow);
	flow->claim = claim;
	flow->turn = (struct ll_turn){0};
	flow->look = (struct ll_turn_look){0};
	flow->is_wanting = false;
	flow->is_lost = false;
	flow->note[0] = '\0';
	pthread_mutex_unlock(&flow->lock.mutex);
}

/* Another process of the tenant was refused memory: it can have what this one keeps in reserve. */
static void answer_siblings(struct ll_flow *flow)
{
	flow->owner->give_up_reserve(flow);
	ll_port_answer(flow->claim);
}

static void *agent_main(void *arg)
{
	struct ll_flow *flow = arg;
	uint64_t beaten_ns = 0;
	pthread_setname_np(pthread_self(), "ll-agent");
	prctl(PR_SET_TIMERSLACK, 1);
	ll_reentry_depth = 1; /* all that this thread calls is ours */
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t wake_count;
		uint64_t now_ns;
		uint64_t next_ns = look_at_flow(flow, &wake_count, &now_ns);
		if (!next_ns) {
			atomic_store(&flow->has_agent_ended, true);
			return NULL;
		}
		if (now_ns - beaten_ns >= BEAT_NS) {
			if (ll_port_beat(flow->claim, now_ns) == -ESTALE)
				replace_claim(flow);
			beaten_ns = now_ns;
		}
		if (ll_port_is_asked(flow->claim))
			answer_siblings(flow);
		ll_port_sleep(flow->claim, wake_count, next_ns);
	}
}

int ll_agent_start(struct ll_flow *flow)
{
	pthread_attr_t attr;
	sigset_t all, before;
	size_t stack_bytes = STACK_BYTES > PTHREAD_STACK_MIN ? STACK_BYTES : (size_t)PTHREAD_STACK_MIN;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&flow->agent, &attr, agent_main, flow);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	flow->has_agent = rc == 0;
	return -rc;
}

/* By our own clock, which nobody sets: a wait by the time of day would be as long as that is set back. */
void ll_agent_stop(struct ll_flow *flow)
{
	if (!flow->has_agent)
		return;
	uint64_t now_ns = ll_now_ns(), deadline_ns = now_ns + STOP_NS;
	atomic_store(&flow->is_ending, true);
	ll_port_wake(flow->claim);
	while (!atomic_load(&flow->has_agent_ended) && now_ns < deadline_ns) {
		ll_sleep_until_ns(now_ns + STOP_PAUSE_NS);
		now_ns = ll_now_ns();
	}
	if (atomic_load(&flow->has_agent_ended)) /* else it hangs in the driver, and is left */
		pthread_join(flow->agent, NULL);
	flow->has_agent = false;
}
