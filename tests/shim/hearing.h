/* hearing.h - what the library writes to the standard error stream of a test's program. */
#ifndef LOADLINE_TESTS_SHIM_HEARING_H
#define LOADLINE_TESTS_SHIM_HEARING_H

#include <stdbool.h>
#include <stdio.h>

/* From now on it goes to a file. */
void begin_hearing(void);

/* Whether the text was written since. */
bool has_said(const char *text);

/* The stream is what it was before. Returns the file, which the caller closes. */
FILE *end_hearing(void);

#endif
