/*
 * json_line.h - prints JSON lines on stdout: one compact object per line. Each line is flushed, so that a reader of a
 * pipe gets it at once.
 *
 *     return ll_json_line(json_pack("{s:s, s:i, s:o}", "event", "sample", "card", 0,
 *                                   "util_percent", ll_json_real(util, 1)), err);
 */
#ifndef LOADLINE_CLI_COMMON_JSON_LINE_H
#define LOADLINE_CLI_COMMON_JSON_LINE_H

#include <jansson.h>

struct ll_err;

/* Prints the object and takes over the caller's reference, also on failure. NULL, which json_pack returns on failure,
 * gives -ENOMEM.
 */
int ll_json_line(json_t *object, struct ll_err *err);

/* Makes a string of a text that somebody else wrote: what is not UTF-8 becomes '?'. NULL: out of memory. */
json_t *ll_json_text(const char *text);

/* Returns value rounded to this many decimals (0.1 prints as 0.1). NaN and infinities become null, because JSON has no
 * such numbers. */
json_t *ll_json_real(double value, int decimals);

#endif
