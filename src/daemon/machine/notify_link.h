/*
 * notify_link.h - the connection of the system's loadlined to loadline-notify, which runs the commands of `notify`.
 *
 * loadlined may start no program of another user, so loadline-notify is a service of its own (notify/main.c). Events
 * wait in a queue of 128, of them at most 32 about one user, until it reads them. If there is no room, further events
 * are dropped: the journal says so at the first one, and the next event that is told has their number.
 */
#ifndef LOADLINE_DAEMON_MACHINE_NOTIFY_LINK_H
#define LOADLINE_DAEMON_MACHINE_NOTIFY_LINK_H

#include "protocol/message.h"

struct ll_server;
struct ll_notify_link;

enum { LL_NOTIFY_QUEUE = 128, LL_NOTIFY_OF_USER = 32 };

/* A user's loadlined has no link: *ret_link is NULL. -ENOMEM. */
int ll_notify_link_new(struct ll_server *server, struct ll_notify_link **ret_link);

/* Before the loop's last turn, which frees it. NULL is fine. */
void ll_notify_link_free(struct ll_notify_link *link);

/* Sends an event (a message LL_MESSAGE_EVENT) with the path of the command. Never waits. link NULL: does nothing. */
void ll_notify_link_send(struct ll_notify_link *link, const union ll_message *message, const char *hook);

/* Returns how many events wait because loadline-notify does not listen. link NULL: 0. */
uint32_t ll_notify_link_waiting(const struct ll_notify_link *link);

#endif
