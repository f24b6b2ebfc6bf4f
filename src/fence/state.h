/*
 * state.h - the file in which the fence says what it is: for `loadline doctor`, which may not ask the kernel. It is
 * /run/loadline-fence/state, which everybody may read, or fence/state in the folder of a simulated world.
 *
 * Lines: "majors 195 511", "open GROUP", "partly GROUP PROCESSES", "root PROCESSES". It stays if the program is killed,
 * as the fence does. It is gone after the fence was opened, and after a boot.
 */
#ifndef LOADLINE_FENCE_STATE_H
#define LOADLINE_FENCE_STATE_H

#include "base/strbuf.h"

struct ll_err;

/* Reads the file into text. -ENOENT: there is none. */
int ll_fence_state_read(struct ll_strbuf *text, struct ll_err *err);

/* Replaces the file as a whole. Makes its folder. */
int ll_fence_state_write(const struct ll_strbuf *text, struct ll_err *err);

/* Removes file and folder. */
void ll_fence_state_remove(void);

/* Returns the first line that begins with the word and a space, from the character after it; NULL: there is none. next:
 * the line to begin with, the text's beginning at first; it becomes the line after. */
const char *ll_fence_state_line(const char **next, const char *word);

#endif
