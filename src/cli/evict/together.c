#include "cli/evict/together.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/scope.h"

#define WAIT_NS (10 * LL_NS_PER_S)
#define FIRST_WAIT_NS (250 * LL_NS_PER_MS)
#define PAUSE_NS (20 * LL_NS_PER_MS)

/* ---- asking ---- */

static int call_evictor(struct ll_evict_subject *subject, enum ll_evict_kind kind)
{
	const ll_evictor_fn functions[] = {subject->evictor->evict, subject->evictor->suspend,
					   subject->evictor->resume};
	return functions[kind](&subject->target, &subject->moved, &subject->why);
}

static void ask_one(struct ll_evict_subject *subject, enum ll_evict_kind kind)
{
	subject->why = (struct ll_err){0};
	subject->evictor = &ll_evictor_mover;
	subject->rc = call_evictor(subject, kind);
	if (subject->rc == -EOPNOTSUPP) {
		struct ll_err mover_why = subject->why;
		subject->evictor = &ll_evictor_checkpoint;
		subject->rc = call_evictor(subject, kind);
		if (subject->rc == -EOPNOTSUPP && subject->has_claim)
			ll_err_wrap(&subject->why, "%s", mover_why.text);
	}
	if (subject->rc)
		ll_err_wrap(&subject->why, "%s", subject->name);
}

struct request {
	pthread_t thread;
	struct ll_evict_subject *subject;
	enum ll_evict_kind kind;
	bool is_running;
};

static void *request_main(void *arg)
{
	struct request *request = arg;
	ask_one(request->subject, request->kind);
	return NULL;
}

/* The driver's checkpoint takes a process with all its cards: one after the other. */
void ll_evict_ask(struct ll_evict_subject *subjects, size_t count, enum ll_evict_kind kind)
{
	LL_SCOPE_FREE struct request *requests = calloc(count, sizeof *requests);
	for (size_t i = 0; requests && count > 1 && i < count; i++) {
		requests[i] = (struct request){.subject = &subjects[i], .kind = kind};
		requests[i].is_running = subjects[i].target.is_evictable &&
					 pthread_create(&requests[i].thread, NULL, request_main, &requests[i]) == 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (requests && requests[i].is_running)
			pthread_join(requests[i].thread, NULL);
		else
			ask_one(&subjects[i], kind);
	}
}

/* ---- stopping together ---- */

/* It runs, and a mover serves it. */
static bool can_be_stopped(const struct ll_evict_subject *subject)
{
	return subject->target.is_evictable && subject->claim.residency == LL_CLAIM_ON_CARD;
}

static void let_go_on(const struct ll_evict_subject *subject)
{
	struct ll_evict_subject again = *subject;
	ask_one(&again, LL_RESUME);
}

void ll_evict_let_failed_go_on(const struct ll_evict_subject *subjects, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (can_be_stopped(&subjects[i]) && subjects[i].rc)
			let_go_on(&subjects[i]);
	}
}

/* Returns the first failure; -EBUSY only if there is no other. */
static int find_failure(const struct ll_evict_subject *subjects, size_t count)
{
	int rc = 0;
	for (size_t i = 0; i < count; i++) {
		if (subjects[i].rc && (!rc || rc == -EBUSY))
			rc = subjects[i].rc;
	}
	return rc;
}

/* If one cannot stop, those that could go on. */
static int try_to_stop(struct ll_evict_subject *stopping, size_t count, uint64_t wait_ns)
{
	for (size_t i = 0; i < count; i++)
		stopping[i].target.wait_ns = wait_ns;
	ll_evict_ask(stopping, count, LL_SUSPEND);
	int rc = find_failure(stopping, count);
	for (size_t i = 0; rc && i < count; i++) {
		if (!stopping[i].rc)
			let_go_on(&stopping[i]);
	}
	return rc;
}

static bool is_to_end(const sigset_t *ending)
{
	sigset_t pending, both;
	sigpending(&pending);
	sigandset(&both, &pending, ending);
	return !sigisemptyset(&both);
}

static int stop_all(struct ll_evict_subject *stopping, size_t count, uint64_t most_ns, const sigset_t *ending)
{
	uint64_t wait_ns = FIRST_WAIT_NS, spent_ns = 0;
	for (;;) {
		bool is_last = spent_ns + wait_ns > most_ns;
		int rc = try_to_stop(stopping, count, is_last ? most_ns : wait_ns);
		if (!rc || is_last || rc != -EBUSY || is_to_end(ending))
			return rc;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
		spent_ns += wait_ns;
		wait_ns += wait_ns / 4;
	}
}

/* Puts those first that can be stopped. Returns how many there are. */
static size_t put_running_first(struct ll_evict_subject *subjects, size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		if (!can_be_stopped(&subjects[i]))
			continue;
		struct ll_evict_subject subject = subjects[i];
		subjects[i] = subjects[found];
		subjects[found++] = subject;
	}
	return found;
}

int ll_evict_stop_together(struct ll_evict_subject *subjects, size_t count, uint64_t wait_ns, size_t *ret_stopped)
{
	sigset_t ending, before;
	size_t stopping = put_running_first(subjects, count);
	*ret_stopped = 0;
	if (stopping < 2)
		return 0;
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ending, &before);
	int rc = stop_all(subjects, stopping, wait_ns ? wait_ns : WAIT_NS, &ending);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < stopping; i++)
		subjects[i].target.wait_ns = wait_ns;
	*ret_stopped = rc ? 0 : stopping;
	return rc;
}
