/*
 * exchange.h - one command to an MPS daemon and its answer, within a time.
 *
 * The driver has no interface for this but its own program: the command goes to the standard input of a
 * `nvidia-cuda-mps-control` started for it, the answer is what that prints. Four things are wrong with it as it is,
 * and mended here: it may wait for ever, so it is killed at the deadline; it answers an unknown command and a refused
 * one on standard output with exit status 0, so the answer is read; a daemon that is not there is a sentence too; and
 * while the daemon listens to one caller it refuses all others, so ours come one after the other (by a lock on the log
 * directory), and ask again where somebody else's is in the way.
 */
#ifndef LOADLINE_MPS_EXCHANGE_H
#define LOADLINE_MPS_EXCHANGE_H

#include <stdint.h>

#include "base/strbuf.h"
#include "mps/place.h"

struct ll_err;

/*
 * Sends one command line (no newline in it), waits until the program has ended, but not past deadline_ns (ll_now_ns).
 * ret_answer, an initialised string, is emptied and gets what was printed, trailing blank lines removed.
 *
 * -ECONNREFUSED: no daemon at this place. -ETIMEDOUT: no answer in time; the program we started is gone, what the
 * daemon does with the command is not known. -EAGAIN: it listened to others all the time. -EOPNOTSUPP: this daemon does
 * not know the command. -ENOENT: no control program. -EPERM: the daemon is another user's. -EIO: anything else that is
 * a refusal and not an answer; the text quotes it.
 */
int ll_mps_ask(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer, struct ll_err *err,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/*
 * The same for a command that changes something: only an empty answer, "0", or the value that was set is success, all
 * else -EIO, quoted. wanted: that value, a percentage or bytes; negative: none.
 */
int ll_mps_order(const struct ll_mps_place *place, uint64_t deadline_ns, double wanted, struct ll_err *err,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
