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
	_Atomic uint32_t calls; /* made so far */
	_Atomic uint32_t heard; /* the thread knew of so many when it parked */
	_Atomic uint32_t state;
};

/* ---- the thread's side ---- */

/* Returns the number of calls, for park. To be called before the thread looks what there is to do. */
uint32_t ll_parking_listen(const struct ll_parking *parking);

/* Parks: there was nothing to do. heard: what listen returned. From here to leave the thread may only sleep. */
void ll_parking_park(struct ll_parking *parking, uint32_t heard);

/* Ends the parking: at once, or when the thread is no longer kept. Fine without park. */
void ll_parking_leave(struct ll_parking *parking);

/* ---- the other side ---- */

/* Counts a call: there is something to do. To be called before the thread is woken. */
void ll_parking_call(struct ll_parking *parking);

/* Keeps the thread parked until let_go. False: it is not parked, or has not heard the last call. */
bool ll_parking_keep(struct ll_parking *parking);
void ll_parking_let_go(struct ll_parking *parking); /* Fine without keep. */

/* Resets the state after the process has ended and before the next one starts. */
void ll_parking_forget(struct ll_parking *parking);

#endif
