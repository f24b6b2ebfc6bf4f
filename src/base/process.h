/*
 * process.h - a descriptor that identifies a process, and reports its end.
 *
 * A pid may be reused for another process, and has no meaning in another PID namespace. A descriptor has neither fault.
 * It is a pidfd (Linux 5.3), which poll() reports as readable at the process's end. If the kernel is older, or a
 * container's filter forbids pidfds, it is the open folder /proc/PID. That stays this process's folder, but it must be
 * polled.
 */
#ifndef LOADLINE_BASE_PROCESS_H
#define LOADLINE_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens a descriptor for the process, closed on exec. -ESRCH: there is no such process. */
int ll_process_open(pid_t pid);

/* The same, but only a pidfd. Returns -1 with errno if there is none. */
int ll_process_open_pidfd(pid_t pid);

/* Opens a descriptor for the process that connected this Unix socket (SO_PEERPIDFD, Linux 6.5; otherwise by its pid).
 * -ESRCH: the process is in a PID namespace that is not visible here, or has ended. */
int ll_process_of_peer(int socket_fd);

/* Whether the descriptor is a pidfd. */
bool ll_process_is_pidfd(int fd);

/* Whether the descriptor identifies a process, so that the functions here accept it. */
bool ll_process_is_valid(int fd);

/* Whether the process has ended. A zombie has ended. */
bool ll_process_has_ended(int fd);

/* Returns the pid in this PID namespace; 0: the process has ended, or is not visible here. */
pid_t ll_process_id_of_fd(int fd);

/* A process that is not root may signal processes whose real or saved uid is its own. */
struct ll_process_users {
	uid_t real, saved;
};

/* Reads the uids from /proc. -ENOENT: the process has ended, or /proc hides it. */
int ll_process_read_users(int fd, struct ll_process_users *ret_users);

#endif
