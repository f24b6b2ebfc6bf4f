/*
 * tenant.h - what one `loadline run` and all its descendants share on a card: limits, and the accounts against them.
 *
 * A tenant is a row of the ledger. `run` takes the row before it becomes the command. It keeps the row's lock on a
 * description that every descendant inherits, so the tenant lives as long as its process tree. A program without that
 * descriptor keeps the tenant alive by its claim. A process that has joined the row keeps it alive while it has the
 * ledger open, so the row does not end before the process has taken a claim. The lock is shared: nobody owns a row.
 * When all are gone, the next process that looks clears the row. A process that comes later with the same id makes the
 * row anew from its wish, because the environment of the process tree still has the limits.
 *
 * Any process that may write the file may change limits at any time (`loadline set`). A limit is a single atomic word.
 * It is in force at the next reservation, and at the next look at the gate.
 */
#ifndef LOADLINE_LEDGER_TENANT_H
#define LOADLINE_LEDGER_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"

struct ll_run_settings;

struct ll_tenant_wish {
	uint64_t id;      /* not 0; unique on this machine, made by whoever starts the tenant */
	const char *name; /* cut at 63 bytes */
	enum ll_priority priority;
	uint64_t memory_limit_bytes;   /* 0: none */
	uint64_t memory_request_bytes; /* promised to it on the card; 0: nothing */
	uint64_t promisable_bytes;     /* a new row is refused if all requests together are more; 0: it never is */
	unsigned compute_cap_permille; /* of GPU time; 0: none */
	unsigned weight_permille;      /* 0 is taken as 1000 */
	unsigned space_permille;       /* of the SMs, as a client of MPS; 0: it shares the card by time */
};

/* A copy of one row. */
struct ll_tenant_info {
	unsigned row;
	uint64_t id;
	char name[64];
	enum ll_priority priority;
	uint64_t memory_limit_bytes, memory_used_bytes, memory_request_bytes;
	unsigned compute_cap_permille, weight_permille, space_permille;
	uint64_t gpu_time_ns, virtual_time_ns;
	int64_t tokens_ns;
	uint64_t lost_since_ns; /* CLOCK_MONOTONIC since when a process of it has no claim, and is not held to the
				   limits; 0: none is without */
	bool is_held;           /* it waits for the card, because another tenant has the turn */
	bool is_lock_held;      /* its process tree holds the row's lock */
	unsigned claims;        /* live ones */
};

/*
 * Joins the row with this id. If there is none, it is made from the wish. An existing row keeps its own limits. The row
 * stays until the ledger is closed. A forked child joins for itself. -ENOSPC: all 128 rows are live. -EDQUOT: the
 * requests of all tenants would be more than promisable_bytes; the text says how much is left. -ETIMEDOUT: a process
 * was stopped while it made or cleared a row. Some 10 µs.
 */
int ll_tenant_join(struct ll_ledger *ledger, const struct ll_tenant_wish *wish, unsigned *ret_row, struct ll_err *err);

/* What a tenant of these settings wishes. Its name is the settings'. promisable_bytes is 0. */
struct ll_tenant_wish ll_run_settings_wish(const struct ll_run_settings *settings);

/*
 * Takes the row's lock on a new description that stays open over exec (no O_CLOEXEC). Its descriptor is 100 or higher,
 * if the limit of descriptors allows it, and is the caller's. -EINVAL: there is no such row.
 */
int ll_tenant_keep(struct ll_ledger *ledger, unsigned row, int *ret_fd, struct ll_err *err);

/* Copies the live rows in row order, at most capacity; returns how many there are. Dead ones are cleared first. */
size_t ll_tenant_list(struct ll_ledger *ledger, struct ll_tenant_info *tenants, size_t capacity);

/* Copies one row. False: it is free. */
bool ll_tenant_read(struct ll_ledger *ledger, unsigned row, struct ll_tenant_info *ret_info);

/*
 * Gives the memory limit in the row with this id, for a process that has no claim. 0: there is none. False: there is no
 * such row. It looks at each row, and needs no lock and no system call.
 */
bool ll_tenant_memory_limit(struct ll_ledger *ledger, uint64_t id, uint64_t *ret_bytes);

/* Whether it is a client of MPS: its share of the SMs cannot be set while it runs. */
bool ll_tenant_shares_by_space(const struct ll_ledger *ledger, unsigned row);

/*
 * note_lost: a process of the tenant has no claim, and nothing holds it to the limits. The process repeats the call at
 * least each second while that is so. note_had: it has a claim again. Both do nothing if the tenant has no row any
 * more.
 */
void ll_tenant_note_lost(struct ll_ledger *ledger, uint64_t id, uint64_t now_ns);
void ll_tenant_note_had(struct ll_ledger *ledger, uint64_t id);

/* Single values of a row, for `loadline set`. 0 takes a limit away. now_ns: CLOCK_MONOTONIC. What the tenant had or
 * lacked in its old class does not count in the new one (virtual_time.h). */
void ll_tenant_set_memory_limit(struct ll_ledger *ledger, unsigned row, uint64_t bytes);
/*
 * The same for the memory that the tenant is promised. -EDQUOT: with the requests of the card's other tenants it would
 * be more than promisable_bytes (0: any sum is allowed), and nothing changes. -ETIMEDOUT, -EMFILE: as ll_tenant_join.
 */
int ll_tenant_set_memory_request(struct ll_ledger *ledger, unsigned row, uint64_t bytes, uint64_t promisable_bytes,
				 struct ll_err *err);
void ll_tenant_set_compute_cap(struct ll_ledger *ledger, unsigned row, unsigned permille);
void ll_tenant_set_weight(struct ll_ledger *ledger, unsigned row, unsigned permille);
void ll_tenant_set_priority(struct ll_ledger *ledger, unsigned row, enum ll_priority priority, uint64_t now_ns);

#endif
