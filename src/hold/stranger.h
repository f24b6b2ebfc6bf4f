/*
 * stranger.h - which program a hold yields to: the one that it names at its end.
 *
 * No reading tells which of several programs ran a kernel. A governed program that has work comes first, then any other
 * program with a context on the card. Processes that serve others and run no kernels themselves come last: MPS's server
 * and loadline's own.
 */
#ifndef LOADLINE_HOLD_STRANGER_H
#define LOADLINE_HOLD_STRANGER_H

#include <stddef.h>
#include <sys/types.h>

struct ll_governed;
struct ll_process_list;

struct ll_hold_stranger {
	pid_t pid;       /* 0: no program is known, such as one in a PID namespace that NVML does not show */
	char name[64];   /* the tenant of a governed program, else the process's name */
	unsigned others; /* how many more programs are on the card, without processes that serve others */
};

/* Fills *stranger. If none is found it stays as it is. processes: those on the card; own_pid, the payload's process,
 * and the caller are no strangers. governed: the governed programs on the card (governed.h). */
void ll_hold_stranger_find(const struct ll_process_list *processes, pid_t own_pid, const struct ll_governed *governed,
			   size_t governed_count, struct ll_hold_stranger *stranger);

#endif
