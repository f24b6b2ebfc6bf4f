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

#include <stddef.h>

#include "base/strbuf.h"

#define LL_PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Adds the lines HELP and TYPE. type: "gauge" or "counter". */
void ll_prometheus_head(struct ll_strbuf *text, const char *name, const char *type, const char *help);

/* Adds name="value", with a comma before it if labels is not empty. Backslash, quote and newline are escaped. */
void ll_prometheus_label(struct ll_strbuf *labels, const char *name, const char *value);

/* Adds a sample. labels: made by ll_prometheus_label; empty: none. */
void ll_prometheus_sample(struct ll_strbuf *text, const char *name, const char *labels, double value);

/* A family whose samples come from rows of one kind. */
struct ll_prometheus_family {
	const char *name, *type, *help;
	double (*value)(const void *row); /* NAN: the row has no sample */
};

/* Rows, each of so many bytes, and what makes the labels of one. */
struct ll_prometheus_rows {
	const void *rows;
	size_t count, size;
	void (*label)(struct ll_strbuf *labels, const void *row);
};

/* Adds the families, each with a sample for each row that has a value. A family without samples is left out. */
void ll_prometheus_families(struct ll_strbuf *text, const struct ll_prometheus_family *families, size_t count,
			    const struct ll_prometheus_rows *rows);

#endif
