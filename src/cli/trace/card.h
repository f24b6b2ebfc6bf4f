/*
 * card.h - `loadline trace -i CARDS` without a command: shows NVML's readings of cards whose programs were not started
 * under trace. No tool can record the kernels of a running program. So the output lists the processes, and says what is
 * missing.
 */
#ifndef LOADLINE_CLI_TRACE_CARD_H
#define LOADLINE_CLI_TRACE_CARD_H

#include <stdbool.h>
#include <stdint.h>

struct ll_err;

/* Looks at the cards for for_ns, 0 for 10 s, or until SIGINT. Then it prints the result. */
int ll_trace_watch_cards(const char *names, uint64_t for_ns, bool is_json, struct ll_err *err);

#endif
