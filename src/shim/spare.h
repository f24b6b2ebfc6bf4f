/*
 * spare.h - memory that this process has on a card and could do without: what its pools keep for the next allocation.
 */
#ifndef LOADLINE_SHIM_SPARE_H
#define LOADLINE_SHIM_SPARE_H

#include <stdbool.h>

struct ll_seat;

/* Gives it up, as the driver itself does when the card is full; true when the charge has become less. */
bool ll_spare_give_up(struct ll_seat *seat);

#endif
