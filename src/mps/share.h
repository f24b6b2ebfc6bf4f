/*
 * share.h - how many SMs a percentage of active threads gives a client. Pure.
 *
 * Measured on an H200 with driver 580 (doc/facts.md, "MPS"): a percentage is rounded down to whole pairs of SMs, which
 * are the card's TPCs, and no client gets fewer than eight. Another generation may have another floor.
 */
#ifndef LOADLINE_MPS_SHARE_H
#define LOADLINE_MPS_SHARE_H

#include <stdbool.h>

struct ll_strbuf;

enum { LL_MPS_LEAST_SMS = 8 };

/* sm_count: the card's. */
unsigned ll_mps_share_sms(unsigned sm_count, double percent);

/* Whether a client gets more than the percentage says. */
bool ll_mps_share_is_floor(unsigned sm_count, double percent);

/* Adds "25 % of card 0's 132 SMs: 32 for each client, for MPS rounds down to pairs of SMs". */
void ll_mps_share_add(struct ll_strbuf *out, const char *label, unsigned sm_count, double percent);

#endif
