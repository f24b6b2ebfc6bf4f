/*
 * user.h - a process of a job that uses a card, as plain as it can be: it does what the governed library does with its
 * slot, and no more.
 */
#ifndef LOADLINE_TESTS_DAEMON_USER_H
#define LOADLINE_TESTS_DAEMON_USER_H

#include "protocol/page.h"
#include "world.h"

struct user {
	const struct world *world;
	uint64_t job;
	char uuid[LL_CARD_UUID_SIZE];
	int fd; /* -1: no connection */
	struct ll_page *page;
	struct ll_orders *orders;
	uint64_t token, instance;
	unsigned slot, card;
	uint64_t serial; /* of its wants, 32 bits of it */
};

/* Connects and says who it is. False: nobody serves, or the connection ended. */
bool user_connect(struct user *user, const struct world *world, uint64_t job, const char *uuid);

/* Asks for a slot, or for the one that it has. 0, or the code of the refusal; -EPIPE: the connection has ended. */
int user_claim(struct user *user);

/* Both, again and again until it has its slot. */
void user_begin(struct user *user, const struct world *world, uint64_t job, const char *uuid);

/* After another daemon has come, or the connection has ended: the same slot by a new connection, until that works. */
void user_come_back(struct user *user);

bool user_has_slot(const struct user *user);

/* Takes from its grant. False: it does not hold so much. */
bool user_take(struct user *user, uint32_t units);

/* Takes, and asks for more where that is needed. 0, or -ENOMEM. Comes back if the daemon is another one. */
int user_reserve(struct user *user, uint32_t units);

/* Says what it wants, and sends WAKE. */
void user_want(struct user *user, uint32_t units);

/* Waits for the answer to that: a positive errno. */
int user_answer(struct user *user);

/* It is asked for its reserve, and has none. */
void user_have_no_reserve(struct user *user);

void user_release(struct user *user, uint32_t units);

/* What the driver has taken already. */
void user_charge(struct user *user, uint32_t units);

void user_say(struct user *user, enum ll_message_kind kind);
struct ll_page_slot *user_slot(const struct user *user);

/* Closes all of it. The daemon is told nothing. */
void user_close(struct user *user);

#endif
