/*
 * metrics.h - what a hold does, for Prometheus, over HTTP.
 *
 *   GET /metrics   text format 0.0.4 (metrics_text.h has the names)
 *   GET /healthz   200 "ok" while every card told something within the last 5 s, else 503 with the reason
 *
 * Anything else is 404, other methods than GET and HEAD are 405. libmicrohttpd answers in a thread of its own, which
 * takes no signals; a slow or hostile client holds up nothing but its own connection (32 at most, 10 s each).
 */
#ifndef LOADLINE_CLI_HOLD_METRICS_H
#define LOADLINE_CLI_HOLD_METRICS_H

#include <stddef.h>

#include "hold/config.h"
#include "hold/event.h"

struct ll_err;
struct ll_metrics;

/* Binds address (listen.h) and answers from now on. Errors are ll_listen's, with "metrics: " before. */
int ll_metrics_new(const char *address, enum ll_metric metric, const struct ll_card *const *cards, size_t count,
		   struct ll_metrics **ret_metrics, struct ll_err *err);

/* An event of cards[slot]. */
void ll_metrics_event(struct ll_metrics *metrics, const struct ll_event *event, size_t slot);

unsigned ll_metrics_port(const struct ll_metrics *metrics);

/* Closes the port and every connection. NULL is fine. */
void ll_metrics_free(struct ll_metrics *metrics);

#endif
