#include "rules/share/use_window.h"

void ll_use_window_init(struct ll_use_window *window, uint64_t length_ns, uint64_t now_ns)
{
	*window = (struct ll_use_window){.length_ns = length_ns, .begin_ns = now_ns};
	window->step = now_ns / (length_ns / LL_USE_WINDOW_STEPS);
}

static void move_on(struct ll_use_window *window, uint64_t step)
{
	uint64_t passed = step - window->step;
	for (uint64_t i = 1; i <= passed && i <= LL_USE_WINDOW_STEPS; i++) {
		unsigned at = (unsigned)((window->step + i) % LL_USE_WINDOW_STEPS);
		window->held_ns[at] = window->used_ns[at] = 0;
	}
	window->step = step;
}

void ll_use_window_add(struct ll_use_window *window, uint64_t now_ns, uint64_t held_ns, uint64_t used_ns)
{
	uint64_t step = now_ns / (window->length_ns / LL_USE_WINDOW_STEPS);
	if (step > window->step)
		move_on(window, step);
	window->held_ns[window->step % LL_USE_WINDOW_STEPS] += held_ns;
	window->used_ns[window->step % LL_USE_WINDOW_STEPS] += used_ns;
}

bool ll_use_window_read(const struct ll_use_window *window, uint64_t now_ns, uint64_t *ret_held_ns,
			uint64_t *ret_used_ns)
{
	uint64_t held_ns = 0, used_ns = 0;
	for (unsigned i = 0; i < LL_USE_WINDOW_STEPS; i++) {
		held_ns += window->held_ns[i];
		used_ns += window->used_ns[i];
	}
	*ret_held_ns = held_ns;
	*ret_used_ns = used_ns;
	return now_ns >= window->begin_ns + window->length_ns;
}
