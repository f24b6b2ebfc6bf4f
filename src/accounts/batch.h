/*
 * batch.h - use of cards that is not in the database yet: sums in memory, until one transaction writes them.
 *
 * A row is what one job used of one card within one hour. Amounts are differences of counters, never of wall-clock
 * times; the hour is only the row's label. The words:
 *
 *   granted    time for which the job could use the card, times its share of compute (no limit: the whole card)
 *   used       time for which the card ran kernels of the job; overlapping kernels count once
 *   idle held  time for which the job held the card and had no work queued or running. Stretches shorter than the
 *              interval of the samples (1 s) are not seen
 *   memory     charged device memory times time
 *   joules     the job's part of the card's energy (daemon/accounts/account.h)
 *   borrowed   of used and of memory, what came while the job borrowed (rules/queue/lend.h)
 *
 * A counter says how much of a job's own counters is in the rows already. It is written with the rows, so that the next
 * loadlined continues where the rows end, and counts nothing twice.
 */
#ifndef LOADLINE_ACCOUNTS_BATCH_H
#define LOADLINE_ACCOUNTS_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounts/history.h"

enum { LL_USE_TENANT_SIZE = 64, LL_USE_PROJECT_SIZE = 64, LL_USE_CARD_SIZE = 96 };

/* At most so many rows are kept while the database cannot be written: about 6 MiB. */
enum { LL_USE_BATCH_ROWS = 16384 };

/* Returns the beginning of the hour that contains that time, both in seconds since 1970. Hours are those of the
 * machine's time zone: where it is half an hour off, days and budgets begin between two hours of UTC. */
int64_t ll_use_hour_s(int64_t at_s);

struct ll_use_key {
	int64_t hour_s; /* the hour's beginning, in seconds since 1970 */
	uint32_t uid;
	char tenant[LL_USE_TENANT_SIZE];
	char job[LL_USE_JOB_SIZE]; /* 16 hexadecimal digits and the uid, the same through restarts of loadlined */
	char project[LL_USE_PROJECT_SIZE]; /* empty: none */
	char card[LL_USE_CARD_SIZE];       /* UUID */
	uint64_t number;                   /* of the job, for people; no part of what keys are compared by */
};

struct ll_use {
	uint64_t granted_ns, used_ns, idle_held_ns, borrowed_ns;
	double memory_byte_s, borrowed_byte_s;
	double joules;
	bool knows_joules; /* false: joules is 0, and unknown. A sum knows them if a part does */
};

struct ll_use_row {
	struct ll_use_key key;
	struct ll_use use;
};

struct ll_use_counter {
	char job[LL_USE_JOB_SIZE];
	char card[LL_USE_CARD_SIZE];
	uint64_t used_ns;
	uint64_t memory_unit_ms; /* protocol/accounts.h */
	uint64_t borrowed_ns, borrowed_unit_ms;
	uint64_t since_ns, at_ns; /* CLOCK_MONOTONIC: when the job came to the card, and of the reading */
	bool has_ended;           /* the job: its counter is removed from the database */
};

struct ll_use_batch {
	struct ll_use_row *rows;
	struct ll_use_counter *counters;
	size_t row_count, counter_count;
	size_t row_room, counter_room;
	/* Jobs that have ended, or that run, and statuses that came later. */
	struct ll_past_job *past;
	struct ll_past_status *statuses;
	size_t past_count, status_count;
	size_t past_room, status_room;
};

/* Adds to the row of that key, or adds the row. -ENOSPC: the batch has most_rows already. -ENOMEM. */
int ll_use_batch_add(struct ll_use_batch *batch, const struct ll_use_key *key, const struct ll_use *use,
		     size_t most_rows);

/* Replaces the counter of that job and card, or adds it. -ENOMEM. */
int ll_use_batch_count(struct ll_use_batch *batch, const struct ll_use_counter *counter);

/* Adds a job that has ended, or that runs. -ENOSPC: the batch has LL_USE_BATCH_ROWS of them already. -ENOMEM. */
int ll_use_batch_end(struct ll_use_batch *batch, const struct ll_past_job *job);

/* Adds the status of a job that has ended, to the job if that is in the batch. -ENOSPC, -ENOMEM, as above. */
int ll_use_batch_set_status(struct ll_use_batch *batch, const struct ll_past_status *status);

/* Returns the counter; NULL: there is none. */
const struct ll_use_counter *ll_use_batch_find_counter(const struct ll_use_batch *batch, const char *job,
						       const char *card);

/* Adds the later batch to this one, and empties it. -ENOMEM: what has no place is lost; returns after the rest. */
int ll_use_batch_merge(struct ll_use_batch *batch, struct ll_use_batch *later);

bool ll_use_batch_is_empty(const struct ll_use_batch *batch);

void ll_use_batch_fini(struct ll_use_batch *batch);

#endif
