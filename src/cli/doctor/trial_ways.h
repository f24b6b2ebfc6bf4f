/*
 * trial_ways.h - the ways by which the trial of limits reaches the driver, besides the plain one.
 *
 * A limit holds if the program gets the library's functions by each of them. The trial tries to exceed its memory limit
 * by each, and prints a line: "way REFUSED_BYTES NAME", or "way 0 NAME" if the limit does not hold, or "untried NAME"
 * if it could not be tried. A way that this driver or C library does not have gets no line. By each way that finds a
 * dlsym, NVML's functions are looked up too, and must be the library's.
 *
 * Two ways need processes of their own: the driver behind a libcuda.so.1 that only forwards to it, and a program that
 * lost LOADLINE_RUN. They are this program again, with the trial's word and their own.
 */
#ifndef LOADLINE_CLI_DOCTOR_TRIAL_WAYS_H
#define LOADLINE_CLI_DOCTOR_TRIAL_WAYS_H

struct ll_cuda;
struct ll_err;

/* Tries the ways that look a function up. The program has a context, and LL_TRIAL_FIRST_BYTES of memory. */
int ll_trial_try_look_ups(const struct ll_cuda *cuda, struct ll_err *err);

/* Starts the processes, and waits for each. */
void ll_trial_start_others(void);

/* Is such a process, of that word. -EINVAL: a user typed the word. */
int ll_trial_be_other(const char *word, struct ll_err *err);

#endif
