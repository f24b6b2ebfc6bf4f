/*
 * kernel_estimates.h - estimates, for each kernel, how long a launch takes on the card. In this file a kernel is a
 * function with one grid, a graph, or copies of about one size (hooks/launch.h defines the keys). Launches of one
 * kernel take about the same time.
 *
 * An estimate has two sources. First, some launches are timed singly, with an event on each side. Second, if a batch of
 * launches of one kernel is timed and the queue never ran empty, the mean time of its launches is known. Timing one
 * launch costs about 4 us on the card and 2 us on the host. This cost is limited to LL_ESTIMATE_SAMPLE_PERMILLE of the
 * launches' time, so short kernels are timed less often.
 *
 * A kernel's first launch on a card waits until the kernel's code is loaded. So the longest of the first few samples
 * does not count if it is more than twice as long as the mean of the others. Later, a sample that is more than four
 * times the estimate is taken for interference by other work, and counts as four times the estimate. If there are many
 * such samples, the estimate still follows them.
 *
 * If the host is interrupted at each sample, no sample is useful. After some tries such a kernel is timed as seldom as
 * other kernels.
 *
 * If a program has more kernels than the table holds, a new kernel replaces the least recently used one. This file is
 * pure arithmetic; the caller locks.
 */
#ifndef LOADLINE_SHIM_TIME_KERNEL_ESTIMATES_H
#define LOADLINE_SHIM_TIME_KERNEL_ESTIMATES_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

enum { LL_ESTIMATE_SETS = 512, LL_ESTIMATE_WAYS = 4 };

#define LL_ESTIMATE_SAMPLE_NS UINT64_C(6000) /* the cost of timing one launch singly, card and host together */
#define LL_ESTIMATE_SAMPLE_PERMILLE 3

/* Each estimate is one cache line, because the caches may lose it between two launches of the kernel, and each line
 * costs a fetch from memory. */
struct ll_kernel_estimate {
	alignas(64) uint64_t key;
	uint64_t ns;         /* estimated duration of a launch; 0: not known */
	uint64_t scatter_ns; /* mean absolute difference between samples and ns */
	uint64_t first_ns;   /* sum of the first few samples */
	uint64_t longest_ns; /* longest of the first few samples */
	uint16_t learned;    /* number of good samples */
	uint16_t rough;      /* number of rough samples; they are used while there are no good ones */
	uint16_t timed;      /* number of launches that were timed singly, with or without a useful sample */
	uint16_t tried;  /* number of samples beside other programs' time slices; while there are no others, first_ns is
			    the shortest sample and ns the second shortest */
	uint32_t seen;   /* number of launches of the kernel; the caller counts */
	uint32_t next;   /* value of seen at which the next launch must be timed */
	uint32_t doubts; /* value of the table's doubts when the kernel was last timed */
	uint32_t found;  /* value of the table's found when the kernel was last looked up */
};

_Static_assert(sizeof(struct ll_kernel_estimate) == 64, "a line of the cache");

struct ll_kernel_estimates {
	struct ll_kernel_estimate table[LL_ESTIMATE_SETS][LL_ESTIMATE_WAYS];
	uint32_t doubts;
	uint32_t found; /* number of all look-ups */
};

/* Returns the estimate of the kernel with that key. A new kernel's estimate is empty. The pointer is valid until the
 * next call. A key is any number that no other kernel has. */
struct ll_kernel_estimate *ll_kernel_estimates_find(struct ll_kernel_estimates *estimates, uint64_t key);

/* Returns whether the next launch of this kernel must be timed singly: the first few launches, later one after a number
 * of launches, and one after each ll_kernel_estimates_doubt. */
bool ll_kernel_estimate_wants_sample(const struct ll_kernel_estimates *estimates,
				     const struct ll_kernel_estimate *estimate);

/* Returns whether all launches of this kernel take about the same time, so that many can be counted without a timing
 * event for each. */
bool ll_kernel_estimate_is_steady(const struct ll_kernel_estimate *estimate);

/* Notes that a launch of the kernel is being timed singly. Call one of the learn functions when the launch has ended.
 */
void ll_kernel_estimate_note_sample(const struct ll_kernel_estimates *estimates, struct ll_kernel_estimate *estimate);

void ll_kernel_estimate_learn_sample(struct ll_kernel_estimate *estimate, uint64_t ns);
void ll_kernel_estimate_learn_rough(struct ll_kernel_estimate *estimate, uint64_t ns);
void ll_kernel_estimate_learn_queued(struct ll_kernel_estimate *estimate, uint64_t ns);

/* The same for a sample that may contain time slices of other programs, if the kernel is not sure yet. The second
 * shortest of the first samples becomes the estimate, because a single sample may be too short. An earlier estimate
 * counts as one of the samples. */
void ll_kernel_estimate_learn_least(struct ll_kernel_estimate *estimate, uint64_t ns);

/* Returns whether the kernel has enough samples that were taken without other programs. */
bool ll_kernel_estimate_is_sure(const struct ll_kernel_estimate *estimate);

/* Returns whether there is an estimate, from samples without other programs or from several samples beside them. */
bool ll_kernel_estimate_is_known(const struct ll_kernel_estimate *estimate);

/* Notes that all estimates are unreliable. Each remains in use as a guess until its kernel is timed again. */
void ll_kernel_estimates_forget(struct ll_kernel_estimates *estimates);

/*
 * Notes that some launches took far longer than their estimates: at least ns each. They were of this kernel, or of
 * several kernels if estimate is NULL. The cause may be other programs' work, so earlier samples of the kernel do not
 * count any more.
 */
void ll_kernel_estimates_doubt(struct ll_kernel_estimates *estimates, struct ll_kernel_estimate *estimate, uint64_t ns);

/* ---- shortest samples ---- */

/*
 * For the accounts.
 *
 * Beside other programs' time slices a sample is too long: by slices of the others, and by the switch at its begin
 * (0.15 ms, doc/facts.md). Samples that were taken while the others paused have neither. The second shortest of all
 * samples is such a one as a rule. A kernel whose duration depends on its data is then counted too short.
 *
 * A small table: of two kernels with the same place the later one has it. Pure arithmetic.
 */

enum { LL_SHORTEST_KERNELS = 256 };

/* Starts zeroed. */
struct ll_shortest {
	struct {
		uint64_t key;
		uint64_t least_ns, next_ns; /* 0: there are no so many samples yet */
	} kernels[LL_SHORTEST_KERNELS];
};

/* Notes how long one launch of the kernel took. key: as in kernel_estimates.h, not 0. */
void ll_shortest_note(struct ll_shortest *shortest, uint64_t key, uint64_t ns);

/* Returns the second shortest sample; 0: there are less than two. */
uint64_t ll_shortest_ns(const struct ll_shortest *shortest, uint64_t key);

#endif
