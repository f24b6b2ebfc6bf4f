/* What the packets of one program bring about. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "mover/program.h"
#include "mover/program_state.h"

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

/* Nothing is to go: STOP was asked, or the program has no memory that can be moved. */
static void note_quiet(struct ll_mover_program *program, struct ll_mover_pool *pool)
{
	bool is_halting = program->rule.state == LL_RESIDENCY_HALTING;
	ll_mover_program_forget_reserved(program, pool);
	if (!is_halting)
		program->rule.bytes = 0;
	ll_mover_program_enter(program, is_halting ? LL_RESIDENCY_STOPPED : LL_RESIDENCY_AWAY);
}

/* The program may have grown since its room was reserved. As ll_mover_pool_reserve; on a neighbour the room need not be
 * pinned. */
static int reserve_rest(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t bytes)
{
	int rc = ll_mover_program_reserve(program, pool, bytes);
	return rc == -EAGAIN && program->neighbour ? 0 : rc;
}

static int handle_quiet(struct ll_mover_program *program, struct ll_mover_pool *pool,
			const struct ll_mover_message *message, uint64_t now_ns, enum ll_mover_event *ret_event,
			struct ll_err *err)
{
	if (!ll_mover_program_is_becoming_quiet(program))
		return fail_protocol(err, program, "was not asked to be quiet");
	bool has_any = message->value > 0;
	if (has_any != (message->bytes > 0) || message->value > LL_MOVER_BATCHES ||
	    (has_any && program->rule.state == LL_RESIDENCY_HALTING))
		return fail_protocol(err, program, "names memory that it cannot have");
	if (program->is_late) {
		ll_mover_program_turn_back(program, pool, program->why, now_ns);
		return 0;
	}
	if (!message->value) {
		note_quiet(program, pool);
		*ret_event = LL_MOVER_EVENT_DONE;
		return 0;
	}
	program->rule.bytes = message->bytes;
	program->batches = calloc(message->value, sizeof *program->batches);
	int rc = program->batches ? reserve_rest(program, pool, message->bytes) : -ENOSPC;
	if (rc == 0) {
		program->batch_count = (uint32_t)message->value;
		ll_mover_program_enter(program, LL_RESIDENCY_LEAVING);
		program->rule.left_bytes = message->bytes;
		ll_mover_program_say_kind(program, LL_MOVER_SEND, 0);
		return 0;
	}
	free(program->batches);
	program->batches = NULL;
	ll_mover_program_note_full(program, pool, message->bytes);
	ll_mover_program_turn_back(program, pool, program->why, now_ns);
	if (rc == -EAGAIN) /* the program shall work while its room is being pinned */
		program->rule.retry_ns = 0;
	else
		*ret_event = LL_MOVER_EVENT_FAILED;
	return 0;
}

static void say_not_taken(struct ll_mover_program *program, uint32_t number)
{
	struct ll_mover_message message = {.kind = LL_MOVER_TAKEN, .batch = number};
	ll_mover_program_say(program, &message, NULL);
}

static void say_not_filled(struct ll_mover_program *program, uint32_t number)
{
	struct ll_mover_message message = {.kind = LL_MOVER_FILLED, .batch = number, .value = 1};
	ll_mover_program_say(program, &message, NULL);
}

/* The program has freed so many batches before it sent this one. */
static void note_freed(struct ll_mover_program *program, uint32_t sent)
{
	uint64_t bytes = sent < LL_MOVER_AHEAD ? 0 : program->batches[sent - LL_MOVER_AHEAD].bytes;
	program->rule.left_bytes -= bytes < program->rule.left_bytes ? bytes : program->rule.left_bytes;
}

/* On the neighbour that was chosen for this move, or in the pool. */
static int store_batch(struct ll_mover_program *program, struct ll_mover_pool *pool, struct ll_mover_batch *batch)
{
	if (program->neighbour && !ll_neighbour_is_wanted(program->neighbour))
		batch->block = ll_neighbour_block_new(program->neighbour, batch->bytes);
	if (batch->block) {
		program->beside_bytes += batch->bytes;
		return 0;
	}
	int rc = ll_mover_pool_take(pool, batch->bytes, batch->places, &batch->place_count);
	if (!rc)
		program->reserved_bytes -= batch->bytes;
	return rc;
}

