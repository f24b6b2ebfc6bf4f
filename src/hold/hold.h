/*
 * hold.h - holds one or several cards at a chosen level: sockets, governors, events.
 *
 *     ll_hold_new(...);
 *     while (poll(ll_hold_fd(hold)) ...) while (ll_hold_take(hold, &event)) ...
 *     ll_hold_end(hold);        the summaries come as the last events
 *     ll_hold_free(hold, ...);
 *
 * Each card has a thread, the governor (governor.h), which decides. While a card has a context it also has a process,
 * the worker (worker.h), which launches. Two or more cards that may run Vulkan share one worker. The caller's thread
 * only reads events.
 */
#ifndef LOADLINE_HOLD_HOLD_H
#define LOADLINE_HOLD_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hold/config.h"
#include "hold/event.h"

struct ll_hold;

/*
 * Whether this card can be held as configured; the card is not touched. -EBUSY: exclusive-process mode, where our
 * context would lock every other program out, or prohibited mode. -ENOSYS: the card does not have the metric; err names
 * those that it has. -ENODEV: the card is in MIG mode, so its slices must be named. -EINVAL: the target is over the
 * card's power limit.
 */
int ll_hold_check(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err);

/*
 * Checks every card and binds its hold socket, then starts to hold them. If one card fails, none is held. -EBUSY: a
 * card is held already; err names the holder. config and cards must outlive the hold. Free with ll_hold_free.
 */
int ll_hold_new(const struct ll_hold_config *config, const struct ll_card *const *cards, size_t count,
		struct ll_hold **ret_hold, struct ll_err *err);

/* Returns a descriptor that is readable while events wait. It is the hold's. */
int ll_hold_fd(const struct ll_hold *hold);

/* Takes the oldest event. False: none waits. */
bool ll_hold_take(struct ll_hold *hold, struct ll_event *ret_event);

/* Asks every card to end. Returns at once. */
void ll_hold_end(struct ll_hold *hold);

/* Joins all threads and frees. NULL is fine. False: a driver call did not return by deadline_ns. Nothing is freed then;
 * the caller should end the process. */
bool ll_hold_free(struct ll_hold *hold, uint64_t deadline_ns);

#endif
