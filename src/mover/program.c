#include "mover/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/packet.h"
#include "mover/program_state.h"

/* How long a program may take to become quiet: its threads return from the driver, and its kernels end. A program that
 * does not say so, because it is stopped or in a debugger, is given up a while later. */
#define QUIET_NS (10 * LL_NS_PER_S)
#define LATE_NS (5 * LL_NS_PER_S)
/* A program that refused was stopped for nothing. So it is asked again after REFUSED_TIMES as long: that costs it under
 * a tenth of its time. */
#define REFUSED_NS (1 * LL_NS_PER_S)
#define REFUSED_TIMES 10
/* A program that had no room on the card tries again after this. */
#define NO_ROOM_NS (5 * LL_NS_PER_MS)
/* A program that owes a batch for longer does not run. */
#define SILENT_NS (5 * LL_NS_PER_S)
/* One that brings its memory back by itself copies some GB/s. */
#define ALONE_NS (60 * LL_NS_PER_S)
/* In this time a program takes the room that it was granted. */
#define GRANT_NS (500 * LL_NS_PER_MS)

struct ll_mover_program *ll_mover_program_new(int fd)
{
	struct ll_mover_program *program = calloc(1, sizeof *program);
	if (program)
		program->fd = fd;
	return program;
}

void ll_mover_program_forget_batches(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	ll_mover_batches_free(program->batches, program->batch_count, pool);
	program->batches = NULL;
	program->batch_count = 0;
}

void ll_mover_program_forget_reserved(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	ll_mover_pool_unreserve(pool, program->reserved_bytes);
	program->reserved_bytes = 0;
}

/* Room on the card is kept for what a program brings back by itself. */
static void leave_alone(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	ll_mover_program_forget_reserved(program, pool);
	ll_mover_batches_stop(program->batches, program->batch_count);
	if (program->rule.state == LL_RESIDENCY_STAYING)
		ll_mover_batches_note_away(program->batches, program->batch_count);
	uint64_t left_bytes = ll_mover_batches_left(program->batches, program->batch_count);
	program->rule = (struct ll_residency_program){.state = LL_RESIDENCY_HERE};
	if (left_bytes) {
		program->rule.state = LL_RESIDENCY_RETURNING;
		program->rule.is_torn = true; /* it cannot be told to stay away */
		program->rule.left_bytes = left_bytes;
	}
	program->again_ns = 0;
	program->heard_ns = now_ns;
	program->is_known = false;
	program->is_disowned = true;
}

void ll_mover_program_disown(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	leave_alone(program, pool, now_ns);
	shutdown(program->fd, SHUT_WR);
}

bool ll_mover_program_lose(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	if (!program->is_disowned)
		leave_alone(program, pool, now_ns);
	close(program->fd);
	program->fd = -1;
	return !ll_mover_batches_are_told(program->batches, program->batch_count);
}

void ll_mover_program_free(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	ll_mover_program_forget_batches(program, pool);
	ll_mover_program_forget_reserved(program, pool);
	if (program->fd >= 0)
		close(program->fd);
	free(program);
}

/* The end of a program is seen by poll. */
void ll_mover_program_say(struct ll_mover_program *program, const struct ll_mover_message *message, const int *fd)
{
	if (program->is_disowned)
		return;
	if (ll_packet_send(program->fd, message, sizeof *message, fd, fd ? 1 : 0) == -EAGAIN)
		program->is_deaf = true;
}

void ll_mover_program_say_kind(struct ll_mover_program *program, enum ll_mover_kind kind, uint64_t value)
{
	struct ll_mover_message message = {.kind = kind, .value = value};
	ll_mover_program_say(program, &message, NULL);
}

void ll_mover_program_enter(struct ll_mover_program *program, enum ll_residency state)
{
	static const char *const names[] = {"here",    "preparing", "stopping",  "stopping",    "stopped",
					    "leaving", "away",      "returning", "staying away"};
	ll_debug("claim %u, tenant %s: is %s", program->claim, program->tenant, names[state]);
	program->rule.state = state;
	program->rule.lacks_room = program->rule.is_torn = false;
	program->rule.left_bytes = program->rule.came_bytes = 0;
	program->again_ns = 0;
}

bool ll_mover_program_is_becoming_quiet(const struct ll_mover_program *program)
{
	return program->rule.state == LL_RESIDENCY_STOPPING || program->rule.state == LL_RESIDENCY_HALTING;
}

