#include "cli/evict/evict.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/set/target.h"

static void add_claim(struct ll_evict_subjects *subjects, const struct ll_evict_args *args, const struct ll_card *card,
		      const struct ll_message_claim_row *claim, const struct ll_message_job_row *job, bool is_pid_ours)
{
	struct ll_evict_subject *subject = &subjects->items[subjects->count++];
	*subject = (struct ll_evict_subject){.target = {.driver = card->driver,
							.card = card,
							.job_token = job->job.token[0],
							.claim = claim->index,
							.is_evictable = claim->residency != LL_CLAIM_FIXED,
							.pid = is_pid_ours ? (pid_t)claim->pid : 0,
							.wait_ns = args->wait_ns,
							.reason = args->reason},
					     .claim = *claim,
					     .has_claim = true};
	snprintf(subject->tenant, sizeof subject->tenant, "%s", job->job.tenant);
	snprintf(subject->name, sizeof subject->name, _("%s/%u, tenant %s"), card->label, claim->index,
		 subject->tenant);
}

static int make_room(struct ll_evict_subjects *subjects, size_t count, struct ll_err *err)
{
	struct ll_evict_subject *items = realloc(subjects->items, (subjects->count + count) * sizeof *items);
	if (!items)
		return ll_err_set(err, -ENOMEM, "a list of programs: %s", strerror(ENOMEM));
	subjects->items = items;
	return 0;
}

/* Whose claims are meant. */
struct meaning {
	uint64_t job_number;        /* 0: of any job */
	const struct ll_card *card; /* the one claim there with that index; NULL: all claims */
	unsigned index;
	uint32_t pid; /* 0: of any process */
};

static bool is_meant(const struct ll_message_claim_row *claim, const struct meaning *meaning)
{
	if (meaning->card)
		return claim->index == meaning->index && strcmp(claim->uuid, meaning->card->uuid) == 0;
	return meaning->job_number ? claim->job_number == meaning->job_number : claim->pid == meaning->pid;
}

/* In the order of cards, and of the claims' indices there. */
static int compare_claims(const void *left, const void *right)
{
	const struct ll_evict_subject *first = left, *second = right;
	if (first->target.card != second->target.card)
		return first->target.card < second->target.card ? -1 : 1;
	return first->target.claim < second->target.claim ? -1 : first->target.claim > second->target.claim;
}

static int add_claims(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
		      const struct ll_driver *driver, const struct ll_list *list, bool are_pids_ours,
		      const struct meaning *meaning, struct ll_err *err)
{
	int rc = make_room(subjects, list->claim_count + 1, err);
	for (size_t i = 0; !rc && i < list->claim_count; i++) {
		const struct ll_message_claim_row *claim = &list->claims[i];
		const struct ll_card *card = ll_cards_find_uuid(driver, claim->uuid);
		const struct ll_message_job_row *job = ll_list_job(list, claim->job_number);
		if (!card || !job || !is_meant(claim, meaning))
			continue;
		rc = ll_set_job_check(job, job->job.tenant, err);
		if (!rc)
			add_claim(subjects, args, card, claim, job, are_pids_ours);
	}
	if (!rc)
		qsort(subjects->items, subjects->count, sizeof *subjects->items, compare_claims);
	return rc;
}

/* What is looked for, in what loadlined tells. */
struct search {
	struct ll_evict_subjects *subjects;
	const struct ll_evict_args *args;
	const struct ll_driver *driver;
	const char *word; /* NULL: the process of --pid */
};

static int find_word(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err)
{
	const struct search *search = data;
	struct ll_set_target target;
	struct meaning meaning = {.job_number = 0};
	int rc = ll_set_target_find(&target, list, search->driver, search->word, err);
	if (!rc) {
		meaning.job_number = target.job->number;
		ll_set_claim_read(search->driver, search->word, &meaning.card, &meaning.index);
		rc = add_claims(search->subjects, search->args, search->driver, list, ll_daemon_pids_are_ours(client),
				&meaning, err);
	}
	if (!rc && !search->subjects->count)
		rc = ll_err_set(err, -ENOENT, "%.80s: has no process on %s%s", search->word,
				target.card_count == 1 ? _("card ") : _("a card of this machine"),
				target.card_count == 1 ? target.cards[0]->label : "");
	ll_set_target_fini(&target);
	return rc;
}

int ll_evict_subjects_find(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			   struct ll_driver *driver, const char *word, struct ll_err *err)
{
	struct search search = {subjects, args, driver, word};
	return ll_daemon_look(ll_driver_sim_folder(driver), true, find_word, &search, err);
}

/* If nobody serves there are no claims. */
static int find_pid(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err)
{
	const struct search *search = data;
	const struct meaning meaning = {.pid = (uint32_t)search->args->pid};
	if (!client || !ll_daemon_pids_are_ours(client))
		return 0;
	int rc = add_claims(search->subjects, search->args, search->driver, list, true, &meaning, err);
	return rc || search->subjects->count ? rc : -ENOENT;
}

int ll_evict_subjects_find_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			       struct ll_driver *driver, struct ll_err *err)
{
	struct search search = {subjects, args, driver, NULL};
	int rc = ll_daemon_look(ll_driver_sim_folder(driver), false, find_pid, &search, err);
	return rc == -ENOENT ? 0 : rc;
}

int ll_evict_subjects_set_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			      struct ll_driver *driver, struct ll_err *err)
{
	int rc = make_room(subjects, 1, err);
	if (rc)
		return rc;
	struct ll_evict_subject *subject = &subjects->items[subjects->count++];
	*subject = (struct ll_evict_subject){
	    .target = {.driver = driver, .pid = (pid_t)args->pid, .wait_ns = args->wait_ns, .reason = args->reason}};
	snprintf(subject->name, sizeof subject->name, "pid %d", (int)subject->target.pid);
	return 0;
}

void ll_evict_subjects_fini(struct ll_evict_subjects *subjects)
{
	free(subjects->items);
	*subjects = (struct ll_evict_subjects){0};
}

void ll_evict_subjects_name(const struct ll_evict_subjects *subjects, char ret_name[LL_SUBJECT_NAME_SIZE])
{
	if (subjects->count == 1)
		snprintf(ret_name, LL_SUBJECT_NAME_SIZE, "%s", subjects->items[0].name);
	else
		snprintf(ret_name, LL_SUBJECT_NAME_SIZE, _("%zu programs"), subjects->count);
}

/* ---- progress ---- */

static void add_progress(const struct ll_evict_subject *subject, const struct ll_list *list,
			 struct ll_evict_progress *progress)
{
	for (size_t i = 0; i < list->claim_count; i++) {
		const struct ll_message_claim_row *claim = &list->claims[i];
		if (claim->job_number != subject->claim.job_number || claim->index != subject->claim.index ||
		    strcmp(claim->uuid, subject->claim.uuid) != 0)
			continue;
		progress->evictable_bytes += claim->evictable_bytes;
		progress->away_bytes += claim->away_bytes;
	}
}

void ll_evict_subjects_progress(const struct ll_evict_subjects *subjects, struct ll_evict_progress *ret_progress)
{
	struct ll_daemon_view view;
	*ret_progress = (struct ll_evict_progress){0};
	if (!subjects->count)
		return;
	ll_daemon_view_init(&view, ll_driver_sim_folder(subjects->items[0].target.driver));
	for (size_t i = 0; i < subjects->count; i++) {
		if (subjects->items[i].target.is_evictable)
			add_progress(&subjects->items[i], &view.list, ret_progress);
	}
	ll_daemon_view_fini(&view);
}

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
