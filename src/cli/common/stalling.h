/*
 * stalling.h - reads of /proc that can stall: cmdline, environ and maps of a process wait for its memory lock
 * (mmap_lock), which a program that pins gigabytes of its host's memory has for seconds.
 *
 * Each process is read by a thread of its own, and a command waits for all of them together at most LL_STALLING_NS. A
 * thread that has not come back then goes on by itself, and frees what it has; the end of the program ends it. Until
 * then its process is not read again, so `status --watch` has one such thread for each process.
 */
#ifndef LOADLINE_CLI_COMMON_STALLING_H
#define LOADLINE_CLI_COMMON_STALLING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"

/* A read that does not stall takes some 0.1 ms, and some ms where the machine is busy. */
#define LL_STALLING_NS (250 * LL_NS_PER_MS)

/* Reads of that process what it wants, into a zeroed result. Runs in another thread. */
typedef void (*ll_stalling_fn)(pid_t pid, void *ret_result);

/*
 * Calls the function for each of the processes, all at once. ret_results: an array of count results of size bytes each.
 * The result of a process whose read has not ended in time, or could not be begun, is zeros, and its ret_is_read is
 * false.
 */
void ll_stalling_read(const pid_t *pids, size_t count, ll_stalling_fn read, size_t size, void *ret_results,
		      bool *ret_is_read);

/*
 * Programs that an older loadline governs.
 *
 * Before loadlined a program's library shared a file of the card with others, UUID.ledger, and decided by itself. Such
 * a program goes on in that way. It is known by the file, which it has mapped.
 */

/* Whether an older loadline governs the process. False also if it is another user's, or has ended. */
bool ll_process_is_of_older(pid_t pid);

#endif
