/*
 * namespace.h - PID namespaces. The processes of a world may be in several, as in containers. A pid has a meaning only
 * in its own namespace.
 */
#ifndef LOADLINE_SIM_CARD_NAMESPACE_H
#define LOADLINE_SIM_CARD_NAMESPACE_H

#include <stdint.h>

/* Returns the number of this process's PID namespace. 0: it is unknown, or /proc shows another namespace. */
uint64_t sim_namespace_own(void);

/* Returns the number of this process's time namespace. 0: unknown. */
uint64_t sim_namespace_of_time(void);

/* Returns the pid in this process's namespace of a process of another namespace. 0: it has none, because its namespace
 * is not below this one. The function searches /proc. */
int32_t sim_namespace_find(uint64_t pid_namespace, int32_t pid);

#endif
