/*
 * decisions.h - the last decisions about how a card is shared, as counters that replay. The log has steps of the rule
 * (rules/share/regime.h) and steps of the class lever (rules/share/lever.h), in the order in which they were made.
 *
 * Each step of the rule that changed something is kept with all its inputs. The records replay: a copy of `base` that
 * is stepped with the inputs of the records, one after the other, gives the results in the records. Steps without a
 * record changed nothing (ll_regime.moves). When the ring is full, the oldest records are dropped, and their steps are
 * applied to `base`. Records are dropped until `base` has no incomplete measurement. So `base` needs only the fields of
 * struct ll_regime that count between measurements.
 *
 * The record of a lever's step has all its inputs, so each record replays by itself (struct ll_lever_choice). A lever
 * steps at each WAKE message and checks its part four times a second. So only some of its steps are kept, and a card on
 * which nothing changes adds none. While a job is on the card for which others could be held, these steps are kept:
 *
 *   - a step after which the part differs from the lever's last record by LL_DECISIONS_GRAIN or more;
 *   - the first step at which work is sparse, is no longer sparse, or the part is found;
 *   - the first step after these that checks the part and does not change it.
 *
 * A choice that a command forces is not kept.
 *
 * The log is plain memory, without a clock. Times are those of the card.
 */
#ifndef LOADLINE_DAEMON_ARBITER_DECISIONS_H
#define LOADLINE_DAEMON_ARBITER_DECISIONS_H

#include "daemon/arbiter/card.h"
#include "protocol/message.h"

enum {
	LL_DECISIONS_MOST = 256, /* records */
	/* of all records together: a measurement of 40 jobs takes 25 records, and fits */
	LL_DECISIONS_JOBS_MOST = 1024,
};

#define LL_DECISIONS_GRAIN 0.01 /* of the time; users see whole percents */

/* A job as the step saw it. rates: if the step reached a verdict; else 0. A step of the lever fills id and completed of
 * `job`, and gauge and slowdown_permille, which are 0 in others. */
struct ll_decision_job {
	struct ll_regime_job job;
	struct ll_regime_rates rates;
	struct ll_lever_gauge gauge;
	unsigned slowdown_permille;
	uint32_t uid;
	char tenant[LL_NAME_SIZE];
};

struct ll_decision {
	uint64_t number; /* from 1 */
	uint64_t at_ns;
	bool is_ruled; /* nothing was measured, because a rule serves the jobs (choose.h); the step was taken without
			  jobs */
	/* A step of the lever of the class with that rank. The rule's part of the record is then the result of the
	 * rule's last step. LL_LEVER_MOVE_NONE: it is a step of the rule */
	struct ll_lever_choice lever;
	unsigned rank;
	/* the result, as in struct ll_regime */
	bool gives_visits;
	enum ll_regime_why why;
	double gain;
	unsigned moves;
	unsigned block; /* of a measurement that continues: 0 to 7 */
	unsigned count; /* of its jobs */
	unsigned first; /* private */
};

/* All 0 at first. */
struct ll_decisions {
	struct ll_regime base;                           /* the rule before the oldest record */
	uint64_t last_number;                            /* of the newest record; 0: there was none */
	unsigned count;                                  /* of records */
	unsigned job_count;                              /* of their jobs */
	unsigned first_job;                              /* private */
	struct ll_lever_choice levers[LL_SHARE_CLASSES]; /* private: the last record of each lever, by rank */
	struct ll_decision records[LL_DECISIONS_MOST];
	struct ll_decision_job jobs[LL_DECISIONS_JOBS_MOST];
};

/* Adds a record, and fills in its number and its jobs. At most LL_REGIME_JOBS + 1 jobs. */
void ll_decisions_add(struct ll_decisions *decisions, const struct ll_decision *decision,
		      const struct ll_decision_job *jobs);

/* Adds the step that the card's rule has just taken with those jobs, if it changed something and the card keeps a
 * log. */
void ll_decisions_note(const struct ll_share_card *card, const struct ll_regime_job *jobs, size_t count, bool is_ruled,
		       uint64_t now_ns);

/* Adds the step that the lever of that rank has just taken with those jobs, if it must be kept and the card keeps a
 * log. The lever exists, and a job is beneath it. At most LL_REGIME_JOBS + 1 jobs. */
void ll_decisions_note_lever(const struct ll_share_card *card, unsigned rank, const struct ll_lever_job *jobs,
			     size_t count, uint64_t now_ns);

/* Adds that the slices of the classes beneath that rank have just changed. jobs: as they were measured before. */
void ll_decisions_note_slices(const struct ll_share_card *card, unsigned rank, const struct ll_lever_job *jobs,
			      size_t count, uint64_t now_ns);

/* ll_decisions_from: the oldest record with at least that number; NULL: there is none. ll_decisions_job: a job of a
 * record. */
const struct ll_decision *ll_decisions_from(const struct ll_decisions *decisions, uint64_t number);
const struct ll_decision_job *ll_decisions_job(const struct ll_decisions *decisions, const struct ll_decision *decision,
					       unsigned index);

#endif
