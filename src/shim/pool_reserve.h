/*
 * pool_reserve.h - memory of a card that the process's pools keep for their next allocation, and that it could do
 * without.
 */
#ifndef LOADLINE_SHIM_POOL_RESERVE_H
#define LOADLINE_SHIM_POOL_RESERVE_H

#include <stdbool.h>

struct ll_device_state;

/*
 * Asks the tenant's other processes to give up their reserves. Returns when all have answered, after 50 ms at most.
 * False: there is no other process. The caller holds no lock of the library: those processes may be asking this one.
 */
bool ll_pool_reserve_of_siblings(struct ll_device_state *dev);

/* Gives up the reserve of this process, as the driver itself does when the card is full. True: the charge has become
 * less. */
bool ll_pool_reserve_give_up(struct ll_device_state *dev);

#endif
