/*
 * lock.h - locks on one byte of a file, held by an open file description.
 *
 * They are freed by the kernel when the last descriptor of the description is closed, so at the latest when its process
 * has ended. Two descriptions exclude each other, within a process too; two threads on one do not.
 */
#ifndef LOADLINE_LEDGER_LOCK_H
#define LOADLINE_LEDGER_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

enum { LL_LOCK_HIGH_FD = 512 };

/* A new description of a file, by path; /proc/self/fd/N for one that is open. Its number is moved up to 512 and above
 * where the limit allows, out of the way of programs that close or reuse low ones. -errno on failure. */
int ll_lock_open(const char *path);

/* 0, -EAGAIN when somebody has it, -errno. */
int ll_lock_try(int fd, off_t byte);

/* The same for a lock that others may share: any number of descriptions, but none that has it alone. */
int ll_lock_try_shared(int fd, off_t byte);

/* Whether nobody else has it, shared or not. False when that cannot be told. */
bool ll_lock_is_free(int fd, off_t byte);

/* Tries for as long as wait_ms. -ETIMEDOUT. */
int ll_lock_wait(int fd, off_t byte, unsigned wait_ms);

/* All bytes from `byte` on, for this description alone: 0, or -EAGAIN when somebody has one of them, -errno. */
int ll_lock_try_all(int fd, off_t byte);

void ll_lock_free(int fd, off_t byte);

#endif
