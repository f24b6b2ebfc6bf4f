/*
 * decisions.h - how loadlined decided lately that a card is shared, for `loadline status --decisions`.
 *
 * loadlined keeps the last decisions of each card on which a job is (daemon/arbiter/decisions.h). As text each is a
 * line for people. As JSON it has all numbers that went into it, so that the pure code replays it
 * (tests/unit/share_decisions.c, share_decisions_lever.c).
 */
#ifndef LOADLINE_CLI_STATUS_DECISIONS_H
#define LOADLINE_CLI_STATUS_DECISIONS_H

#include "base/strbuf.h"
#include "cli/common/daemon.h"
#include "driver/cards.h"

/* What loadlined tells of one card. */
struct ll_decision_list {
	bool has_state; /* the card is known */
	struct ll_message_decisions_state state;
	struct ll_message_decision *decisions;
	struct ll_message_decision_job *jobs; /* those of the first decision, then those of the second, … */
	size_t decision_count, job_count;
};

/* Asks. The caller calls fini in each case. -EAGAIN: decisions came faster than they were read. */
int ll_decision_list_read(struct ll_decision_list *list, struct ll_client *client, const char *uuid,
			  struct ll_err *err);
void ll_decision_list_fini(struct ll_decision_list *list);

/* wall_ns: the time of the reading (ll_wall_ns), from which the ages count. card: as `-i` names it. */
void ll_decision_list_add_text(struct ll_strbuf *text, const struct ll_decision_list *list, const char *card,
			       uint64_t wall_ns);
int ll_decision_list_print_json(const struct ll_decision_list *list, const struct ll_card *card, uint64_t wall_ns,
				struct ll_err *err);

/* Prints those of the cards. */
int ll_status_decisions(const struct ll_driver *driver, const struct ll_card *const *cards, size_t count, bool is_json,
			struct ll_err *err);

#endif
