/*
 * arena.h - memory that is freed all at once: what a configuration consists of lives as long as the configuration.
 */
#ifndef LOADLINE_CONFIG_ARENA_H
#define LOADLINE_CONFIG_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct ll_config_block;

/* Zeroed, it is ready. */
struct ll_config_arena {
	struct ll_config_block *blocks;
	bool failed; /* memory ran out: what was made in this arena is not whole */
};

/* Returns zeroed memory for any type, which the arena owns. NULL: out of memory; then failed is set. */
void *ll_config_alloc(struct ll_config_arena *arena, size_t size);

/* Returns a copy of the first length bytes of a text, with a NUL. NULL: out of memory. */
char *ll_config_copy(struct ll_config_arena *arena, const char *text, size_t length);

void ll_config_arena_fini(struct ll_config_arena *arena);

#endif
