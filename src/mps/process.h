/*
 * process.h - what /proc says of processes: of one that is known by its number, and which MPS processes there are.
 */
#ifndef LOADLINE_MPS_PROCESS_H
#define LOADLINE_MPS_PROCESS_H

#include "mps/place.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Field 22 of /proc/PID/stat; 0: no such process, or a zombie. A number and this together are unique. */
uint64_t ll_mps_process_start(pid_t pid);

/* That process, and not another that got its number. */
static inline bool ll_mps_process_is(pid_t pid, uint64_t start_ticks)
{
	return start_ticks && ll_mps_process_start(pid) == start_ticks;
}

/* Whose it is; (uid_t)-1 where that is not known. */
uid_t ll_mps_process_user(pid_t pid);

/* Its program's base name, from its first word; empty where that is not known. */
void ll_mps_process_name(pid_t pid, char *ret_name, size_t size);

/* The file of its program. False: not shown to us. */
bool ll_mps_process_program(pid_t pid, char *ret_path, size_t size);

/* One of its words is a short option with one of these letters: "-d", "-dS". */
bool ll_mps_process_has_flag(pid_t pid, const char *letters);

/* The value of a variable in the environment it was started with. False: not set, or not to be read by us. */
bool ll_mps_process_variable(pid_t pid, const char *name, char *ret_value, size_t size);

/* Sends the signal if it still is that process. */
void ll_mps_process_signal(pid_t pid, uint64_t start_ticks, int number);

struct ll_mps_found {
	pid_t pid;
	uint64_t start_ticks;
	uid_t owner;
	bool is_server;              /* nvidia-cuda-mps-server; else the control daemon */
	char pipe[LL_MPS_PATH_SIZE]; /* "" where its environment is not shown to us */
};

/* Control daemons and servers, at most capacity; returns how many were stored. Milliseconds. */
size_t ll_mps_search(struct ll_mps_found *found, size_t capacity);

#endif
