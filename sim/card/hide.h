/*
 * hide.h - removes symbols from a library: after sim_hide_symbols neither dlsym nor the dynamic linker finds them.
 */
#ifndef LOADLINE_SIM_CARD_HIDE_H
#define LOADLINE_SIM_CARD_HIDE_H

#include "card/world.h"

/* Hides the symbols that the scenario names, and those that are newer than its driver. The library's constructor calls
 * it. It edits the library's own copy of its dynamic symbol table, where a value of 0 means that a symbol is missing.
 * It does not affect programs with immediate binding, which are resolved already. */
void sim_hide_symbols(const struct sim_world *w, bool (*is_newer)(const struct sim_world *w, const char *symbol));

/* Returns whether the scenario hides a symbol. */
bool sim_is_hidden(const struct sim_world *w, const char *symbol);

#endif
