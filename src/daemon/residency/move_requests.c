/* The requests of commands about memory, and the replies. */
#include "daemon/residency/evictable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/queue/queue.h"

/* The time in which a process may connect, because it has just started or lost its connection. */
#define JOIN_NS (5 * LL_NS_PER_S)
#define PROGRESS_NS (1 * LL_NS_PER_S)
/* How often a request is tried whose process is not known, and how often one that was ordered off the card or on it. */
#define RETRY_NS (100 * LL_NS_PER_MS)
#define ORDERED_NS (1 * LL_NS_PER_MS)
/* How long a process may take to leave the card, or to come on it, if the command does not say. */
#define QUIET_NS (10 * LL_NS_PER_S)
/* A process knows within this time whether it can be taken off. */
#define LEVER_NS (1 * LL_NS_PER_S)
/* The time for all requests grows with the square of their number. A page has 1024 processes. */
enum { REQUESTS_OF_USER = 2048 };

struct ll_move_request {
	struct ll_move_request *next;
	struct ll_connection *connection;
	uint32_t serial;
	enum ll_message_kind kind;
	struct ll_message_move message;
	struct ll_evictable *evictable; /* the process whose move it waits for; NULL: nothing was requested of it yet */
	bool is_ready;                  /* the process is known; processes of the same batch may not be */
	bool is_already;                /* the process was in the requested state before */
	bool is_tried;                  /* in this round */
	bool is_ordered;                /* the process has no memory that moves, and is ordered off the card or on it */
	uint64_t asked_ns, told_ns;
};

/* ---- replies ---- */

static void send_reply(const struct ll_move_request *request, union ll_message *message)
{
	request->connection->serial = request->serial;
	ll_connection_reply(request->connection, message, NULL, 0);
}

static void fill_in(const struct ll_move_request *request, enum ll_message_kind kind, union ll_message *ret_message)
{
	const struct ll_evictable *evictable = request->evictable;
	ll_message_init(ret_message, kind);
	if (!evictable)
		return;
	const struct ll_residency_program *rule = &evictable->rule;
	ret_message->move.bytes = rule->bytes;
	ret_message->move.pool_bytes = evictable->pool_bytes;
	ret_message->move.away_bytes = rule->state == LL_RESIDENCY_AWAY       ? rule->bytes
				       : rule->state == LL_RESIDENCY_EVICTING ? rule->bytes - rule->left_bytes
				       : rule->state == LL_RESIDENCY_RESUMING ? rule->left_bytes
									      : 0;
}

/* The number of a batch is no secret, so it is one for each user. */
static bool is_of_batch(const struct ll_move_request *request, const struct ll_move_request *other)
{
	return other == request || (request->message.slot_token && request->kind == other->kind &&
				    other->message.slot_token == request->message.slot_token &&
				    other->connection->uid == request->connection->uid);
}

/* Other requests of the batch do not wait for one that was dropped before it began. */
static void drop_request(struct ll_residency_books *books, struct ll_move_request *request)
{
	struct ll_move_request **at = &books->requests;
	for (struct ll_move_request *other = books->requests; other; other = other->next) {
		if (other != request && is_of_batch(request, other) && other->message.slot)
			other->message.slot--;
	}
	while (*at && *at != request)
		at = &(*at)->next;
	if (*at)
		*at = request->next;
	free(request);
}

static void end_request(struct ll_residency_books *books, struct ll_move_request *request, int code, const char *why)
{
	union ll_message message;
	if (code) {
		ll_message_init(&message, LL_MESSAGE_REFUSED);
		message.refused.code = code;
		ll_message_text_set(message.refused.reason, sizeof message.refused.reason, why);
	} else {
		fill_in(request, LL_MESSAGE_MOVED, &message);
		message.move.value = ll_now_ns() - request->asked_ns;
		message.move.flags = request->is_already ? LL_MOVE_ALREADY : 0;
	}
	send_reply(request, &message);
	drop_request(books, request);
}
void ll_move_requests_end(struct ll_residency_books *books, const struct ll_evictable *evictable, int code,
			  const char *why)
{
	for (struct ll_move_request *request = books->requests, *next; request; request = next) {
		next = request->next;
		if (request->evictable == evictable)
			end_request(books, request, code, why);
	}
}

void ll_move_requests_tell(struct ll_residency_books *books, uint64_t now_ns)
{
	for (struct ll_move_request *request = books->requests; request; request = request->next) {
		union ll_message message;
		if (now_ns - request->told_ns < PROGRESS_NS || request->connection->has_pending)
			continue;
		request->told_ns = now_ns;
		fill_in(request, LL_MESSAGE_PROGRESS, &message);
		const struct ll_residency_program *rule = request->evictable ? &request->evictable->rule : NULL;
		if (rule && rule->state == LL_RESIDENCY_RESUMING && !rule->lacks_room)
			message.move.flags |= LL_MOVE_HAS_ROOM;
		ll_message_text_set(message.move.reason, sizeof message.move.reason,
				    request->evictable ? ll_evictable_describe(request->evictable)
						       : "has not connected yet");
		send_reply(request, &message);
	}
}

