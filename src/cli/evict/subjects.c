#include "cli/evict/subjects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
