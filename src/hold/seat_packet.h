/*
 * seat_packet.h - what a seat answers. For seat.c and seat_ask.c.
 */
#ifndef LOADLINE_HOLD_SEAT_PACKET_H
#define LOADLINE_HOLD_SEAT_PACKET_H

#include "hold/seat.h"

#define LL_SEAT_MAGIC UINT64_C(0x00007461655f6c6c) /* "ll_seat" */

struct ll_seat_packet {
	uint64_t magic;
	struct ll_hold_report report;
};

/* Of the first version. A longer packet has fields that this version does not know. */
enum { LL_SEAT_PACKET_FIRST_SIZE = 176, LL_SEAT_PACKET_MAX = 2048 };
_Static_assert(sizeof(struct ll_seat_packet) == LL_SEAT_PACKET_FIRST_SIZE, "the size of the first version");

#endif
