/*
 * parking.h - when a worker's process may be stopped (SIGSTOP): what a lane's page says of its thread.
 *
 * A thread is parked while it only sleeps until it is called. The other side can keep a parked thread: if the thread
 * then wakes, it waits. So the process can be stopped while none of its threads is in the middle of something or holds
 * a page's lock. A call is counted before the thread is woken. A thread that has not heard the last call cannot be
 * kept, so no call is lost.
 *
 * The words are in shared memory and atomic. Either side may be killed at any instruction.
 */
#ifndef LOADLINE_HOLD_PARKING_H
#define LOADLINE_HOLD_PARKING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ll_parking {
	_Atomic uint32_t calls; /* number of calls so far */
	_Atomic uint32_t heard; /* the number of calls that the thread knew when it parked */
	_Atomic uint32_t state;
};

/* ---- the thread's side ---- */

/* Returns the number of calls, for ll_parking_park. The thread calls it before it checks for work. */
uint32_t ll_parking_listen(const struct ll_parking *parking);

/* Parks the thread, which has nothing to do. heard: the result of ll_parking_listen. Until ll_parking_leave the thread
 * may only sleep. */
void ll_parking_park(struct ll_parking *parking, uint32_t heard);

/* Ends the parking: at once, or when the thread is no longer kept. Allowed without park. */
void ll_parking_leave(struct ll_parking *parking);

/* ---- the other side ---- */

/* Counts a call. The caller calls it before it wakes the thread. */
void ll_parking_call(struct ll_parking *parking);

/* Keeps the thread parked until let_go. False: it is not parked, or has not heard the last call. */
bool ll_parking_keep(struct ll_parking *parking);
void ll_parking_let_go(struct ll_parking *parking); /* Allowed without keep. */

/* Resets the state after the process has ended and before the next one starts. */
void ll_parking_forget(struct ll_parking *parking);

#endif
