#include "config/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ll_config_block {
	struct ll_config_block *next;
	_Alignas(max_align_t) unsigned char bytes[];
};

void *ll_config_alloc(struct ll_config_arena *arena, size_t size)
{
	struct ll_config_block *block = size > SIZE_MAX / 2 ? NULL : calloc(1, sizeof *block + size);
	if (!block) {
		arena->failed = true;
		return NULL;
	}
	block->next = arena->blocks;
	arena->blocks = block;
	return block->bytes;
}

char *ll_config_copy(struct ll_config_arena *arena, const char *text, size_t length)
{
	char *copy = ll_config_alloc(arena, length + 1);
	if (copy)
		memcpy(copy, text, length);
	return copy;
}

void ll_config_arena_fini(struct ll_config_arena *arena)
{
	while (arena->blocks) {
		struct ll_config_block *next = arena->blocks->next;
		free(arena->blocks);
		arena->blocks = next;
	}
}
