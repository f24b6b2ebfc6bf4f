/*
 * no_pidfds.h - a kernel without pidfds, or a container whose filter forbids them.
 */
#ifndef LOADLINE_TESTS_DAEMON_NO_PIDFDS_H
#define LOADLINE_TESTS_DAEMON_NO_PIDFDS_H

/* For this process, and all that come from it: its processes, monitors and daemons. */
void take_pidfds_away(void);

#endif