static void unstore_batch(struct ll_mover_program *program, struct ll_mover_pool *pool, struct ll_mover_batch *batch)
{
	if (batch->block)
		ll_mover_program_free_block(program, batch);
	ll_mover_pool_give(pool, batch->places, batch->place_count);
	batch->place_count = 0;
}

static int take_out(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
		    const struct ll_mover_message *message, const int *fds, size_t fd_count, struct ll_err *err)
{
	struct ll_mover_batch *batch = &program->batches[message->batch];
	int rc = store_batch(program, engine->pool, batch);
	if (rc)
		return ll_err_set(err, rc, "the pool: %s", strerror(-rc));
	rc = ll_mover_batch_begin(batch, LL_TRANSFER_OUT, engine, message, fds, fd_count, err);
	if (rc)
		unstore_batch(program, engine->pool, batch);
	return rc;
}

static int handle_out(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
		      const struct ll_mover_message *message, const int *fds, size_t fd_count, uint64_t now_ns,
		      enum ll_mover_event *ret_event, struct ll_err *err)
{
	struct ll_err why = {0};
	struct ll_mover_batch *batch = &program->batches[message->batch];
	bool is_leaving = program->rule.state == LL_RESIDENCY_LEAVING;
	uint64_t most_bytes = is_leaving ? program->reserved_bytes - program->beside_bytes : UINT64_MAX;
	uint64_t bytes = ll_mover_batch_bytes(message, most_bytes);
	if (!bytes || ll_mover_batch_is_stored(batch) ||
	    (!is_leaving && program->rule.state != LL_RESIDENCY_RETURNING &&
	     program->rule.state != LL_RESIDENCY_STAYING))
		return fail_protocol(err, program, "sent memory that was not asked for");
	batch->bytes = bytes;
	if (!is_leaving) { /* it was sent before the program heard that the move is given up */
		say_not_taken(program, message->batch);
		return 0;
	}
	note_freed(program, message->batch);
	if (take_out(program, engine, message, fds, fd_count, &why)) {
		say_not_taken(program, message->batch);
		ll_mover_program_turn_back(program, engine->pool, why.text, now_ns);
		*ret_event = LL_MOVER_EVENT_FAILED;
	}
	return 0;
}

static int handle_in(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
		     const struct ll_mover_message *message, const int *fds, size_t fd_count, struct ll_err *err)
{
	struct ll_err why = {0};
	struct ll_mover_batch *batch = &program->batches[message->batch];
	if (program->rule.state == LL_RESIDENCY_STAYING && batch->is_told) { /* sent before it heard STAY */
		say_not_filled(program, message->batch);
		return 0;
	}
	if (program->rule.state != LL_RESIDENCY_RETURNING || !batch->is_told || batch->direction != LL_TRANSFER_OUT ||
	    ll_mover_batch_bytes(message, batch->bytes) != batch->bytes)
		return fail_protocol(err, program, "asks for memory that is not stored");
	ll_mover_program_stay_on(program, engine->pool, batch);
	int rc = ll_mover_batch_begin(batch, LL_TRANSFER_IN, engine, message, fds, fd_count, &why);
	program->rule.lacks_room = false;
	ll_mover_program_note_came(program);
	if (rc) {
		ll_warn("claim %u, tenant %s: brings its memory back by itself: %s", program->claim, program->tenant,
			why.text);
		say_not_filled(program, message->batch);
	}
	return 0;
}

static int handle_batch(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			const struct ll_mover_message *message, const int *fds, size_t fd_count, uint64_t now_ns,
			enum ll_mover_event *ret_event, struct ll_err *err)
{
	if (message->batch >= program->batch_count || !message->count || message->count > LL_MOVER_BATCH_HANDLES ||
	    (fd_count && message->count != fd_count))
		return fail_protocol(err, program, "sent no such batch");
	return message->kind == LL_MOVER_OUT
		   ? handle_out(program, engine, message, fds, fd_count, now_ns, ret_event, err)
		   : handle_in(program, engine, message, fds, fd_count, err);
}

