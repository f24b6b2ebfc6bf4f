#include "mover/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/packet.h"

/* How long a program may take to become quiet: its threads return from the driver, and its kernels end. */
#define QUIET_NS (10 * LL_NS_PER_S)
/* After a refusal by the program, and when the card had no room. */
#define REFUSED_NS (1 * LL_NS_PER_S)
#define NO_ROOM_NS (5 * LL_NS_PER_MS)

struct ll_mover_program *ll_mover_program_new(int fd)
{
	struct ll_mover_program *program = calloc(1, sizeof *program);
	if (program)
		program->fd = fd;
	return program;
}

static void forget_batches(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	for (uint32_t i = 0; i < program->batch_count; i++) {
		ll_transfer_free(program->batches[i].transfer);
		ll_mover_pool_give(pool, program->batches[i].places, program->batches[i].place_count);
	}
	free(program->batches);
	program->batches = NULL;
	program->batch_count = 0;
}

static void forget_reserved(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	ll_mover_pool_unreserve(pool, program->reserved_bytes);
	program->reserved_bytes = 0;
}

void ll_mover_program_free(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	forget_batches(program, pool);
	forget_reserved(program, pool);
	if (program->fd >= 0)
		close(program->fd);
	free(program);
}

/* A program that does not read its socket is as good as gone: its end is seen by poll. */
static void say(struct ll_mover_program *program, const struct ll_mover_message *message, const int *fd)
{
	ll_packet_send(program->fd, message, sizeof *message, fd, fd ? 1 : 0);
}

static void say_kind(struct ll_mover_program *program, enum ll_mover_kind kind, uint64_t value)
{
	struct ll_mover_message message = {.kind = kind, .value = value};
	say(program, &message, NULL);
}

static void enter_state(struct ll_mover_program *program, enum ll_residency state)
{
	program->rule.state = state;
}

/* ---- steps ---- */

static void fail_leave(struct ll_mover_program *program, uint64_t now_ns)
{
	program->rule.retry_ns = now_ns + REFUSED_NS;
	enter_state(program, LL_RESIDENCY_HERE);
}

static void send_leave(struct ll_mover_program *program, const struct ll_mover_pool *pool)
{
	int fd = ll_mover_pool_fd(pool);
	struct ll_mover_message message = {.kind = LL_MOVER_LEAVE, .value = QUIET_NS};
	enter_state(program, LL_RESIDENCY_STOPPING);
	say(program, &message, &fd);
}

void ll_mover_program_leave(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	int rc = ll_mover_pool_reserve(pool, program->rule.bytes);
	program->begun_ns = now_ns;
	if (rc == -ENOSPC) {
		snprintf(program->why, sizeof program->why,
			 "the pool of %" PRIu64 " MiB has no room for %" PRIu64 " MiB more",
			 ll_mover_pool_budget(pool) >> 20, program->rule.bytes >> 20);
		fail_leave(program, now_ns);
		return;
	}
	program->reserved_bytes = program->rule.bytes;
	if (rc == -EAGAIN)
		enter_state(program, LL_RESIDENCY_PREPARING);
	else
		send_leave(program, pool);
}

void ll_mover_program_stop(struct ll_mover_program *program, uint64_t now_ns)
{
	program->begun_ns = now_ns;
	enter_state(program, LL_RESIDENCY_STOPPING);
	say_kind(program, LL_MOVER_STOP, QUIET_NS);
}

void ll_mover_program_return(struct ll_mover_program *program, uint64_t now_ns)
{
	program->begun_ns = now_ns;
	enter_state(program, LL_RESIDENCY_RETURNING);
	say_kind(program, LL_MOVER_RETURN, 0);
}

void ll_mover_program_answer_short(struct ll_mover_program *program, bool has_room)
{
	program->rule.short_bytes = 0;
	say_kind(program, LL_MOVER_ROOM_MADE, has_room);
}

void ll_mover_program_tick(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	if (program->rule.state == LL_RESIDENCY_PREPARING) {
		int rc = ll_mover_pool_is_ready(pool);
		if (rc == 0) {
			send_leave(program, pool);
		} else if (rc == -ENOSPC) {
			snprintf(program->why, sizeof program->why,
				 "the host has no memory for a pool of more than %" PRIu64 " MiB",
				 ll_mover_pool_pinned(pool) >> 20);
			forget_reserved(program, pool);
			fail_leave(program, now_ns);
		}
	}
	if (program->again_ns && now_ns >= program->again_ns) {
		program->again_ns = 0;
		if (program->rule.state == LL_RESIDENCY_RETURNING)
			say_kind(program, LL_MOVER_RETURN, 0);
	}
}

