/*
 * text.h - texts in the shared page, written and read while others do the same. Private to src/ledger.
 *
 * A text is an array of words; the sequence beside it is odd while any text of its slot or row is being written.
 */
#ifndef LOADLINE_LEDGER_TEXT_H
#define LOADLINE_LEDGER_TEXT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* NUL-ended and cut on the way in; printable ASCII on the way out, '?' for the rest, and empty where a writer keeps at
 * it. */
void ll_text_put(_Atomic uint32_t *text_sequence, _Atomic uint64_t *words, size_t word_count, const char *text);
void ll_text_get(const _Atomic uint32_t *text_sequence, const _Atomic uint64_t *words, size_t word_count, char *text);

/* owner: a slot or a tenant's row. */
#define LL_TEXT_PUT(owner, field, text)                                                                                \
	ll_text_put(&(owner)->text_sequence, (owner)->field, sizeof(owner)->field / sizeof(uint64_t), text)
#define LL_TEXT_GET(owner, field, text)                                                                                \
	ll_text_get(&(owner)->text_sequence, (owner)->field, sizeof(owner)->field / sizeof(uint64_t), text)

#endif
