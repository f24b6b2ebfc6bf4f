#include "cli/evict/subjects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/scope.h"
#include "cli/set/target.h"
#include "ledger/file.h"
#include "ledger/ledger.h"

enum { CLAIMS = 256 };

/* Whose claims are meant: of a word and the tenant that it names on this card, or of a process. */
struct meaning {
	const char *word; /* NULL: the process */
	unsigned tenant_row;
	pid_t pid;
};

static bool is_meant(const struct ll_claim_info *claim, const struct meaning *meaning)
{
	uint64_t index;
	if (!meaning->word)
		return claim->is_pid_ours && claim->pid == meaning->pid && claim->priority != LL_PRIORITY_HOLD;
	const char *slash = strrchr(meaning->word, '/');
	if (slash && ll_parse_uint(slash + 1, 0, CLAIMS - 1, &index, NULL) == 0)
		return claim->index == index;
	return claim->tenant_row == meaning->tenant_row + 1;
}

static void add_claim(struct ll_evict_subjects *subjects, const struct ll_evict_args *args, const struct ll_card *card,
		      const struct ll_claim_info *claim)
{
	struct ll_evict_subject *subject = &subjects->items[subjects->count++];
	*subject = (struct ll_evict_subject){.target = {.driver = card->driver,
							.card = card,
							.claim = claim->index,
							.is_evictable = claim->residency != LL_CLAIM_FIXED,
							.pid = claim->is_pid_ours ? claim->pid : 0,
							.wait_ns = args->wait_ns},
					     .claim = *claim,
					     .has_claim = true};
	snprintf(subject->name, sizeof subject->name, "%s/%u, tenant %s", card->label, claim->index, claim->tenant);
}

static int make_room(struct ll_evict_subjects *subjects, size_t count, struct ll_err *err)
{
	struct ll_evict_subject *items = realloc(subjects->items, (subjects->count + count) * sizeof *items);
	if (!items)
		return ll_err_set(err, -ENOMEM, "a list of programs: %s", strerror(ENOMEM));
	subjects->items = items;
	return 0;
}

/* Adds those of one card. */
static int add_claims(struct ll_evict_subjects *subjects, const struct ll_evict_args *args, const struct ll_card *card,
		      struct ll_ledger *ledger, const struct meaning *meaning, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS, sizeof *claims);
	int rc = claims ? make_room(subjects, CLAIMS, err) : ll_err_set(err, -ENOMEM, "claims: %s", strerror(ENOMEM));
	size_t count = rc ? 0 : ll_ledger_list(ledger, claims, CLAIMS);
	for (size_t i = 0; claims && i < count && i < CLAIMS; i++) {
		if (is_meant(&claims[i], meaning))
			add_claim(subjects, args, card, &claims[i]);
	}
	return rc;
}

int ll_evict_subjects_find(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			   struct ll_driver *driver, const char *word, struct ll_err *err)
{
	struct ll_set_targets targets = {0};
	int rc = ll_set_targets_find(&targets, driver, word, err);
	for (size_t i = 0; !rc && i < targets.count; i++) {
		const struct meaning meaning = {.word = word, .tenant_row = targets.items[i].row};
		rc = add_claims(subjects, args, targets.items[i].card, targets.items[i].ledger, &meaning, err);
	}
	if (!rc && !subjects->count)
		rc = ll_err_set(err, -ENOENT, "%.80s: has no process on %s%s", word,
				targets.count == 1 ? "card " : "a card of this machine",
				targets.count == 1 ? targets.items[0].card->label : "");
	ll_set_targets_fini(&targets);
	return rc;
}

/* Returns false if the card has none that can be read. */
static bool open_ledger(const struct ll_card *card, struct ll_ledger **ret_ledger)
{
	char folder[LL_FOLDER_SIZE];
	return !card->fault && !ll_ledger_folder(ll_driver_sim_folder(card->driver), folder, NULL) &&
	       !ll_ledger_open(folder, card->uuid, false, ret_ledger, NULL);
}

int ll_evict_subjects_find_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			       struct ll_driver *driver, struct ll_err *err)
{
	const struct meaning meaning = {.pid = (pid_t)args->pid};
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	int rc = 0;
	for (size_t i = 0; !rc && i < count; i++) {
		struct ll_ledger *ledger;
		if (!open_ledger(&cards[i], &ledger))
			continue;
		rc = add_claims(subjects, args, &cards[i], ledger, &meaning, err);
		ll_ledger_close(ledger);
	}
	return rc;
}

int ll_evict_subjects_set_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			      struct ll_driver *driver, struct ll_err *err)
{
	int rc = make_room(subjects, 1, err);
	if (rc)
		return rc;
	struct ll_evict_subject *subject = &subjects->items[subjects->count++];
	*subject =
	    (struct ll_evict_subject){.target = {.driver = driver, .pid = (pid_t)args->pid, .wait_ns = args->wait_ns}};
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
		snprintf(ret_name, LL_SUBJECT_NAME_SIZE, "%zu programs", subjects->count);
}

/* ---- progress ---- */

static void add_progress(const struct ll_evict_subject *subject, struct ll_ledger *ledger,
			 struct ll_evict_progress *progress)
{
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS, sizeof *claims);
	size_t count = claims ? ll_ledger_list(ledger, claims, CLAIMS) : 0;
	for (size_t i = 0; i < count && i < CLAIMS; i++) {
		if (claims[i].index != subject->claim.index || claims[i].taken_ns != subject->claim.taken_ns)
			continue;
		progress->evictable_bytes += claims[i].evictable_bytes;
		progress->away_bytes += claims[i].away_bytes;
	}
}

void ll_evict_subjects_progress(const struct ll_evict_subjects *subjects, struct ll_evict_progress *ret_progress)
{
	*ret_progress = (struct ll_evict_progress){0};
	for (size_t i = 0; i < subjects->count; i++) {
		const struct ll_evict_subject *subject = &subjects->items[i];
		struct ll_ledger *ledger;
		if (!subject->target.is_evictable || !open_ledger(subject->target.card, &ledger))
			continue;
		add_progress(subject, ledger, ret_progress);
		ll_ledger_close(ledger);
	}
}
