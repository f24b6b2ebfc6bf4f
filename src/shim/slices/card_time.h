/*
 * card_time.h - keeps the windows in which the process's contexts are on a card, and the length of their time slices.
 *
 * loadlined orders them (struct ll_card_time in protocol/records.h). A thread of its own for each card, "ll-card-time",
 * asks the kernel driver. The thread never calls CUDA, because the calls of a process may wait inside CUDA until its
 * contexts are on the card again. It takes each new context off and lets it on at once, and reports whether the driver
 * did what it was asked; it makes no other call until something is ordered. If loadlined ends, the contexts are on the
 * card after LL_LEASE_NS.
 */
#ifndef LOADLINE_SHIM_SLICES_CARD_TIME_H
#define LOADLINE_SHIM_SLICES_CARD_TIME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/link/port.h"

struct ll_card_time_thread;

/* Starts the thread for the card with this UUID, which must stay valid. device: CUDA's ordinal. *claim may change; it
 * is never NULL. Both stay valid until the process ends. In a forked child there is no thread. Returns 0 or -errno. */
int ll_card_time_start(int device, const char *uuid, _Atomic(struct ll_claim *) *claim,
		       struct ll_card_time_thread **ret_thread);

/* Takes the process's contexts off the card in the midst of their work, until they are let on again, whatever loadlined
 * orders and also without it. Waits until that is done: about 1 ms. -ENOTSUP: the driver did not take them all off, and
 * they are on the card. NULL is allowed: -ENOTSUP. */
int ll_card_time_stop(struct ll_card_time_thread *thread);

/* Lets them on, as far as loadlined allows. Waits for it as well. NULL is allowed. */
void ll_card_time_go_on(struct ll_card_time_thread *thread);

#endif
