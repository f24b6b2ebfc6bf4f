/*
 * wait_listener.h - finds the function of this process that wants to know how long launches wait
 * (base/wait_listener.h).
 */
#ifndef LOADLINE_SHIM_HOOKS_WAIT_LISTENER_H
#define LOADLINE_SHIM_HOOKS_WAIT_LISTENER_H

#include "base/wait_listener.h"

/* Returns the listener; NULL: there is none. The process is searched once, so a library that is loaded after the first
 * launch that waits is not found. */
ll_wait_listener *ll_wait_listener_find(void);

#endif
