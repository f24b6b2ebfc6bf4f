/*
 * spare.h - memory that this process has on a card and could do without: what its pools keep for the next allocation.
 */
#ifndef LOADLINE_SHIM_SPARE_H
#define LOADLINE_SHIM_SPARE_H

#include <stdbool.h>

struct ll_seat;

/*
 * The tenant's other processes are asked for theirs; comes back when all have answered, at most after 50 ms. False:
 * there is none to ask. With no lock of ours held: they may be asking us.
 */
bool ll_spare_of_siblings(struct ll_seat *seat);

/* Gives it up, as the driver itself does when the card is full; true when the charge has become less. */
bool ll_spare_give_up(struct ll_seat *seat);

#endif
