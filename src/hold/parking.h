/*
 * parking.h - when a worker's process may be stopped (SIGSTOP): what each lane's page says of its thread.
 *
 * A thread is parked while it does nothing but sleep until it is called. From outside, a parked one can be kept so:
 * then it stays where it is even when it wakes, and the process can be stopped without anything being half done in it,
 * no lock of a page held above all. A call is counted before the thread is woken, and whoever has not heard the last
 * one is not kept, so no call is slept through.
 *
 * Words in shared memory, all atomic; either side may be killed at any instruction.
 */
#ifndef LOADLINE_HOLD_PARKING_H
#define LOADLINE_HOLD_PARKING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ll_parking {
	_Atomic uint32_t calls;
	_Atomic uint32_t heard; /* of them, when it parked */
	_Atomic uint32_t state;
};

/* ---- the thread's side ---- */

/* Before it looks what there is to do: for park. */
uint32_t ll_parking_listen(const struct ll_parking *parking);

/* There was nothing to do; heard: what listen said. From here to leave the thread only sleeps. */
void ll_parking_park(struct ll_parking *parking, uint32_t heard);

/* It goes on: at once, or as soon as it is kept no longer. Fine without park. */
void ll_parking_leave(struct ll_parking *parking);

/* ---- the other side ---- */

/* There is something to do. To be said before the thread is woken. */
void ll_parking_call(struct ll_parking *parking);

/* True: the thread is parked and has heard all calls, and is kept so until let_go. */
bool ll_parking_keep(struct ll_parking *parking);
void ll_parking_let_go(struct ll_parking *parking); /* Fine without keep. */

/* The thread is gone with its process, and the next one has not begun. */
void ll_parking_forget(struct ll_parking *parking);

#endif
