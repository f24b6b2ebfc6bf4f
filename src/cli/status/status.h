/*
 * status.h - the state of one card at one moment, for `loadline status`, and its output as text and as JSON.
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
	char name[32];         /* the process's name in the kernel; may be empty */
	bool is_mps_server;    /* MPS's server process, in which its clients' work runs */
	bool is_mover;         /* the mover of the card's evictable programs (mover/server.h) */
	char tenant[64]; /* the tenant in which it was started, if it dropped the preloaded library; otherwise empty */
};

/* A value that the card does not tell is NaN, LL_MEMORY_UNKNOWN, or has a false has_… field. */
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
	struct ll_claim_info *claims; /* a claim with a tenant has the tenant's limits, weight and class */
	size_t claim_count;
	struct ll_tenant_info *tenants;
	size_t tenant_count;
	bool has_holder;
	unsigned holder; /* number of the claim whose turn it is */
	struct ll_status_stranger *strangers;
	size_t stranger_count;
	uint64_t now_ns;                      /* time of this reading */
	const struct ll_status_card *earlier; /* the reading of the same card before this one; NULL: none */
};

/*
 * Reads the card and its ledger. A value that the card does not tell stays unknown. An error is the ledger's: then the
 * readings are filled in, and there are no claims. The caller calls fini in each case.
 */
int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, struct ll_err *err);
void ll_status_card_fini(struct ll_status_card *status);

/* Reads claims, tenants and the turn from the ledger. ll_status_card_init calls it. */
int ll_status_read_ledger(struct ll_status_card *status, struct ll_err *err);

/* Finds the card's processes without a claim. ll_status_card_init calls it after it has read the ledger. */
void ll_status_find_strangers(struct ll_status_card *status);

/* Returns the bytes that the card itself counts for the claim's process (NVML). LL_MEMORY_UNKNOWN: the card does not
 * tell, or the process ids cannot be compared. */
uint64_t ll_status_card_bytes(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* Where the memory of an evictable program is. Memory that is away stays charged (ledger/memory.h). */
struct ll_status_residency {
	uint64_t resident_bytes;  /* on the card */
	uint64_t evictable_bytes; /* what can be moved, wherever it is */
	uint64_t pinned_bytes;    /* what cannot be moved: contexts, arrays, managed memory and their like */
};

/* Returns false if the program is not evictable. */
bool ll_status_residency(const struct ll_claim_info *claim, struct ll_status_residency *ret_residency);

/* Returns the claim's state in words: "running", "stopped", "evicted"; "evicted (checkpoint)" and "suspended" if the
 * driver's checkpoint did it. A program that it stopped neither waits for a turn nor has one. */
const char *ll_status_state(const struct ll_claim_info *claim);

/* Returns the claim's tenant. NULL: the claim is a hold, or the tenant has ended meanwhile. */
const struct ll_tenant_info *ll_status_tenant(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* How the output looks. */
struct ll_status_style {
	bool is_json, is_long;
};

/* The share of the card's time that a tenant or a synthetic load had since the earlier reading. The functions return
 * false if there is no earlier reading, or the tenant or load is not in it. */
struct ll_status_recent {
	double percent, seconds;
};
bool ll_status_recent_tenant(const struct ll_status_card *status, const struct ll_tenant_info *tenant,
			     struct ll_status_recent *ret_recent);
bool ll_status_recent_hold(const struct ll_status_card *status, const struct ll_claim_info *hold,
			   struct ll_status_recent *ret_recent);

/* *ret_seconds: for how long a process of the tenant has had no claim, and was not held to the limits (doc/run.md).
 * Returns false if all of its processes have claims. */
bool ll_status_lost(const struct ll_status_card *status, const struct ll_tenant_info *tenant, double *ret_seconds);

/* Whether the claim has work and it is another claim's turn. *ret_holder: the number of that claim. */
bool ll_status_waits(const struct ll_status_card *status, const struct ll_claim_info *claim, unsigned *ret_holder);

/* Whether it is the claim's turn. */
bool ll_status_has_turn(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* Whether the claim's tenant has used up its share of time. */
bool ll_status_is_over_cap(const struct ll_status_card *status, const struct ll_claim_info *claim);

/* Prints one object for the card, then one for each claim, each tenant without claims, and each process without a
 * claim. */
int ll_status_print_json(const struct ll_status_card *status, struct ll_err *err);

/* Adds long lines: one for each claim, each tenant without claims, and each process without a claim. */
void ll_status_add_claims(struct ll_strbuf *text, const struct ll_status_card *status);

/*
 * Adds a table with a row for each card, and one with a short row for each claim, each tenant without claims and each
 * process without a claim. columns: width of the terminal (table.h). Names and commands are cut to fit it, numbers and
 * "simulated" never. 0: nothing is cut. is_long: the long lines of a card stand below its row instead.
 */
void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns,
			bool is_long);

/* Adds the second of these tables. */
void ll_status_add_rows(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns);

enum { LL_STATUS_COMMAND_SIZE = 512 };

/* Who a process is; a text is empty if /proc does not tell. */
struct ll_status_process {
	char user[64];
	char command[LL_STATUS_COMMAND_SIZE]; /* its words, perhaps cut; the program without its folder */
};
void ll_status_process_read(pid_t pid, struct ll_status_process *ret_process);

/* Reads the beginning of /proc/PID/NAME, and ends it by a NUL. Returns its length; -1: it cannot be read. */
ssize_t ll_status_read_proc(pid_t pid, const char *name, char *text, size_t size);

/* Returns whether standard output is a terminal, and writes its columns and rows, 0 if it is none. */
bool ll_status_terminal(unsigned *ret_columns, unsigned *ret_rows);

/*
 * Prints a reading each every_ns until SIGINT or SIGTERM, and then returns 0. On a terminal each reading replaces the
 * one before. Otherwise an empty line separates them. An error of a ledger ends it.
 */
int ll_status_watch(const struct ll_card *const *cards, size_t count, uint64_t every_ns,
		    const struct ll_status_style *style, struct ll_err *err);

#endif
