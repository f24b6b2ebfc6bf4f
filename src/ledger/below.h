/*
 * below.h - claims of dead processes in PID namespaces below the caller's, such as those of containers.
 *
 * A child made by a bare clone() shares its parent's lock descriptions, and no fork handler closes them. If the parent
 * dies first, its claim's lock stays held. A sweep (ledger.h) then judges by the owner's process number, which means
 * nothing in another PID namespace. But a process in a namespace above sees all processes of those below, and /proc
 * tells their numbers there too: this finds the owner, or finds that it is gone.
 *
 * For commands. The preloaded library does not walk over all processes of the machine. A process in the owner's
 * namespace needs none of this; one in a namespace beside it cannot know.
 */
#ifndef LOADLINE_LEDGER_BELOW_H
#define LOADLINE_LEDGER_BELOW_H

#include <stddef.h>

struct ll_ledger;

/*
 * Sweeps, and withdraws the claims of such owners; returns how many of both. An owner whose last beat (claim.h) is less
 * than 3 s old is taken to live. /proc is walked over only if an owner of another PID namespace has been silent for
 * longer.
 */
size_t ll_ledger_sweep_below(struct ll_ledger *ledger);

#endif
