/*
 * scope.h - cleanup attributes, which release a variable's resource at the end of its scope.
 */
#ifndef LOADLINE_BASE_SCOPE_H
#define LOADLINE_BASE_SCOPE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void ll_scope_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void ll_scope_free(void *p)
{
	free(*(void **)p);
}

static inline void ll_scope_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void ll_scope_unlock(pthread_mutex_t **m)
{
	if (*m)
		pthread_mutex_unlock(*m);
}

static inline void ll_scope_cancel(int *state)
{
	pthread_setcancelstate(*state, NULL);
}

#define LL_SCOPE_CLOSE __attribute__((cleanup(ll_scope_close)))
#define LL_SCOPE_FREE __attribute__((cleanup(ll_scope_free)))
#define LL_SCOPE_FCLOSE __attribute__((cleanup(ll_scope_fclose)))

/* Locks m until the end of the scope. */
#define LL_SCOPE_LOCK(m)                                                                                               \
	pthread_mutex_t *scope_lock_ __attribute__((cleanup(ll_scope_unlock), unused)) = (m);                          \
	pthread_mutex_lock(scope_lock_)

/* Until the end of the scope the thread cannot be cancelled, because a cancelled thread would not release its
 * resources. */
#define LL_SCOPE_NO_CANCEL                                                                                             \
	int scope_cancel_ __attribute__((cleanup(ll_scope_cancel)));                                                   \
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &scope_cancel_)

#endif
