/*
 * parts.h - what the files of `loadline report` share: where the sums come from, and the forms in which they are
 * printed.
 */
#ifndef LOADLINE_CLI_REPORT_PARTS_H
#define LOADLINE_CLI_REPORT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "accounts/report.h"
#include "protocol/client.h"

struct ll_err;
struct ll_strbuf;

/* The file of the machine's own loadlined. */
#define LL_REPORT_DATABASE "/var/lib/loadline/accounts.db"

/* What is asked of each source. */
struct ll_report_period {
	int64_t since_s, until_s; /* seconds since 1970 */
};

/* Files, or loadlined. */
struct ll_report_source {
	char **files; /* NULL-ended */
	int file_count;
	struct ll_client client;
	struct ll_use_prices prices; /* of loadlined; of files: of this machine's configuration */
	bool is_of_one_user;         /* loadlined gave what this user used, and no more */
};

/* Connects to loadlined, unless there are files. Root reads the machine's own file if no loadlined serves. The caller
 * calls close in each case. */
int ll_report_source_open(struct ll_report_source *source, int count, char **files, struct ll_err *err);
void ll_report_source_close(struct ll_report_source *source);

/* Reads the sums of all sources, sorted. The caller calls ll_use_report_fini in each case. */
int ll_report_source_read(struct ll_report_source *source, const struct ll_report_period *period, enum ll_use_by by,
			  struct ll_use_report *ret_report, struct ll_err *err);

/* "tenant", "user", ... in the order of enum ll_use_by, NULL-ended: words of --by, keys of JSON and CSV. */
extern const char *const ll_report_by_words[];

/* The amounts of a sum, in the order in which each form has them. key: of JSON and CSV, in seconds, byte-seconds and
 * joules. heading: of tables, where it is in units of so many of these. */
struct ll_report_amount {
	const char *key, *heading;
	double unit;
	size_t offset; /* private */
};
enum { LL_REPORT_AMOUNTS = 8 };
extern const struct ll_report_amount ll_report_amounts[LL_REPORT_AMOUNTS];
double ll_report_amount(const struct ll_report_amount *amount, const struct ll_use_sum *sum);

/* The key as people read it: a user's name, "(none)" for an empty project. */
void ll_report_add_key(struct ll_strbuf *out, enum ll_use_by by, const struct ll_use_sum *sum);

/* Sums of all rows. The key is empty. */
void ll_report_total(const struct ll_use_report *report, struct ll_use_sum *ret_total);

/* prices: those of the source. Without any there is no cost. */
void ll_report_add_text(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
			const struct ll_use_prices *prices, unsigned columns);
void ll_report_add_csv(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
		       const struct ll_use_prices *prices);
int ll_report_print_json(const struct ll_use_report *report, enum ll_use_by by, const struct ll_use_prices *prices,
			 struct ll_err *err);

/* Reads --since and --until: each a moment of this machine's time zone, or so long before now. until NULL: not given.
 * by_hours: from the beginning of the hour on, as accounts are kept. -EINVAL. */
int ll_report_parse_period(const char *since, const char *until, bool by_hours, struct ll_report_period *ret_period,
			   struct ll_err *err);

/* "cost", or "cost CNY". */
void ll_report_add_cost_heading(struct ll_strbuf *out, const struct ll_use_prices *prices);

/* Adds a page of HTML, complete in itself: pictures by day and by tenant, and a table for each way to sum. */
int ll_report_add_html(struct ll_strbuf *out, struct ll_report_source *source, const struct ll_report_period *period,
		       struct ll_err *err);

#endif
