/*
 * link_thread.h - the thread of the process that keeps the connection to loadlined open.
 *
 * The thread sleeps on a futex in the orders. If another loadlined serves or the connection is gone, it connects again
 * and asks for the process's slots by their tokens. If the lease is over (lease.h), it opens the words for which the
 * job's streams wait on the card, because all other threads of the program may be inside the driver. It calls no
 * function of the driver.
 *
 * Only files of this folder include it.
 */
#ifndef LOADLINE_SHIM_LINK_LINK_THREAD_H
#define LOADLINE_SHIM_LINK_LINK_THREAD_H

/* Starts the thread, once in a process. Without the thread, a process does not get its claims back after loadlined has
 * ended. */
void ll_link_thread_start(void);

/* Makes the thread check at once, because launches are held from now on or the connection is gone. Needs one load while
 * the thread checks often. */
void ll_link_thread_look(void);

#endif
