/*
 * evictor.h - who takes a program's memory off its card: one table of functions for each way.
 *
 *     program      the program is evictable (`run --evictable`): it does it itself, as loadlined says
 *     checkpoint   any process of this user: the driver's checkpoint, from driver 570 on. It takes all of the process's
 *                  memory off all its cards, contexts too, into the process's own host memory; slower, and no other
 *                  program's need brings it about
 *
 * Each function waits for the end of what it does. On an error the program goes on as before, unless the text says
 * otherwise.
 */
#ifndef LOADLINE_CLI_EVICT_EVICTOR_H
#define LOADLINE_CLI_EVICT_EVICTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/cards.h"
#include "protocol/message.h"

enum { LL_EVICT_WAITS_SIZE = 160 };

/* What the thread that takes signals and the work tell each other. The user wants to end the command: fd is readable
 * from then on. The lock is held while a request goes out: no other follows one that puts back what was asked before.
 */
struct ll_evict_interrupt {
	atomic_bool is_set;
	int fd;
	pthread_mutex_t lock;
	char waits_for[LL_EVICT_WAITS_SIZE]; /* what loadlined said last that a program waits for; under the lock */
};

/* Programs of which the same is asked: they stop together (protocol/message.h). */
struct ll_evict_batch {
	uint64_t number; /* 0: it is one program */
	uint32_t count;
};

struct ll_evictor_target {
	struct ll_driver *driver;
	const struct ll_card *card; /* NULL: by the checkpoint alone */
	uint64_t job_token;         /* the first */
	unsigned claim;             /* its number on that card */
	bool is_evictable;          /* it can do it itself */
	pid_t pid;                  /* in this PID namespace; for the checkpoint. 0: unknown */
	uint64_t wait_ns;           /* how long it may take to become quiet; 0: 10 s. Of resume: how
				       long to wait for room; 0: without end */
	const char *reason;         /* for the log; NULL: none */
	struct ll_evict_batch batch;
	struct ll_evict_interrupt *interrupt; /* NULL: none */
};

struct ll_evictor_moved {
	uint64_t bytes; /* 0 may mean that it is not known */
	uint64_t took_ns;
	bool is_already; /* it was so before: evicted, suspended; or it ran, for resume */
};

typedef int (*ll_evictor_fn)(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			     struct ll_err *err);

struct ll_evictor {
	const char *name;
	ll_evictor_fn evict;   /* its memory leaves, and it waits until resume */
	ll_evictor_fn suspend; /* it waits until resume, and its memory stays on the card */
	ll_evictor_fn resume;
};

/* -EOPNOTSUPP: the program is not evictable in this way. -EBUSY: it cannot be moved now; err says why. -EINTR, and
 * -EBUSY of a resume without room in time: loadlined goes on with what it was asked for. */
extern const struct ll_evictor ll_evictor_program;

/* Asks that evictor for a step, and waits for no answer. kind: LL_MESSAGE_SUSPEND or LL_MESSAGE_RESUME. */
int ll_evictor_program_send(const struct ll_evictor_target *target, enum ll_message_kind kind, struct ll_err *err);

/* Tells loadlined what it has done, for the process's claims (protocol/words.h). An interruption waits until a step of
 * the driver is over. -EOPNOTSUPP: the driver has no checkpoint. -EBUSY: the driver refuses; err says why. */
extern const struct ll_evictor ll_evictor_checkpoint;

#endif
