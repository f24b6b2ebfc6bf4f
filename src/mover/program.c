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
	program->beside_bytes = 0;
}

void ll_mover_program_forget_reserved(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	ll_mover_pool_unreserve(pool, program->reserved_bytes);
	program->reserved_bytes = 0;
}

int ll_mover_program_reserve(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t bytes)
{
	if (bytes <= program->reserved_bytes)
		return 0;
	int rc = ll_mover_pool_reserve(pool, bytes - program->reserved_bytes);
	if (rc == 0 || rc == -EAGAIN)
		program->reserved_bytes = bytes;
	return rc;
}

void ll_mover_program_free_block(struct ll_mover_program *program, struct ll_mover_batch *batch)
{
	ll_neighbour_block_free(batch->block);
	batch->block = NULL;
	program->beside_bytes -= batch->bytes;
}

void ll_mover_program_stay_on(struct ll_mover_program *program, struct ll_mover_pool *pool,
			      struct ll_mover_batch *batch)
{
	uint64_t bytes = ll_mover_batch_stay_on(batch, pool);
	ll_mover_program_reserve(program, pool, program->reserved_bytes + bytes);
}

/* Room on the card is kept for what a program brings back by itself. */
static void leave_alone(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns)
{
	for (uint32_t i = 0; i < program->batch_count; i++)
		ll_mover_batch_stay_on(&program->batches[i], pool);
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

/* The end of a program is seen by poll. One that cannot be sent a descriptor is as deaf as one that does not read. */
void ll_mover_program_say(struct ll_mover_program *program, const struct ll_mover_message *message, const int *fd)
{
	if (program->is_disowned)
		return;
	int rc = ll_packet_send(program->fd, message, sizeof *message, fd, fd ? 1 : 0);
	program->is_deaf |= rc == -EAGAIN || rc == -ETOOMANYREFS;
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

void ll_mover_program_note_full(struct ll_mover_program *program, const struct ll_mover_pool *pool, uint64_t bytes)
{
	snprintf(program->why, sizeof program->why, "the pool of %" PRIu64 " MiB has no room for %" PRIu64 " MiB more",
		 ll_mover_pool_budget(pool) >> 20, bytes >> 20);
}

void ll_mover_program_leave(struct ll_mover_program *program, struct ll_mover_pool *pool,
			    struct ll_neighbour *neighbour, uint64_t now_ns)
{
	int rc = ll_mover_pool_reserve(pool, program->rule.bytes);
	program->neighbour = neighbour;
	program->has_said_stuck = false;
	program->begun_ns = now_ns;
	program->was_stopped = program->rule.state == LL_RESIDENCY_STOPPED;
	if (rc == -ENOSPC) {
		ll_mover_program_note_full(program, pool, program->rule.bytes);
		fail_leave(program, now_ns);
		return;
	}
	program->reserved_bytes = program->rule.bytes;
	if (rc == -EAGAIN && !neighbour)
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

static void say_places(struct ll_mover_program *program, uint32_t number, enum ll_mover_kind kind)
{
	const struct ll_mover_batch *batch = &program->batches[number];
	struct ll_mover_message message = {.kind = kind, .batch = number, .count = batch->place_count};
	memcpy(message.places, batch->places, batch->place_count * sizeof *batch->places);
	ll_mover_program_say(program, &message, NULL);
}

static void say_block(struct ll_mover_program *program, uint32_t number)
{
	struct ll_mover_message message = {.kind = LL_MOVER_TAKEN, .batch = number, .value = 1};
	struct ll_neighbour_block *block = program->batches[number].block;
	ll_mover_program_say(program, &message, &block->fd);
	close(block->fd);
	block->fd = -1;
}

static void tell_taken(struct ll_mover_program *program, uint32_t number)
{
	struct ll_mover_batch *batch = &program->batches[number];
	batch->is_told = true;
	if (program->rule.state == LL_RESIDENCY_RETURNING)
		ll_mover_program_note_came(program);
	if (batch->block)
		say_block(program, number);
	else
		say_places(program, number, LL_MOVER_TAKEN);
}

static void tell_done(struct ll_mover_program *program, uint32_t number)
{
	struct ll_mover_batch *batch = &program->batches[number];
	struct ll_mover_message filled = {.kind = LL_MOVER_FILLED, .batch = number};
	if (batch->is_moving_on) {
		batch->is_moving_on = false;
		ll_mover_program_free_block(program, batch);
		say_places(program, number, LL_MOVER_MOVED);
		if (!program->beside_bytes)
			ll_info("claim %u, tenant %s: all its memory is on the host now", program->claim,
				program->tenant);
	} else if (batch->direction == LL_TRANSFER_OUT) {
		tell_taken(program, number);
	} else {
		ll_mover_program_say(program, &filled, NULL);
	}
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

/* ---- on to the host ---- */

static void say_stuck(struct ll_mover_program *program, const char *why)
{
	if (!program->has_said_stuck)
		ll_warn("claim %u, tenant %s: %" PRIu64 " MiB stay on card %s, though it is wanted: %s", program->claim,
			program->tenant, program->beside_bytes >> 20, ll_neighbour_label(program->neighbour), why);
	program->has_said_stuck = true;
}

/* False: not now. */
static bool move_batch_on(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			  struct ll_mover_batch *batch)
{
	struct ll_err err = {0};
	int rc = ll_mover_program_reserve(program, engine->pool, batch->bytes);
	if (rc == 0)
		rc = ll_mover_pool_is_ready(engine->pool);
	if (rc == -ENOSPC)
		say_stuck(program, "the pool has no room");
	if (rc || ll_mover_pool_take(engine->pool, batch->bytes, batch->places, &batch->place_count))
		return false;
	program->reserved_bytes -= batch->bytes;
	if (ll_mover_batch_move_on(batch, engine, &err) == 0)
		return true;
	say_stuck(program, err.text);
	ll_mover_pool_give(engine->pool, batch->places, batch->place_count);
	batch->place_count = 0;
	ll_mover_program_reserve(program, engine->pool, program->reserved_bytes + batch->bytes);
	return false;
}

static uint32_t count_moving_on(const struct ll_mover_program *program)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < program->batch_count; i++)
		count += program->batches[i].is_moving_on;
	return count;
}

void ll_mover_program_move_on(struct ll_mover_program *program, const struct ll_transfer_engine *engine)
{
	bool is_at_rest = program->rule.state == LL_RESIDENCY_AWAY ||
			  (program->rule.state == LL_RESIDENCY_RETURNING && program->rule.lacks_room);
	if (!program->beside_bytes || !is_at_rest || program->is_disowned)
		return;
	uint32_t under_way = count_moving_on(program);
	for (uint32_t i = 0; i < program->batch_count && under_way < LL_MOVER_AHEAD; i++) {
		struct ll_mover_batch *batch = &program->batches[i];
		if (!batch->block || batch->transfer || batch->direction != LL_TRANSFER_OUT ||
		    !ll_neighbour_is_wanted(batch->block->neighbour))
			continue;
		if (!move_batch_on(program, engine, batch))
			return;
		under_way++;
	}
}
