/*
 * act.h - what a decision changes in a card's books: who has the turn, and the words that streams wait for.
 *
 * Each job has a word on the card. Its lowest bit is set while the job's streams may go on. The rest counts, so that
 * two looks tell whether the word was shut in between. A word is shut only while its job wants the card and has not got
 * it. Programs can write their words; each look mends what they did.
 */
#ifndef LOADLINE_DAEMON_SHARE_ACT_H
#define LOADLINE_DAEMON_SHARE_ACT_H

#include "daemon/share/card.h"

/* The turn comes to the claim from whoever has it. is_service: a higher class waits meanwhile. The words follow the
 * turn. */
void ll_share_pass(struct ll_share_claim *to, bool is_service, uint64_t now_ns);

/* Adds what the visit of now has lasted to the visited_ns of its job. The two calls around it do so too. */
void ll_share_count_visit(struct ll_share_card *card, uint64_t now_ns);

/* Nobody has the turn from here on. */
void ll_share_free_turn(struct ll_share_card *card, uint64_t now_ns);

/* Another process of the job goes on with its turn, which does not begin anew by that. False: there is none. */
bool ll_share_leave_to_sibling(struct ll_share_claim *holder, uint64_t now_ns);

void ll_share_open_word(struct ll_share_job *job);
void ll_share_shut_word(struct ll_share_job *job);

/* Opens the word if no process of the job wants the card. */
void ll_share_open_word_at_rest(struct ll_share_job *job);

/* Opens the words of jobs whose processes want the card and are unresponsive. Such a process may hang in the driver
 * behind its own streams, which wait for the word. */
void ll_share_open_words_of_unresponsive(struct ll_share_card *card, uint64_t now_ns);

#endif