/* ---- packets ---- */

static int fail_protocol(struct ll_err *err, const struct ll_mover_program *program, const char *what)
{
	return ll_err_set(err, -EPROTO, "claim %u, tenant %s: %s", program->claim, program->tenant, what);
}

static int handle_hello(struct ll_mover_program *program, const struct ll_mover_message *message, uint64_t now_ns,
			struct ll_err *err)
{
	if (program->is_known || message->value != LL_MOVER_VERSION)
		return fail_protocol(err, program, "another version of loadline");
	program->is_known = true;
	program->claim = (unsigned)message->number;
	program->rule.here_since_ns = now_ns;
	program->rule.priority = LL_PRIORITY_NORMAL;
	snprintf(program->tenant, sizeof program->tenant, "%.*s", (int)sizeof program->tenant - 1, message->text);
	return 0;
}

static int handle_quiet(struct ll_mover_program *program, struct ll_mover_pool *pool,
			const struct ll_mover_message *message, uint64_t now_ns, enum ll_mover_event *ret_event,
			struct ll_err *err)
{
	if (program->rule.state != LL_RESIDENCY_STOPPING)
		return fail_protocol(err, program, "was not asked to be quiet");
	if (!message->value) { /* STOP was asked, or nothing is to go */
		bool is_halt = program->rule.wish == LL_RESIDENCY_STOP;
		enter_state(program, is_halt ? LL_RESIDENCY_STOPPED : LL_RESIDENCY_AWAY);
		if (!is_halt)
			program->rule.bytes = 0;
		forget_reserved(program, pool);
		*ret_event = LL_MOVER_EVENT_DONE;
		return 0;
	}
	program->batches = calloc(message->value, sizeof *program->batches);
	int rc = program->batches ? 0 : -ENOSPC;
	if (!rc && message->bytes > program->reserved_bytes)
		rc = ll_mover_pool_reserve(pool, message->bytes - program->reserved_bytes);
	if (rc == 0 || rc == -EAGAIN)
		program->reserved_bytes =
		    message->bytes > program->reserved_bytes ? message->bytes : program->reserved_bytes;
	if (rc == 0) {
		program->batch_count = (uint32_t)message->value;
		program->rule.bytes = message->bytes;
		enter_state(program, LL_RESIDENCY_LEAVING);
		say_kind(program, LL_MOVER_SEND, 0);
		return 0;
	}
	/* It has grown since the room was reserved. */
	free(program->batches);
	program->batches = NULL;
	forget_reserved(program, pool);
	program->rule.bytes = message->bytes;
	snprintf(program->why, sizeof program->why, "the pool has no room for %" PRIu64 " MiB", message->bytes >> 20);
	program->rule.retry_ns = now_ns + REFUSED_NS;
	ll_mover_program_return(program, now_ns);
	*ret_event = LL_MOVER_EVENT_FAILED;
	return 0;
}

static int handle_out(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
		      const struct ll_mover_message *message, const int *fds, struct ll_err *err)
{
	struct ll_mover_batch *batch = &program->batches[message->batch];
	batch->bytes = 0;
	for (uint32_t i = 0; i < message->count; i++)
		batch->bytes += message->handle_bytes[i];
	if (program->rule.state != LL_RESIDENCY_LEAVING || batch->place_count || batch->bytes > program->reserved_bytes)
		return fail_protocol(err, program, "sent memory that was not asked for");
	int rc = ll_mover_pool_take(engine->pool, batch->bytes, batch->places, &batch->place_count);
	if (rc)
		return ll_err_set(err, rc, "the pool: %s", strerror(-rc));
	program->reserved_bytes -= batch->bytes;
	batch->direction = LL_TRANSFER_OUT;
	return ll_transfer_new(engine, LL_TRANSFER_OUT, fds, message->handle_bytes, message->count, batch->places,
			       batch->place_count, &batch->transfer, err);
}

static int handle_in(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
		     const struct ll_mover_message *message, const int *fds, struct ll_err *err)
{
	struct ll_mover_batch *batch = &program->batches[message->batch];
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < message->count; i++)
		bytes += message->handle_bytes[i];
	if (program->rule.state != LL_RESIDENCY_RETURNING || !batch->place_count || batch->transfer ||
	    bytes != batch->bytes)
		return fail_protocol(err, program, "asks for memory that is not in the pool");
	batch->direction = LL_TRANSFER_IN;
	return ll_transfer_new(engine, LL_TRANSFER_IN, fds, message->handle_bytes, message->count, batch->places,
			       batch->place_count, &batch->transfer, err);
}

