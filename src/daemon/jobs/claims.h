/*
 * claims.h - the cards that a job uses, and its processes on each of them.
 *
 * A claim is one process on one card: a slot of the job's page (protocol/page.h). A process can write the whole page of
 * its job. So the daemon keeps its own copy of its decisions, and a wrong value in a page can affect only the job of
 * that page.
 */
#ifndef LOADLINE_DAEMON_JOBS_CLAIMS_H
#define LOADLINE_DAEMON_JOBS_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/arbiter/cards.h"
#include "daemon/jobs/books.h"
#include "daemon/jobs/job_watch.h"
#include "daemon/machine/mismatch.h"
#include "protocol/page.h"

struct ll_server;
struct ll_user;

/* Memory of an ended process that the driver has not freed yet. */
struct ll_leaving {
	struct ll_leaving *next;
	uint32_t units;
	uint64_t until_ns;
};

/* A want in the slot that the daemon has read and not replied to. */
struct ll_want {
	uint32_t serial, units; /* units 0: there is none */
	uint64_t number;        /* grows over all wants of the job on the card */
	bool has_asked;
};

struct ll_job_claim {
	struct ll_job_claim *next; /* of the card; in the order of slots */
	struct ll_job_card *card;
	struct ll_user *user; /* NULL: the claim was adopted with a page, and its process is not known yet */
	struct ll_card_claim *share;
	unsigned slot;
	uint64_t token;
	/* memory.c: */
	uint32_t granted;
	uint32_t answered; /* serial of the last reply */
	uint32_t promised;
	uint64_t promised_until_ns;
	uint32_t asked; /* serial of its own reserve_asked */
	struct ll_want want;
	struct ll_watched_claim watched;
};

struct ll_job_card {
	struct ll_job *job;
	unsigned index; /* in the page and in the orders */
	char uuid[LL_CARD_UUID_SIZE];
	struct ll_card_job *share;
	struct ll_account *account; /* owned by the accounting (accounts/write.h); NULL: none yet */
	struct ll_job_claim *claims;
	unsigned claim_count;
	/* memory.c: */
	struct ll_leaving *leaving; /* in the order of their ends */
	uint64_t last_want;
	uint64_t asking_until_ns; /* end of the present round of requests for reserves; 0: there is none */
	uint64_t due_ns;          /* when to decide about its memory again; 0: only when something changes */
	uint64_t repairs;         /* words of the page that another process had changed */
	struct ll_mismatch mismatch;
	struct ll_watched_card watched;
};

struct ll_job_claims {
	struct ll_job_card *cards[LL_PAGE_CARDS];
	struct ll_job_claim *slots[LL_PAGE_SLOTS];
	unsigned card_count, claim_count;
};

/*
 * Finds the job's card, or adds it. first_card: the UUID of the job's first card, which is added before; empty: none.
 * -ENOSPC: the page has no room for another card. -ENOMEM.
 */
int ll_job_card_get(struct ll_server *server, struct ll_job *job, const char *uuid, const char *first_card,
		    struct ll_job_card **ret_card);

/* Returns NULL if the job has no such card. */
struct ll_job_card *ll_job_card_find(const struct ll_job *job, const char *uuid);

/* What the process of a claim reports about itself. */
struct ll_claim_identity {
	int32_t pid;
	uint64_t namespaces, start_ticks;
};

/* Gives the process a slot. -ENOSPC: the page has no free slot. -ENOMEM. */
int ll_claims_grant(struct ll_server *server, struct ll_job_card *card, struct ll_user *user,
		    const struct ll_claim_identity *identity, struct ll_job_claim **ret_claim);

/* Returns the claim of that slot; NULL: the slot has another token, or none. */
struct ll_job_claim *ll_claims_find(const struct ll_job *job, unsigned slot, uint64_t token);

/* The process has sent WAKE: the daemon reads its slot. */
void ll_claims_wake(struct ll_server *server, struct ll_job_claim *claim);

/* Releases the slot. is_freed: its process has ended, and the driver has its memory back. Otherwise its used memory
 * stays in the books for a moment. */
void ll_claims_end(struct ll_server *server, struct ll_job_claim *claim, bool is_freed);

/* Makes cards and claims from the pages of a former daemon, if there are any. -ENOMEM. */
int ll_claims_adopt(struct ll_server *server, struct ll_job *job);

/* The job has ended: frees all its cards and claims. */
void ll_claims_fini(struct ll_server *server, struct ll_job *job);

struct ll_page_slot *ll_claim_slot(const struct ll_job_claim *claim);
void ll_claim_identify(const struct ll_job_claim *claim, struct ll_claim_identity *ret_identity);

#endif
