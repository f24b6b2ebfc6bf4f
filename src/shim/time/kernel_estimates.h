/*
 * kernel_estimates.h - how long launches take on the card, for each kernel. Here a kernel is a function with one grid,
 * or a graph, or copies of about one size (hooks/launch.h has the keys). Its launches take about the same time.
 *
 * There are two sources. Now and then a launch is timed by itself. And a batch of launches of one kernel, in a queue
 * that never ran empty, tells what each of them took. Timing one launch costs the card some 4 us and the host 2. So it
 * is done for LL_ESTIMATE_SAMPLE_PERMILLE of the launches' time: the shorter they are, the more seldom.
 *
 * A kernel's first launch on a card waits for its code. So the longest of the first few samples does not count if it is
 * twice as long as the others. Later a sample that is far longer than the estimate is taken for interference by other
 * work: it counts for four times the estimate at most. If such samples are many, the estimate follows them all the
 * same.
 *
 * If the host is interrupted each time, no sample tells anything. After some tries such a kernel is timed as seldom as
 * others.
 *
 * If a program has more kernels than the table holds, those that it used longest ago are learned anew. Pure arithmetic;
 * the caller locks.
 */
#ifndef LOADLINE_SHIM_TIME_KERNEL_ESTIMATES_H
#define LOADLINE_SHIM_TIME_KERNEL_ESTIMATES_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

enum { LL_ESTIMATE_SETS = 512, LL_ESTIMATE_WAYS = 4 };

#define LL_ESTIMATE_SAMPLE_NS UINT64_C(6000) /* what timing a launch by itself costs */
#define LL_ESTIMATE_SAMPLE_PERMILLE 3

/* One cache line each: the program may do much between two launches of a kernel, and then each line must be fetched
 * anew.
 * */
struct ll_kernel_estimate {
	alignas(64) uint64_t key;
	uint64_t ns;         /* of a launch; 0: not known */
	uint64_t scatter_ns; /* mean difference of samples from ns */
	uint64_t first_ns;   /* sum of the first few samples */
	uint64_t longest_ns; /* the longest of them */
	uint16_t learned;    /* good samples */
	uint16_t rough;      /* rough samples; they count while there are no good ones */
	uint16_t timed;      /* launches timed by themselves, whether that gave a sample or not */
	uint16_t tried;  /* samples in slices; while there are only these, first_ns is the shortest and ns the next */
	uint32_t seen;   /* launches of the kernel; the caller counts them */
	uint32_t next;   /* the value of seen at which the next launch shall be timed */
	uint32_t doubts; /* the table's doubts, when the kernel was timed last */
	uint32_t found;  /* the table's found, when the kernel was looked for last */
};

_Static_assert(sizeof(struct ll_kernel_estimate) == 64, "a line of the cache");

struct ll_kernel_estimates {
	struct ll_kernel_estimate table[LL_ESTIMATE_SETS][LL_ESTIMATE_WAYS];
	uint32_t doubts;
	uint32_t found; /* a count of all look-ups */
};

/* Returns the estimate for the kernel with that key: empty at first, and valid until the next call. A key is any number
 * that no other kernel has. */
struct ll_kernel_estimate *ll_kernel_estimates_find(struct ll_kernel_estimates *estimates, uint64_t key);

/* Whether the next launch of this kernel shall be timed by itself: the first few are, then one in so many, and one
 * after a doubt. */
bool ll_kernel_estimate_wants_sample(const struct ll_kernel_estimates *estimates,
				     const struct ll_kernel_estimate *estimate);

/* Whether launches of this kernel take about the same time each, so that many can be counted without a look at each. */
bool ll_kernel_estimate_is_steady(const struct ll_kernel_estimate *estimate);

/* A launch of the kernel is being timed by itself. Call a learn function when the card has ended it. */
void ll_kernel_estimate_note_sample(const struct ll_kernel_estimates *estimates, struct ll_kernel_estimate *estimate);

void ll_kernel_estimate_learn_sample(struct ll_kernel_estimate *estimate, uint64_t ns);
void ll_kernel_estimate_learn_rough(struct ll_kernel_estimate *estimate, uint64_t ns);
void ll_kernel_estimate_learn_queued(struct ll_kernel_estimate *estimate, uint64_t ns);

/* The same for a launch whose time may contain time slices of other programs, of a kernel that has no other sample. The
 * second shortest of the first tries counts, because a single one may be too short. An earlier estimate is one of them.
 */
void ll_kernel_estimate_learn_least(struct ll_kernel_estimate *estimate, uint64_t ns);

/* Whether the kernel has enough samples without other programs. */
bool ll_kernel_estimate_is_sure(const struct ll_kernel_estimate *estimate);

/* Whether there is an estimate: by samples without other programs, or by several tries beside them. */
bool ll_kernel_estimate_is_known(const struct ll_kernel_estimate *estimate);

/* All estimates are wrong in the same way. Each remains as a guess until the kernel is timed anew. */
void ll_kernel_estimates_forget(struct ll_kernel_estimates *estimates);

/*
 * Some launches took far longer than their estimates: ns each at least. They were of this kernel or, with NULL, of
 * several. The cause may be other programs' work, so the next sample of that kernel counts alone.
 */
void ll_kernel_estimates_doubt(struct ll_kernel_estimates *estimates, struct ll_kernel_estimate *estimate, uint64_t ns);

#endif
