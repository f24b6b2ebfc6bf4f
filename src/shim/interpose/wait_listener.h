/*
 * wait_listener.h - finds the function of this process to which the library reports how long launches wait
 * (base/wait_listener.h).
 */
#ifndef LOADLINE_SHIM_INTERPOSE_WAIT_LISTENER_H
#define LOADLINE_SHIM_INTERPOSE_WAIT_LISTENER_H

#include "base/wait_listener.h"

/* Returns the listener; NULL: there is none. The process is searched once. So a listener in a library that is loaded
 * after the first waiting launch is not found. */
ll_wait_listener *ll_wait_listener_find(void);

#endif
