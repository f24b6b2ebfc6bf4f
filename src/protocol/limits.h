/*
 * limits.h - the limits of a job or a tenant. Functions take the whole structure.
 */
#ifndef LOADLINE_PROTOCOL_LIMITS_H
#define LOADLINE_PROTOCOL_LIMITS_H

#include <stdint.h>

enum ll_limit_class { LL_LIMIT_CLASS_NORMAL, LL_LIMIT_CLASS_HIGH, LL_LIMIT_CLASS_LOW };

/* How a card is shared while the job is on it. */
enum ll_limit_sharing {
	LL_LIMIT_SHARING_MEASURED,
	LL_LIMIT_SHARING_SLICES,
	LL_LIMIT_SHARING_VISITS,
	/* the part of the time in which lower classes are held */
	LL_LIMIT_SHARING_HELD_NONE,
	LL_LIMIT_SHARING_HELD_HALF,
	LL_LIMIT_SHARING_HELD_ALL,
};

enum ll_limit_flag {
	LL_LIMIT_EVICTABLE = 1,        /* its memory can be moved off the card */
	LL_LIMIT_STRICT = 2,           /* refuse what the limits cannot govern */
	LL_LIMIT_COUNTS_CONTEXT = 4,   /* the memory of contexts counts against memory_bytes */
	LL_LIMIT_KILLS_MAX_KERNEL = 8, /* end a program when one of its kernels runs longer than max_kernel_ns */
};
#define LL_LIMIT_FLAGS (LL_LIMIT_EVICTABLE | LL_LIMIT_STRICT | LL_LIMIT_COUNTS_CONTEXT | LL_LIMIT_KILLS_MAX_KERNEL)

/* The layout is frozen, because messages contain it. A new limit goes to the end of those messages. In every field 0
 * means "none". */
struct ll_limits {
	uint64_t memory_bytes;  /* limit on each card */
	uint64_t request_bytes; /* guaranteed on each card */
	uint64_t max_kernel_ns;
	uint32_t compute_permille; /* of the card's time */
	uint32_t space_permille;   /* of the card's SMs */
	uint32_t weight_permille;  /* 0: 1000 */
	uint32_t priority;         /* enum ll_limit_class */
	uint32_t flags;            /* enum ll_limit_flag */
	uint16_t sharing;          /* enum ll_limit_sharing; if jobs differ, the first job's value counts */
	/* The job may run this many times slower than alone, because of lower classes: 1000 to 10000. 0: 1300 */
	uint16_t slowdown_permille;
};
_Static_assert(sizeof(struct ll_limits) == 48, "part of messages");

#endif
