#include "shim/time/gate.h"

#include <stddef.h>

static _Atomic uint32_t open_word = LL_GATE_OPEN;
static _Atomic uint32_t shut_word = LL_GATE_SHUT;

struct ll_gate_line ll_gate_line = {.word = &shut_word};

void ll_gate_set(_Atomic uint32_t *word)
{
	atomic_store(&ll_gate_line.word, word ? word : &shut_word);
}

void ll_gate_set_open(void)
{
	atomic_store(&ll_gate_line.count.limit, LL_GATE_NO_LIMIT);
	atomic_store(&ll_gate_line.word, &open_word);
}
