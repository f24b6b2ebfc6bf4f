/*
 * descriptor.h - descriptors of exported memory. The memory stays on the card while one of them is open anywhere, in a
 * process or in a message.
 *
 * All of them are of one file in the world's folder, as a real driver's are all of one device. So neither the name nor
 * the inode identifies the memory. The open file description does: its file offset selects the ticket, and its lock on
 * the file ends with its last descriptor.
 */
#ifndef LOADLINE_SIM_CARD_DESCRIPTOR_H
#define LOADLINE_SIM_CARD_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_DESCRIPTOR_BYTES = 64 };

/* Makes a descriptor of a share, with a ticket of SIM_DESCRIPTOR_BYTES. Negative: it failed. */
int sim_descriptor_new(uint32_t index, uint32_t generation, const void *ticket);

/* Reads the ticket of a descriptor. False: it has none. */
bool sim_descriptor_read(int fd, void *ret_ticket);

/* Returns whether a descriptor of a share is open. True if that is unknown. */
bool sim_descriptors_are_open(uint32_t index, uint32_t generation);

#endif
