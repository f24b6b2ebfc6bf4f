/*
 * metrics.h - serves the state of a hold over HTTP, for Prometheus.
 *
 *   GET /metrics   text format 0.0.4 (metrics_text.h has the names)
 *   GET /healthz   200 "ok" if every card had an event within the last 5 s, otherwise 503 with the reason
 *
 * Other paths get 404, methods other than GET and HEAD get 405. libmicrohttpd answers in a thread of its own, which
 * receives no signals. A slow or hostile client delays only its own connection. There are at most 32 connections, for
 * 10 s each.
 */
#ifndef LOADLINE_CLI_HOLD_METRICS_H
#define LOADLINE_CLI_HOLD_METRICS_H

#include <stddef.h>

#include "hold/config.h"
#include "hold/event.h"

struct ll_err;
struct ll_metrics;

/* Binds address (listen.h) and starts the server. Errors are those of ll_listen, with "metrics: " in front. */
int ll_metrics_new(const char *address, enum ll_metric metric, const struct ll_card *const *cards, size_t count,
		   struct ll_metrics **ret_metrics, struct ll_err *err);

/* Reports an event of cards[slot]. */
void ll_metrics_event(struct ll_metrics *metrics, const struct ll_event *event, size_t slot);

unsigned ll_metrics_port(const struct ll_metrics *metrics);

/* Closes the port and all connections, and frees metrics, which may be NULL. */
void ll_metrics_free(struct ll_metrics *metrics);

#endif
