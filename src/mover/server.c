#include "mover/server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/scope.h"
#include "mover/commands.h"
#include "mover/folder.h"
#include "mover/listener.h"
#include "mover/program.h"

/* While copies run. A copy of 512 MiB takes 10 ms. */
#define COPY_LOOK_NS (100 * LL_NS_PER_US)
/* Else: what loadlined says of programs changes without a word to the mover. */
#define CALM_LOOK_NS (100 * LL_NS_PER_MS)
/* At its end, for programs whose memory is away to get it back. */
#define END_NS (30 * LL_NS_PER_S)

/* Of one number, by when they were taken. */
#define SAME_CLAIM_NS (500 * LL_NS_PER_MS)

enum { CONNECTIONS = 256, POLLS = CONNECTIONS + 2 /* the listener, and what ends the mover */ };

/* ---- connections ---- */

static void free_program(struct ll_mover_server *server, struct ll_mover_program *program)
{
	struct ll_mover_program **link = &server->programs;
	while (*link != program)
		link = &(*link)->next;
	*link = program->next;
	ll_mover_answer_askers(server, program, ESRCH, "the program has ended");
	ll_mover_shares_end(&server->shares, program);
	ll_mover_program_free(program, server->pool);
	server->empty_ns = ll_now_ns();
	server->again_ns = 0;
}

/* Its connection has ended. */
static void lose_program(struct ll_mover_server *server, struct ll_mover_program *program)
{
	ll_mover_shares_end(&server->shares, program);
	if (ll_mover_program_lose(program, server->pool, ll_now_ns()))
		free_program(server, program);
}

/* A process connects again when it has all its memory: what is left of its earlier connection is of no use then. */
static void free_earlier(struct ll_mover_server *server, const struct ll_mover_program *newer)
{
	for (struct ll_mover_program *program = server->programs, *next; program; program = next) {
		next = program->next;
		if (program == newer || program->claim != newer->claim)
			continue;
		ll_mover_answer_askers(server, program, EPROTO, "it has brought its memory back by itself");
		free_program(server, program);
	}
}

static size_t count_connections(const struct ll_mover_server *server)
{
	size_t count = 0;
	for (const struct ll_mover_program *program = server->programs; program; program = program->next)
		count++;
	for (const struct ll_mover_asker *asker = server->askers; asker; asker = asker->next)
		count++;
	return count;
}

static void disown_program(struct ll_mover_server *server, struct ll_mover_program *program, const char *why)
{
	ll_warn("claim %u, tenant %s: takes its memory back by itself: %s", program->claim, program->tenant, why);
	ll_mover_answer_askers(server, program, EPROTO, why);
	ll_mover_shares_end(&server->shares, program);
	ll_mover_program_disown(program, server->pool, ll_now_ns());
	server->again_ns = 0;
}

/* Whoever connects is a command until it says HELLO. */
static void accept_one(struct ll_mover_server *server)
{
	bool has_room;
	int fd = ll_mover_listener_accept(&server->listener, &has_room);
	bool has_place = has_room && count_connections(server) < CONNECTIONS;
	struct ll_mover_asker *asker = fd >= 0 && has_place ? calloc(1, sizeof *asker) : NULL;
	if (asker) {
		*asker = (struct ll_mover_asker){.fd = fd, .next = server->askers};
		server->askers = asker;
	} else if (fd >= 0) {
		struct ll_mover_asker refused = {.fd = fd};
		ll_mover_answer(&refused, EMFILE, NULL, "the mover has no free descriptor, or serves too many");
		ll_mover_listener_refuse(&server->listener, fd);
	}
}

static void become_program(struct ll_mover_server *server, struct ll_mover_asker *asker,
			   const struct ll_mover_message *message)
{
	enum ll_mover_event event;
	struct ll_err err = {0};
	struct ll_mover_program *program = ll_mover_program_new(asker->fd);
	if (!program)
		return;
	asker->fd = -1;
	program->next = server->programs;
	server->programs = program;
	server->listed_ns = 0; /* its class and its request are to be known before the next decision */
	if (ll_mover_program_handle(program, &server->engine, message, NULL, 0, ll_now_ns(), &event, &err)) {
		disown_program(server, program, err.text);
	} else {
		free_earlier(server, program);
		ll_debug("claim %u, tenant %s: is evictable", program->claim, program->tenant);
	}
}

