/*
 * trace.h - when this user's contexts have come on a card and gone, as the kernel driver traces it (abi/rm_trace.h).
 *
 * The trace is opened by a client of its own, so it needs no CUDA and disturbs none. A context that is alone on the
 * card has no records: it stays until another one comes, or until it is taken off. The last 0.15 ms of a stay are the
 * saving of the context's state (doc/facts.md#the-trace).
 */
#ifndef LOADLINE_SLICES_TRACE_H
#define LOADLINE_SLICES_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/rm_trace.h"
#include "slices/groups.h"

/* Records that are kept until they are read; about 0.5 s of the fastest switches that were seen. */
enum { LL_TRACE_RECORDS = 8192 };

struct ll_trace;

/* Opens the trace of the card with this UUID ("GPU-..."). Takes some ms. -ENODEV: the card was not found; -ENOMEM;
 * -EPERM or -EIO: the driver refuses; or the error of a system call. */
int ll_trace_open(ll_ioctl_fn next, const char *uuid, struct ll_trace **ret_trace);

/* trace may be NULL. Not for a forked child, whose trace is its parent's. */
void ll_trace_close(struct ll_trace *trace);

/*
 * Asks the driver for what the card has noted by now (some 40 us, and up to 20 ms while anybody makes contexts), and
 * copies the records that have come since the last call, oldest first. *ret_lost: records are missing before these.
 * Returns their number; if it is `most`, there are more. -EBADF: the program has closed the descriptor; or the error of
 * the driver.
 */
int ll_trace_read(struct ll_trace *trace, struct ll_rm_switch_record *ret_records, size_t most, bool *ret_lost);

#endif
