/* Evictable processes of loadlined for tests: each has a socket, at whose other end the test hears what it is told. */
#ifndef LOADLINE_TESTS_UNIT_EVICTABLE_WORLD_H
#define LOADLINE_TESTS_UNIT_EVICTABLE_WORLD_H

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "daemon/core/connection.h"
#include "daemon/residency/evictable.h"
#include "test.h"

#define MS LL_NS_PER_MS
#define S LL_NS_PER_S
#define MIB (UINT64_C(1) << 20)
#define START (1000 * S)

struct process {
	struct ll_evictable evictable;
	struct ll_connection connection;
	struct ll_job_claim claim;
	struct ll_card_claim share;
	int fd; /* the process's end */
};

struct evictable_job {
	struct ll_job job;
	struct ll_job_card card;
};

static inline void process_open(struct process *process, struct evictable_job *job)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	*process = (struct process){.fd = fds[1]};
	snprintf(job->job.facts.tenant, sizeof job->job.facts.tenant, "tenant");
	job->card.job = &job->job;
	process->claim.card = &job->card;
	process->claim.share = &process->share;
	process->connection.fd = fds[0];
	process->connection.evictable = &process->evictable;
	process->evictable.claim = &process->claim;
	process->evictable.connection = &process->connection;
}

static inline void process_close(struct process *process)
{
	close(process->fd);
	close(process->connection.fd);
}

/* Kind of the next message that it was told; 0: none. */
static inline unsigned process_hear(const struct process *process, union ll_message *ret_message)
{
	int fds[LL_MESSAGE_FDS];
	size_t count;
	return ll_message_receive(process->fd, ret_message, fds, &count) ? 0 : ret_message->header.kind;
}

static inline enum ll_evictable_event process_says(struct process *process, enum ll_message_kind kind, uint64_t bytes,
						   uint64_t away_bytes, uint64_t now_ns)
{
	union ll_message message;
	ll_message_init(&message, kind);
	message.move.bytes = bytes;
	message.move.away_bytes = away_bytes;
	return ll_evictable_handle(&process->evictable, kind, &message.move, now_ns);
}

/* EVICTABLE. */
static inline void process_begin(struct process *process, enum ll_move_state state, uint32_t flags, uint64_t bytes,
				 uint64_t away_bytes, uint64_t now_ns)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_EVICTABLE);
	message.move.value = state;
	message.move.flags = flags;
	message.move.bytes = bytes;
	message.move.away_bytes = away_bytes;
	ll_evictable_begin(&process->evictable, &message.move, now_ns);
}

/* It was told this, and nothing else. */
#define assert_told(process, wanted_kind, wanted_flags)                                                                \
	do {                                                                                                           \
		union ll_message told_, more_;                                                                         \
		assert_int_equal(process_hear(process, &told_), wanted_kind);                                          \
		assert_int_equal(told_.move.flags, wanted_flags);                                                      \
		assert_int_equal(process_hear(process, &more_), 0);                                                    \
	} while (0)

#define assert_told_nothing(process)                                                                                   \
	do {                                                                                                           \
		union ll_message told_;                                                                                \
		assert_int_equal(process_hear(process, &told_), 0);                                                    \
	} while (0)

#endif
