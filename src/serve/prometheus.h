/*
 * prometheus.h - writes Prometheus' text format (0.0.4).
 *
 *     LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
 *     ll_prometheus_head(&text, "loadline_up", "gauge", "1 if loadlined replies.");
 *     ll_prometheus_label(&labels, "gpu", "0");
 *     ll_prometheus_sample(&text, "loadline_up", labels.buf, 1);
 *
 * All samples of a family follow its head.
 */
#ifndef LOADLINE_SERVE_PROMETHEUS_H
#define LOADLINE_SERVE_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define LL_PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Adds the lines HELP and TYPE. type: "gauge" or "counter". */
void ll_prometheus_head(struct ll_strbuf *text, const char *name, const char *type, const char *help);

/* Adds name="value", with a comma before it if labels is not empty. Backslash, quote and newline are escaped. */
void ll_prometheus_label(struct ll_strbuf *labels, const char *name, const char *value);

/* Adds a sample. labels: made by ll_prometheus_label; empty: none. */
void ll_prometheus_sample(struct ll_strbuf *text, const char *name, const char *labels, double value);

/* Rows, and what makes the labels of one. */
struct ll_prometheus_rows {
	const void *rows;
	size_t count;
	void (*label)(struct ll_strbuf *labels, const void *row);
};

/* Adds a family with a sample for each row whose value is known. value: an expression of `row`, which points to a
 * `type_of_row`; NAN: the row has no sample. A family without samples is left out. */
#define LL_PROMETHEUS_FAMILY(text, table, type_of_row, name, type, help, value)                                        \
	do {                                                                                                           \
		bool has_head_ = false;                                                                                \
		const type_of_row *row = (table)->rows;                                                                \
		for (const type_of_row *end_ = row + (table)->count; row < end_; row++)                                \
			ll_prometheus_row(text, table, row, &has_head_, name, type, help, value);                      \
	} while (0)

/* Adds the sample of one row, after the head if there is none yet. */
void ll_prometheus_row(struct ll_strbuf *text, const struct ll_prometheus_rows *rows, const void *row, bool *has_head,
		       const char *name, const char *type, const char *help, double value);

#endif
