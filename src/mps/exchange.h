/*
 * exchange.h - one command to an MPS daemon and its answer, within a time.
 *
 * The driver's only interface for this is its program nvidia-cuda-mps-control: a command goes to its standard input,
 * and it prints the answer. This module works around four faults of the program. It may wait for ever, so it is killed
 * at the deadline. It answers an unknown or refused command on standard output with exit status 0, so the answer is
 * read. It reports a missing daemon as a sentence in the same way. And while the daemon listens to one caller, it
 * refuses all others: so commands of loadline come one after the other, by a lock on the log folder, and are repeated
 * if another program's command is in the way.
 */
#ifndef LOADLINE_MPS_EXCHANGE_H
#define LOADLINE_MPS_EXCHANGE_H

#include <stdint.h>

#include "base/strbuf.h"
#include "mps/place.h"

struct ll_err;

/*
 * Sends one command line, without a newline, and waits until the program has ended or deadline_ns (ll_now_ns) has
 * passed. ret_answer, an initialised string, is emptied and gets what the program printed, without trailing blank
 * lines.
 *
 * -ECONNREFUSED: there is no daemon at this place. -ETIMEDOUT: there was no answer in time; the program is killed, and
 * what the daemon does with the command is not known. -EAGAIN: the daemon listened to other callers all the time.
 * -EOPNOTSUPP: this daemon does not know the command. -ENOENT: there is no control program. -EPERM: the daemon is
 * another user's. -EIO: any other refusal, which err quotes.
 */
int ll_mps_ask(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer, struct ll_err *err,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/*
 * The same for a command that changes something. Success is an empty answer, "0", or the value that was set. Any other
 * answer is -EIO, and err quotes it. wanted: that value, a percentage or bytes; negative: the command sets none.
 */
int ll_mps_order(const struct ll_mps_place *place, uint64_t deadline_ns, double wanted, struct ll_err *err,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
