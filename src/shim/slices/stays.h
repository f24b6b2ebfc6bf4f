/*
 * stays.h - when the process's contexts were on a card beside other work, by the driver's trace (slices/trace.h): what
 * the process is charged for.
 *
 * The trace is opened when other work first shares the card, and read each LL_STAYS_READ_NS while some does. While it
 * is read, the claim knows which times the contexts were off the card (ll_port_note_away), for whatever reason, and up
 * to when that is known. If the driver gives no trace, the claim says so by ll_port_note_traced(claim, 0), and the time
 * is divided by estimates (rules/share/slices.h).
 */
#ifndef LOADLINE_SHIM_SLICES_STAYS_H
#define LOADLINE_SHIM_SLICES_STAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/link/port.h"
#include "slices/groups.h"
#include "slices/trace.h"

#define LL_STAYS_READ_NS UINT64_C(20000000)

/* All 0 at first. */
struct ll_stays {
	struct ll_trace *trace;
	bool has_failed;
	bool has_own;        /* records of own contexts have come; before, their numbers may be unknown */
	uint64_t company_ns; /* when other work last shared the card; 0: never */
	uint64_t away_ns;    /* since when the contexts are off the card; 0: they are on it */
	/* the card's clock minus CLOCK_MONOTONIC: no record can be newer than the moment at which it is read */
	bool has_offset;
	int64_t offset_ns;
	uint64_t offset_at_ns;
};

/* Whether the context with that number is one of the process's. */
typedef bool ll_stays_is_own_fn(const void *of, uint32_t context);

/* Reads what has come. has_company: other work shares the card now. Returns whether it wants to be called again after
 * LL_STAYS_READ_NS. */
bool ll_stays_follow(struct ll_stays *stays, ll_ioctl_fn next, const char *uuid, struct ll_claim *claim,
		     bool has_company, ll_stays_is_own_fn *is_own, const void *of);

#endif