static int handle_busy(struct ll_mover_program *program, struct ll_mover_pool *pool,
		       const struct ll_mover_message *message, uint64_t now_ns, enum ll_mover_event *ret_event,
		       struct ll_err *err)
{
	char why[LL_MOVER_TEXT_SIZE];
	snprintf(why, sizeof why, "%.*s", (int)sizeof message->text - 1, message->text);
	if (program->rule.state == LL_RESIDENCY_RETURNING || program->rule.state == LL_RESIDENCY_STAYING)
		return 0; /* it was said before the program heard RETURN */
	if (program->rule.state == LL_RESIDENCY_LEAVING) {
		ll_mover_program_turn_back(program, pool, why, now_ns);
		*ret_event = LL_MOVER_EVENT_FAILED;
		return 0;
	}
	if (!ll_mover_program_is_becoming_quiet(program))
		return fail_protocol(err, program, "was not asked to leave");
	snprintf(program->why, sizeof program->why, "%s", why);
	ll_mover_program_forget_reserved(program, pool);
	ll_mover_program_put_off(program, now_ns);
	ll_mover_program_enter(program, LL_RESIDENCY_HERE); /* also if it was stopped: it goes on */
	*ret_event = program->is_late ? LL_MOVER_EVENT_NONE : LL_MOVER_EVENT_FAILED;
	return 0;
}

/* What had come back is free again. One whose other memory never left waits for room as before. */
static enum ll_mover_event note_stayed(struct ll_mover_program *program, uint64_t now_ns)
{
	ll_mover_batches_note_away(program->batches, program->batch_count);
	if (ll_mover_batches_are_all_told(program->batches, program->batch_count)) {
		ll_mover_program_enter(program, LL_RESIDENCY_AWAY);
		return LL_MOVER_EVENT_STAYED;
	}
	ll_mover_program_enter(program, LL_RESIDENCY_RETURNING);
	ll_mover_program_note_came(program);
	ll_mover_program_note_no_room(program, now_ns);
	return LL_MOVER_EVENT_NONE;
}

static int handle_away(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t now_ns,
		       enum ll_mover_event *ret_event, struct ll_err *err)
{
	bool is_copied = ll_mover_batches_are_copied(program->batches, program->batch_count);
	if (program->rule.state == LL_RESIDENCY_STAYING && !is_copied) {
		*ret_event = note_stayed(program, now_ns);
		return 0;
	}
	if (program->rule.state != LL_RESIDENCY_LEAVING || is_copied ||
	    !ll_mover_batches_are_all_told(program->batches, program->batch_count))
		return fail_protocol(err, program, "is not away");
	ll_mover_pool_unreserve(pool, program->reserved_bytes - program->beside_bytes);
	program->reserved_bytes = program->beside_bytes;
	ll_mover_program_enter(program, LL_RESIDENCY_AWAY);
	*ret_event = LL_MOVER_EVENT_DONE;
	return 0;
}

/* Batches that the program has filled by itself were not sent in. */
static int handle_back(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t error, uint64_t now_ns,
		       enum ll_mover_event *ret_event, struct ll_err *err)
{
	if (program->rule.state != LL_RESIDENCY_RETURNING && program->rule.state != LL_RESIDENCY_STAYING)
		return fail_protocol(err, program, "was not asked to return");
	bool was_away = !program->batch_count || ll_mover_batches_are_all_told(program->batches, program->batch_count);
	ll_mover_program_forget_batches(program, pool);
	ll_mover_program_forget_reserved(program, pool);
	program->rule.wants = false;
	if (was_away) /* else it could not leave, and its turn goes on */
		program->rule.here_since_ns = now_ns;
	ll_mover_program_enter(program, LL_RESIDENCY_HERE);
	*ret_event = error ? LL_MOVER_EVENT_FAILED : LL_MOVER_EVENT_DONE;
	if (error)
		snprintf(program->why, sizeof program->why,
			 "the card is lost to it (CUDA error %" PRIu64 "): it goes on without its memory", error);
	return 0;
}

