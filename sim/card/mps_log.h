/*
 * mps_log.h - control.log and server.log, in NVIDIA's wording where it is known.
 */
#ifndef LOADLINE_SIM_CARD_MPS_LOG_H
#define LOADLINE_SIM_CARD_MPS_LOG_H

#include <stdbool.h>

/* Opens NAME in the log folder, making the folder if it can. Without one nothing is logged, as with a folder that may
 * not be written. echo: to standard output, too. */
void sim_mps_log_open(const char *name, bool echo);

/* who: "Control", "Server", "Other". */
void sim_mps_log(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
