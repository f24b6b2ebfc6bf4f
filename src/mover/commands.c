#include "mover/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/packet.h"
#include "mover/program.h"

void ll_mover_answer(struct ll_mover_asker *asker, int code, const struct ll_mover_program *program, const char *text)
{
	struct ll_mover_message message = {.kind = LL_MOVER_ANSWER, .value = (uint64_t)code};
	if (program) {
		message.bytes = program->rule.bytes;
		message.number = ll_now_ns() - program->begun_ns;
	}
	snprintf(message.text, sizeof message.text, "%s", text);
	ll_packet_send(asker->fd, &message, sizeof message, NULL, 0);
	asker->program = NULL;
}

void ll_mover_answer_askers(struct ll_mover_server *server, struct ll_mover_program *program, int code,
			    const char *text)
{
	for (struct ll_mover_asker *asker = server->askers; asker; asker = asker->next) {
		if (asker->program == program)
			ll_mover_answer(asker, code, program, text);
	}
}

bool ll_mover_is_as_wished(const struct ll_mover_program *program)
{
	switch (program->rule.wish) {
	case LL_RESIDENCY_EVICT:
		return program->rule.state == LL_RESIDENCY_AWAY;
	case LL_RESIDENCY_STOP:
		return program->rule.state == LL_RESIDENCY_STOPPED || program->rule.state == LL_RESIDENCY_AWAY;
	default:
		return program->rule.state == LL_RESIDENCY_HERE;
	}
}

static struct ll_mover_program *find_program(const struct ll_mover_server *server, uint64_t claim)
{
	struct ll_mover_program *program = server->programs;
	while (program && !(program->is_known && program->claim == claim))
		program = program->next;
	return program;
}

static void answer_about_mover(const struct ll_mover_server *server, const struct ll_mover_asker *asker)
{
	struct ll_mover_message told = {.kind = LL_MOVER_ANSWER,
					.bytes = ll_mover_pool_budget(server->pool),
					.number = ll_mover_pool_pinned(server->pool)};
	ll_neighbours_describe(server->neighbours, told.text, sizeof told.text);
	ll_packet_send(asker->fd, &told, sizeof told, NULL, 0);
}

/* One that is resumed comes after those who wait already. */
static void queue_for_return(struct ll_mover_server *server, struct ll_mover_program *program, bool was_held)
{
	if (ll_mover_program_cancel(program, server->pool) || program->rule.state == LL_RESIDENCY_HERE)
		return;
	if (was_held || !program->rule.wants)
		program->rule.want_since_ns = ll_now_ns();
	program->rule.wants = true;
}

static void wish_for(struct ll_mover_server *server, struct ll_mover_program *program, enum ll_residency_wish wish,
		     uint64_t quiet_ns)
{
	static const char *const verbs[] = {"resumed", "suspended", "evicted"};
	enum ll_residency_wish before = program->rule.wish;
	ll_debug("claim %u, tenant %s: is to be %s", program->claim, program->tenant, verbs[wish]);
	if (wish != before)
		ll_mover_answer_askers(server, program, ECANCELED,
				       "another command has asked for something else meanwhile");
	program->wish_before = before == LL_RESIDENCY_STOP ? LL_RESIDENCY_STOP : LL_RESIDENCY_FREE;
	program->rule.wish = wish;
	program->rule.retry_ns = 0;
	program->quiet_ns = quiet_ns;
	program->begun_ns = ll_now_ns();
	if (wish == LL_RESIDENCY_FREE)
		queue_for_return(server, program, before != LL_RESIDENCY_FREE);
}

/* A program says what it shares a moment after it has the key. */
static void answer_open(const struct ll_mover_server *server, struct ll_mover_asker *asker,
			const struct ll_mover_message *message)
{
	int rc = ll_mover_shares_answer(&server->shares, message, asker->fd);
	if (rc != -ENOENT)
		return;
	asker->is_early = ll_now_ns() - asker->asked_ns < LL_MOVER_CONNECT_NS;
	if (asker->is_early)
		asker->message = *message;
	else
		ll_mover_answer(asker, ENOENT, NULL, "nobody shares it");
}

void ll_mover_handle_command(struct ll_mover_server *server, struct ll_mover_asker *asker,
			     const struct ll_mover_message *message)
{
	struct ll_mover_program *program = find_program(server, message->number);
	asker->is_early = false;
	if (message->kind == LL_MOVER_OPEN) {
		answer_open(server, asker, message);
		return;
	}
	if (message->kind == LL_MOVER_ASK) {
		answer_about_mover(server, asker);
		return;
	}
	if (!program && ll_now_ns() - server->begun_ns < LL_MOVER_CONNECT_NS) {
		asker->is_early = true;
		asker->message = *message;
		return;
	}
	if (!program) {
		ll_mover_answer(asker, ENOENT, NULL, "is not evictable");
		return;
	}
	enum ll_residency_wish wish = message->kind == LL_MOVER_EVICT     ? LL_RESIDENCY_EVICT
				      : message->kind == LL_MOVER_SUSPEND ? LL_RESIDENCY_STOP
									  : LL_RESIDENCY_FREE;
	bool is_already = program->rule.wish == wish && ll_mover_is_as_wished(program);
	wish_for(server, program, wish, message->value);
	if (ll_mover_is_as_wished(program))
		ll_mover_answer(asker, 0, program, is_already ? LL_MOVER_ALREADY : "");
	else
		asker->program = program;
	server->again_ns = 0;
}

void ll_mover_drop_asker(struct ll_mover_server *server, struct ll_mover_asker *asker)
{
	struct ll_mover_asker **link = &server->askers;
	while (*link != asker)
		link = &(*link)->next;
	*link = asker->next;
	close(asker->fd);
	free(asker);
}
