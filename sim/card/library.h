/*
 * library.h - what both simulated libraries export beside the vendor's names.
 */
#ifndef LOADLINE_SIM_CARD_LIBRARY_H
#define LOADLINE_SIM_CARD_LIBRARY_H

/* The folder of the simulated world this process is (or would be) in, absolute; NULL when it cannot be had. That the
 * symbol is there tells that a driver is simulated. */
__attribute__((visibility("default"))) const char *loadline_sim_world(void);

#endif
