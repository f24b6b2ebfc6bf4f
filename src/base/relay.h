/*
 * relay.h - a pipe whose text comes out at this process's standard error stream.
 *
 * Processes that this one starts write there, so that none of them keeps this process's own descriptor (child.h). A
 * thread copies; what is in the pipe at exit is copied then. After the end of this process a writer gets EPIPE.
 */
#ifndef LOADLINE_BASE_RELAY_H
#define LOADLINE_BASE_RELAY_H

/* Returns the end to write to, which stays open; -1: there is none, because a pipe or a thread could not be made. It is
 * made at the first call. */
int ll_relay_fd(void);

#endif
