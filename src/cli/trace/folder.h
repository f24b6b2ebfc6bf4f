/*
 * folder.h - the private folder in which the processes of a traced command write their records.
 *
 * The folder is in TMPDIR, and is removed with its files. A killed trace leaves its folder. A trace holds a lock on its
 * folder, so the next trace recognises folders without an owner, and removes them.
 */
#ifndef LOADLINE_CLI_TRACE_FOLDER_H
#define LOADLINE_CLI_TRACE_FOLDER_H

#include <limits.h>

struct ll_err;

struct ll_trace_folder {
	char path[PATH_MAX];
	int lock_fd; /* not inherited; -1 if the file system has no locks */
};

/* Removes the folders that killed traces of this user left, and makes a new one. */
int ll_trace_folder_make(struct ll_trace_folder *folder, struct ll_err *err);

void ll_trace_folder_remove(struct ll_trace_folder *folder);

#endif