static int handle_no_room(struct ll_mover_program *program, uint64_t now_ns, struct ll_err *err)
{
	if (program->rule.state == LL_RESIDENCY_STAYING) /* it was said before the program heard STAY */
		return 0;
	if (program->rule.state != LL_RESIDENCY_RETURNING)
		return fail_protocol(err, program, "was not asked to return");
	ll_mover_program_note_no_room(program, now_ns);
	return 0;
}

/* What the program has more than before, it has of the room that it was granted. */
static void note_sizes(struct ll_mover_program *program, const struct ll_mover_message *message, uint64_t now_ns)
{
	enum ll_residency state = program->rule.state;
	uint64_t more = message->bytes > program->rule.bytes ? message->bytes - program->rule.bytes : 0;
	program->rule.granted_bytes -= more < program->rule.granted_bytes ? more : program->rule.granted_bytes;
	if (more)
		program->granted_ns = now_ns;
	if (state == LL_RESIDENCY_HERE || state == LL_RESIDENCY_PREPARING ||
	    ll_mover_program_is_becoming_quiet(program))
		program->rule.bytes = message->bytes;
	program->pinned_bytes = message->value;
}

/* A want that was said before the program came back arrives late. */
static void note_want(struct ll_mover_program *program, uint64_t short_bytes, bool takes_pieces, uint64_t now_ns)
{
	bool is_here = program->rule.state == LL_RESIDENCY_HERE || program->rule.state == LL_RESIDENCY_PREPARING;
	if (!short_bytes && is_here)
		return;
	if (!program->rule.wants && !program->rule.short_bytes)
		program->rule.want_since_ns = now_ns;
	program->rule.granted_bytes = 0;
	if (short_bytes) {
		program->rule.short_bytes = short_bytes;
		program->rule.takes_pieces = takes_pieces;
	} else {
		program->rule.wants = true;
	}
}

int ll_mover_program_handle(struct ll_mover_program *program, const struct ll_transfer_engine *engine,
			    const struct ll_mover_message *message, const int *fds, size_t fd_count, uint64_t now_ns,
			    enum ll_mover_event *ret_event, struct ll_err *err)
{
	struct ll_mover_pool *pool = engine->pool;
	*ret_event = LL_MOVER_EVENT_NONE;
	if (message->kind != LL_MOVER_HELLO && !program->is_known)
		return fail_protocol(err, program, "did not say who it is");
	program->heard_ns = now_ns;
	switch (message->kind) {
	case LL_MOVER_HELLO:
		return handle_hello(program, message, now_ns, err);
	case LL_MOVER_SIZES:
		note_sizes(program, message, now_ns);
		return 0;
	case LL_MOVER_QUIET:
		return handle_quiet(program, pool, message, now_ns, ret_event, err);
	case LL_MOVER_BUSY:
		return handle_busy(program, pool, message, now_ns, ret_event, err);
	case LL_MOVER_OUT:
	case LL_MOVER_IN:
		return handle_batch(program, engine, message, fds, fd_count, now_ns, ret_event, err);
	case LL_MOVER_AWAY:
		return handle_away(program, pool, now_ns, ret_event, err);
	case LL_MOVER_NO_ROOM:
		return handle_no_room(program, now_ns, err);
	case LL_MOVER_BACK:
		return handle_back(program, pool, message->value, now_ns, ret_event, err);
	case LL_MOVER_WANT:
		note_want(program, 0, false, now_ns);
		return 0;
	case LL_MOVER_SHORT:
		ll_debug("claim %u, tenant %s: an allocation of %" PRIu64 " MiB waits for room", program->claim,
			 program->tenant, message->bytes >> 20);
		note_want(program, message->bytes, message->value, now_ns);
		return 0;
	default:
		return fail_protocol(err, program, "said what nobody knows");
	}
}
