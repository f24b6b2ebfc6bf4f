/*
 * name.h - C++ names as people write them: "_Z3addPfi" is "add(float*, int)". The C++ library is asked, where it
 * is on this machine; without it names stay as they are.
 */
#ifndef LOADLINE_CLI_TRACE_NAME_H
#define LOADLINE_CLI_TRACE_NAME_H

/* For free(3); NULL: it is no such name, or cannot be told. 1 to 50 us. */
char *ll_trace_name_plain(const char *name);

#endif
