/*
 * say.h - a line on the program's standard error stream: for what its user must know and no call can return.
 *
 * The library lives in other people's programs and says nothing as a rule. It says why it refuses a card
 * (device_state.h).
 */
#ifndef LOADLINE_SHIM_SAY_H
#define LOADLINE_SHIM_SAY_H

/*
 * Writes "loadline: ...", cut at 700 bytes, to descriptor 2 where that takes it at once: a closed one, a full pipe and
 * one that nobody reads lose the line. Raises no SIGPIPE, keeps errno.
 */
void ll_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
