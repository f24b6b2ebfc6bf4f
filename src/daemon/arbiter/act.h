/*
 * act.h - carries out a decision: passes the turn, and opens and shuts the words that streams wait for.
 *
 * Each job has a word on the card. Its lowest bit is set while the streams of the job may go on. The other bits count
 * changes, so that two reads tell whether the word was shut in between. A word is shut only while its job wants the
 * card and does not have it. A program can write its word; each look at the claim corrects the word.
 */
#ifndef LOADLINE_DAEMON_ARBITER_ACT_H
#define LOADLINE_DAEMON_ARBITER_ACT_H

#include "daemon/arbiter/card.h"

/* Passes the turn to the claim, and opens and shuts the words accordingly. is_service: the turn is a minimum service,
 * because a higher class waits. */
void ll_share_pass(struct ll_share_claim *to, bool is_service, uint64_t now_ns);

/* Adds the length of the present visit to visited_ns of its job. ll_share_pass and ll_share_free_turn do so too. */
void ll_share_count_visit(struct ll_share_card *card, uint64_t now_ns);

/* Takes the turn from its holder: no claim has it. */
void ll_share_free_turn(struct ll_share_card *card, uint64_t now_ns);

/* Passes the turn to another process of the same job. The turn does not begin anew. False: there is no other process.
 */
bool ll_share_leave_to_sibling(struct ll_share_claim *holder, uint64_t now_ns);

void ll_share_open_word(struct ll_share_job *job);
void ll_share_shut_word(struct ll_share_job *job);

/* Opens the word if no process of the job wants the card. */
void ll_share_open_word_at_rest(struct ll_share_job *job);

/* Opens the words of jobs whose processes want the card and are unresponsive. Such a process may hang in the driver
 * behind its own streams, which wait for the word. */
void ll_share_open_words_of_unresponsive(struct ll_share_card *card, uint64_t now_ns);

#endif