void ll_mover_program_note_came(struct ll_mover_program *program)
{
	program->rule.left_bytes = ll_mover_batches_left(program->batches, program->batch_count);
	program->rule.came_bytes = ll_mover_batches_came(program->batches, program->batch_count);
	program->rule.is_torn = !ll_mover_batches_are_all_told(program->batches, program->batch_count);
}

void ll_mover_program_note_no_room(struct ll_mover_program *program, uint64_t now_ns)
{
	program->again_ns = now_ns + NO_ROOM_NS;
	program->rule.lacks_room = true;
}

/* ---- steps ---- */

void ll_mover_program_put_off(struct ll_mover_program *program, uint64_t now_ns)
{
	uint64_t pause_ns = REFUSED_TIMES * (now_ns - program->begun_ns);
	program->rule.retry_ns = now_ns + (pause_ns > REFUSED_NS ? pause_ns : REFUSED_NS);
}

/* Nothing was said to the program yet. */
static void fail_leave(struct ll_mover_program *program, uint64_t now_ns)
{
	ll_mover_program_put_off(program, now_ns);
	ll_mover_program_enter(program, program->was_stopped ? LL_RESIDENCY_STOPPED : LL_RESIDENCY_HERE);
}

/* Gives up a move that has begun: what has left returns. */
void ll_mover_program_turn_back(struct ll_mover_program *program, struct ll_mover_pool *pool, const char *why,
				uint64_t now_ns)
{
	if (why != program->why)
		snprintf(program->why, sizeof program->why, "%s", why);
	ll_mover_program_forget_reserved(program, pool);
	ll_mover_program_put_off(program, now_ns);
	ll_mover_program_return(program, now_ns);
}

static void ask_to_stop(struct ll_mover_program *program, enum ll_mover_kind kind, const int *fd)
{
	struct ll_mover_message message = {.kind = kind, .value = program->quiet_ns ? program->quiet_ns : QUIET_NS};
	program->asked_ns = ll_now_ns();
	program->is_late = false;
	ll_mover_program_enter(program, kind == LL_MOVER_STOP ? LL_RESIDENCY_HALTING : LL_RESIDENCY_STOPPING);
	ll_mover_program_say(program, &message, fd);
}

static void send_leave(struct ll_mover_program *program, const struct ll_mover_pool *pool)
{
	int fd = ll_mover_pool_fd(pool);
	ask_to_stop(program, LL_MOVER_LEAVE, &fd);
}

void ll_mover_program_leave(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	int rc = ll_mover_pool_reserve(pool, program->rule.bytes);
	program->begun_ns = now_ns;
	program->was_stopped = program->rule.state == LL_RESIDENCY_STOPPED;
	if (rc == -ENOSPC) {
		snprintf(program->why, sizeof program->why,
			 "the pool of %" PRIu64 " MiB has no room for %" PRIu64 " MiB more",
			 ll_mover_pool_budget(pool) >> 20, program->rule.bytes >> 20);
		fail_leave(program, now_ns);
		return;
	}
	program->reserved_bytes = program->rule.bytes;
	if (rc == -EAGAIN)
		ll_mover_program_enter(program, LL_RESIDENCY_PREPARING);
	else
		send_leave(program, pool);
}

void ll_mover_program_stop(struct ll_mover_program *program, uint64_t now_ns)
{
	program->begun_ns = now_ns;
	program->was_stopped = false;
	ask_to_stop(program, LL_MOVER_STOP, NULL);
}

void ll_mover_program_return(struct ll_mover_program *program, uint64_t now_ns)
{
	program->begun_ns = program->heard_ns = now_ns;
	ll_mover_program_enter(program, LL_RESIDENCY_RETURNING);
	ll_mover_program_note_came(program);
	ll_mover_program_say_kind(program, LL_MOVER_RETURN, 0);
}

void ll_mover_program_stay(struct ll_mover_program *program)
{
	uint64_t came_bytes = program->rule.came_bytes;
	ll_mover_program_enter(program, LL_RESIDENCY_STAYING);
	program->rule.left_bytes = came_bytes;
	ll_mover_program_say_kind(program, LL_MOVER_STAY, 0);
}

