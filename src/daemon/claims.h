/*
 * claims.h - the cards that a job uses, and its processes on each of them.
 *
 * A claim is one process on one card: a slot of the job's page (protocol/page.h). A process can write the whole page of
 * its job, so the daemon has its own copy of all that it decided there, and nothing that is read from a page is
 * believed beyond what it does to its own job.
 */
#ifndef LOADLINE_DAEMON_CLAIMS_H
#define LOADLINE_DAEMON_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/books.h"
#include "daemon/cards.h"
#include "protocol/page.h"

struct ll_server;
struct ll_user;

/* What an ended process had, until the driver has given it back. */
struct ll_leaving {
	struct ll_leaving *next;
	uint32_t units;
	uint64_t until_ns;
};

/* A want in the slot, which the daemon has seen and not answered. */
struct ll_want {
	uint32_t serial, units; /* units 0: there is none */
	uint64_t number;        /* grows over all wants of the job on the card */
	bool has_asked;
};

struct ll_job_claim {
	struct ll_job_claim *next; /* of the card; in the order of slots */
	struct ll_job_card *card;
	struct ll_user *user; /* NULL: it came with an adopted page, and its process is not known yet */
	struct ll_card_claim *share;
	unsigned slot;
	uint64_t token;
	/* memory.c: */
	uint32_t granted;
	uint32_t answered; /* serial of the last answer */
	uint32_t promised;
	uint64_t promised_until_ns;
	uint32_t asked; /* serial of its own reserve_asked */
	struct ll_want want;
};

struct ll_job_card {
	struct ll_job *job;
	unsigned index; /* in the page and in the orders */
	char uuid[LL_CARD_UUID_SIZE];
	struct ll_card_job *share;
	struct ll_job_claim *claims;
	unsigned claim_count;
	/* memory.c: */
	struct ll_leaving *leaving; /* in the order of their ends */
	uint64_t last_want;
	uint64_t asking_until_ns; /* a round of questions for reserves; 0: none */
	uint64_t due_ns;          /* when it is to be looked at again; 0: not by time */
	uint64_t repairs;         /* words of the page that somebody else had changed */
};

struct ll_job_claims {
	struct ll_job_card *cards[LL_PAGE_CARDS];
	struct ll_job_claim *slots[LL_PAGE_SLOTS];
	unsigned card_count, claim_count;
};

/*
 * Finds the job's card, or adds it. first_card: the UUID of the job's first card, which gets its index before; empty:
 * none. -ENOSPC: the job has as many cards as a page can have. -ENOMEM.
 */
int ll_job_card_get(struct ll_server *server, struct ll_job *job, const char *uuid, const char *first_card,
		    struct ll_job_card **ret_card);

/* NULL: the job has no such card. */
struct ll_job_card *ll_job_card_find(const struct ll_job *job, const char *uuid);

/* What the process of a claim says of itself. */
struct ll_claim_identity {
	int32_t pid;
	uint64_t namespaces, start_ticks;
};

/* Gives the process a slot. -ENOSPC: the page has no slot left. -ENOMEM. */
int ll_claims_grant(struct ll_server *server, struct ll_job_card *card, struct ll_user *user,
		    const struct ll_claim_identity *identity, struct ll_job_claim **ret_claim);

/* Gives the claim of that slot. NULL: the slot has another token, or none. */
struct ll_job_claim *ll_claims_find(const struct ll_job *job, unsigned slot, uint64_t token);

/* The process rang: something in its slot is to be looked at. */
void ll_claims_wake(struct ll_server *server, struct ll_job_claim *claim);

/* Takes the slot away. What was used in it stays in the books for a moment. */
void ll_claims_end(struct ll_server *server, struct ll_job_claim *claim);

/* Makes cards and claims of what a former daemon left in the pages, if it did. -ENOMEM. */
int ll_claims_adopt(struct ll_server *server, struct ll_job *job);

/* The job has ended: all of its cards and claims. */
void ll_claims_fini(struct ll_server *server, struct ll_job *job);

struct ll_page_slot *ll_claim_slot(const struct ll_job_claim *claim);
void ll_claim_identify(const struct ll_job_claim *claim, struct ll_claim_identity *ret_identity);

#endif
