/*
 * message_header.h - what all messages of message.h have: the header, and the sizes of texts.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_HEADER_H
#define LOADLINE_PROTOCOL_MESSAGE_HEADER_H

#include <stdint.h>

enum {
	LL_MESSAGE_FDS = 4, /* descriptors of a message, at most */
	LL_VERSION_SIZE = 32,
	LL_NAME_SIZE = 64,
	LL_COMMAND_SIZE = 64,
	LL_CGROUP_SIZE = 256,
	LL_POD_SIZE = 384, /* names of 63, 253 and 63 characters */
	LL_REASON_SIZE = 120,
	LL_CARD_UUID_SIZE = 96,
	LL_MOVE_REASON_SIZE = 160,
	LL_SETTINGS_SIZE = 1024, /* LL_RUN_TEXT_SIZE */
	LL_POLICY_FAULT_SIZE = 200
};

struct ll_message_header {
	uint16_t kind;
	uint16_t size;   /* bytes of the whole message */
	uint32_t serial; /* of a request; its replies repeat it */
};

#endif
