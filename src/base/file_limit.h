/*
 * file_limit.h - the largest file that this process may write.
 *
 * A process that writes past the limit (ulimit -f, RLIMIT_FSIZE) gets SIGXFSZ, which ends it unless it handles the
 * signal. Our libraries set no handler in another program, so they do not write past the limit.
 */
#ifndef LOADLINE_BASE_FILE_LIMIT_H
#define LOADLINE_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a file may have this size. Preserves errno. */
bool ll_file_limit_allows(uint64_t bytes);

#endif
