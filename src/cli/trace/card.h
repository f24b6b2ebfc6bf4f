/*
 * card.h - `loadline trace -i CARDS` without a command: what NVML tells about cards whose programs were not
 * started under trace. No tool can record the kernels of a program that runs already; this says who is there and what
 * is missing.
 */
#ifndef LOADLINE_CLI_TRACE_CARD_H
#define LOADLINE_CLI_TRACE_CARD_H

#include <stdbool.h>
#include <stdint.h>

struct ll_err;

/* Looks at the cards for that long (0: 10 s, or until SIGINT), then prints. */
int ll_trace_watch_cards(const char *names, uint64_t for_ns, bool is_json, struct ll_err *err);

#endif
