/*
 * namespace.h - PID namespaces. The processes of a world may be in several, as in containers: a pid has a meaning in
 * its own one only.
 */
#ifndef LOADLINE_SIM_CARD_NAMESPACE_H
#define LOADLINE_SIM_CARD_NAMESPACE_H

#include <stdint.h>

/* Returns the number of this process's PID namespace. 0: it is not known, or /proc is that of another namespace. */
uint64_t sim_namespace_own(void);

/* Returns the number of this process's time namespace. 0: it is not known. */
uint64_t sim_namespace_of_time(void);

/* Returns the pid that a process of another namespace has in this process's own. 0: it has none, as a process of a
 * namespace that is not below this one. Looks through /proc. */
int32_t sim_namespace_find(uint64_t pid_namespace, int32_t pid);

#endif
