/*
 * process.h - a descriptor that stands for a process, and tells when that process has ended.
 *
 * A process number may come again for another process, and means nothing in another PID namespace. A descriptor has
 * neither fault. It is a pidfd (Linux 5.3), which poll() reports as readable at the process's end. Where there is none,
 * because the kernel is older or a container's filter forbids it, it is the folder /proc/PID, held open: it stays that
 * process's, and must be asked again and again.
 */
#ifndef LOADLINE_BASE_PROCESS_H
#define LOADLINE_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens a descriptor for the process, closed on exec. -ESRCH: there is no such process. */
int ll_process_open(pid_t pid);

/* The same, but a pidfd alone. -1 with errno where there is none. */
int ll_process_open_pidfd(pid_t pid);

/* Opens a descriptor for the process that connected this Unix socket (SO_PEERPIDFD, Linux 6.5; otherwise by its
 * number). -ESRCH: it is in a PID namespace that is not seen from here, or has ended. */
int ll_process_of_peer(int socket_fd);

/* Whether the descriptor is a pidfd. */
bool ll_process_is_pidfd(int fd);

/* Whether the descriptor stands for a process at all, and so may be given to the functions here. */
bool ll_process_is_valid(int fd);

/* Whether the process has ended. One that waits for its parent to read its status (a zombie) has. */
bool ll_process_has_ended(int fd);

/* Returns the process's number in this PID namespace. 0: it has ended, or is not seen from here. */
pid_t ll_process_id_of_fd(int fd);

#endif
