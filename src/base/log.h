/*
 * log.h - log lines for users, on stderr or in a file.
 *
 * One line per event: "2026-01-31 12:00:00 INFO card 0: holding 50 %". Only programs log; libraries return errors.
 * Several threads may log: a line is one write(2).
 */
#ifndef LOADLINE_BASE_LOG_H
#define LOADLINE_BASE_LOG_H

enum ll_log_level { LL_LOG_ERROR, LL_LOG_WARN, LL_LOG_INFO, LL_LOG_DEBUG };

/* Sets the level; LL_LOG_INFO at first. Lines above it are dropped. */
void ll_log_set_level(enum ll_log_level level);

/* Sets the descriptor for lines; stderr at first. The caller keeps the descriptor. */
void ll_log_set_fd(int fd);

void ll_log(enum ll_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define ll_error(...) ll_log(LL_LOG_ERROR, __VA_ARGS__)
#define ll_warn(...) ll_log(LL_LOG_WARN, __VA_ARGS__)
#define ll_info(...) ll_log(LL_LOG_INFO, __VA_ARGS__)
#define ll_debug(...) ll_log(LL_LOG_DEBUG, __VA_ARGS__)

#endif