static int handle_batch(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			const struct ll_mover_message *message, const int *fds, size_t fd_count, struct ll_err *err)
{
	if (message->batch >= program->batch_count || message->count != fd_count || !fd_count)
		return fail_protocol(err, program, "sent no such batch");
	return message->kind == LL_MOVER_OUT ? handle_out(program, engine, message, fds, err)
					     : handle_in(program, engine, message, fds, err);
}

static void handle_busy(struct ll_mover_program *program, struct ll_mover_pool *pool,
			const struct ll_mover_message *message, uint64_t now_ns)
{
	snprintf(program->why, sizeof program->why, "%.*s", (int)sizeof message->text - 1, message->text);
	forget_reserved(program, pool);
	fail_leave(program, now_ns);
}

static void note_want(struct ll_mover_program *program, uint64_t short_bytes, uint64_t now_ns)
{
	program->rule.want_since_ns = now_ns;
	if (short_bytes)
		program->rule.short_bytes = short_bytes;
	else
		program->rule.wants = true;
}

int ll_mover_program_handle(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			    const struct ll_mover_message *message, const int *fds, size_t fd_count, uint64_t now_ns,
			    enum ll_mover_event *ret_event, struct ll_err *err)
{
	struct ll_mover_pool *pool = engine->pool;
	*ret_event = LL_MOVER_EVENT_NONE;
	if (message->kind != LL_MOVER_HELLO && !program->is_known)
		return fail_protocol(err, program, "did not say who it is");
	switch (message->kind) {
	case LL_MOVER_HELLO:
		return handle_hello(program, message, now_ns, err);
	case LL_MOVER_SIZES:
		if (program->rule.state == LL_RESIDENCY_HERE)
			program->rule.bytes = message->bytes;
		program->pinned_bytes = message->value;
		return 0;
	case LL_MOVER_QUIET:
		return handle_quiet(program, pool, message, now_ns, ret_event, err);
	case LL_MOVER_BUSY:
		handle_busy(program, pool, message, now_ns);
		*ret_event = LL_MOVER_EVENT_FAILED;
		return 0;
	case LL_MOVER_OUT:
	case LL_MOVER_IN:
		return handle_batch(program, engine, message, fds, fd_count, err);
	case LL_MOVER_AWAY:
		forget_reserved(program, pool);
		enter_state(program, LL_RESIDENCY_AWAY);
		*ret_event = LL_MOVER_EVENT_DONE;
		return 0;
	case LL_MOVER_NO_ROOM:
		program->again_ns = now_ns + NO_ROOM_NS;
		return 0;
	case LL_MOVER_BACK:
		forget_batches(program, pool);
		program->rule.wants = false;
		program->rule.here_since_ns = now_ns;
		enter_state(program, LL_RESIDENCY_HERE);
		*ret_event = LL_MOVER_EVENT_DONE;
		return 0;
	case LL_MOVER_WANT:
		note_want(program, 0, now_ns);
		return 0;
	case LL_MOVER_SHORT:
		note_want(program, message->bytes, now_ns);
		return 0;
	default:
		return fail_protocol(err, program, "said what nobody knows");
	}
}

/* ---- transfers ---- */

static void tell_done(struct ll_mover_program *program, struct ll_mover_pool *pool, uint32_t number)
{
	struct ll_mover_batch *batch = &program->batches[number];
	struct ll_mover_message message = {.kind = LL_MOVER_FILLED, .batch = number};
	if (batch->direction == LL_TRANSFER_OUT) {
		message.kind = LL_MOVER_TAKEN;
		message.count = batch->place_count;
		memcpy(message.places, batch->places, batch->place_count * sizeof *batch->places);
	} else {
		ll_mover_pool_give(pool, batch->places, batch->place_count);
		batch->place_count = 0;
	}
	say(program, &message, NULL);
}

int ll_mover_program_poll(struct ll_mover_program *program, struct ll_mover_pool *pool, bool *ret_running,
			  struct ll_err *err)
{
	for (uint32_t i = 0; i < program->batch_count; i++) {
		struct ll_mover_batch *batch = &program->batches[i];
		if (!batch->transfer)
			continue;
		int rc = ll_transfer_is_done(batch->transfer, err);
		if (rc == -EAGAIN) {
			*ret_running = true;
			continue;
		}
		if (rc)
			return rc;
		ll_transfer_free(batch->transfer);
		batch->transfer = NULL;
		tell_done(program, pool, i);
	}
	return 0;
}
