/*
 * machine.h - the cards of the machine and the processes on them, as the sensor reports them.
 *
 * loadlined opens no driver. The program loadline-sensor (src/sensor) reads NVML, and connects with the role
 * LL_ROLE_SENSOR. It reports in rounds: SENSE_CARD for each card, SENSE_PROCESS for each process on a card, SENSE_END.
 * A round takes effect as a whole at its end. A sensor that does not report does not stop loadlined: the last round
 * stays, and ll_machine_silent_ns says how old it is. Without a sensor there are no cards.
 */
#ifndef LOADLINE_DAEMON_MACHINE_MACHINE_H
#define LOADLINE_DAEMON_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/message.h"

struct ll_server;
struct ll_connection;
struct ll_machine;

enum {
	LL_MACHINE_NUMA_UNKNOWN = -1,
	LL_MACHINE_NO_SLICE = -1,
	LL_MACHINE_CARDS_MAX = 1024,
	LL_MACHINE_PROCESSES_MAX = 16384
};

/* A card, or a MIG slice of one. Cards are in PCI order, each followed by its slices. */
struct ll_machine_card {
	unsigned index; /* in PCI order, as `-i` names it; a slice has its card's */
	int slice;      /* the number of the slice; LL_MACHINE_NO_SLICE: the whole card */
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t memory_bytes, usable_bytes, used_bytes; /* 0: unknown. usable: without the driver's own part */
	int numa_node;                                   /* LL_MACHINE_NUMA_UNKNOWN */
	char bus_id[32];                                 /* "0000:65:00.0" */
	bool is_lost;                                    /* it does not answer; it keeps its index */
	bool has_slices;                                 /* in MIG mode: it runs nothing itself */
	uint64_t last_xid, xid_ns, xids; /* faults (Xid) since loadlined's start; xid_ns: ll_now_ns; xids 0: none */
};

/* Adds the card to a list of cards as users write them, after a comma: its index, a slice as "7:0"; the UUID if the
 * sensor does not report it. What has no room is left out. */
void ll_machine_add_label(const struct ll_server *server, const char *uuid, char *text, size_t size);

/* Makes an empty machine. -ENOMEM. */
int ll_machine_init(struct ll_server *server);
void ll_machine_fini(struct ll_server *server);

/* The number of cards, slices included; 0: no sensor has reported yet. */
size_t ll_machine_card_count(const struct ll_server *server);

/* Returns the card at this place of the list, from 0; NULL: there are fewer. The card belongs to the machine, and is
 * valid until the loop's next round. */
const struct ll_machine_card *ll_machine_card(const struct ll_server *server, size_t place);

/* Returns the card with this UUID; NULL: none. */
const struct ll_machine_card *ll_machine_card_find(const struct ll_server *server, const char *uuid);

/* Changes whenever cards appear, disappear, are lost or come back. 0: no sensor has reported yet. */
uint64_t ll_machine_card_changes(const struct ll_server *server);

/* Time since the sensor's last message; UINT64_MAX: none has ever come. A sensor reports each 5 s. */
uint64_t ll_machine_silent_ns(const struct ll_server *server);

/* ---- between the files of this folder ---- */

/* Whether a process of this uid may be the sensor. */
bool ll_machine_accepts(const struct ll_server *server, uint32_t uid);

/* Handles a message of the sensor. Returns false if it is not allowed; the connection is then closed. */
bool ll_machine_handle(struct ll_connection *connection, const union ll_message *message);

/* The connection has ended. */
void ll_machine_disconnect(struct ll_server *server, const struct ll_connection *connection);

/* A command has sent SENSED: the reply begins. Returns true. */
bool ll_machine_list(struct ll_connection *connection);

/* Makes the messages that reply to SENSED, one at a time. The round may change between two of them; a row is then
 * missing or sent twice. Returns false if it is the last one. */
struct ll_machine_listing {
	size_t cards, processes, drained; /* numbers of the rows that were made */
};
bool ll_machine_listing_next(const struct ll_server *server, struct ll_machine_listing *listing,
			     union ll_message *ret_message);

/* The rows of the last round, as loadlined has completed them. They belong to the machine. */
const struct ll_message_sense_process *ll_machine_processes(const struct ll_server *server, size_t *ret_count);
const struct ll_message_sense_card *ll_machine_rows(const struct ll_server *server, size_t *ret_count);

#endif