/* ---- requests ---- */

static const struct ll_job_claim *find_claim(const struct ll_server *server, const struct ll_message_move *message)
{
	const struct ll_job *job = ll_books_find_id(&server->books, message->job);
	const struct ll_job_card *card = job ? ll_job_card_find(job, message->uuid) : NULL;
	const struct ll_job_claim *claim = card ? card->claims : NULL;
	while (claim && ll_card_claim_number(claim->share) != message->index)
		claim = claim->next;
	return claim;
}

/* Returns NULL if the process is not known yet, or has ended. */
static struct ll_evictable *find_process(const struct ll_server *server, const struct ll_move_request *request)
{
	const struct ll_job_claim *claim = find_claim(server, &request->message);
	return claim ? ll_residency_find(&server->residency, claim) : NULL;
}

/* A process that is resumed is queued behind those that wait already. A process whose memory is still on the card need
 * not wait. */
static void queue_for_return(struct ll_evictable *evictable, bool was_held, uint64_t now_ns)
{
	struct ll_residency_program *rule = &evictable->rule;
	if (rule->state == LL_RESIDENCY_HERE)
		return;
	if (was_held || !rule->wants)
		rule->want_since_ns = now_ns;
	rule->wants = true;
	if (evictable->gather) /* it is resumed with the others */
		return;
	if (rule->state == LL_RESIDENCY_STOPPING || rule->state == LL_RESIDENCY_SUSPENDING)
		ll_evictable_resume(evictable, now_ns);
}

static void wish_for(struct ll_residency_books *books, struct ll_evictable *evictable, enum ll_residency_wish wish,
		     uint64_t quiet_ns, uint64_t now_ns)
{
	static const char *const verbs[] = {"resumed", "suspended", "evicted"};
	enum ll_residency_wish before = evictable->rule.wish;
	ll_debug("claim %u, tenant %s: is to be %s", ll_card_claim_number(evictable->claim->share),
		 evictable->claim->card->job->facts.tenant, verbs[wish]);
	if (wish != before && evictable->gather)
		ll_gather_remove(books, evictable, now_ns);
	if (wish != before)
		ll_move_requests_end(books, evictable, -ECANCELED,
				     "another command has asked for something else meanwhile");
	bool is_evicting = before == LL_RESIDENCY_WISH_EVICT && evictable->rule.state != LL_RESIDENCY_AWAY;
	evictable->wish_before = is_evicting ? LL_RESIDENCY_WISH_NONE : before;
	evictable->rule.wish = wish;
	evictable->rule.retry_ns = 0;
	evictable->quiet_ns = quiet_ns;
	evictable->begun_ns = now_ns;
	if (wish == LL_RESIDENCY_WISH_NONE)
		queue_for_return(evictable, before != LL_RESIDENCY_WISH_NONE, now_ns);
}

/* Handles a request whose process is not known. */
static void refuse_unless_it_may_come(struct ll_server *server, struct ll_move_request *request, uint64_t now_ns)
{
	const struct ll_job *job = ll_books_find_id(&server->books, request->message.job);
	const struct ll_job_claim *claim = find_claim(server, &request->message);
	if (!job && now_ns - server->born_ns < JOIN_NS) /* its monitor has not connected yet */
		return;
	bool may_come = claim && (claim->card->job->facts.limits.flags & LL_LIMIT_EVICTABLE) &&
			now_ns - request->asked_ns < JOIN_NS;
	if (!may_come)
		end_request(&server->residency, request, claim ? -EOPNOTSUPP : -ESRCH,
			    claim ? "is not evictable" : "the program has ended");
}

/* Whether the whole batch can begin. A request that a former loadlined has replied to is not sent again: the batch
 * waits for it only as long as for a process. */
static bool is_batch_ready(const struct ll_residency_books *books, const struct ll_move_request *request,
			   uint64_t now_ns)
{
	unsigned ready = 0;
	bool is_any_missing = false;
	for (const struct ll_move_request *other = books->requests; other; other = other->next) {
		if (!is_of_batch(request, other))
			continue;
		ready += other->is_ready;
		is_any_missing |= !other->is_ready;
	}
	return ready >= request->message.slot || (!is_any_missing && now_ns - request->asked_ns >= JOIN_NS);
}

