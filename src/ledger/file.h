/*
 * file.h - the ledger's file: made, found, checked. Private to src/ledger.
 */
#ifndef LOADLINE_LEDGER_FILE_H
#define LOADLINE_LEDGER_FILE_H

#include <stdbool.h>

struct ll_err;

/*
 * Opens `UUID.ledger` in folder_fd for reading and writing, making it where it is missing and is_created says so, and
 * checks all that never changes. path is for messages. Any number of processes may do this at once, and be killed doing
 * it. Errors as ll_ledger_open.
 */
int ll_ledger_file_open(int folder_fd, const char *path, const char *uuid, bool is_created, int *ret_fd,
			struct ll_err *err);

#endif