static void read_asker(struct ll_mover_server *server, struct ll_mover_asker *asker)
{
	struct ll_mover_message message;
	size_t fd_count;
	int fds[1];
	int rc = ll_packet_receive(asker->fd, false, &message, sizeof message, fds, 0, &fd_count);
	if (rc == -EAGAIN && asker->is_early)
		ll_mover_handle_command(server, asker, &asker->message);
	if (rc == -EAGAIN)
		return;
	asker->asked_ns = ll_now_ns();
	if (!rc && message.kind == LL_MOVER_HELLO)
		become_program(server, asker, &message);
	else if (!rc &&
		 ((message.kind >= LL_MOVER_EVICT && message.kind <= LL_MOVER_ASK) || message.kind == LL_MOVER_OPEN))
		ll_mover_handle_command(server, asker, &message);
	else
		rc = -EPROTO;
	if (rc || asker->fd < 0)
		ll_mover_drop_asker(server, asker);
}

/* What the program's move has come to. */
static void note_event(struct ll_mover_server *server, struct ll_mover_program *program, enum ll_mover_event event)
{
	server->again_ns = 0;
	if (event == LL_MOVER_EVENT_FAILED) {
		ll_info("claim %u, tenant %s: cannot leave the card: %s", program->claim, program->tenant,
			program->why);
		ll_mover_answer_askers(server, program, EBUSY, program->why);
		if (program->rule.wish != LL_RESIDENCY_FREE)
			program->rule.wish = program->was_stopped ? LL_RESIDENCY_STOP : program->wish_before;
		if (program->rule.wish == LL_RESIDENCY_STOP)
			program->rule.retry_ns = 0; /* it was stopped, and stays so */
		program->wish_before = LL_RESIDENCY_FREE;
		return;
	}
	if (event == LL_MOVER_EVENT_STAYED) {
		ll_info("claim %u, tenant %s: stays away: its room on the card was wanted", program->claim,
			program->tenant);
		if (ll_mover_is_as_wished(program))
			ll_mover_answer_askers(server, program, 0, "");
	}
	if (event != LL_MOVER_EVENT_DONE)
		return;
	if (program->rule.state == LL_RESIDENCY_AWAY) /* its memory on the card is free when that is said */
		ll_releaser_wait(server->engine.releaser);
	uint64_t took_ns = ll_now_ns() - program->begun_ns;
	if (program->rule.state != LL_RESIDENCY_STOPPED)
		program->rule.moved_ns = took_ns;
	static const char *const names[] = {[LL_RESIDENCY_HERE] = "back on the card",
					    [LL_RESIDENCY_STOPPED] = "stopped",
					    [LL_RESIDENCY_AWAY] = "away",
					    [LL_RESIDENCY_STAYING] = ""};
	bool is_beside = program->rule.state == LL_RESIDENCY_AWAY && program->beside_bytes;
	ll_info("claim %u, tenant %s: %s: %" PRIu64 " MiB in %.3f s%s%s", program->claim, program->tenant,
		names[program->rule.state], program->rule.bytes >> 20, (double)took_ns / (double)LL_NS_PER_S,
		is_beside ? ", on card " : "", is_beside ? ll_neighbour_label(program->neighbour) : "");
	if (ll_mover_is_as_wished(program))
		ll_mover_answer_askers(server, program, 0, "");
}

