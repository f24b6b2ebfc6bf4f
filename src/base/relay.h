/*
 * relay.h - a pipe whose contents are copied to this process's standard error stream.
 *
 * Processes that this one starts write to the pipe, so that none of them keeps this process's own descriptor (child.h).
 * A thread copies. At exit the rest of the pipe is copied. After the end of this process a writer gets EPIPE.
 */
#ifndef LOADLINE_BASE_RELAY_H
#define LOADLINE_BASE_RELAY_H

/* Returns the writing end, which stays open; -1: no pipe or thread could be made. The first call makes them. */
int ll_relay_fd(void);

#endif
