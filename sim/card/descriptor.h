/*
 * descriptor.h - descriptors of exported memory. The memory stays on the card as long as one of them is open anywhere,
 * in a process or on its way to one.
 *
 * All of them are of one file in the world's folder, as a real driver's are all of one device: neither the name nor the
 * inode tells which memory it is. The open file description carries that: its file offset says whose ticket it is, and
 * a lock that it has on the file ends with its last descriptor.
 */
#ifndef LOADLINE_SIM_CARD_DESCRIPTOR_H
#define LOADLINE_SIM_CARD_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_DESCRIPTOR_BYTES = 64 };

/* Makes a descriptor of a share, which carries a ticket of SIM_DESCRIPTOR_BYTES. Negative: it cannot. */
int sim_descriptor_new(uint32_t index, uint32_t generation, const void *ticket);

/* Reads the ticket of a descriptor. False: it is none. */
bool sim_descriptor_read(int fd, void *ret_ticket);

/* Whether a descriptor of a share is open. True if that cannot be told. */
bool sim_descriptors_are_open(uint32_t index, uint32_t generation);

#endif