/* Waits for the end of a program that takes its memory back by itself. */
static void read_disowned(struct ll_mover_server *server, struct ll_mover_program *program)
{
	struct ll_mover_message message;
	size_t fd_count;
	int fds[LL_MOVER_BATCH_HANDLES], rc;
	do {
		rc = ll_packet_receive(program->fd, false, &message, sizeof message, fds, LL_MOVER_BATCH_HANDLES,
				       &fd_count);
		for (size_t i = 0; !rc && i < fd_count; i++)
			close(fds[i]);
	} while (!rc || rc == -EMFILE || rc == -EPROTO);
	if (rc != -EAGAIN)
		lose_program(server, program);
}

/* SHARE and UNSHARE. False: it is another. */
static bool share_packet(struct ll_mover_server *server, const struct ll_mover_program *program,
			 const struct ll_mover_message *message, const int *fds, size_t fd_count)
{
	if (!program->is_known || (message->kind != LL_MOVER_SHARE && message->kind != LL_MOVER_UNSHARE))
		return false;
	if (message->kind == LL_MOVER_SHARE) {
		ll_mover_shares_add(&server->shares, program, message, fds, fd_count);
		return true;
	}
	ll_mover_shares_remove(&server->shares, program, message);
	for (size_t i = 0; i < fd_count; i++)
		close(fds[i]);
	return true;
}

/* One packet. False: there is no other. */
static bool read_packet(struct ll_mover_server *server, struct ll_mover_program *program)
{
	struct ll_mover_message message = {0};
	enum ll_mover_event event;
	struct ll_err err = {0};
	size_t fd_count = 0;
	int fds[LL_MOVER_BATCH_HANDLES];
	int rc =
	    ll_packet_receive(program->fd, false, &message, sizeof message, fds, LL_MOVER_BATCH_HANDLES, &fd_count);
	if (rc == -EAGAIN)
		return false;
	if (rc && rc != -EMFILE && rc != -EPROTO) {
		lose_program(server, program);
		return false;
	}
	if (!rc && share_packet(server, program, &message, fds, fd_count))
		return true;
	if (rc != -EPROTO)
		rc = ll_mover_program_handle(program, &server->engine, &message, fds, fd_count, ll_now_ns(), &event,
					     &err);
	for (size_t i = 0; i < fd_count; i++)
		close(fds[i]);
	if (!rc)
		note_event(server, program, event);
	else
		disown_program(server, program, *err.text ? err.text : "it sent what is no packet");
	return !rc;
}

static void read_program(struct ll_mover_server *server, struct ll_mover_program *program)
{
	if (program->fd < 0)
		return;
	if (program->is_deaf && !program->is_disowned)
		disown_program(server, program, "it does not read what the mover says");
	if (program->is_disowned)
		read_disowned(server, program);
	else
		while (read_packet(server, program))
			;
}

/* ---- decisions ---- */

/* A claim's age is told at each look, so that it is known within some ms when it was taken. */
static bool is_same_claim(const struct ll_mover_program *program, uint64_t taken_ns)
{
	uint64_t apart_ns = taken_ns > program->taken_ns ? taken_ns - program->taken_ns : program->taken_ns - taken_ns;
	return !program->taken_ns || apart_ns < SAME_CLAIM_NS;
}

/* False: the claim's process has ended. */
static bool read_claim(struct ll_mover_program *program, const struct ll_mover_books *books, const char *uuid)
{
	const struct ll_message_claim_row *claim = ll_mover_books_find(books, uuid, program->claim);
	if (!claim || !is_same_claim(program, books->list_ns - claim->taken_age_ns))
		return false;
	const struct ll_message_job_row *job = ll_list_job(&books->list, claim->job_number);
	const struct ll_message_card_row *on_card = ll_list_card(&books->list, claim->job_number, uuid);
	program->taken_ns = program->taken_ns ? program->taken_ns : books->list_ns - claim->taken_age_ns;
	if (job) {
		uint64_t request_bytes = job->job.limits.request_bytes;
		program->rule.priority = ll_priority_of_class(job->job.limits.priority);
		program->rule.is_within = request_bytes && on_card && on_card->used_bytes <= request_bytes;
	}
	if (claim->wanting_ns)
		program->rule.idle_since_ns = 0;
	else if (!program->rule.idle_since_ns)
		program->rule.idle_since_ns = ll_now_ns();
	return true;
}

