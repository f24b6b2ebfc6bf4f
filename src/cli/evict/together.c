#include "cli/evict/together.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

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

/* ---- several that go together ---- */

/* It can do it by itself. */
static bool can_go_together(const struct ll_evict_subject *subject)
{
	return subject->target.is_evictable && !subject->claim.checkpoint;
}

size_t ll_evict_run_batch(struct ll_evict_subject *subjects, size_t count)
{
	size_t found = 0;
	uint64_t number = (uint64_t)getpid() << 32 | (ll_now_ns() & UINT32_MAX) | 1; /* not another command's */
	for (size_t i = 0; i < count; i++) {
		if (!can_go_together(&subjects[i]))
			continue;
		struct ll_evict_subject subject = subjects[i];
		subjects[i] = subjects[found];
		subjects[found++] = subject;
	}
	for (size_t i = 0; found > 1 && i < found; i++)
		subjects[i].target.batch = (struct ll_evict_batch){.number = number, .count = (uint32_t)found};
	return found;
}

int ll_evict_find_failure(const struct ll_evict_subject *subjects, size_t count)
{
	int rc = 0;
	for (size_t i = 0; i < count; i++) {
		if (!subjects[i].rc)
			return 0;
		if (!rc || rc == -ECANCELED)
			rc = subjects[i].rc;
	}
	return rc;
}

/* ---- an interruption ---- */

/* How to put back what was asked of it. False: it was so before, or only in part, and stays as it is. */
static bool is_to_be_put_back(const struct ll_evict_subject *subject, enum ll_evict_kind *ret_kind)
{
	*ret_kind = subject->claim.residency == LL_CLAIM_STOPPED ? LL_SUSPEND : LL_RESUME;
	return !subject->claim.checkpoint && subject->claim.residency != LL_CLAIM_EVICTED;
}

void ll_evict_send_put_back(const struct ll_evict_subject *subjects, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ll_evictor_target target = subjects[i].target;
		enum ll_evict_kind kind;
		if (!can_go_together(&subjects[i]) || !is_to_be_put_back(&subjects[i], &kind))
			continue;
		target.batch = (struct ll_evict_batch){0};
		ll_evictor_program_send(&target, kind == LL_SUSPEND ? LL_MESSAGE_SUSPEND : LL_MESSAGE_RESUME, NULL);
	}
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
		subject->target.batch = (struct ll_evict_batch){0};
		ask_one(subject, kind);
		if (subject->rc == -EBUSY) /* the answer may be to what was interrupted: that it could not leave */
			ask_one(subject, kind);
		rc = rc ? rc : subject->rc;
	}
	return rc;
}
