/*
 * virtual_time.h - how much of a tenant's past counts when the card is shared. Private to src/ledger.
 *
 * A tenant's virtual time is the GPU time that it was charged, divided by its weight. Among tenants of one class the
 * one with the least virtual time has the card next (control/visits.h). Time in which a tenant did not compete with
 * others, or did not use its share, must not count: the tenant would be kept from the card for as long, or would keep
 * the others from it.
 *
 * Each function writes the virtual time of the tenant that it is called for, which need not be the caller's. `scan`
 * holds the other tenants that want the card. Times are CLOCK_MONOTONIC. No function waits.
 */
#ifndef LOADLINE_LEDGER_VIRTUAL_TIME_H
#define LOADLINE_LEDGER_VIRTUAL_TIME_H

#include <stdint.h>

#include "ledger/contender.h"
#include "ledger/layout.h"

/* The tenant comes back from a pause. It is at most LL_VISIT_LAG_NS of its own time behind the others of its class that
 * want the card. If there are none, the past counts for nobody: it is at most as much behind all others of its class.
 */
void ll_virtual_time_come_back(struct ll_ledger_file *file, struct ll_ledger_tenant *tenant,
			       const struct ll_contender_scan *scan, uint64_t now_ns);

/* The tenant does not use its share: it has no work, or its cap holds it back. It gathers no credit: from here on it is
 * at most LL_VISIT_LAG_NS of its own time behind the others of its class. */
void ll_virtual_time_limit_credit(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan,
				  uint64_t now_ns);

/* Time slices serve all alike, and what is charged there are estimates. The tenant gets at most LL_VISIT_LAG_NS of its
 * own time ahead of the others, so that it does not wait for them when visits begin. */
void ll_virtual_time_forgive(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns);

/* The tenant of this row (1 and more) has come into another class. What it had or lacked in the old class does not
 * count: it is at most LL_VISIT_LAG_NS of its own time ahead of the others of its class, or behind them. */
void ll_virtual_time_enter_class(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns);

/* A damaged virtual time would keep its tenant from the card until the others had as much: the tenant begins where they
 * are. */
void ll_virtual_time_mend(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns);

#endif
