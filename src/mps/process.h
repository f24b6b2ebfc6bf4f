/*
 * process.h - what /proc says of processes: of one with a known process id, and which MPS processes there are.
 */
#ifndef LOADLINE_MPS_PROCESS_H
#define LOADLINE_MPS_PROCESS_H

#include "mps/place.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns field 22 of /proc/PID/stat; 0: there is no such process, or it is a zombie. A process id and this start time
 * together are unique. */
uint64_t ll_mps_process_start(pid_t pid);

/* Whether that process lives, and is not a later one with the same process id. */
static inline bool ll_mps_process_is(pid_t pid, uint64_t start_ticks)
{
	return start_ticks && ll_mps_process_start(pid) == start_ticks;
}

/* Returns the process's user; (uid_t)-1: not known. */
uid_t ll_mps_process_user(pid_t pid);

/* Gives the name of its program: whole for MPS's own programs, else as the kernel has it, up to 15 characters; empty:
 * not known. Waits for no lock of another program than MPS's. */
void ll_mps_process_name(pid_t pid, char *ret_name, size_t size);

/* Gives the file of its program. False: /proc does not show it to this user. */
bool ll_mps_process_program(pid_t pid, char *ret_path, size_t size);

/* Gives the value of a variable in the environment with which it was started. False: the variable is not set, or this
 * user may not read it. */
bool ll_mps_process_variable(pid_t pid, const char *name, char *ret_value, size_t size);

/* Sends the signal if the process id still belongs to that process. */
void ll_mps_process_signal(pid_t pid, uint64_t start_ticks, int number);

struct ll_mps_found {
	pid_t pid;
	uint64_t start_ticks;
	uid_t owner;
	bool is_server;              /* nvidia-cuda-mps-server; else the control daemon */
	char pipe[LL_MPS_PATH_SIZE]; /* "": this user may not read its environment */
};

/* Finds control daemons and servers, and stores at most `capacity`. Returns how many were stored. Takes milliseconds.
 * */
size_t ll_mps_search(struct ll_mps_found *found, size_t capacity);

#endif
