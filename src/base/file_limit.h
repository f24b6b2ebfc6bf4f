/*
 * file_limit.h - how large a file this process may make.
 *
 * Whoever writes past the limit (ulimit -f, RLIMIT_FSIZE) gets SIGXFSZ, which ends the process where it is not handled:
 * in somebody else's program that is ours to prevent, not to handle.
 */
#ifndef LOADLINE_BASE_FILE_LIMIT_H
#define LOADLINE_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a file may have so many bytes. errno is kept. */
bool ll_file_limit_allows(uint64_t bytes);

#endif
