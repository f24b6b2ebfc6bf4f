/*
 * link_thread.h - one thread of the process that keeps its connection to loadlined.
 *
 * The thread sleeps on a futex of the orders. It connects again when another loadlined serves, or the connection is
 * gone, and asks for the process's slots by their tokens. If the lease is over (lease.h), it opens the words on the
 * card that the job's streams wait for: the program's other threads may all be inside the driver. It calls no function
 * of the driver.
 *
 * Private to this folder.
 */
#ifndef LOADLINE_SHIM_LINK_LINK_THREAD_H
#define LOADLINE_SHIM_LINK_LINK_THREAD_H

/* Starts the thread, once in a process. Without one, claims are not taken again after loadlined's end. */
void ll_link_thread_start(void);

/* It looks at once: something is held from now on, or the connection is gone. Costs a load while it looks often. */
void ll_link_thread_look(void);

#endif
