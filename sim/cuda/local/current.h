/*
 * current.h - which context is current in a thread, and whether a context still works.
 *
 * Each thread has a stack of contexts; the top is current. NULL can be on the stack. A green context's view can be
 * current too.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_CURRENT_H
#define LOADLINE_SIM_CUDA_LOCAL_CURRENT_H

#include "cuda/local/state.h"

/* Finds this thread's context. A green context's view represents its primary context. Returns INVALID_CONTEXT if there
 * is none, otherwise the status of sim_context_status. */
ll_cu_result sim_current(struct ll_cu_context **ret_context);

/* Returns the status that every call in a context returns: success, the error by which it was lost, or
 * CONTEXT_IS_DESTROYED if it is no context any more. */
ll_cu_result sim_context_status(const struct ll_cu_context *context);

/* Returns whether a handle is a context of this process. Views of green contexts are not. */
bool sim_context_is_known(const struct ll_cu_context *context);

/* Returns whether a handle may be current: it is a context, or a green context's view. */
bool sim_context_may_be_current(const struct ll_cu_context *context);

/* Returns the handle on top of this thread's stack as it was pushed, or NULL. It needs no lock. */
struct ll_cu_context *sim_current_top(void);

/* Returns whether this thread's stack is empty. It needs no lock. */
bool sim_current_is_empty(void);

/* Puts a context on this thread's stack. INVALID_VALUE: the stack is full (SIM_CONTEXT_STACK). INVALID_CONTEXT: it is a
 * green context's view that another thread uses. */
ll_cu_result sim_current_push(struct ll_cu_context *context);

/* Removes the top of this thread's stack and returns it. The stack must not be empty. */
struct ll_cu_context *sim_current_pop(void);

/* Replaces the top, or pushes the context if the stack is empty. Errors are those of sim_current_push. */
ll_cu_result sim_current_replace(struct ll_cu_context *context);

/* Replaces a context that is destroyed by NULL, wherever it is on this thread's stack. */
void sim_current_forget(const struct ll_cu_context *context);

/* Removes NULLs from the top of this thread's stack. It needs no lock. */
void sim_current_drop_forgotten(void);

#endif