/* The processes of a batch stop together. */
static void gather_batch(struct ll_residency_books *books, const struct ll_move_request *model, uint64_t now_ns)
{
	struct ll_gather *gather =
	    ll_gather_new(books, model->kind == LL_MESSAGE_EVICT ? LL_GATHER_EVICT : LL_GATHER_SUSPEND, true,
			  model->message.value, now_ns);
	for (struct ll_move_request *request = books->requests; gather && request; request = request->next) {
		/* Another command may have requested the same for this process. */
		if (request->evictable && is_of_batch(model, request) && !request->evictable->gather)
			ll_gather_add(gather, request->evictable);
	}
	if (gather)
		ll_gather_look(books, gather, now_ns);
}

static void begin_batch(struct ll_server *server, const struct ll_move_request *first, uint64_t now_ns)
{
	struct ll_residency_books *books = &server->residency;
	enum ll_residency_wish wish = first->kind == LL_MESSAGE_EVICT     ? LL_RESIDENCY_WISH_EVICT
				      : first->kind == LL_MESSAGE_SUSPEND ? LL_RESIDENCY_WISH_SUSPEND
									  : LL_RESIDENCY_WISH_NONE;
	const struct ll_move_request model = *first; /* a copy: the request may end meanwhile */
	size_t count = 0;
	for (struct ll_move_request *request = books->requests; request; request = request->next) {
		bool is_next = !request->evictable && (request == first || is_of_batch(&model, request));
		struct ll_evictable *evictable = is_next ? find_process(server, request) : NULL;
		if (!evictable)
			continue;
		request->is_already = evictable->rule.wish == wish && ll_evictable_is_as_wished(evictable);
		wish_for(books, evictable, wish, request->message.value, now_ns);
		request->evictable = evictable;
		count++;
	}
	if (count > 1 && wish != LL_RESIDENCY_WISH_NONE)
		gather_batch(books, &model, now_ns);
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (ll_evictable_is_as_wished(evictable))
			ll_move_requests_end(books, evictable, 0, "");
	}
	ll_residency_look_everywhere(server, now_ns);
}

/* A program that is not evictable is suspended where the card takes it off, and resumed then. False: it has to be done
 * in another way, and so has an eviction of such a program, whose work must end for that. */
static bool try_off(struct ll_server *server, struct ll_move_request *request, uint64_t now_ns)
{
	const struct ll_job_claim *claim = find_claim(server, &request->message);
	bool is_suspend = request->kind == LL_MESSAGE_SUSPEND;
	struct ll_card_claim_view view;
	if (!claim || claim->card->job->facts.limits.flags & LL_LIMIT_EVICTABLE)
		return false;
	ll_card_claim_read(claim->share, &view);
	if (!request->is_ordered) {
		if (!is_suspend && !view.is_suspended)
			return false;
		int rc = ll_card_claim_suspend(claim->share, is_suspend);
		if (rc)
			return rc == -EAGAIN && now_ns - request->asked_ns < LEVER_NS;
		ll_debug("claim %u, tenant %s: is to be %s", ll_card_claim_number(claim->share),
			 claim->card->job->facts.tenant, is_suspend ? "suspended" : "resumed");
		request->is_ordered = true;
		request->is_already = is_suspend && view.is_suspended;
		if (request->kind == LL_MESSAGE_EVICT)
			return false;
	} else if (view.is_suspended != is_suspend) {
		end_request(&server->residency, request, -ECANCELED,
			    "another command has asked for something else meanwhile");
	} else if (view.is_off == is_suspend) {
		end_request(&server->residency, request, 0, "");
	} else if (now_ns - request->asked_ns >= (request->message.value ? request->message.value : QUIET_NS)) {
		ll_card_claim_suspend(claim->share, false);
		end_request(&server->residency, request, -EBUSY, "its threads do not run: it is stopped, or hangs");
	}
	return true;
}

/* Tries a request, whose process may be known by now. */
static void try_request(struct ll_server *server, struct ll_move_request *request, uint64_t now_ns)
{
	if (try_off(server, request, now_ns))
		return;
	request->is_ready = find_process(server, request);
	if (!request->is_ready)
		refuse_unless_it_may_come(server, request, now_ns);
	else if (is_batch_ready(&server->residency, request, now_ns))
		begin_batch(server, request, now_ns);
}

/* The list is searched again after each request, because one request may end others. */
void ll_move_requests_retry(struct ll_server *server, uint64_t now_ns)
{
	for (struct ll_move_request *request = server->residency.requests; request; request = request->next)
		request->is_tried = request->evictable;
	for (struct ll_move_request *request = server->residency.requests; request;) {
		struct ll_move_request *next = request->next;
		if (!request->is_tried) {
			request->is_tried = true;
			try_request(server, request, now_ns);
			next = server->residency.requests;
		}
		request = next;
	}
}

uint64_t ll_move_requests_due_ns(const struct ll_residency_books *books, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;
	for (const struct ll_move_request *request = books->requests; request; request = request->next) {
		uint64_t look_ns = now_ns + (request->is_ordered ? ORDERED_NS : RETRY_NS);
		due_ns = look_ns < due_ns ? look_ns : due_ns;
	}
	return due_ns;
}

