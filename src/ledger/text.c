#include "ledger/text.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_BYTES = 8, COPY_TRIES = 1000 };

void ll_text_put(_Atomic uint32_t *text_sequence, _Atomic uint64_t *words, size_t word_count, const char *text)
{
	uint32_t sequence = atomic_load(text_sequence) | 1;
	size_t left = strnlen(text ? text : "", word_count * WORD_BYTES - 1);
	atomic_store(text_sequence, sequence);
	for (size_t i = 0; i < word_count; i++) {
		uint64_t word = 0;
		size_t n = left < WORD_BYTES ? left : WORD_BYTES;
		if (n)
			memcpy(&word, text + i * WORD_BYTES, n);
		left -= n;
		atomic_store_explicit(&words[i], word, memory_order_release);
	}
	atomic_store(text_sequence, sequence + 1);
}

static void clean_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *c = text; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

static bool try_text(const _Atomic uint32_t *text_sequence, const _Atomic uint64_t *words, size_t word_count,
		     char *text)
{
	uint32_t sequence = atomic_load(text_sequence);
	for (size_t w = 0; w < word_count; w++) {
		uint64_t word = atomic_load_explicit(&words[w], memory_order_acquire);
		memcpy(text + w * WORD_BYTES, &word, WORD_BYTES);
	}
	return !(sequence & 1) && atomic_load(text_sequence) == sequence;
}

/* Bounded: a writer may have been stopped half-way, or never pause. Nothing is better than half of two texts then. */
void ll_text_get(const _Atomic uint32_t *text_sequence, const _Atomic uint64_t *words, size_t word_count, char *text)
{
	bool is_whole = false;
	for (int i = 0; i < COPY_TRIES && !is_whole; i++)
		is_whole = try_text(text_sequence, words, word_count, text);
	if (!is_whole)
		text[0] = '\0';
	clean_text(text, word_count * WORD_BYTES);
}
