/*
 * wait_listener.h - finds who in this process wants to know how long launches wait (base/wait_listener.h).
 */
#ifndef LOADLINE_SHIM_HOOKS_WAIT_LISTENER_H
#define LOADLINE_SHIM_HOOKS_WAIT_LISTENER_H

#include "base/wait_listener.h"

/* NULL: nobody. The process is searched once; what is loaded after the first launch that waits is not found. */
ll_wait_listener *ll_wait_listener_find(void);

#endif
