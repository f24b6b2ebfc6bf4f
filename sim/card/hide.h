/*
 * hide.h - makes a library lack symbols: after sim_hide_symbols neither dlsym nor the dynamic linker finds them.
 */
#ifndef LOADLINE_SIM_CARD_HIDE_H
#define LOADLINE_SIM_CARD_HIDE_H

#include "card/world.h"

/* Hides what the scenario says, and what is newer than its driver. The library's constructor calls it. It edits the
 * library's own copy of its dynamic symbol table: a symbol of value 0 is one that is not there. Programs that were
 * linked with immediate binding have been resolved already. */
void sim_hide_symbols(const struct sim_world *w, bool (*is_newer)(const struct sim_world *w, const char *symbol));

/* Returns whether the scenario hides a symbol. */
bool sim_is_hidden(const struct sim_world *w, const char *symbol);

#endif
