/*
 * card_gate.h - the tenant's gate on the card (ledger/visit.h), as the streams of one context see it.
 *
 * A stream waits for the gate's word in memory of the host. Each context maps the word's page anew and registers it
 * with the driver, so that the end of another context of the program takes nothing from it. The page stays mapped when
 * the context ends: the driver lets it go then.
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
 * Sees that the context, which is current, can wait for that word of the ledger's page. False: it cannot, now and later
 * (the driver has no such waits, or does not register the page).
 */
bool ll_card_gate_prepare(struct ll_card_gate *gate, _Atomic uint32_t *word);

/* What is launched into the stream from here on waits until the gate is open. False: the driver refused it. The stream
 * is not being captured. */
bool ll_card_gate_wait(const struct ll_card_gate *gate, struct ll_cu_stream *stream);

/* The word is not the tenant's any more: what waits for it goes on, and the next launch prepares anew. */
void ll_card_gate_leave(struct ll_card_gate *gate);

#endif
