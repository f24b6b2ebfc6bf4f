/*
 * near.h - `--cpus near`: the command runs on the CPUs near its cards, and its memory is preferably there.
 */
#ifndef LOADLINE_CLI_RUN_NEAR_H
#define LOADLINE_CLI_RUN_NEAR_H

#include <stddef.h>

#include "driver/cards.h"

/*
 * Binds this process to those of its CPUs that are near one of the cards, and lets it prefer the memory nodes there.
 * The command that it becomes keeps both. If the kernel does not say what is near, a warning says so, and nothing is
 * changed.
 */
void ll_run_near_bind(const struct ll_card *const *cards, size_t count);

#endif
