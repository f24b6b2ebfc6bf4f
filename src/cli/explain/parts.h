/*
 * parts.h - the parts of `loadline explain`: what is known of the jobs and cards, and the words for it.
 */
#ifndef LOADLINE_CLI_EXPLAIN_PARTS_H
#define LOADLINE_CLI_EXPLAIN_PARTS_H

#include "base/strbuf.h"
#include "cli/queue/queue.h"
#include "cli/status/status.h"
#include "rules/explain/explain.h"

/* What loadlined and the cards tell at one moment. */
struct ll_explain_view {
	struct ll_daemon_view daemon;
	struct ll_status_card *cards; /* those that were chosen */
	size_t card_count;
	struct ll_queue_rows queue; /* empty: there is none */
};

/* A job on a card, or in the queue. */
struct ll_explain_job {
	const struct ll_explain_view *view;
	const struct ll_status_card *card;         /* NULL: it is on none */
	const struct ll_status_job *job;           /* on that card; NULL: it is on none */
	const struct ll_message_job_row *told;     /* NULL: it has not registered */
	const struct ll_message_queue_row *queued; /* NULL: it has its cards */
	struct ll_cause_part causes[LL_CAUSES];
	size_t cause_count;
};

/* Adds "it waits for its turn: tenant infer has the card". */
void ll_explain_add_cause(struct ll_strbuf *text, const struct ll_explain_job *job, const struct ll_cause_part *cause);

/* Adds what to do about it, and what that may give: "`loadline set train --weight 2` …: up to 1.8 times the work".
 * Nothing if there is nothing to do. */
void ll_explain_add_advice(struct ll_strbuf *text, const struct ll_explain_job *job, const struct ll_cause_part *cause);

/* Returns the other job on the card for which this cause counts: the one that worked most; of LL_CAUSE_MEMORY, the one
 * that has the most memory. NULL: none is seen. */
const struct ll_status_job *ll_explain_other(const struct ll_explain_job *job, enum ll_cause cause);

/* Returns what of the last minute the card worked for jobs, 0 to 1. */
double ll_explain_work_of_card(const struct ll_status_card *card);

/* Tells for each tenant and group of cards of the configuration what of its cards stood idle, and in whose hands. word:
 * for the one of this name; NULL: for all. text: NULL: as JSON, on stdout. ret_has_found: is set if there is one. */
int ll_explain_put_groups(const struct ll_explain_view *view, const char *word, struct ll_strbuf *text,
			  bool *ret_has_found, struct ll_err *err);

#endif
