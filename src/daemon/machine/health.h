/*
 * health.h - faults of cards: `health` of the configuration.
 *
 * The sensor reports Xids and conditions (machine.h). A card with an Xid of `drain-xid` or a condition of `drain` is
 * drained, as by `loadline queue drain`, with the reason, and the event `drained`. A condition of `warn` is the event
 * `unhealthy`. What has been told of a card is known: it drains or warns again only if it happens again, that is, if a
 * count rises, or a state that had ended begins, also after a restart of loadlined. So an operator may put a card back
 * into use at any time. NVLink errors count from the sensor's first report on; they warn once in an hour at most.
 */
#ifndef LOADLINE_DAEMON_MACHINE_HEALTH_H
#define LOADLINE_DAEMON_MACHINE_HEALTH_H

#include <jansson.h>

#include "protocol/message.h"

struct ll_server;
struct ll_machine_card;
struct ll_health_card;

/* The card has reported an Xid. */
void ll_health_xid(struct ll_server *server, const struct ll_machine_card *card, uint64_t xid);

/* The sensor has reported the conditions of a card. */
void ll_health_conditions(struct ll_server *server, const struct ll_machine_card *card,
			  const struct ll_message_sense_conditions *conditions);

/* Returns what has been told of each card, for the state that outlives loadlined (queue/pack.c). The caller owns
 * it. NULL: no memory. */
json_t *ll_health_pack(const struct ll_server *server);

/* Takes over what ll_health_pack() returned in a former loadlined. */
void ll_health_unpack(struct ll_server *server, const json_t *list);

void ll_health_fini(struct ll_server *server);

#endif
