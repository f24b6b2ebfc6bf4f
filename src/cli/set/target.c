#include "cli/set/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/user.h"
#include "hold/hold_socket.h"

enum { ID_SIZE = 24, LABEL_SIZE = 64 };

static int fail_unknown(const char *word, struct ll_err *err)
{
	ll_err_set(err, -ENOENT, "%.80s: no such claim or tenant", word);
	ll_err_hint(err, "`loadline status` shows them");
	return -ENOENT;
}

/* The card before the last slash; NULL: there is none, or several. */
static const struct ll_card *read_card(const struct ll_driver *driver, const char *word)
{
	char label[LABEL_SIZE];
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	snprintf(label, sizeof label, "%.*s", (int)(strrchr(word, '/') - word), word);
	return ll_cards_select(driver, label, &cards, &count, NULL) == 0 && count == 1 ? cards[0] : NULL;
}

bool ll_set_claim_read(const struct ll_driver *driver, const char *word, const struct ll_card **ret_card,
		       unsigned *ret_index)
{
	const char *slash = strrchr(word, '/');
	uint64_t index;
	if (!slash || ll_parse_uint(slash + 1, 0, UINT32_MAX, &index, NULL) < 0)
		return false;
	*ret_card = read_card(driver, word);
	*ret_index = (unsigned)index;
	return *ret_card;
}

static bool is_hold(const struct ll_driver *driver, const char *word)
{
	struct ll_hold_owner owner;
	const struct ll_card *card = strcmp(strrchr(word, '/'), "/hold") == 0 ? read_card(driver, word) : NULL;
	return card && ll_hold_query(card, ll_driver_sim_folder(driver), &owner, NULL, NULL) == 0;
}

static int find_claim(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		      const char *word, struct ll_err *err)
{
	const struct ll_card *card;
	unsigned index;
	if (is_hold(driver, word)) {
		ll_err_set(err, -EBUSY, "%.80s: is a synthetic load, which has no limits", word);
		return ll_err_hint(err, "end it and start `loadline hold` again");
	}
	if (!ll_set_claim_read(driver, word, &card, &index))
		return fail_unknown(word, err);
	for (size_t i = 0; i < list->claim_count; i++) {
		const struct ll_message_claim_row *claim = &list->claims[i];
		if (claim->index == index && strcmp(claim->uuid, card->uuid) == 0)
			target->job = ll_list_job(list, claim->job_number);
	}
	return target->job ? 0 : fail_unknown(word, err);
}

/* "0/17" or "0/hold", and not "USER/NAME". */
static bool is_claim(const struct ll_driver *driver, const char *word)
{
	const struct ll_card *card;
	unsigned index;
	return strchr(word, '/') && (is_hold(driver, word) || ll_set_claim_read(driver, word, &card, &index));
}

static bool is_named(const struct ll_message_job_row *job, const char *word)
{
	char id[ID_SIZE];
	snprintf(id, sizeof id, "%" PRIx64, job->job.token[0]);
	return strcmp(job->job.tenant, word) == 0 || strcmp(id, word) == 0;
}

/* Whose jobs are meant. */
enum owner { OWN, OTHERS, NAMED };

static bool is_meant(const struct ll_message_job_row *job, const char *word, enum owner owner)
{
	char user[LABEL_SIZE], uid[ID_SIZE];
	const char *slash = strchr(word, '/');
	bool is_own = job->job.uid == geteuid();
	if (owner != NAMED)
		return (owner == OWN) == is_own && is_named(job, word);
	size_t length = (size_t)(slash - word);
	ll_user_name(job->job.uid, user, sizeof user);
	snprintf(uid, sizeof uid, "%" PRIu32, job->job.uid);
	bool is_user = (strlen(user) == length && strncmp(user, word, length) == 0) ||
		       (strlen(uid) == length && strncmp(uid, word, length) == 0);
	return is_user && is_named(job, slash + 1);
}

static int fail_several(const char *word, bool are_of_several_users, struct ll_err *err)
{
	ll_err_set(err, -EEXIST, "%.80s: several jobs have this name", word);
	return ll_err_hint(err, are_of_several_users
				    ? N_("say whose: USER/NAME, or the number of a claim (see `loadline status`)")
				    : N_("choose one by the number of a claim (see `loadline status`)"));
}

/* 0: one or none. */
static int find_jobs_of(struct ll_set_target *target, const struct ll_list *list, const char *word, enum owner owner,
			struct ll_err *err)
{
	for (size_t i = 0; i < list->job_count; i++) {
		const struct ll_message_job_row *job = &list->jobs[i];
		if (!is_meant(job, word, owner))
			continue;
		if (target->job)
			return fail_several(word, target->job->job.uid != job->job.uid, err);
		target->job = job;
	}
	return 0;
}

/* A number is that of a job. Two users may have tenants of one name: the caller's own comes first. */
static int find_job(struct ll_set_target *target, const struct ll_list *list, const char *word, struct ll_err *err)
{
	uint64_t number;
	if (!ll_parse_uint(word, 1, UINT64_MAX - 1, &number, NULL))
		target->job = ll_list_job(list, number);
	if (target->job)
		return 0;
	int rc = find_jobs_of(target, list, word, strchr(word, '/') ? NAMED : OWN, err);
	if (!rc && !target->job && !strchr(word, '/'))
		rc = find_jobs_of(target, list, word, OTHERS, err);
	return rc || target->job ? rc : fail_unknown(word, err);
}

int ll_set_job_check(const struct ll_message_job_row *job, const char *word, struct ll_err *err)
{
	char user[LABEL_SIZE];
	if (job->job.token[1])
		return 0;
	ll_user_name(job->job.uid, user, sizeof user);
	ll_err_set(err, -EPERM, "%.80s: is a job of user %s", word, user);
	return ll_err_hint(err, "that user and root may change it");
}

static int find_cards(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		      struct ll_err *err)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	target->cards = calloc(count + 1, sizeof *target->cards);
	if (!target->cards)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (size_t i = 0; i < count; i++) {
		if (!cards[i].fault && ll_list_card(list, target->job->number, cards[i].uuid))
			target->cards[target->card_count++] = &cards[i];
	}
	return 0;
}

int ll_set_target_find(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		       const char *word, struct ll_err *err)
{
	*target = (struct ll_set_target){0};
	int rc =
	    is_claim(driver, word) ? find_claim(target, list, driver, word, err) : find_job(target, list, word, err);
	if (!rc)
		rc = ll_set_job_check(target->job, word, err);
	return rc ? rc : find_cards(target, list, driver, err);
}

void ll_set_target_fini(struct ll_set_target *target)
{
	free(target->cards);
	*target = (struct ll_set_target){0};
}
