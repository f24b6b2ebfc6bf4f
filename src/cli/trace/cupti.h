/*
 * cupti.h - where libcupti is on this machine.
 */
#ifndef LOADLINE_CLI_TRACE_CUPTI_H
#define LOADLINE_CLI_TRACE_CUPTI_H

#include <limits.h>

/*
 * Looked for in this order, the newest version first in each place: LOADLINE_CUPTI (a file); LD_LIBRARY_PATH; the
 * toolkit at CUDA_HOME or CUDA_PATH; /usr/local/cuda and /usr/local/cuda-*; what pip has installed beside the Python
 * that the command runs with (nvidia/cuda_cupti/lib, nvidia/cu13/lib); the loader's own folders. interpreter: the
 * command's file, or its interpreter's; NULL is fine. -ENOENT: none. A file that LOADLINE_CUPTI names and that is not
 * there is none.
 */
int ll_trace_find_cupti(const char *interpreter, char ret_path[PATH_MAX]);

/*
 * Why this file cannot be used, as a sentence without a full stop: another word size, an unknown version; NULL: it may
 * be tried. It is loaded in a child process, for what it does when it is loaded is nothing for this one.
 */
const char *ll_trace_cupti_fault(const char *path, char *text, int size);

#endif
