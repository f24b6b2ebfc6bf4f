/*
 * status.h - what `loadline status` knows about one card at one moment, and its two ways of telling it.
 */
#ifndef LOADLINE_CLI_STATUS_STATUS_H
#define LOADLINE_CLI_STATUS_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "driver/readings.h"
#include "ledger/ledger.h"
#include "ledger/tenant.h"

/* A process on the card that has no claim. */
struct ll_status_stranger {
	pid_t pid;
	uint64_t memory_bytes; /* LL_MEMORY_UNKNOWN */
	char name[32];         /* as the kernel calls it; may be empty */
	bool is_mps_server;    /* MPS's own process: its clients are what works on the card */
	char tenant[64];       /* the tenant it was started in: it dropped what was preloaded; else empty */
};

/* NaN, LL_MEMORY_UNKNOWN or false in has_… where the card does not tell. */
struct ll_status_card {
	const struct ll_card *card;
	bool is_simulated;
	double util_percent;
	bool has_memory;
	struct ll_memory memory;
	double power_watts, power_limit_watts;
	double energy_joules;
	double celsius, slowdown_celsius;
	bool has_clocks;
	struct ll_clocks clocks;
	bool has_slowdown;
	unsigned slowdown;
	bool has_mode;
	enum ll_compute_mode mode;
	struct ll_process_list processes;
	bool has_processes;
	struct ll_claim_info *claims; /* limits, weight and class are their tenants', where they have one */
	size_t claim_count;
	struct ll_tenant_info *tenants;
	size_t tenant_count;
	bool has_holder;
	unsigned holder; /* the claim whose turn it is */
	struct ll_status_stranger *strangers;
	size_t stranger_count;
	uint64_t now_ns;                      /* when it was read */
	const struct ll_status_card *earlier; /* the same card's reading before this one; NULL: there is none */
};

/*
 * Asks the card and its ledger. What the card does not tell stays unknown; an error is the ledger's (readings
 * are filled all the same, and there are no claims). fini frees what it has.
 */
int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, struct ll_err *err);
void ll_status_card_fini(struct ll_status_card *status);

/* Reads what the ledger says into status: claims, tenants, the turn. Part of init. */
int ll_status_read_ledger(struct ll_status_card *status, struct ll_err *err);

/* Finds the strangers among the card's processes. Part of init, after the ledger. */
void ll_status_find_strangers(struct ll_status_card *status);

/* What the card itself counts for the claim's process (NVML); LL_MEMORY_UNKNOWN where it does not tell, or process ids
 * cannot be compared. */
uint64_t ll_status_card_bytes(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* The claim's tenant; NULL for a hold, and where the row went away meanwhile. */
const struct ll_tenant_info *ll_status_tenant(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* What somebody had of the card's time since the earlier reading. False: there is none, or he is newer than it. */
struct ll_status_recent {
	double percent, seconds;
};
bool ll_status_recent_tenant(const struct ll_status_card *status, const struct ll_tenant_info *tenant,
			     struct ll_status_recent *ret_recent);
bool ll_status_recent_hold(const struct ll_status_card *status, const struct ll_claim_info *hold,
			   struct ll_status_recent *ret_recent);

/* For how long a process of the tenant has had no claim, and was not held to the limits (doc/run.md). False: none is
 * without. */
bool ll_status_lost(const struct ll_status_card *status, const struct ll_tenant_info *tenant, double *ret_seconds);

/* The claim has work and it is another's turn: *ret_holder's. */
bool ll_status_waits(const struct ll_status_card *status, const struct ll_claim_info *claim, unsigned *ret_holder);

/* It has used up its share of time. */
bool ll_status_is_over_cap(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* One object for the card, then one for each claim, each tenant without claims, each stranger. */
int ll_status_print_json(const struct ll_status_card *status, struct ll_err *err);

/* What stands below a card: its claims, tenants without claims, strangers, a line each. */
void ll_status_add_claims(struct ll_strbuf *text, const struct ll_status_card *status);

/*
 * A table with a line for each card, and its claims below it. columns: of the terminal; the table's names and modes are
 * cut to fit, its numbers never. 0: as wide as it comes.
 */
void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns);

/* Columns and rows of the terminal that standard output is; false: it is none, and both are 0. */
bool ll_status_terminal(unsigned *ret_columns, unsigned *ret_rows);

/*
 * A reading every every_ns until SIGINT or SIGTERM, which is a success. On a terminal each is drawn over the one
 * before; else they follow one another, an empty line between. The error of a ledger ends it.
 */
int ll_status_watch(const struct ll_card *const *cards, size_t count, uint64_t every_ns, bool is_json,
		    struct ll_err *err);

#endif