static void read_books(struct ll_mover_server *server, uint64_t now_ns)
{
	if (!server->programs) {
		ll_mover_books_rest(&server->books);
		return;
	}
	if (now_ns - server->listed_ns < CALM_LOOK_NS / 2)
		return;
	server->listed_ns = now_ns;
	if (!ll_mover_books_read(&server->books))
		return;
	for (struct ll_mover_program *program = server->programs, *next; program; program = next) {
		next = program->next;
		if (!read_claim(program, &server->books, server->config->card->uuid) && program->fd < 0 &&
		    ll_mover_books_are_settled(&server->books))
			free_program(server, program);
	}
}

static struct ll_neighbour *choose_neighbour(const struct ll_mover_server *server,
					     const struct ll_mover_program *program)
{
	return server->neighbours ? ll_neighbours_choose(server->neighbours, program->rule.bytes) : NULL;
}

static void do_step(struct ll_mover_server *server, struct ll_mover_program *program, enum ll_residency_step step,
		    uint64_t now_ns)
{
	bool is_there;
	switch (step) {
	case LL_RESIDENCY_LEAVE:
		ll_mover_program_leave(program, server->pool, choose_neighbour(server, program), now_ns);
		if (program->rule.state == LL_RESIDENCY_HERE || program->rule.state == LL_RESIDENCY_STOPPED)
			note_event(server, program, LL_MOVER_EVENT_FAILED);
		break;
	case LL_RESIDENCY_HALT:
		ll_mover_program_stop(program, now_ns);
		break;
	case LL_RESIDENCY_RETURN:
		ll_mover_program_return(program, now_ns);
		break;
	case LL_RESIDENCY_STAY:
		ll_mover_program_stay(program);
		break;
	case LL_RESIDENCY_REFUSE:
		ll_info("claim %u, tenant %s: no room for %" PRIu64 " MiB more, whoever leaves", program->claim,
			program->tenant, (program->rule.short_bytes + (1 << 20) - 1) >> 20);
		ll_mover_program_answer_short(program, LL_MOVER_ROOM_NONE, now_ns);
		break;
	case LL_RESIDENCY_GRANT:
		is_there = program->rule.short_bytes <= ll_transfer_free_bytes(&server->engine);
		ll_mover_program_answer_short(program, is_there ? LL_MOVER_ROOM_THERE : LL_MOVER_ROOM_COMING, now_ns);
		break;
	case LL_RESIDENCY_WAIT:
		break;
	}
}

/* All that the decision is about. */
static size_t list_rules(const struct ll_mover_server *server, struct ll_residency_program rules[CONNECTIONS],
			 struct ll_mover_program *who[CONNECTIONS])
{
	size_t count = 0;
	for (struct ll_mover_program *program = server->programs; program && count < CONNECTIONS;
	     program = program->next) {
		if (!program->is_known && !program->is_disowned)
			continue;
		who[count] = program;
		rules[count++] = program->rule;
	}
	return count;
}

/* Nothing is refused for memory that is being let go. */
static struct ll_residency_decision decide(const struct ll_mover_server *server,
					   const struct ll_residency_program *rules, size_t count, uint64_t now_ns)
{
	struct ll_residency_decision decision =
	    ll_residency_decide(rules, count, ll_transfer_free_bytes(&server->engine), now_ns);
	if (decision.step != LL_RESIDENCY_REFUSE)
		return decision;
	ll_releaser_wait(server->engine.releaser);
	return ll_residency_decide(rules, count, ll_transfer_free_bytes(&server->engine), now_ns);
}

