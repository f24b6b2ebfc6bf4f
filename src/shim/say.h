/*
 * say.h - writes a line on the program's standard error stream, for what the user must know and no function can return.
 *
 * As a rule the library prints nothing, because it lives in other people's programs. It says why it refuses a card, and
 * when the limits are not in force (device_state.h).
 */
#ifndef LOADLINE_SHIM_SAY_H
#define LOADLINE_SHIM_SAY_H

/*
 * Writes "loadline: ...", cut at 700 bytes, to descriptor 2, if that takes it at once. The line is lost if the
 * descriptor is closed, if it is a full pipe, or if nobody reads it. Raises no SIGPIPE, keeps errno.
 */
void ll_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
