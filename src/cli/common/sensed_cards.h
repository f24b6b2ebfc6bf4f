/*
 * sensed_cards.h - the cards as loadlined's sensor lists them, for a user who may not open them, as behind the fence.
 */
#ifndef LOADLINE_CLI_COMMON_SENSED_CARDS_H
#define LOADLINE_CLI_COMMON_SENSED_CARDS_H

#include "driver/cards.h"

/*
 * Makes a driver of these cards (ll_driver_of_list), from which nothing can be read. fault: of each card that is not
 * lost; 0: they can be chosen as others can. -ENOENT: there is no sensor, or it reports no cards.
 */
int ll_sensed_cards_open(int fault, struct ll_driver **ret_driver);

/* Opens the driver; if that fails, the sensor's list of the cards. Errors are the driver's. */
int ll_cards_open(int fault, struct ll_driver **ret_driver, struct ll_err *err);

#endif
