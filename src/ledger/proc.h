/*
 * proc.h - what commands find in /proc about other processes. The preloaded library uses none of it, because it does
 * not search the processes of the machine.
 *
 * Claims of dead processes in PID namespaces below the caller's, such as those of containers.
 *
 * A child made by a bare clone() shares its parent's lock descriptions, and no fork handler closes them. If the parent
 * dies first, its claim's lock stays held. A sweep (ledger.h) then judges by the owner's process number, which means
 * nothing in another PID namespace. But a process in a namespace above sees all processes of those below, and /proc
 * tells their numbers there too. So such a process finds the owner, or finds that it is gone.
 *
 * A process in the owner's namespace needs none of this. A process in a namespace beside it cannot know.
 */
#ifndef LOADLINE_LEDGER_PROC_H
#define LOADLINE_LEDGER_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ll_ledger;

/*
 * Sweeps, and withdraws the claims of such owners; returns how many of both. An owner whose last beat (claim.h) is less
 * than 3 s old is taken to live. /proc is walked over only if an owner of another PID namespace has been silent for
 * longer.
 */
size_t ll_ledger_sweep_below(struct ll_ledger *ledger);

/*
 * Gives the row of that card's ledger whose lock the process keeps. Programs that `run` starts keep one, even if they
 * change their environment. False: there is none, or the process is another user's. Some µs for each descriptor of the
 * process.
 */
bool ll_tenant_of_process(pid_t pid, const char *uuid, unsigned *ret_row);

#endif
