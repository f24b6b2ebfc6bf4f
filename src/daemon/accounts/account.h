/*
 * account.h - what one job uses of one card: readings of its counters, and what is new since the last batch.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_ACCOUNT_H
#define LOADLINE_DAEMON_ACCOUNTS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "accounts/batch.h"
#include "daemon/jobs/claims.h"

/* Counters of the page, and when they were read. */
struct ll_account_reading {
	uint64_t used_ns, memory_unit_ms, at_ns;
};

/* For energy.h. all_*: since the account began. The others: what was in a period that is over. used_ns is compared
 * with ll_account_used_ns. */
struct ll_account_energy {
	uint64_t all_idle_held_ns, all_on_card_ns;
	uint64_t used_ns, idle_held_ns, on_card_ns;
	double joules;    /* not in a batch yet */
	bool is_known;    /* a reading has been divided */
	bool is_complete; /* the job has ended, and no reading is awaited */
	uint64_t ended_ns;
};

struct ll_account {
	struct ll_account *next;
	const struct ll_job_card *card; /* NULL: the job has ended */
	struct ll_use_key key;          /* its hour is set with each batch */
	uint64_t since_ns;              /* when the job came to the card; 0: before this loadlined, and unknown */
	uint64_t born_ns;               /* from when on this loadlined counts the time */
	uint64_t born_used_ns;          /* the page's counter then */
	struct ll_account_reading last, counted; /* counted: what the batches have */
	/* overlap.h: counted for several jobs, and not subtracted yet; when the used time last grew, or the account
	 * began; used_ns at the last look */
	uint64_t shared_ns, worked_ns, compared, looked_ns;
	uint64_t taken_off_ns; /* of shared_ns: subtracted already, and no longer in it */
	uint32_t card_hash;
	uint64_t granted_ns, idle_held_ns; /* not in a batch yet */
	struct ll_use newest;              /* what ll_account_collect has added last */
	struct ll_account_energy energy;
	bool has_base; /* whether a former loadlined has counted some of it has been looked up */
};

/* Makes the account of a job's card. NULL: out of memory. */
struct ll_account *ll_account_new(const struct ll_job_card *card, uint64_t now_ns);

/* Writes the job's name in the accounts. The token is secret, and token[1] is known to nobody else: so token[0] cannot
 * be computed from the result. A user chooses the tokens of its own jobs, so the name has the uid: no user can give a
 * job the name of another user's. */
void ll_account_name(const struct ll_job_facts *facts, char ret_job[LL_USE_JOB_SIZE]);

/* Continues at the counter of a former loadlined; NULL: there is none. */
void ll_account_set_base(struct ll_account *account, const struct ll_use_counter *counter);

/* Reads the counters. */
void ll_account_read(struct ll_account *account, uint64_t now_ns);

/* The used time as of the last reading, without what is shared. A counter of the page, which may begin before the
 * account. */
uint64_t ll_account_used_ns(const struct ll_account *account);

/* The job has ended: the account is not read any more. awaits_energy: the next reading of the card's energy has its
 * last seconds. */
void ll_account_end(struct ll_account *account, bool awaits_energy, uint64_t now_ns);

/* Whether nothing more comes for the account, and it can be freed once it is collected. */
bool ll_account_is_over(const struct ll_account *account, uint64_t now_ns);

/* Adds what is new to the batch, with that hour as the label. -ENOSPC, -ENOMEM: the account keeps it. */
int ll_account_collect(struct ll_account *account, struct ll_use_batch *batch, size_t most_rows, int64_t hour_s);

#endif
