/*
 * message_metrics.h - the reply to LL_MESSAGE_METRICS (message.h): sums for a program that serves them to everybody who
 * asks (src/exporter). They are about tenants and the machine, not about users or programs.
 *
 * POLICY_TENANT and POLICY_PART come first, for each configured tenant; then METRICS_TENANT for each configured tenant,
 * and for those that were configured when they used a card; METRICS_END is the last one.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_METRICS_H
#define LOADLINE_PROTOCOL_MESSAGE_METRICS_H

#include <stdbool.h>

#include "protocol/message_header.h"

enum { LL_METRICS_ADDRESS_SIZE = 128 };

/* The sums of use grow from 0 at loadlined's start, each 9 s, as the rows of the accounts are made; 0 if there are no
 * accounts. */
struct ll_message_metrics_tenant {
	struct ll_message_header header;
	double granted_s, used_s, idle_held_s, memory_byte_s; /* accounts/batch.h */
	uint64_t memory_bytes;                                /* charged to its jobs now */
	uint64_t oldest_wait_s;    /* how long the first of its jobs in the queue has waited; 0: none waits */
	uint32_t running, waiting; /* jobs */
	char name[LL_NAME_SIZE];   /* empty: jobs of no configured tenant */
};

enum ll_metrics_accounts {
	LL_METRICS_ACCOUNTS_NONE,    /* loadlined keeps none */
	LL_METRICS_ACCOUNTS_GOOD,    /* the last write succeeded, or none was needed yet */
	LL_METRICS_ACCOUNTS_FAILING, /* the last write failed; rows are kept in memory */
	LL_METRICS_ACCOUNTS_OFF,     /* a newer loadline's file: nothing is counted */
};

struct ll_message_metrics_end {
	struct ll_message_header header;
	uint64_t out_of_use; /* a bit for each index of a card in which no job may start: drained, or in maintenance */
	uint64_t rows, lost_rows; /* of the accounts: not written yet; lost since loadlined's start, for want of room */
	uint32_t accounts;        /* enum ll_metrics_accounts */
	uint32_t has_queue;
	uint32_t hides_others;                 /* `visibility: {others: nothing}` */
	uint32_t ungoverned;                   /* processes on the cards that belong to no job */
	char address[LL_METRICS_ADDRESS_SIZE]; /* serve.metrics; empty: not configured, or longer */
};

bool ll_metrics_tenant_is_valid(const struct ll_message_metrics_tenant *row);
bool ll_metrics_end_is_valid(const struct ll_message_metrics_end *end);

#endif