static void decide_moves(struct ll_mover_server *server)
{
	struct ll_residency_program rules[CONNECTIONS];
	struct ll_mover_program *who[CONNECTIONS];
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		if (now_ns < server->again_ns)
			return;
		read_books(server, now_ns);
		size_t count = list_rules(server, rules, who);
		struct ll_residency_decision decision = decide(server, rules, count, now_ns);
		bool is_early = now_ns - server->begun_ns < LL_MOVER_CONNECT_NS;
		if (decision.step == LL_RESIDENCY_WAIT || (decision.step == LL_RESIDENCY_REFUSE && is_early)) {
			uint64_t look_ns = now_ns + CALM_LOOK_NS;
			server->again_ns = decision.again_ns < look_ns ? decision.again_ns : look_ns;
			return;
		}
		do_step(server, who[decision.who], decision.step, now_ns);
	}
}

/* Pinned ahead: the largest program's memory, or what all programs have beyond the card. */
static void pin_ahead(struct ll_mover_server *server)
{
	uint64_t largest = 0, all = 0;
	for (const struct ll_mover_program *program = server->programs; program; program = program->next) {
		largest = program->rule.bytes > largest ? program->rule.bytes : largest;
		all += program->rule.bytes;
	}
	uint64_t beyond = all > server->total_bytes ? all - server->total_bytes : 0;
	ll_mover_pool_want(server->pool, beyond > largest ? beyond : largest);
}

/* ---- the loop ---- */

/* The program had no room on the card. */
static bool may_go_on(const struct ll_mover_server *server, const struct ll_mover_program *program)
{
	struct ll_residency_program rules[CONNECTIONS];
	struct ll_mover_program *who[CONNECTIONS];
	size_t count = list_rules(server, rules, who), at = 0;
	while (at < count && who[at] != program)
		at++;
	return at < count && ll_residency_may_go_on(rules, count, at, ll_transfer_free_bytes(&server->engine));
}

static void look_at_neighbours(struct ll_mover_server *server, uint64_t now_ns)
{
	if (!server->neighbours)
		return;
	if (now_ns - server->looked_ns >= CALM_LOOK_NS) {
		server->looked_ns = now_ns;
		ll_neighbours_look(server->neighbours);
	}
	for (struct ll_mover_program *program = server->programs; program; program = program->next)
		ll_mover_program_move_on(program, &server->engine);
}

static int look_after(struct ll_mover_server *server, struct ll_err *err)
{
	uint64_t now_ns = ll_now_ns();
	look_at_neighbours(server, now_ns);
	server->is_copying = false;
	for (struct ll_mover_program *program = server->programs, *next; program; program = next) {
		next = program->next;
		bool goes_on = program->again_ns && now_ns >= program->again_ns && may_go_on(server, program);
		enum ll_mover_event event = ll_mover_program_tick(program, server->pool, goes_on, now_ns);
		if (event != LL_MOVER_EVENT_NONE)
			note_event(server, program, event);
		int rc = ll_mover_program_poll(program, &server->is_copying, err);
		if (rc)
			return rc;
	}
	pin_ahead(server);
	decide_moves(server);
	return ll_transfer_engine_check(&server->engine, err);
}

static bool has_to_end(struct ll_mover_server *server)
{
	const struct ll_mover_config *config = server->config;
	struct pollfd stop = {.fd = config->stop_fd, .events = POLLIN};
	uint64_t now_ns = ll_now_ns();
	if (!server->programs && config->linger_ns && now_ns - server->empty_ns >= config->linger_ns)
		return true;
	if (!server->ending_ns && config->stop_fd >= 0 && poll(&stop, 1, 0) > 0)
		server->ending_ns = now_ns;
	if (!server->ending_ns)
		return false;
	bool is_any_away = false;
	for (struct ll_mover_program *program = server->programs; program; program = program->next) {
		program->rule.wish = LL_RESIDENCY_FREE;
		program->rule.wants = true;
		is_any_away |= program->rule.state != LL_RESIDENCY_HERE;
	}
	server->again_ns = 0;
	return !is_any_away || now_ns - server->ending_ns >= END_NS;
}

