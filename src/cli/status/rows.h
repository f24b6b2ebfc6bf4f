/*
 * rows.h - the table of claims: a row for each claim, each job without claims and each process without a claim.
 */
#ifndef LOADLINE_CLI_STATUS_ROWS_H
#define LOADLINE_CLI_STATUS_ROWS_H

#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/status/status.h"

enum { LL_STATUS_CELL_SIZE = 128 };

/* The tenant of a synthetic load, as the table shows it. */
#define LL_STATUS_SYNTHETIC N_("synthetic")

/* One row. What is unknown, or does not apply, is empty. The pointers are never NULL, but for host. */
struct ll_status_row {
	const char *host; /* NULL: the table is of one machine */
	char claim[LL_STATUS_CELL_SIZE], pid[LL_STATUS_CELL_SIZE];
	uint64_t job_number; /* as `queue` and `history` have it; 0: none */
	const char *user, *command, *tenant;
	const char *configured_tenant; /* put before the tenant's name if that is another one; NULL: none */
	char state[LL_STATUS_CELL_SIZE];
	uint64_t age_ns; /* LL_AGE_UNKNOWN */
	bool has_last;
	struct ll_status_last last;
	uint64_t memory_bytes, limit_bytes; /* LL_MEMORY_UNKNOWN; 0: no limit */
	double seconds;                     /* NaN */
	bool has_share;
	double share_percent; /* of the card's time: since the earlier reading, or lately */
	double cap_percent;   /* of the card's time, or by space of its SMs; 0: none */
	bool is_by_space;
	const char *class; /* NULL: normal */
};

/* Makes the table with its headings. The caller frees it by ll_table_fini. */
void ll_status_rows_init(struct ll_table *table, bool has_host);

/* Adds the row. Its host is NULL if, and only if, the table has no hosts. */
void ll_status_row_add(struct ll_table *table, const struct ll_status_row *row);

#endif
