/*
 * card_gate.h - makes the streams of one context wait, on the card, until the tenant's gate is open (shim/link/port.h).
 *
 * The gate is a 32-bit word in host memory, and the stream waits for a value of this word. Each context maps the word's
 * page again and registers its own mapping with the driver. So the word stays available when another context of the
 * program ends. When the context ends, the driver unregisters the page. The mapping stays.
 */
#ifndef LOADLINE_SHIM_TIME_CARD_GATE_H
#define LOADLINE_SHIM_TIME_CARD_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

struct ll_card_gate {
	enum { LL_CARD_GATE_NEW, LL_CARD_GATE_READY, LL_CARD_GATE_NONE } state;
	_Atomic uint32_t *word;  /* in the context's own mapping, which is never unmapped */
	ll_cu_deviceptr address; /* the word's address on the card */
};

/*
 * Prepares the current context to wait for `word`, which is in the job's page. Returns false if this context can never
 * wait on the card: the driver has no such waits, or it does not register the page.
 */
bool ll_card_gate_prepare(struct ll_card_gate *gate, _Atomic uint32_t *word);

/* Adds a wait to the stream: all later launches into the stream wait until the gate is open. Returns false if the
 * driver refused. The stream must not be in a capture. */
bool ll_card_gate_wait(const struct ll_card_gate *gate, struct ll_cu_stream *stream);

/* Stops using the word, because it belongs to the tenant no longer. Opens the word's gate, so streams that wait for it
 * continue. The next launch prepares the gate again. */
void ll_card_gate_leave(struct ll_card_gate *gate);

#endif
