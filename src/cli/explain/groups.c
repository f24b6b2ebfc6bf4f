/* What of the cards of a tenant, or of a group of cards, stood idle, and in whose hands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/explain/parts.h"
#include "cli/run/run.h"

enum { USER_SIZE = 64, SHOWN = 3 };

struct hand {
	const struct ll_status_job *job;
	double idle[LL_IDLE_HANDS]; /* of the minute, sum over the cards */
};

struct group {
	const struct ll_explain_view *view;
	const char *name;
	const struct ll_message_policy_part *part; /* of a group of cards, the first one; NULL: a tenant */
	unsigned cards;
	double idle[LL_IDLE_HANDS]; /* sum over the cards */
	struct hand *hands;
	size_t hand_count;
};

/* ---- sums ---- */

static bool has_card(const struct group *group, const struct ll_status_card *card)
{
	for (size_t i = 0; !group->part && i < card->job_count; i++) {
		if (strcmp(card->jobs[i].told.tenant, group->name) == 0)
			return true;
	}
	return group->part && group->part->card_mask >> (card->card->index & 63) & 1;
}

static struct hand *hand_of(struct group *group, const struct ll_status_job *job)
{
	for (size_t i = 0; i < group->hand_count; i++) {
		if (group->hands[i].job->told.number == job->told.number)
			return &group->hands[i];
	}
	group->hands[group->hand_count] = (struct hand){.job = job};
	return &group->hands[group->hand_count++];
}

