/*
 * use_window.h - how much of the time that cards were held they were used, over the last hours: a sum over a window of
 * time that moves on in steps of 1/64 of its length.
 */
#ifndef LOADLINE_RULES_SHARE_USE_WINDOW_H
#define LOADLINE_RULES_SHARE_USE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_USE_WINDOW_STEPS = 64 };

struct ll_use_window {
	uint64_t length_ns, begin_ns; /* begin_ns: when the window began; before that nothing is known */
	uint64_t step;                /* the number of the present step, since the clock's begin */
	uint64_t held_ns[LL_USE_WINDOW_STEPS], used_ns[LL_USE_WINDOW_STEPS];
};

/* length_ns: at least LL_USE_WINDOW_STEPS. */
void ll_use_window_init(struct ll_use_window *window, uint64_t length_ns, uint64_t now_ns);

/* Adds what was held and used since the last call. now_ns never goes back. */
void ll_use_window_add(struct ll_use_window *window, uint64_t now_ns, uint64_t held_ns, uint64_t used_ns);

/*
 * Sums up the window. Returns false while less than its length has passed since its begin: then the sums say nothing
 * about it yet.
 */
bool ll_use_window_read(const struct ll_use_window *window, uint64_t now_ns, uint64_t *ret_held_ns,
			uint64_t *ret_used_ns);

#endif
