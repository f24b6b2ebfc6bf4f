/*
 * tenant_rows.h - finding, making and clearing tenants' rows. Private to src/ledger; who may when is in layout.h.
 */
#ifndef LOADLINE_LEDGER_TENANT_ROWS_H
#define LOADLINE_LEDGER_TENANT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

struct ll_ledger;
struct ll_ledger_file;
struct ll_tenant_wish;

/* How many slots name the row. With is_claim_only those whose claims are published, not those being taken or cleared.
 */
unsigned ll_tenant_rows_claims(const struct ll_ledger_file *file, unsigned row, bool is_claim_only);

/* The row with this id; LL_LEDGER_TENANTS when there is none, and the first free row for id 0. */
unsigned ll_tenant_rows_find(const struct ll_ledger_file *file, uint64_t id);

/* Writes a free row. The caller has LL_LOCK_JOIN. */
void ll_tenant_rows_make(struct ll_ledger_file *file, unsigned row, const struct ll_tenant_wish *wish);

/* Clears the dead rows, unless somebody else is making or clearing some now. The caller has the ledger's mutex, and its
 * scan description is open. */
void ll_tenant_rows_sweep(struct ll_ledger *ledger);

#endif