static int add_card(struct group *group, const struct ll_status_card *card)
{
	size_t count = card->hidden_count ? 0 : card->job_count;
	LL_SCOPE_FREE struct ll_idle_job *jobs = calloc(count + 1, sizeof *jobs);
	if (!jobs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		jobs[i].permille = card->jobs[i].row.minute_permille;
	double left = ll_idle_divide(ll_explain_work_of_card(card), jobs, count);
	group->cards++;
	group->idle[card->hidden_count ? LL_IDLE_HIDDEN : LL_IDLE_NOBODY] += left;
	for (size_t i = 0; i < count; i++) {
		struct hand *hand = hand_of(group, &card->jobs[i]);
		for (size_t k = 0; k < LL_IDLE_HANDS; k++) {
			hand->idle[k] += jobs[i].idle[k];
			group->idle[k] += jobs[i].idle[k];
		}
	}
	return 0;
}

static int add_cards(struct group *group)
{
	size_t jobs = 0;
	for (size_t i = 0; i < group->view->card_count; i++)
		jobs += group->view->cards[i].job_count;
	group->hands = calloc(jobs + 1, sizeof *group->hands);
	int rc = group->hands ? 0 : -ENOMEM;
	for (size_t i = 0; i < group->view->card_count && !rc; i++) {
		if (has_card(group, &group->view->cards[i]))
			rc = add_card(group, &group->view->cards[i]);
	}
	return rc;
}

static double part_of(const struct group *group, double sum)
{
	return 100 * sum / group->cards;
}

static double idle_of(const struct group *group)
{
	double sum = 0;
	for (size_t i = 0; i < LL_IDLE_HANDS; i++)
		sum += group->idle[i];
	return part_of(group, sum);
}

/* The job with the largest part in such hands behind that one. NULL: what is left would be noise. */
static const struct hand *next_hand(const struct group *group, enum ll_idle_hand kind, const struct hand *after)
{
	const struct hand *found = NULL;
	for (const struct hand *hand = group->hands; hand < group->hands + group->hand_count; hand++) {
		bool is_behind = !after || hand->idle[kind] < after->idle[kind] ||
				 (hand->idle[kind] <= after->idle[kind] && hand > after);
		if (is_behind && hand->idle[kind] >= LL_CAUSE_LEAST && (!found || hand->idle[kind] > found->idle[kind]))
			found = hand;
	}
	return found;
}

/* What the tenant is guaranteed in the group, and does not use; 0: nothing. */
static uint64_t kept_of(const struct ll_message_policy_part *part)
{
	uint64_t guaranteed = part->gives_cards ? part->guaranteed_cards : part->guaranteed_memory_bytes;
	uint64_t used = part->gives_cards ? part->used_cards : part->used_memory_bytes;
	return part->is_known && guaranteed != UINT64_MAX && guaranteed > used ? guaranteed - used : 0;
}

static bool waits_for(const struct group *group, const struct ll_message_queue_row *row)
{
	return !(row->flags & (LL_QUEUE_IS_RUNNING | LL_QUEUE_IS_ADMITTED)) && strcmp(row->why.cards, group->name) == 0;
}

/* ---- text ---- */

static const char *const hand_texts[LL_IDLE_HANDS] = {
    [LL_IDLE_NOBODY] = N_("no job has them"),
    [LL_IDLE_HIDDEN] = N_("jobs of others have them, of which nothing is told"),
    [LL_IDLE_NO_WORK] = N_("jobs have them, and launch nothing"),
    [LL_IDLE_PROGRAM] = N_("programs compute on the host, move data, or wait for one of their processes"),
    [LL_IDLE_WAITS] = N_("jobs wait for their cap, for room or for their turn, or are evicted")};

static void add_hand(struct ll_strbuf *text, const struct group *group, enum ll_idle_hand kind)
{
	char user[USER_SIZE];
	const struct hand *hand = NULL;
	ll_strbuf_addf(text, "  %3.0f %%  %s", part_of(group, group->idle[kind]), _(hand_texts[kind]));
	for (unsigned i = 0; i < SHOWN && (hand = next_hand(group, kind, hand)); i++) {
		ll_user_name(hand->job->told.job.uid, user, sizeof user);
		ll_strbuf_addf(text, _("%s job %llu of %s (%.0f %%)"), i ? "," : ":",
			       (unsigned long long)hand->job->told.number, user, part_of(group, hand->idle[kind]));
	}
	ll_strbuf_addc(text, '\n');
}

/* Why nobody has them: what is kept for tenants, and what waits. */
static void add_reasons(struct ll_strbuf *text, const struct group *group)
{
	const struct ll_policy *policy = &group->view->daemon.policy;
	const struct ll_queue_rows *queue = &group->view->queue;
	for (size_t i = 0; i < policy->part_count; i++) {
		const struct ll_message_policy_part *part = &policy->parts[i];
		uint64_t kept = strcmp(part->group, group->name) == 0 ? kept_of(part) : 0;
		if (!kept)
			continue;
		ll_strbuf_addf(text, _("         guaranteed to tenant %s, which does not use it: "), part->tenant);
		if (part->gives_cards)
			ll_strbuf_addf(text, _("cards: %llu"), (unsigned long long)kept);
		else
			ll_policy_add_amount(text, 'm', kept);
		ll_strbuf_addc(text, '\n');
	}
	for (size_t i = 0, shown = 0; i < queue->job_count && shown < SHOWN; i++) {
		const struct ll_message_queue_row *row = &queue->jobs[i];
		if (!waits_for(group, row))
			continue;
		ll_strbuf_addf(text, _("         job %llu of tenant %s waits: "), (unsigned long long)row->number,
			       row->tenant);
		ll_run_waiting_add_why(text, &row->waits, &row->why);
		ll_strbuf_addc(text, '\n');
		shown++;
	}
}

static void add_text(struct ll_strbuf *text, const struct group *group)
{
	if (group->part)
		ll_strbuf_addf(text, _("group %s: %u cards, idle %.0f %% of the last minute"), group->name,
			       group->cards, idle_of(group));
	else
		ll_strbuf_addf(text, _("tenant %s: %u cards, idle %.0f %% of the last minute"), group->name,
			       group->cards, idle_of(group));
	ll_strbuf_addc(text, '\n');
	for (enum ll_idle_hand kind = LL_IDLE_NOBODY; kind < LL_IDLE_HANDS; kind++) {
		if (group->idle[kind] >= LL_CAUSE_LEAST)
			add_hand(text, group, kind);
	}
	if (group->part)
		add_reasons(text, group);
}

/* ---- JSON ---- */

static json_t *hand_json(const struct group *group, enum ll_idle_hand kind)
{
	char user[USER_SIZE];
	json_t *jobs = json_array();
	const struct hand *hand = NULL;
	while ((hand = next_hand(group, kind, hand))) {
		ll_user_name(hand->job->told.job.uid, user, sizeof user);
		json_array_append_new(jobs, json_pack("{s:I, s:s, s:o}", "job", (json_int_t)hand->job->told.number,
						      "user", user, "idle_percent",
						      ll_json_real(part_of(group, hand->idle[kind]), 1)));
	}
	return json_pack("{s:s, s:o, s:o}", "hands", ll_idle_hand_name(kind), "idle_percent",
			 ll_json_real(part_of(group, group->idle[kind]), 1), "jobs", jobs);
}

static int print_json(const struct group *group, struct ll_err *err)
{
	const struct ll_policy *policy = &group->view->daemon.policy;
	const struct ll_queue_rows *queue = &group->view->queue;
	json_t *hands = json_array(), *kept = json_array(), *waiting = json_array();
	for (enum ll_idle_hand kind = LL_IDLE_NOBODY; kind < LL_IDLE_HANDS; kind++) {
		if (group->idle[kind] >= LL_CAUSE_LEAST)
			json_array_append_new(hands, hand_json(group, kind));
	}
	for (size_t i = 0; group->part && i < policy->part_count; i++) {
		const struct ll_message_policy_part *part = &policy->parts[i];
		uint64_t amount = strcmp(part->group, group->name) == 0 ? kept_of(part) : 0;
		if (amount)
			json_array_append_new(kept, json_pack("{s:s, s:o, s:o}", "tenant", part->tenant, "cards",
							      ll_json_number(part->gives_cards, amount), "memory_bytes",
							      ll_json_number(!part->gives_cards, amount)));
	}
	for (size_t i = 0; group->part && i < queue->job_count; i++) {
		if (waits_for(group, &queue->jobs[i]))
			json_array_append_new(waiting, json_integer((json_int_t)queue->jobs[i].number));
	}
	return ll_json_line(json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", group->part ? "card_group" : "group",
				      group->name, "cards", (int)group->cards, "idle_percent",
				      ll_json_real(idle_of(group), 1), "idle", hands, "guaranteed_unused", kept,
				      "waiting_jobs", waiting),
			    err);
}

