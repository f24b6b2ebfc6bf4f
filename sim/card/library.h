/*
 * library.h - what both simulated libraries export in addition to the vendor's names.
 */
#ifndef LOADLINE_SIM_CARD_LIBRARY_H
#define LOADLINE_SIM_CARD_LIBRARY_H

/* Returns the folder of the simulated world of this process, as an absolute path; NULL: there is none. The existence of
 * this symbol shows that a driver is simulated. */
__attribute__((visibility("default"))) const char *loadline_sim_world(void);

/* Returns the reason why the simulated driver cannot start, and in *ret_hint what the user can do, or nothing. NULL:
 * it can start. If a program does not call this function, the driver prints the reason to standard error when it
 * starts. */
__attribute__((visibility("default"))) const char *loadline_sim_trouble(const char **ret_hint);

#endif
