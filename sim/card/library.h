/*
 * library.h - what both simulated libraries export beside the vendor's names.
 */
#ifndef LOADLINE_SIM_CARD_LIBRARY_H
#define LOADLINE_SIM_CARD_LIBRARY_H

/* The folder of the simulated world this process is (or would be) in, absolute; NULL when it cannot be had. That the
 * symbol is there tells that a driver is simulated. */
__attribute__((visibility("default"))) const char *loadline_sim_world(void);

/* Says why the simulated driver cannot start, and in *ret_hint what to do about it, or nothing. NULL: it can start. A
 * program that does not ask gets that on its standard error stream when it starts the driver. */
__attribute__((visibility("default"))) const char *loadline_sim_trouble(const char **ret_hint);

#endif
