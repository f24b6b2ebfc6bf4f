/*
 * folder.h - the private folder in which a command's processes leave what they did, until it is read.
 *
 * It is in TMPDIR and goes with what is in it. A trace that is killed leaves it; it holds a lock on its folder, so the
 * next trace finds those that nobody holds any more, and removes them.
 */
#ifndef LOADLINE_CLI_TRACE_FOLDER_H
#define LOADLINE_CLI_TRACE_FOLDER_H

#include <limits.h>

struct ll_err;

struct ll_trace_folder {
	char path[PATH_MAX];
	int lock_fd; /* not inherited; -1 where the file system has no locks */
};

/* Removes what killed traces of this user left, and makes one. */
int ll_trace_folder_make(struct ll_trace_folder *folder, struct ll_err *err);

void ll_trace_folder_remove(struct ll_trace_folder *folder);

#endif
