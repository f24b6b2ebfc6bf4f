/*
 * act.h - what one process writes in the page for others. Private to src/ledger.
 *
 * decide.c, gang.c and memory.c read the page. The rules of src/control decide. The functions here write: the turn's
 * word, and words in the rows of claims and tenants that need not be the caller's. Each function is one act on the
 * page, so that one process could do it for all. doc/internals.md lists who writes which word.
 *
 * index: of a claim's slot. row: 1 + a tenant's row; for 0 and what is beyond the table nothing is done. turn: the word
 * that the decision was made by. If the word is another one by now, another process has decided, and nothing is done.
 * Times are CLOCK_MONOTONIC. No function fails or waits. errno is kept.
 */
#ifndef LOADLINE_LEDGER_ACT_H
#define LOADLINE_LEDGER_ACT_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/contender.h"
#include "ledger/layout.h"

/*
 * The turn.
 */

/* The holder gives the turn to another tenant. is_service: a higher class waits meanwhile. The receiver's gates are
 * shut and its processes are woken. The words on the card of both tenants follow the turn. */
void ll_act_give(struct ll_ledger_file *file, unsigned from, unsigned to, uint64_t turn, bool is_service,
		 uint64_t now_ns);

/* The claim takes the turn from the claim that the word names. The gates of that claim's tenant are shut, and its
 * processes are woken. */
void ll_act_take(const struct ll_contender_id *id, uint64_t turn, bool is_service, uint64_t now_ns);

/* Nobody has the turn from here on. */
void ll_act_free(struct ll_ledger_file *file, uint64_t turn, uint64_t now_ns);

/* Another process of the tenant goes on with its turn, which does not begin anew by that. False: there is none. */
bool ll_act_leave_to_sibling(struct ll_ledger_file *file, unsigned index, uint64_t turn, uint64_t now_ns);

/* The claim waits for its turn since now_ns. The second function does so only if the claim wants the card: it has the
 * turn, and its waiting begins anew when it loses the turn. */
void ll_act_begin_waiting(struct ll_ledger_file *file, unsigned index, uint64_t now_ns);
void ll_act_restart_waiting(struct ll_ledger_file *file, unsigned index, uint64_t now_ns);

/* Sets or clears a flag that a decision has found: LL_VISIT_PAUSES, LL_VISIT_RAN_DRY or LL_VISIT_LINGERS. */
void ll_act_set_flag(struct ll_ledger_file *file, unsigned index, enum ll_visit_flag flag, bool is_set);

/*
 * Gates.
 */

/* Shuts the gates of the holder's tenant. A holder whose gate is open does not know yet that it is not alone. */
void ll_act_shut_out(struct ll_ledger_file *file, uint64_t turn);

/* Shuts the gates of all contenders of the scan. */
void ll_act_shut_others(struct ll_ledger_file *file, const struct ll_contender_scan *scan);

/*
 * The gate on the card: a word for each tenant, for which its streams wait.
 *
 * Streams read the word through a mapping of the ledger's page (shim/time/card_gate.h). Its lowest bit is set while the
 * tenant may use the card. The rest counts, so that two looks tell whether the word was shut in between. A word is shut
 * only while its tenant wants the card and has not got it. The looks of all processes mend what a race, a damage or a
 * death left behind.
 */

void ll_act_open_card(struct ll_ledger_file *file, uint32_t row);
void ll_act_shut_card(struct ll_ledger_file *file, uint32_t row);

/* Opens the word if no process of the tenant wants the card. */
void ll_act_open_card_at_rest(struct ll_ledger_file *file, uint32_t row);

/* Opens the words of processes that want the card and have not looked of late: each may hang in the driver behind its
 * own streams, which wait. */
void ll_act_open_card_of_deaf(struct ll_ledger_file *file, uint64_t now_ns);

/*
 * A tenant on several cards (gang.h).
 */

/* Sets the number of the tenant's first card; 0: its turns here do not depend on another card. */
void ll_act_set_first_card(struct ll_ledger_file *file, uint32_t row, uint64_t number);

/* The tenant has the turn on its first card, so it goes first on this card until that time. 0: it does so no more. */
void ll_act_set_gang_turn(struct ll_ledger_file *file, uint32_t row, uint64_t until_ns);

/* On the first card: another card has work of the tenant at now_ns, and so many launches of it; 0: it goes on
 * launching. The second function withdraws what was posted at posted_ns, unless another process has posted since. It
 * counts for LL_GANG_LOOK_NS more, until all others have posted again. */
void ll_act_post_gang_work(struct ll_ledger_file *file, uint32_t row, uint32_t launches, uint64_t now_ns);
void ll_act_withdraw_gang_work(struct ll_ledger_file *file, uint32_t row, uint64_t posted_ns);

/* On the first card: the tenant is about to give its turn away. */
void ll_act_note_ending(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns);

/*
 * Memory (memory.h).
 */

/* Asks the claim's process for the memory that its pools keep in reserve, and wakes it. */
void ll_act_ask(struct ll_ledger_file *file, unsigned index, uint64_t now_ns);

#endif
