/*
 * message_event.h - what has happened: from loadlined to the program loadline-notify, which runs a command for it, and
 * to the monitors of jobs, which write it to the terminals of the jobs (message.h, daemon/machine/machine.h).
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_EVENT_H
#define LOADLINE_PROTOCOL_MESSAGE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message_header.h"

enum { LL_EVENT_HOOK_SIZE = 256, LL_EVENT_TEXT_SIZE = 400, LL_EVENT_NAME_SIZE = 24 };

enum ll_event_flag {
	LL_EVENT_HAS_USER = 1, /* uid */
	LL_EVENT_HAS_CARD = 2, /* uuid, card */
};

struct ll_message_event {
	struct ll_message_header header;
	uint64_t at_s;  /* seconds since 1970 */
	uint64_t job;   /* number, as users know it; 0: of no job */
	uint32_t flags; /* enum ll_event_flag */
	uint32_t uid;
	uint32_t card;    /* index in PCI order; UINT32_MAX: unknown */
	int32_t slice;    /* -1: the whole card */
	uint32_t dropped; /* events before this one that were not told, because too many waited */
	uint32_t unused;
	char name[LL_EVENT_NAME_SIZE]; /* as in the configuration: "time-ending" */
	char tenant[LL_NAME_SIZE];     /* empty: none */
	char command[LL_COMMAND_SIZE]; /* of the job or the process; empty: none */
	char uuid[LL_CARD_UUID_SIZE];
	char hook[LL_EVENT_HOOK_SIZE]; /* the path of the command to run; empty in messages to a monitor */
	char text[LL_EVENT_TEXT_SIZE]; /* a sentence for people; may be cut */
};

#endif
