/*
 * xid.h - the driver's fault reports (Xid) of one card, without waiting for them.
 *
 * A watch sees all faults from its opening on, also those of other users' programs on the card. One thread at a time.
 */
#ifndef LOADLINE_DRIVER_XID_H
#define LOADLINE_DRIVER_XID_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cards.h"

struct ll_xid_watch;

/* Opens a watch. -ENOSYS: the driver has no events, so no faults can be seen. -EPERM. */
int ll_xid_open(const struct ll_card *card, struct ll_xid_watch **ret_watch, struct ll_err *err);
void ll_xid_close(struct ll_xid_watch *watch); /* NULL is fine */

/* Takes the next fault, and returns at once. Returns 1 and the fault's number, 0 if there is none, or -errno. -ENODEV:
 * the card is gone. */
int ll_xid_poll(struct ll_xid_watch *watch, uint64_t *ret_xid, struct ll_err *err);

/* "GPU has fallen off the bus" for 79; "see NVIDIA's Xid catalogue" for those not known here. */
const char *ll_xid_text(uint64_t xid);

#endif
