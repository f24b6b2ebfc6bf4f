#include "cli/evict/together.h"

#include <errno.h>
#include <pthread.h>
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

static void ask_evictor(struct ll_evict_subject *subject, const struct ll_evictor *evictor, enum ll_evict_kind kind)
{
	subject->evictor = evictor;
	subject->rc = call_evictor(subject, kind);
}

/* What cannot leave by itself is the checkpoint's. */
static void ask_program_first(struct ll_evict_subject *subject, enum ll_evict_kind kind)
{
	ask_evictor(subject, &ll_evictor_program, kind);
	if (subject->rc != -EOPNOTSUPP)
		return;
	struct ll_err program_why = subject->why;
	ask_evictor(subject, &ll_evictor_checkpoint, kind);
	if (subject->rc == -EOPNOTSUPP && subject->has_claim)
		ll_err_wrap(&subject->why, "%s", program_why.text);
}

/* The program knows nothing of what the checkpoint did to it, and is taken for one that runs. Nothing is lost if the
 * driver has no checkpoint. */
static void ask_checkpoint_too(struct ll_evict_subject *subject)
{
	struct ll_evict_subject other = *subject;
	ask_evictor(&other, &ll_evictor_checkpoint, LL_RESUME);
	bool has_done = !other.rc && !other.moved.is_already;
	if (has_done || other.rc == -EBUSY) /* it was away, and may still be */
		*subject = other;
}

/* It is resumed by what has evicted it, which may be both. */
static void resume_one(struct ll_evict_subject *subject)
{
	if (!subject->claim.checkpoint) {
		ask_program_first(subject, LL_RESUME);
		if (!subject->rc && subject->evictor == &ll_evictor_program && subject->moved.is_already)
			ask_checkpoint_too(subject);
		return;
	}
	ask_evictor(subject, &ll_evictor_checkpoint, LL_RESUME);
	bool is_away = subject->claim.residency == LL_CLAIM_STOPPED || subject->claim.residency == LL_CLAIM_EVICTED;
	if (!subject->rc && is_away)
		ask_evictor(subject, &ll_evictor_program, LL_RESUME);
}

static bool is_interrupted(const struct ll_evict_subject *subject)
{
	return subject->target.interrupt && atomic_load(&subject->target.interrupt->is_set);
}

static void ask_one(struct ll_evict_subject *subject, enum ll_evict_kind kind)
{
	subject->why = (struct ll_err){0};
	subject->moved = (struct ll_evictor_moved){0};
	if (is_interrupted(subject))
		subject->rc = ll_err_set(&subject->why, -EINTR, "interrupted");
	else if (kind == LL_RESUME)
		resume_one(subject);
	else if (subject->claim.checkpoint)
		ask_evictor(subject, &ll_evictor_checkpoint, kind);
	else
		ask_program_first(subject, kind);
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

/* It runs, and is evictable. */
static bool can_be_stopped(const struct ll_evict_subject *subject)
{
	return subject->target.is_evictable && subject->claim.residency == LL_CLAIM_ON_CARD &&
	       !subject->claim.checkpoint;
}

static void let_go_on(const struct ll_evict_subject *subject)
{
	struct ll_evict_subject again = *subject;
	again.target.interrupt = NULL;
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

static int stop_all(struct ll_evict_subject *stopping, size_t count, uint64_t most_ns)
{
	uint64_t wait_ns = FIRST_WAIT_NS, spent_ns = 0;
	for (;;) {
		bool is_last = spent_ns + wait_ns > most_ns;
		int rc = try_to_stop(stopping, count, is_last ? most_ns : wait_ns);
		if (!rc || is_last || rc != -EBUSY || is_interrupted(stopping))
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
	size_t stopping = put_running_first(subjects, count);
	*ret_stopped = 0;
	if (stopping < 2)
		return 0;
	int rc = stop_all(subjects, stopping, wait_ns ? wait_ns : WAIT_NS);
	for (size_t i = 0; i < stopping; i++)
		subjects[i].target.wait_ns = wait_ns;
	*ret_stopped = rc ? 0 : stopping;
	return rc;
}

/* ---- an interruption ---- */

/* How to put back what was asked of it. False: it was so before, or only in part, and stays as it is. */
static bool is_to_be_put_back(const struct ll_evict_subject *subject, enum ll_evict_kind *ret_kind)
{
	*ret_kind = subject->claim.residency == LL_CLAIM_STOPPED ? LL_SUSPEND : LL_RESUME;
	return !subject->claim.checkpoint && subject->claim.residency != LL_CLAIM_EVICTED;
}

int ll_evict_put_back(struct ll_evict_subject *subjects, size_t count)
{
	int rc = 0;
	for (size_t i = 0; i < count; i++) {
		struct ll_evict_subject *subject = &subjects[i];
		enum ll_evict_kind kind;
		if (!is_to_be_put_back(subject, &kind))
			continue;
		subject->target.interrupt = NULL;
		ask_one(subject, kind);
		if (subject->rc == -EBUSY) /* the answer may be to what was interrupted: that it could not leave */
			ask_one(subject, kind);
		rc = rc ? rc : subject->rc;
	}
	return rc;
}
