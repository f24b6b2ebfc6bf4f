#include "shim/agent.h"

#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "shim/flow_state.h"
#include "shim/real.h"
#include "shim/reentry.h"

enum { STACK_BYTES = 256 * 1024, STOP_NS = 200000000 };
#define BEAT_NS (1000 * LL_NS_PER_MS)

static uint64_t tick(struct ll_flow *flow, uint32_t *ret_bell, uint64_t now_ns)
{
	pthread_mutex_lock(&flow->lock);
	*ret_bell = ll_turn_bell(flow->claim);
	uint64_t next_ns = 0;
	if (!flow->is_ending) {
		ll_flow_close_tails(flow);
		next_ns = ll_flow_tick(flow, now_ns);
	}
	pthread_mutex_unlock(&flow->lock);
	return next_ns;
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
		uint32_t bell;
		uint64_t now_ns = ll_now_ns();
		uint64_t next_ns = tick(flow, &bell, now_ns);
		if (!next_ns)
			return NULL;
		if (now_ns - beaten_ns >= BEAT_NS) {
			ll_claim_beat(flow->claim, now_ns, NULL);
			beaten_ns = now_ns;
		}
		ll_turn_sleep(flow->claim, bell, next_ns);
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

void ll_agent_stop(struct ll_flow *flow)
{
	if (!flow->has_agent)
		return;
	struct timespec deadline;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_nsec += STOP_NS;
	deadline.tv_sec += deadline.tv_nsec / (long)LL_NS_PER_S;
	deadline.tv_nsec %= (long)LL_NS_PER_S;
	atomic_store(&flow->is_ending, true);
	ll_turn_ring(flow->claim);
	pthread_timedjoin_np(flow->agent, NULL, &deadline);
	flow->has_agent = false;
}
