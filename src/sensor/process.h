/*
 * process.h - what /proc tells of a process on a card. No function waits for a lock of the process: /proc/PID/cmdline
 * and /proc/PID/environ would.
 */
#ifndef LOADLINE_SENSOR_PROCESS_H
#define LOADLINE_SENSOR_PROCESS_H

#include "protocol/message.h"

/* Fills in age_ns, start_ticks, uid, ancestors, command, program and cgroup of the process with the pid that is set. A
 * field stays 0, or age_ns UINT64_MAX, if it is unknown: the process has ended, or this one may not read it.
 * now_ns: ll_boot_ns. */
void ll_sense_read_process(struct ll_message_sense_process *process, uint64_t now_ns);

#endif
