/*
 * xid.h - the driver's fault reports (Xid) of one card, without waiting for them.
 *
 * A watch sees faults from its opening on, everyone's: a crash of somebody else's program on the card shows too.
 * One thread at a time.
 */
#ifndef LOADLINE_DRIVER_XID_H
#define LOADLINE_DRIVER_XID_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cards.h"

struct ll_xid_watch;

/* -ENOSYS where the driver has no events (then there are none to see), -EPERM. */
int ll_xid_open(const struct ll_card *card, struct ll_xid_watch **ret_watch, struct ll_err *err);
void ll_xid_close(struct ll_xid_watch *watch); /* NULL is fine */

/* The next fault: 1 with its number, 0 when there is none, -errno. Returns at once. -ENODEV: the card is gone. */
int ll_xid_poll(struct ll_xid_watch *watch, uint64_t *ret_xid, struct ll_err *err);

/* Faults that a program causes in itself (13 31 43 45 68 69 109 …): other contexts go on. The rest concern the card. */
bool ll_xid_is_application(uint64_t xid);

/* "GPU has fallen off the bus" for 79; "see NVIDIA's Xid catalogue" for those not known here. */
const char *ll_xid_text(uint64_t xid);

#endif
