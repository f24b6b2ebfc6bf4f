/*
 * turn_act.h - what a process that decides on the turn does to others. Private to src/ledger.
 *
 * turn.c reads the contenders, and control/turns.h and control/visits.h decide. Here is what one process then writes in
 * the page for others: the turn's word, the gates in their slots, and the words on the card of their tenants. Each
 * function is one act on the page, so that another party may do it for all.
 *
 * index: of a claim's slot. turn: the word that the decision was made by. If the word is another one by now, somebody
 * else has decided: then nothing is done. Times are CLOCK_MONOTONIC.
 */
#ifndef LOADLINE_LEDGER_TURN_ACT_H
#define LOADLINE_LEDGER_TURN_ACT_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/contender.h"
#include "ledger/layout.h"

/* The turn word: (1 + slot) << 48, a flag for a turn that a higher class waits for, and a count that makes each change
 * unique. */
enum { LL_TURN_WORD_SHIFT = 48 };
#define LL_TURN_WORD_PROMOTED (UINT64_C(1) << 47)

/* 1 + the index of the claim that has the turn; 0: none. A damaged word has any number. */
static inline unsigned ll_turn_word_holder(uint64_t turn)
{
	return (unsigned)(turn >> LL_TURN_WORD_SHIFT);
}

/* The holder gives the turn to another tenant. is_service: a higher class waits meanwhile. */
void ll_turn_act_give(struct ll_ledger_file *file, unsigned from, unsigned to, uint64_t turn, bool is_service,
		      uint64_t now_ns);

/* The claim, of that tenant row, takes the turn from whoever the word names. */
void ll_turn_act_take(struct ll_ledger_file *file, unsigned index, uint32_t row, uint64_t turn, bool is_service,
		      uint64_t now_ns);

/* Nobody has the turn from here on. */
void ll_turn_act_free(struct ll_ledger_file *file, uint64_t turn, uint64_t now_ns);

/* Another process of the tenant goes on with its turn, which does not begin anew by that. False: there is none. */
bool ll_turn_act_leave_to_sibling(struct ll_ledger_file *file, unsigned index, uint64_t turn, uint64_t now_ns);

/* Shuts the gates of the holder's tenant. A holder whose gate is open does not know yet that it is not alone. */
void ll_turn_act_shut_out(struct ll_ledger_file *file, uint64_t turn);

/* Shuts the gates of all contenders of the scan. */
void ll_turn_act_shut_others(struct ll_ledger_file *file, const struct ll_contender_scan *scan);

/* Opens the words on the card of processes that want it and have not looked of late: each may hang in the driver behind
 * its own streams, which wait. */
void ll_visit_let_deaf_go(struct ll_ledger_file *file, uint64_t now_ns);

#endif
