/*
 * explain.h - why a job on a card is slow or idle: where its last minute went, and which causes follow from that.
 *
 * loadlined looks at each job on each card every half a second, and divides the time since the last look
 * (ll_minute_divide): so much of it the card worked for the job, so much the job waited for its turn, and so on. The
 * minute is a ring of the last twelve times 5 s. `loadline explain` makes causes of it (ll_causes_find), the largest
 * first.
 */
#ifndef LOADLINE_RULES_EXPLAIN_EXPLAIN_H
#define LOADLINE_RULES_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the time of a job on a card goes to. The numbers are part of a message (protocol/message.h): they stay. */
enum ll_time_part {
	LL_TIME_WORK,    /* the card works for the job */
	LL_TIME_SPACE,   /* the same, and is slower because other clients of MPS work at the same time */
	LL_TIME_IDLE,    /* the job has launched nothing for LL_MINUTE_GAP_NS or longer, and its host is idle */
	LL_TIME_HOST,    /* the card waits for the next launch: the program computes, or waits for data */
	LL_TIME_COPIES,  /* the same, and data moves between host and card */
	LL_TIME_PEER,    /* one process of the job waits, and the others are idle until it goes on */
	LL_TIME_SHARED,  /* the job has work on the card, and others of its class have the card */
	LL_TIME_CLASS,   /* the same, of a higher class */
	LL_TIME_CAP,     /* the job has used up its share of time */
	LL_TIME_MEMORY,  /* it waits for memory, or for room in which its memory comes back */
	LL_TIME_EVICTED, /* it is suspended or evicted by hand */
	LL_TIME_PARTS,
};

/* A program that launches nothing for so long is not held up by its host: it has no work. */
#define LL_MINUTE_GAP_NS UINT64_C(2000000000)

/* ---- a look ---- */

enum ll_minute_away {
	LL_MINUTE_HERE,
	LL_MINUTE_AWAY_BY_HAND,
	LL_MINUTE_AWAY_IDLE,    /* its memory left for others, and no thread of it wants to use the card */
	LL_MINUTE_AWAY_WAITING, /* a thread of it waits until its memory is back, or for room for more */
};

/* A job on a card since the last look. All processes of the job there are taken together: work is the sum, and of what
 * each of them counts for itself, the longest counts. Times in ns. */
struct ll_minute_step {
	uint64_t length_ns;
	uint64_t work_ns;   /* the card worked for the job */
	uint64_t wanted_ns; /* it had launches that waited or ran */
	/* how long a thread waited before a launch: for its turn, or until its own queue was shorter; for the cap; for
	 * an answer to an allocation */
	uint64_t turn_ns, cap_ns, memory_ns;
	uint64_t copied_ns;        /* copies between host and card ran */
	uint64_t cpu_ns;           /* its processes computed, or waited for a processor; 0: not known */
	uint64_t others_ns;        /* the card worked for other jobs */
	uint64_t higher_ns;        /* of others_ns: of a higher class */
	uint64_t others_wanted_ns; /* the longest time in which another job had launches that waited or ran */
	enum ll_minute_away away;
	bool has_completed; /* the card has completed a launch of it: work_ns has what it was */
	bool is_by_space;   /* a client of MPS. others_ns is that of other clients */
	bool is_split;      /* some processes of the job wait, and others do not */
	uint64_t peer_ns;   /* the longest wait of a process of the job on another card */
};

/* What one look leaves for the next. Initially 0. */
struct ll_minute_carry {
	uint64_t work_ns; /* reported too late for its own step */
	uint64_t gap_ns,
	    cpu_ns; /* how long nothing has been launched, not divided yet, and the processors' time in it */
};

/* How long others may have kept the job from the card: they worked, or one had the turn and did not work. */
uint64_t ll_minute_kept_ns(const struct ll_minute_step *step, uint64_t turn_ns);

/* Divides the step. The sum of ret_ns is the length of the step, and of the gap before it if that ends here, less that
 * of a gap that goes on. */
