/*
 * sense.h - reads the cards and the processes on them, and makes the messages of a round (protocol/message.h).
 *
 * A card is known by its UUID, so what the sensor has seen of it survives a reload of the driver.
 */
#ifndef LOADLINE_SENSOR_SENSE_H
#define LOADLINE_SENSOR_SENSE_H

#include "protocol/message.h"

struct ll_err;
struct ll_sense;

/* Gets each message of a round, in their order. Returns 0, or -errno, which ends the round. */
typedef int (*ll_sense_give_fn)(void *data, union ll_message *message, struct ll_err *err);

/* Opens no driver yet. -ENOMEM. */
int ll_sense_new(struct ll_sense **ret_sense);
void ll_sense_free(struct ll_sense *sense); /* NULL is fine */

/*
 * Reads everything and gives the messages, SENSE_END last. Opens the driver if it is not open, and lists the cards anew
 * each minute, and if one does not answer. Without a driver it gives SENSE_END alone, with the reason. Returns what
 * give returned. A call into the driver may hang, and then this function does.
 */
int ll_sense_round(struct ll_sense *sense, ll_sense_give_fn give, void *data, struct ll_err *err);

#endif
