/*
 * cupti.h - finds libcupti on this machine.
 */
#ifndef LOADLINE_CLI_TRACE_CUPTI_H
#define LOADLINE_CLI_TRACE_CUPTI_H

#include <limits.h>

/*
 * Searches these places in this order, and takes the newest version of a place: LOADLINE_CUPTI (a file);
 * LD_LIBRARY_PATH; the toolkit at CUDA_HOME or CUDA_PATH; /usr/local/cuda and /usr/local/cuda-*; the pip packages of
 * the Python that runs the command (nvidia/cuda_cupti/lib, nvidia/cu13/lib); the loader's own folders. Under the
 * simulated driver only LOADLINE_CUPTI is. interpreter: the command's file, or its interpreter's, or NULL. -ENOENT: not
 * found. If LOADLINE_CUPTI names a file that does not exist, the other places are not searched.
 */
int ll_trace_find_cupti(const char *interpreter, char ret_path[PATH_MAX]);

/*
 * Returns why this file cannot be used, as a sentence without a full stop: another word size, an unknown version. NULL:
 * it may work. The file is loaded in a child process, because loading it has side effects.
 */
const char *ll_trace_cupti_fault(const char *path, char *text, int size);

#endif
