/*
 * account.h - what one job uses of one card: readings of its counters, and what is new since the last batch.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_ACCOUNT_H
#define LOADLINE_DAEMON_ACCOUNTS_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounts/batch.h"
#include "daemon/accounts/accounts.h"
#include "daemon/jobs/jobs.h"

struct ll_message_sense_card;

/* Counters of the page, and when they were read. borrowed_...: of them, what came while the job borrowed. */
struct ll_account_reading {
	uint64_t used_ns, memory_unit_ms, at_ns;
	uint64_t borrowed_ns, borrowed_unit_ms;
};

/* Energy. all_*: since the account began. The others: what was in a period that is over. used_ns is compared
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
	/* account.c: counted for several jobs, and not subtracted yet; when the used time last grew, or the account
	 * began; used_ns at the last look */
	uint64_t shared_ns, worked_ns, compared, looked_ns;
	uint64_t taken_off_ns; /* of shared_ns: subtracted already, and no longer in it */
	uint32_t card_hash;
	uint64_t granted_ns, idle_held_ns; /* not in a batch yet */
	struct ll_use newest;              /* what ll_account_collect has added last */
	struct ll_account_energy energy;
	/* Set before each reading. is_asleep: its job was recalled (daemon/queue/lend.c): no time is granted */
	bool is_lent, is_asleep;
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

/*
 * account.c: the time for which a card had work of several jobs at once, which their accounts share.
 *
 * While time slices serve several jobs, each of their programs counts its own part (shim/time/kernel_estimates.h). By
 * space (MPS) the card runs kernels of several jobs at the same time, and each job counts all of it. The page of a job
 * says at which moments it had work (struct ll_work_samples, 250 us apart). A moment at which several jobs by space had
 * work counts for each of them in equal parts.
 *
 * All accounts together never use more time of a card than has passed since the first of them came: what is above is
 * taken off in proportion to what each has reported. Programs write these counters, and may write anything.
 */

enum { LL_OVERLAP_CARDS = 128 }; /* the one that was not looked at for longest makes room */

struct ll_overlap_card {
	char uuid[LL_USE_CARD_SIZE];
	uint64_t looked_ns, room_ns; /* room: time that has passed and nobody has used */
};

/* Initially 0. next: the next word of samples to read. */
struct ll_overlap {
	uint64_t next;
	struct ll_overlap_card cards[LL_OVERLAP_CARDS];
};

/* Adds to each account (shared_ns) what it counted beyond its own part since the last call. Call it once a second: the
 * samples reach 1.9 s back. Those that are reported later than 0.4 s after their time are not found to be shared. */
void ll_overlap_read(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns);

/*
 * account.c: divides the energy of a card among the jobs on it.
 *
 * The sensor reads the card's energy counter once in a round. Between two readings the energy counts as spent evenly:
 * the driver does not tell how it went up and down, and tells nothing of the card's programs. A card whose counter is
 * not known, and a MIG slice, which has none, give no job any energy: it stays unknown.
 */

/* What one job did on the card in a period, and its part of the energy. */
struct ll_energy_part {
	uint64_t used_ns, idle_held_ns; /* batch.h */
	uint64_t on_card_ns;            /* while it could use the card */
	double joules;
};

/*
 * Sets the joules of each part. The energy of the time in which the card worked goes to the jobs in proportion to their
 * used time. That of the rest of the time in which a job was on the card goes to those that held it idle, in proportion
 * to that time; if none did, to all in proportion to their time on the card. Returns the rest, of the time without
 * jobs. The sum of all is joules.
 */
double ll_energy_divide(double joules, uint64_t period_ns, struct ll_energy_part *parts, size_t count);

enum { LL_ENERGY_CARDS = 128 }; /* the energy of more cards is unknown */

/* An ended job's account waits so long for the reading that has its last seconds. */
#define LL_ENERGY_WAIT_NS UINT64_C(15000000000)

struct ll_energy_card {
	char uuid[LL_USE_CARD_SIZE];
	uint64_t energy_mj, at_ns; /* the last reading */
};

/* Initially 0. */
struct ll_energy {
	struct ll_energy_card cards[LL_ENERGY_CARDS];
	size_t count;
};

/* Whether the card's counter has been read. */
bool ll_energy_has_card(const struct ll_energy *energy, const char *uuid);

/* Takes a round of the sensor, and adds to the accounts what is new. Read the accounts before. A counter that has gone
 * back begins anew, and nothing is counted for the time before. */
void ll_energy_read(struct ll_energy *energy, const struct ll_message_sense_card *rows, size_t count,
		    struct ll_account *accounts, uint64_t now_ns);

#endif
