/*
 * hold_packet.h - the packet that a hold sends. For hold_socket.c and hold_query.c.
 */
#ifndef LOADLINE_HOLD_HOLD_PACKET_H
#define LOADLINE_HOLD_HOLD_PACKET_H

#include "hold/hold_socket.h"

#define LL_HOLD_MAGIC UINT64_C(0x00007461655f6c6c) /* "ll_hold_socket" */

struct ll_hold_packet {
	uint64_t magic;
	struct ll_hold_report report;
};

/* Of the first version that has names of this kind. A longer packet has fields that this version does not know. */
enum { LL_HOLD_PACKET_FIRST_SIZE = 184, LL_HOLD_PACKET_MAX = 2048 };
_Static_assert(sizeof(struct ll_hold_packet) == LL_HOLD_PACKET_FIRST_SIZE, "the size of the first version");

#endif
