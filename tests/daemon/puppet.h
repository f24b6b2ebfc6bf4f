/*
 * puppet.h - a user (user.h) in a process of its own, which does what it is told, and nothing else. It is killed with
 * the test.
 */
#ifndef LOADLINE_TESTS_DAEMON_PUPPET_H
#define LOADLINE_TESTS_DAEMON_PUPPET_H

#include "user.h"

enum puppet_act {
	PUPPET_CLAIM,   /* returns 0 or the refusal */
	PUPPET_RESERVE, /* units: 0 or -ENOMEM */
	PUPPET_RELEASE, /* units */
	PUPPET_CHARGE,  /* units */
	PUPPET_RING,
	PUPPET_LEAVE,       /* the slot */
	PUPPET_HANG_UP,     /* closes the connection alone */
	PUPPET_EXIT_SLOWLY, /* as a process that ends: its first thread and the link's have ended, the connection is
			       closed */
	PUPPET_COME_BACK,   /* the same slot, by a new connection */
	PUPPET_EXEC,        /* forgets all and claims anew, as another program in the same process does */
	PUPPET_GIVE,        /* from now on it answers for its reserve, and releases so many units for it; forever */
	PUPPET_SPOIL,       /* writes a grant of so many units into its own slot */
	PUPPET_POSE,        /* writes into its own slot that it is the process of that number */
	PUPPET_HAS_SLOT,
	PUPPET_SCRIBBLE, /* writes anything anywhere into the page for a while, and sends WAKE */
};

struct puppet {
	pid_t pid;
	int fd;
};

/* Starts one that has a claim on the card. */
void puppet_start(struct puppet *puppet, const struct world *world, uint64_t job, const char *uuid);

/* Starts one that has done nothing yet. */
void puppet_make(struct puppet *puppet, const struct world *world, uint64_t job, const char *uuid);

/* Tells it, and waits until it is done; returns what it says. */
int puppet_do(const struct puppet *puppet, enum puppet_act act, uint32_t units);

/* The two halves of that. */
void puppet_tell(const struct puppet *puppet, enum puppet_act act, uint32_t units);
bool puppet_has_answer(const struct puppet *puppet);
int puppet_answer(const struct puppet *puppet);

/* Kills it, and waits for its end. */
void puppet_kill(struct puppet *puppet);

#endif