static size_t fill_poll(const struct ll_mover_server *server, struct pollfd polls[POLLS])
{
	size_t count = 0;
	polls[count++] = (struct pollfd){.fd = server->listener.fd, .events = POLLIN};
	if (server->config->stop_fd >= 0)
		polls[count++] =
		    (struct pollfd){.fd = server->config->stop_fd, .events = server->ending_ns ? 0 : POLLIN};
	for (const struct ll_mover_program *p = server->programs; p && count < POLLS; p = p->next)
		polls[count++] = (struct pollfd){.fd = p->fd, .events = POLLIN};
	for (const struct ll_mover_asker *a = server->askers; a && count < POLLS; a = a->next)
		polls[count++] = (struct pollfd){.fd = a->fd, .events = POLLIN};
	return count;
}

static int wait_for_news(struct ll_mover_server *server)
{
	struct pollfd polls[POLLS];
	size_t count = fill_poll(server, polls);
	uint64_t now_ns = ll_now_ns(), wait_ns = server->is_copying ? COPY_LOOK_NS : CALM_LOOK_NS;
	if (server->again_ns <= now_ns)
		wait_ns = 0;
	else if (server->again_ns - now_ns < wait_ns)
		wait_ns = server->again_ns - now_ns;
	struct timespec wait = {.tv_nsec = (long)wait_ns};
	int ready = ppoll(polls, count, &wait, NULL);
	return ready > 0 ? polls[0].revents : 0;
}

static int serve_loop(struct ll_mover_server *server, struct ll_err *err)
{
	server->begun_ns = server->empty_ns = ll_now_ns();
	while (!has_to_end(server)) {
		if (wait_for_news(server))
			accept_one(server);
		for (struct ll_mover_asker *asker = server->askers, *next; asker; asker = next) {
			next = asker->next;
			read_asker(server, asker);
		}
		for (struct ll_mover_program *program = server->programs, *next; program; program = next) {
			next = program->next;
			read_program(server, program);
		}
		int rc = look_after(server, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int open_all(struct ll_mover_server *server, struct ll_err *err)
{
	const struct ll_mover_config *config = server->config;
	LL_SCOPE_CLOSE int folder_fd = -1;
	int rc = ll_mover_folder_open(config->folder, &folder_fd, err);
	ll_mover_books_init(&server->books, ll_driver_sim_folder(config->card->driver), config->version);
	if (!rc)
		rc = ll_mover_listener_open(&server->listener, config->card, config->folder, err);
	if (!rc)
		rc = ll_transfer_engine_init(&server->engine, config->card, err);
	size_t total_bytes = 0;
	if (!rc)
		server->engine.cuda->cuDeviceTotalMem(&total_bytes, server->engine.device);
	server->total_bytes = total_bytes;
	uint64_t pool_bytes = config->pool_bytes ? config->pool_bytes : ll_mover_pool_default_budget();
	if (!rc)
		rc = ll_mover_pool_new(server->engine.cuda, server->engine.context, pool_bytes, &server->pool, err);
	server->engine.pool = server->pool;
	if (!rc && !config->has_no_neighbours) {
		server->neighbours = ll_neighbours_new(&server->engine, config->card, &server->books);
		if (!server->neighbours)
			rc = ll_err_set(err, -ENOMEM, "neighbour cards: %s", strerror(ENOMEM));
	}
	return rc;
}

int ll_mover_serve(const struct ll_mover_config *config, struct ll_err *err)
{
	struct ll_mover_server server = {
	    .config = config, .books.client.fd = -1, .listener = {.fd = -1, .lock_fd = -1, .spare_fd = -1}};
	int rc = open_all(&server, err);
	if (!rc && config->is_ready)
		config->is_ready(config->data);
	if (!rc)
		rc = serve_loop(&server, err);
	while (server.askers)
		ll_mover_drop_asker(&server, server.askers);
	while (server.programs)
		free_program(&server, server.programs);
	ll_neighbours_free(server.neighbours);
	ll_mover_listener_close(&server.listener, config->card, config->folder);
	ll_mover_pool_free(server.pool);
	ll_transfer_engine_fini(&server.engine);
	ll_mover_books_fini(&server.books);
	return rc;
}
