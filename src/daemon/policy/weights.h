/*
 * weights.h - the weight of a configured tenant, shared among its jobs on a card.
 *
 * On a card a tenant's jobs together have the tenant's weight, however many they are: each has the part that its own
 * weight (`run --weight`) is of the sum of theirs. Jobs that have not wanted the card for 30 s leave their part to the
 * others. A job without a configured tenant has its own weight.
 */
#ifndef LOADLINE_DAEMON_POLICY_WEIGHTS_H
#define LOADLINE_DAEMON_POLICY_WEIGHTS_H

#include <stdbool.h>

struct ll_server;

/* Computes the weights of all jobs on all cards again: after a job has come to a card, has left it, or has other
 * limits, and once a second. Returns whether it must be called again in a second. */
bool ll_weights_settle(struct ll_server *server);

#endif
