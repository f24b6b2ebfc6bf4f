/*
 * low_use.h - the mean use of what a tenant, or a user, holds: `low-use` of the configuration.
 *
 * A job holds the cards of its place in the queue, and those on which it has a process, for its share of compute. It
 * uses a card while the card runs its kernels. The mean is over all jobs, over the configured time. It is known when
 * loadlined has counted for that long, and a tenant that held cards for less than a tenth of it is left out. What is
 * counted is lost when loadlined starts anew.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_LOW_USE_H
#define LOADLINE_DAEMON_ACCOUNTS_LOW_USE_H

#include <stdint.h>

struct ll_server;
struct ll_low_use;

/* Counts all jobs since the last look, and tells of low use. *state: NULL at first. Without `low-use` in the
 * configuration it is freed. */
void ll_low_use_look(const struct ll_server *server, struct ll_low_use **state, uint64_t now_ns);

void ll_low_use_free(struct ll_low_use *state);

#endif
