#include "protocol/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { ALL_OF_IT = 1000 };

/* FNV-1a */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * HASH_PRIME;
	return hash;
}

static uint64_t add_number(uint64_t hash, uint64_t number)
{
	return add_bytes(hash, &number, sizeof number);
}

static uint64_t not_zero(uint64_t hash)
{
	return hash ? hash : 1;
}

uint64_t ll_program_key(const char *path, char *const *words)
{
	uint64_t hash = add_bytes(HASH_BEGIN, path, strlen(path) + 1);
	/* The executable's path replaces the first word, which may be written in several ways. */
	for (size_t i = 1; words[0] && words[i]; i++)
		hash = add_bytes(hash, words[i], strlen(words[i]) + 1);
	return not_zero(hash);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

void ll_program_name(char *const *words, char ret_name[LL_PROGRAM_NAME_SIZE])
{
	const char *more = NULL;
	for (size_t i = 1; words[0] && words[i] && !more; i++)
		more = words[i][0] == '-' || !words[i][0] ? NULL : words[i];
	memset(ret_name, 0, LL_PROGRAM_NAME_SIZE);
	snprintf(ret_name, LL_PROGRAM_NAME_SIZE, "%s%s%s", words[0] ? base_of(words[0]) : "", more ? " " : "",
		 more ? base_of(more) : "");
	ll_utf8_clean(ret_name);
}

enum ll_way ll_way_of(const struct ll_limits *limits)
{
	return limits->space_permille ? LL_WAY_SPACE : LL_WAY_SLICES;
}

/* A share is of the time (slices) or of the SMs (space). A share of all of it is no limit. */
static unsigned compute_of(const struct ll_limits *limits)
{
	unsigned permille = limits->space_permille ? limits->space_permille : limits->compute_permille;
	return permille < ALL_OF_IT ? permille : 0;
}

uint64_t ll_program_under(uint64_t key, const struct ll_limits *limits)
{
	if (!key)
		return 0;
	uint64_t hash = add_number(HASH_BEGIN, key);
	hash = add_number(hash, limits->priority);
	hash = add_number(hash, limits->weight_permille ? limits->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE);
	hash = add_number(hash, limits->slowdown_permille ? limits->slowdown_permille : LL_DEFAULT_SLOWDOWN_PERMILLE);
	return not_zero(add_number(hash, compute_of(limits)));
}

static int compare_names(const void *left, const void *right)
{
	uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
	return one < other ? -1 : one > other;
}

uint64_t ll_programs_key(uint64_t *keys, size_t count)
{
	uint64_t hash = HASH_BEGIN;
	qsort(keys, count, sizeof *keys, compare_names);
	if (!count || !keys[0])
		return 0;
	for (size_t i = 0; i < count; i++)
		hash = add_number(hash, keys[i]);
	return not_zero(hash);
}