void ll_mover_program_answer_short(struct ll_mover_program *program, enum ll_mover_room room, uint64_t now_ns)
{
	static const char *const names[] = {"refused", "granted", "granted, while others leave"};
	ll_debug("claim %u, tenant %s: room for %" PRIu64 " MiB: %s", program->claim, program->tenant,
		 program->rule.short_bytes >> 20, names[room]);
	program->rule.granted_bytes = room ? program->rule.short_bytes : 0;
	program->granted_ns = now_ns;
	program->rule.short_bytes = 0;
	ll_mover_program_say_kind(program, LL_MOVER_ROOM_MADE, room);
}

bool ll_mover_program_cancel(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	if (program->rule.state != LL_RESIDENCY_PREPARING)
		return false;
	ll_mover_program_forget_reserved(program, pool);
	ll_mover_program_enter(program, program->was_stopped ? LL_RESIDENCY_STOPPED : LL_RESIDENCY_HERE);
	return true;
}

static enum ll_mover_event prepare_room(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	int rc = ll_mover_pool_is_ready(pool);
	if (rc == 0)
		send_leave(program, pool);
	if (rc != -ENOSPC)
		return LL_MOVER_EVENT_NONE;
	snprintf(program->why, sizeof program->why, "the host has no memory for a pool of more than %" PRIu64 " MiB",
		 ll_mover_pool_pinned(pool) >> 20);
	ll_mover_program_forget_reserved(program, pool);
	fail_leave(program, now_ns);
	return LL_MOVER_EVENT_FAILED;
}

static bool is_overdue(const struct ll_mover_program *program, uint64_t now_ns)
{
	uint64_t quiet_ns = program->quiet_ns ? program->quiet_ns : QUIET_NS;
	return ll_mover_program_is_becoming_quiet(program) && !program->is_late &&
	       now_ns > program->asked_ns + quiet_ns + LATE_NS;
}

static bool is_silent(const struct ll_mover_program *program, uint64_t now_ns)
{
	if (ll_mover_program_is_becoming_quiet(program))
		return program->is_late;
	if (program->rule.state != LL_RESIDENCY_LEAVING && program->rule.state != LL_RESIDENCY_RETURNING &&
	    program->rule.state != LL_RESIDENCY_STAYING)
		return false;
	return !ll_mover_batches_are_copied(program->batches, program->batch_count) &&
	       now_ns > program->heard_ns + (program->is_disowned ? ALONE_NS : SILENT_NS);
}

enum ll_mover_event ll_mover_program_tick(struct ll_mover_program *program, struct ll_mover_pool *pool, bool may_go_on,
					  uint64_t now_ns)
{
	if (program->rule.state == LL_RESIDENCY_PREPARING)
		return prepare_room(program, pool, now_ns);
	if (is_overdue(program, now_ns)) {
		snprintf(program->why, sizeof program->why, "the program does not answer: is it stopped?");
		program->is_late = program->rule.is_silent = true;
		return LL_MOVER_EVENT_FAILED;
	}
	program->rule.is_silent = is_silent(program, now_ns);
	if (now_ns > program->granted_ns + GRANT_NS)
		program->rule.granted_bytes = 0;
	if (program->again_ns && now_ns >= program->again_ns) {
		program->again_ns = may_go_on ? 0 : now_ns + NO_ROOM_NS;
		if (may_go_on)
			ll_mover_program_say_kind(program, LL_MOVER_RETURN, 0);
	}
	return LL_MOVER_EVENT_NONE;
}

/* ---- transfers ---- */

static void tell_done(struct ll_mover_program *program, uint32_t number)
{
	struct ll_mover_batch *batch = &program->batches[number];
	struct ll_mover_message message = {.kind = LL_MOVER_FILLED, .batch = number};
	if (batch->direction == LL_TRANSFER_OUT) {
		message.kind = LL_MOVER_TAKEN;
		message.count = batch->place_count;
		memcpy(message.places, batch->places, batch->place_count * sizeof *batch->places);
		batch->is_told = true;
		if (program->rule.state == LL_RESIDENCY_RETURNING)
			ll_mover_program_note_came(program);
	}
	ll_mover_program_say(program, &message, NULL);
}

int ll_mover_program_poll(struct ll_mover_program *program, bool *ret_running, struct ll_err *err)
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
		program->heard_ns = ll_now_ns();
		tell_done(program, i);
	}
	return 0;
}
