/*
 * card_gate.h - lets the streams of one context wait for the tenant's gate on the card (shim/link/port.h).
 *
 * A stream waits for the gate's word, which is in host memory. Each context maps the word's page anew and registers
 * that mapping with the driver. So the end of another context of the program does not take the page from it. The page
 * stays mapped when the context ends: the driver lets it go then.
 */
#ifndef LOADLINE_SHIM_TIME_CARD_GATE_H
#define LOADLINE_SHIM_TIME_CARD_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

struct ll_card_gate {
	enum { LL_CARD_GATE_NEW, LL_CARD_GATE_READY, LL_CARD_GATE_NONE } state;
	_Atomic uint32_t *word;  /* in the context's own mapping, which stays */
	ll_cu_deviceptr address; /* of the word, for the card */
};

/*
 * Prepares the current context to wait for that word of the job's page. False: this context cannot wait on the card,
 * now or later, because the driver has no such waits or does not register the page.
 */
bool ll_card_gate_prepare(struct ll_card_gate *gate, _Atomic uint32_t *word);

/* From here on all launches into the stream wait until the gate is open. False: the driver refused. The stream must not
 * be in a capture. */
bool ll_card_gate_wait(const struct ll_card_gate *gate, struct ll_cu_stream *stream);

/* The word is no longer the tenant's. Streams that wait for it go on. The next launch prepares the gate anew. */
void ll_card_gate_leave(struct ll_card_gate *gate);

#endif
