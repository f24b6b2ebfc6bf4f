/*
 * kinds.h - what launches of one kind take on the card: the same kernel on the same grid takes the same time.
 *
 * Two sources. A launch is now and then timed by itself, and a batch of one kind in a queue that never ran empty tells
 * what each of them took. Timing one costs the card some 4 us and the host 2, so it is done less often the shorter the
 * launches are: for LL_KIND_SAMPLE_PERMILLE of their time.
 *
 * Of the first few, the longest does not count if it is twice as long as the others: a kernel's first launch on a card
 * waits for its code. Where enough is known, one that took far longer counts for no more than four times that: others'
 * work was in its way, as a rule. Where they are many the mean follows all the same.
 *
 * Of some kinds no sample tells anything, for their host is interrupted each time: after some tries they are timed as
 * seldom as others.
 *
 * A program of more kinds than the table holds has those learned anew that it used longest ago. Pure arithmetic; the
 * caller locks.
 */
#ifndef LOADLINE_SHIM_TIME_KINDS_H
#define LOADLINE_SHIM_TIME_KINDS_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

enum { LL_KIND_SETS = 512, LL_KIND_WAYS = 4 };

#define LL_KIND_SAMPLE_NS UINT64_C(6000) /* what timing a launch by itself costs */
#define LL_KIND_SAMPLE_PERMILLE 3

/* A line of the cache each: between two launches of a kind a program may do much else, and each line is fetched anew.
 */
struct ll_kind {
	alignas(64) uint64_t name;
	uint64_t ns;         /* of a launch; 0: not known */
	uint64_t scatter_ns; /* by which samples differ from that, in the mean */
	uint64_t first_ns;   /* of the first few of them, the sum */
	uint64_t longest_ns; /* and the longest */
	uint16_t learned;    /* how often, but by rough samples */
	uint16_t rough;      /* how often by these: what they say counts while there are no others */
	uint16_t timed;      /* how often by itself, whether that told anything or not */
	uint16_t tried;      /* how often in slices; then first_ns is the shortest, ns the next */
	uint32_t seen;       /* launches; the caller counts */
	uint32_t next;       /* seen, at which the next one shall be timed */
	uint32_t doubts;     /* of the table, when it was timed last */
	uint32_t found;      /* of the table, when it was asked for last */
};

_Static_assert(sizeof(struct ll_kind) == 64, "a line of the cache");

struct ll_kinds {
	struct ll_kind table[LL_KIND_SETS][LL_KIND_WAYS];
	uint32_t doubts;
	uint32_t found; /* a count of all askings */
};

/* The entry of that kind, empty at first, until the next is asked for. Any number that differs from others' will do as
 * a name. */
struct ll_kind *ll_kinds_find(struct ll_kinds *kinds, uint64_t name);

/* Whether the next launch of it shall be timed, wherever it comes, or only some of them would count: the first few,
 * then one in so many, and one after a doubt. */
bool ll_kind_wants_sample(const struct ll_kinds *kinds, const struct ll_kind *kind);

/* Whether one takes about as long as the other, so that many of them need no look at each. */
bool ll_kind_is_steady(const struct ll_kind *kind);

/* One of them was timed by itself; what it took is learned when the card has ended it. */
void ll_kind_note_sample(const struct ll_kinds *kinds, struct ll_kind *kind);

void ll_kind_learn_sample(struct ll_kind *kind, uint64_t ns);
void ll_kind_learn_rough(struct ll_kind *kind, uint64_t ns);
void ll_kind_learn_queued(struct ll_kind *kind, uint64_t ns);

/* The same of a launch in whose time others' slices may lie, of a kind of which nothing else is known: the shortest but
 * one of the first tries counts, for one may be timed too short. What was known before counts as one of them. */
void ll_kind_learn_least(struct ll_kind *kind, uint64_t ns);

/* Whether it was timed without others as often as the first few. */
bool ll_kind_is_sure(const struct ll_kind *kind);

/* Whether that is known: learned without others, or by several tries. */
bool ll_kind_is_known(const struct ll_kind *kind);

/* What was learned was wrong for all of them alike: it holds as a guess until each was timed anew. */
void ll_kinds_forget(struct ll_kinds *kinds);

/*
 * Some launches took far longer than they were known for: ns each at least, of this kind or, with NULL, of several. The
 * next sample of that kind counts alone: it may have been others' work that they waited for.
 */
void ll_kinds_doubt(struct ll_kinds *kinds, struct ll_kind *kind, uint64_t ns);

#endif
