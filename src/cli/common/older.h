/*
 * older.h - programs that an older loadline governs.
 *
 * Before loadlined a program's library shared a file of the card with others, UUID.ledger, and decided by itself. Such
 * a program goes on in that way. It is known by the file, which it has mapped.
 */
#ifndef LOADLINE_CLI_COMMON_OLDER_H
#define LOADLINE_CLI_COMMON_OLDER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether an older loadline governs the process. False also if it is another user's, or has ended. */
bool ll_process_is_of_older(pid_t pid);

#endif