void ll_minute_divide(const struct ll_minute_step *step, struct ll_minute_carry *carry, uint64_t ret_ns[LL_TIME_PARTS]);

/* ---- the minute ---- */

enum { LL_MINUTE_BINS = 12 };
#define LL_MINUTE_BIN_NS UINT64_C(5000000000)

/* Initially 0. */
struct ll_minute {
	uint64_t bin;                               /* number of the newest: the time divided by LL_MINUTE_BIN_NS */
	uint32_t us[LL_MINUTE_BINS][LL_TIME_PARTS]; /* microseconds */
};

void ll_minute_add(struct ll_minute *minute, uint64_t now_ns, const uint64_t ns[LL_TIME_PARTS]);

/* Returns for how long it knows the last minute: less than a minute if the job came later. ret_permille: the parts of
 * that time; all 0 if it is 0. */
uint64_t ll_minute_read(const struct ll_minute *minute, uint64_t now_ns, uint32_t ret_permille[LL_TIME_PARTS]);

/* ---- causes ---- */

/* In the order in which equal ones are named: first what somebody has decided, last what the program does. */
enum ll_cause {
	LL_CAUSE_QUEUE,
	LL_CAUSE_EVICTED,
	LL_CAUSE_MEMORY,
	LL_CAUSE_CAP,
	LL_CAUSE_CLASS,
	LL_CAUSE_SHARED,
	LL_CAUSE_SPACE,
	LL_CAUSE_CLOCKS,
	LL_CAUSE_PEER,
	LL_CAUSE_COPIES,
	LL_CAUSE_HOST,
	LL_CAUSE_IDLE,
	LL_CAUSES,
};

struct ll_cause_facts {
	bool is_queued;           /* it waits in the queue: nothing else counts */
	const uint32_t *permille; /* of the minute: LL_TIME_PARTS of them */
	double clock_ratio;       /* the clock of the SMs, of the highest; 0: not known */
	bool has_slowdown;        /* the driver names a reason for which it holds the clocks down */
};

struct ll_cause_part {
	enum ll_cause cause;
	double part; /* of the minute, 0 to 1 */
	double gain; /* so many times the work in a minute, at most, if the cause were gone; 0: not known */
};

/* Smaller parts are noise, and no cause. */
#define LL_CAUSE_LEAST 0.02

/* Finds the causes, the largest part first. Returns how many. */
size_t ll_causes_find(const struct ll_cause_facts *facts, struct ll_cause_part ret_causes[LL_CAUSES]);

/* Returns the word of JSON: "queue", "evicted", …. */
const char *ll_cause_name(enum ll_cause cause);

/* ---- what of a card stood idle, in whose hands ---- */

enum ll_idle_hand {
	LL_IDLE_NOBODY,  /* no job is on it */
	LL_IDLE_HIDDEN,  /* jobs are on it that are not told of */
	LL_IDLE_NO_WORK, /* a job is on it, and launches nothing */
	LL_IDLE_PROGRAM, /* the program prepares the next launch on the host, moves data, or waits for one of its
			    processes */
	LL_IDLE_WAITS,   /* a job waits: for its cap, for room, for its turn, or because it was evicted */
	LL_IDLE_HANDS,
};

struct ll_idle_job {
	const uint32_t *permille;   /* of its minute: LL_TIME_PARTS of them */
	double idle[LL_IDLE_HANDS]; /* set by ll_idle_divide: of the card's minute */
};

/* Divides what of the card's minute was no work among the jobs on it, in proportion to the parts of their own minutes.
 * work: 0 to 1. Returns what is in nobody's hands: all of it if there is no job, or if none has a minute yet. */
double ll_idle_divide(double work, struct ll_idle_job *jobs, size_t count);

/* Returns the word of JSON: "nobody", …. */
const char *ll_idle_hand_name(enum ll_idle_hand hand);

#endif
