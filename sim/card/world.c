#include "card/world.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct undo_entry {
	uint64_t offset;
	uint64_t size;
};

static void die_with(const char *what)
{
	/* A world that cannot be locked cannot be simulated, and the caller cannot continue. */
	fprintf(stderr, "loadline-sim: %s\n", what);
	abort();
}

/* Handles the result of a lock function. If the owner is dead, it restores the world. */
static void take_over(struct sim_world *w, int rc)
{
	if (rc == 0)
		return;
	if (rc != EOWNERDEAD)
		die_with("the world's lock is beyond repair");
	sim_rollback(w);
	pthread_mutex_consistent(&w->lock);
}

void sim_lock(struct sim_world *w)
{
	take_over(w, pthread_mutex_lock(&w->lock));
}

bool sim_lock_until(struct sim_world *w, const struct timespec *deadline)
{
	int rc = pthread_mutex_timedlock(&w->lock, deadline);
	if (rc == ETIMEDOUT)
		return false;
	take_over(w, rc);
	return true;
}

void sim_unlock(struct sim_world *w)
{
	sim_commit(w);
	pthread_mutex_unlock(&w->lock);
}

/* All stores of a killed process up to its last instruction are visible. So only the compiler's order of stores
 * matters. */
void sim_save(struct sim_world *w, const void *p, size_t size)
{
	struct undo_entry entry = {.offset = (uint64_t)((const char *)p - (const char *)w), .size = size};
	size_t room = sizeof entry + ((size + 7) & ~(size_t)7);
	if (w->undo.used + room > sizeof w->undo.bytes)
		die_with("one step changes more than the undo log holds");
	uint8_t *at = w->undo.bytes + w->undo.used;
	memcpy(at, p, size);
	memcpy(at + room - sizeof entry, &entry, sizeof entry);
	atomic_signal_fence(memory_order_seq_cst);
	w->undo.used += (uint32_t)room;
	atomic_signal_fence(memory_order_seq_cst);
}

void sim_commit(struct sim_world *w)
{
	atomic_signal_fence(memory_order_seq_cst);
	w->undo.used = 0;
	atomic_signal_fence(memory_order_seq_cst);
}

void sim_rollback(struct sim_world *w)
{
	while (w->undo.used) {
		struct undo_entry entry;
		memcpy(&entry, w->undo.bytes + w->undo.used - sizeof entry, sizeof entry);
		size_t room = sizeof entry + ((entry.size + 7) & ~(size_t)7);
		memcpy((char *)w + entry.offset, w->undo.bytes + w->undo.used - room, entry.size);
		atomic_signal_fence(memory_order_seq_cst);
		w->undo.used -= (uint32_t)room;
		atomic_signal_fence(memory_order_seq_cst);
	}
}

uint64_t sim_card_clock_ns(const struct sim_world *w, uint32_t card, uint64_t now_ns)
{
	double drift = (double)(now_ns - w->born_ns) * w->cards[card].drift_ppm * 1e-6;
	return now_ns + w->card_epoch_ns + (uint64_t)(int64_t)drift;
}

bool sim_name_matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);
	if (n && pattern[n - 1] == '*')
		return strncmp(pattern, name, n - 1) == 0;
	return strcmp(pattern, name) == 0;
}

uint64_t sim_kernel_length_ns(const struct sim_world *w, const char *name, uint64_t default_ns)
{
	for (unsigned i = 0; i < SIM_KERNEL_RULES && w->kernel_rules[i].name[0]; i++) {
		if (sim_name_matches(w->kernel_rules[i].name, name))
			return w->kernel_rules[i].length_ns;
	}
	return default_ns;
}

bool sim_context_is_on_card(const struct sim_world *w, const struct sim_context *context, uint32_t card)
{
	return context->is_used && (context->card == card || w->cards[context->card].parent == card);
}