void ll_residency_request(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			  const struct ll_message_move *message)
{
	struct ll_residency_books *books = &server->residency;
	uint64_t now_ns = ll_now_ns();
	unsigned count = 0;
	for (const struct ll_move_request *other = books->requests; other; other = other->next)
		count += other->connection->uid == connection->uid;
	if (count >= REQUESTS_OF_USER) {
		ll_connection_refuse(connection, -EBUSY, "loadlined has as many requests of this user as one may have");
		return;
	}
	const struct ll_job *job = ll_books_find_id(&server->books, message->job);
	if (job && kind != LL_MESSAGE_EVICT && ll_lending_is_recalled(server, job)) {
		ll_connection_refuse(connection, -EBUSY,
				     "its memory was lent and is recalled: it goes on when there is room");
		return;
	}
	struct ll_move_request *request = calloc(1, sizeof *request);
	if (!request) {
		ll_connection_refuse(connection, -ENOMEM, strerror(ENOMEM));
		return;
	}
	*request = (struct ll_move_request){.next = books->requests,
					    .connection = connection,
					    .serial = connection->serial,
					    .kind = kind,
					    .message = *message,
					    .asked_ns = now_ns,
					    .told_ns = now_ns};
	books->requests = request;
	try_request(server, request, now_ns);
	ll_residency_set_timer(server, now_ns);
}

/* ---- the queue ---- */

static bool is_of_job(const struct ll_evictable *evictable, const struct ll_job *job)
{
	return evictable->claim->card->job == job;
}

/* Whether a process that cannot be evicted has memory on a card of the job: too new, it may connect yet. */
static enum ll_recall_state find_fixed(const struct ll_server *server, const struct ll_job *job, uint64_t now_ns)
{
	enum ll_recall_state state = LL_RECALL_AWAY;
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		for (const struct ll_job_claim *claim = job->claims->cards[i]->claims; claim; claim = claim->next) {
			const struct ll_page_slot *slot = ll_claim_slot(claim);
			if (ll_residency_find(&server->residency, claim) || !LL_MEMORY_USED(slot->memory))
				continue;
			bool is_new = now_ns - slot->taken_ns < JOIN_NS;
			state = is_new && state != LL_RECALL_FAILED ? LL_RECALL_LEAVING : LL_RECALL_FAILED;
		}
	}
	return state;
}

enum ll_recall_state ll_residency_recall(struct ll_server *server, const struct ll_job *job)
{
	struct ll_residency_books *books = &server->residency;
	uint64_t now_ns = ll_now_ns();
	enum ll_recall_state state = find_fixed(server, job, now_ns);
	size_t count = 0;
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (!is_of_job(evictable, job))
			continue;
		if (evictable->rule.wish != LL_RESIDENCY_WISH_EVICT) {
			/* Its eviction has failed, and its wish is what it was before. */
			state = evictable->is_recalled ? LL_RECALL_FAILED : state;
			evictable->is_recalled = true;
			wish_for(books, evictable, LL_RESIDENCY_WISH_EVICT, 0, now_ns);
			count++;
		}
		evictable->is_recalled = true;
		if (!ll_evictable_is_as_wished(evictable) && state == LL_RECALL_AWAY)
			state = LL_RECALL_LEAVING;
	}
	struct ll_gather *gather = count > 1 ? ll_gather_new(books, LL_GATHER_EVICT, true, 0, now_ns) : NULL;
	for (struct ll_evictable *evictable = books->evictables; gather && evictable; evictable = evictable->next) {
		if (is_of_job(evictable, job) && !evictable->gather)
			ll_gather_add(gather, evictable);
	}
	if (gather)
		ll_gather_look(books, gather, now_ns);
	if (count)
		ll_residency_look_everywhere(server, now_ns);
	return state;
}

void ll_residency_return(struct ll_server *server, const struct ll_job *job)
{
	uint64_t now_ns = ll_now_ns();
	for (struct ll_evictable *evictable = server->residency.evictables; evictable; evictable = evictable->next) {
		if (!is_of_job(evictable, job))
			continue;
		evictable->is_recalled = false;
		if (evictable->rule.wish == LL_RESIDENCY_WISH_EVICT)
			wish_for(&server->residency, evictable, LL_RESIDENCY_WISH_NONE, 0, now_ns);
	}
	ll_residency_look_everywhere(server, now_ns);
}

void ll_move_requests_drop(struct ll_residency_books *books, const struct ll_connection *connection)
{
	for (struct ll_move_request *request = books->requests, *next; request; request = next) {
		next = request->next;
		if (!connection || request->connection == connection)
			drop_request(books, request);
	}
}
