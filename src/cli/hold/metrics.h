/*
 * metrics.h - serves the state of a hold over HTTP, for Prometheus.
 *
 * src/serve/http.h says what is served; metrics_text.h has the names. /healthz is 200 "ok" if every card had an event
 * within the last 5 s, otherwise 503 with the reason. There are at most 32 connections.
 */
#ifndef LOADLINE_CLI_HOLD_METRICS_H
#define LOADLINE_CLI_HOLD_METRICS_H

#include <stddef.h>

#include "hold/config.h"
#include "hold/event.h"

struct ll_err;
struct ll_metrics;

/* Binds address (serve/listen.h) and starts the server. Errors are those of ll_listen, with "metrics: " in front. */
int ll_metrics_new(const char *address, enum ll_metric metric, const struct ll_card *const *cards, size_t count,
		   struct ll_metrics **ret_metrics, struct ll_err *err);

/* Reports an event of cards[slot]. */
void ll_metrics_event(struct ll_metrics *metrics, const struct ll_event *event, size_t slot);

unsigned ll_metrics_port(const struct ll_metrics *metrics);

/* Closes the port and all connections, and frees metrics, which may be NULL. */
void ll_metrics_free(struct ll_metrics *metrics);

#endif
