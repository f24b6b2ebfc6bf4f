/*
 * tell.h - what `loadline submit` tells loadlined, and asks systemd's login manager.
 */
#ifndef LOADLINE_CLI_SUBMIT_TELL_H
#define LOADLINE_CLI_SUBMIT_TELL_H

#include <stdbool.h>
#include <stdint.h>

/* Tells the system's loadlined how the first process of a job ended, as waitpid() gave it. job: token[0]. Tries for 10
 * seconds while loadlined is started anew; then loadlined does not know the status. */
void ll_submit_tell_status(uint64_t job, uint32_t status);

/* Whether a control group is that of a login session, whose processes may be ended at logout. */
bool ll_submit_is_in_session(const char *cgroup);

/* Whether the login manager ends the processes of this session at logout (KillUserProcesses of logind.conf). */
bool ll_submit_dies_at_logout(void);

#endif
