/*
 * evict.h - what evict, suspend and resume have in common: they find the programs that the operand means, choose an
 * evictor for each, and print how it went.
 */
#ifndef LOADLINE_CLI_EVICT_EVICT_H
#define LOADLINE_CLI_EVICT_EVICT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "cli/options/command.h"
#include "driver/cards.h"
#include "protocol/message.h"
#include "protocol/words.h"

struct ll_evict_args {
	uint64_t wait_ns; /* --timeout; 0: not given */
	bool json;
	uint64_t pid;       /* 0: not given */
	const char *reason; /* for the log; NULL: not given */
};

extern const struct ll_option ll_evict_options[], ll_resume_options[];

enum ll_evict_kind { LL_EVICT, LL_SUSPEND, LL_RESUME };

/*
 * Does so with each program that the operand means: "0/17" is one process, the name of a tenant all of its processes on
 * all cards; --pid any process of this user. Waits for the end of each move, and prints a line for each. The program
 * does it itself if it is evictable, else the driver's checkpoint. Goes on after a failure, and returns the first.
 * -ENOENT: there is no such program; -EBUSY: one cannot be moved now, err says why; -ESRCH: it has ended; -ECANCELED:
 * another command has asked for something else meanwhile.
 */
int ll_evict_request(const struct ll_evict_args *args, const struct ll_operands *operands, enum ll_evict_kind kind,
		     struct ll_err *err);

/*
 * Who takes a program's memory off its card: one table of functions for each way.
 *
 *     program      the program is evictable (`run --evictable`): it does it itself, as loadlined says
 *     checkpoint   any process of this user: the driver's checkpoint, from driver 570 on. It takes all of the process's
 *                  memory off all its cards, contexts too, into the process's own host memory; slower, and no other
 *                  program's need brings it about
 *
 * Each function waits for the end of what it does. On an error the program goes on as before, unless the text says
 * otherwise.
 */

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

/*
 * Requests to several programs at once.
 *
 * Those that are evictable are asked as one batch: loadlined stops them together before anything leaves
 * (daemon/residency/gather.c).
 */

enum { LL_SUBJECT_NAME_SIZE = 128 };

/* A program that something is asked of, and what came of it. */
struct ll_evict_subject {
	struct ll_evictor_target target;
	struct ll_message_claim_row claim; /* with --pid: all zero */
	bool has_claim;
	char tenant[LL_NAME_SIZE];       /* of the claim's job */
	char name[LL_SUBJECT_NAME_SIZE]; /* for people */
	int rc;
	struct ll_err why; /* of rc */
	const struct ll_evictor *evictor;
	struct ll_evictor_moved moved;
};

/*
 * Asks it of each, and waits for all answers; those of evictable ones at once. Who does it: the checkpoint if that has
 * evicted or suspended the program; else the program itself, and the checkpoint if it is not evictable. -EINTR: the
 * target's interrupt.
 */
void ll_evict_ask(struct ll_evict_subject *subjects, size_t count, enum ll_evict_kind kind);

/* Puts those first that are evictable, and makes them one batch if they are several. Returns how many there are. */
size_t ll_evict_run_batch(struct ll_evict_subject *subjects, size_t count);

/* If all have failed: why the first did that was no mere companion of another. 0: not all have. */
int ll_evict_find_failure(const struct ll_evict_subject *subjects, size_t count);

/* At an interruption: asks the evictable ones to become as they were, and waits for nothing. No other request may
 * follow it (ll_evict_interrupt). */
void ll_evict_send_put_back(const struct ll_evict_subject *subjects, size_t count);

/* After an interruption: makes those as they were before that ran, or were suspended but not by the checkpoint. Their
 * rc and why say how that went; returns the first failure. */
int ll_evict_put_back(struct ll_evict_subject *subjects, size_t count);

/*
 * The programs that the operand of evict, suspend or resume means.
 */

struct ll_evict_subjects {
	struct ll_evict_subject *items;
	size_t count;
};

/*
 * Finds them. "0/17" is one process, the name of a tenant all of its processes on all cards. -ENOENT: there is no such
 * program. Free with fini, also after a failure.
 */
int ll_evict_subjects_find(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			   struct ll_driver *driver, const char *word, struct ll_err *err);

/* Finds the claims of a process of this PID namespace. It may have none. */
int ll_evict_subjects_find_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			       struct ll_driver *driver, struct ll_err *err);

/* Makes the process itself the one subject, without a claim. */
int ll_evict_subjects_set_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			      struct ll_driver *driver, struct ll_err *err);
void ll_evict_subjects_fini(struct ll_evict_subjects *subjects);

/* Names the program, or says how many there are. */
void ll_evict_subjects_name(const struct ll_evict_subjects *subjects, char ret_name[LL_SUBJECT_NAME_SIZE]);

/* How much of the memory of evictable programs is away, as their claims say. */
struct ll_evict_progress {
	uint64_t evictable_bytes, away_bytes;
};
void ll_evict_subjects_progress(const struct ll_evict_subjects *subjects, struct ll_evict_progress *ret_progress);

/*
 * Does work in a thread of its own, while this one shows how far it is, and takes signals.
 */

struct ll_evict_watch {
	void (*work)(void *data);                             /* in its thread */
	void (*describe)(void *data, struct ll_strbuf *text); /* in this one, meanwhile: what goes on, in a line */
	void (*on_first_signal)(void *data); /* in this one, after interrupt is set and before anything is said */
	void *data;
	const char *on_signal; /* what is said at the first signal: what happens now, and how to end it */
	/* what describe says stands on standard error, which is a terminal. Otherwise it is a line there, if the work
	 * takes more than a moment, and again when loadlined says another reason */
	bool is_shown;
	struct ll_evict_interrupt interrupt; /* set at the first signal; the caller hands it to its work before */
};

/* Makes interrupt ready. Without a descriptor for it the work cannot be interrupted. */
void ll_evict_watch_init(struct ll_evict_watch *watch);
void ll_evict_watch_fini(struct ll_evict_watch *watch);

/*
 * Returns when the work is over: the number of the first signal that asked this program to end (SIGINT, SIGTERM,
 * SIGHUP), or 0. A second one ends this program at once.
 */
int ll_evict_watch_run(struct ll_evict_watch *watch);

#endif