/* ---- all of them ---- */

static int put_group(struct group *group, const char *word, struct ll_strbuf *text, bool *ret_has_found,
		     struct ll_err *err)
{
	if (word && strcmp(word, group->name) != 0)
		return 0;
	int rc = add_cards(group);
	if (rc)
		rc = ll_err_set(err, rc, "out of memory");
	else if (group->cards && text)
		add_text(text, group);
	else if (group->cards)
		rc = print_json(group, err);
	*ret_has_found |= group->cards != 0;
	free(group->hands);
	return rc;
}

int ll_explain_put_groups(const struct ll_explain_view *view, const char *word, struct ll_strbuf *text,
			  bool *ret_has_found, struct ll_err *err)
{
	const struct ll_list *list = &view->daemon.list;
	const struct ll_policy *policy = &view->daemon.policy;
	int rc = 0;
	for (size_t i = 0; i < list->job_count && !rc; i++) {
		bool is_first = list->jobs[i].tenant[0] != '\0';
		for (size_t k = 0; k < i; k++)
			is_first = is_first && strcmp(list->jobs[k].tenant, list->jobs[i].tenant) != 0;
		struct group group = {.view = view, .name = list->jobs[i].tenant};
		if (is_first)
			rc = put_group(&group, word, text, ret_has_found, err);
	}
	for (size_t i = 0; policy->parts && i < policy->part_count && !rc; i++) {
		bool is_first = true;
		for (size_t k = 0; k < i; k++)
			is_first = is_first && strcmp(policy->parts[k].group, policy->parts[i].group) != 0;
		struct group group = {.view = view, .name = policy->parts[i].group, .part = &policy->parts[i]};
		if (is_first)
			rc = put_group(&group, word, text, ret_has_found, err);
	}
	return rc;
}
