/*
 * trace_name.h - C++ names as people write them: "_Z3addPfi" is "add(float*, int)". The C++ library is asked, where it
 * is on this machine; without it names stay as they are.
 */
#ifndef LOADLINE_CLI_TRACE_NAME_H
#define LOADLINE_CLI_TRACE_NAME_H

struct ll_strbuf;

/* Appends the name, in full. */
void ll_trace_name_add(struct ll_strbuf *text, const char *name);

#endif
