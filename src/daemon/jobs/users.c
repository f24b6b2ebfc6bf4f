#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "base/process_id.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/policy/policy.h"
#include "daemon/residency/residency.h"

/* ---- create and free ---- */

static void free_user(struct ll_user *user)
{
	struct ll_user **at = &user->server->users;
	while (*at && *at != user)
		at = &(*at)->next;
	if (*at)
		*at = user->next;
	if (user->connection)
		user->connection->user = NULL;
	ll_death_watch_close(user->watch);
	free(user);
}

void ll_user_drop(struct ll_user *user)
{
	if (--user->claims == 0)
		free_user(user);
}

/* Ends all claims of the user. The user is freed with its last claim. The kernel closes the files of a process, with
 * which the driver frees its memory, before it tells of its end. What a client of MPS had is its server's to free. */
static void end_claims(struct ll_server *server, struct ll_user *user)
{
	bool is_freed = ll_process_has_ended(user->watch->fd) && !user->job->facts.limits.space_permille;
	const struct ll_job *job = user->job;
	const struct ll_job_claims *claims = job->claims;
	unsigned left = user->claims;
	for (unsigned i = 0; i < LL_PAGE_SLOTS && left; i++) {
		struct ll_job_claim *claim = claims->slots[i];
		if (!claim || claim->user != user)
			continue;
		left--;
		ll_claims_end(server, claim, is_freed);
	}
}

/* The kernel closes the connection before the driver's files, which takes up to 100 ms: the process has its memory
 * until its end is told (on_death). */
static bool is_exiting(const struct ll_user *user)
{
	struct ll_process_stat stat;
	return user->pid && !ll_process_stat_of((pid_t)user->pid, &stat) && stat.is_exiting;
}

/* Whether the process has executed another program. Its connection ended then, or before. */
static bool has_new_program(const struct ll_user *user)
{
	const struct ll_job_claims *claims = user->job->claims;
	for (unsigned i = 0; i < claims->card_count; i++) {
		for (const struct ll_job_claim *claim = claims->cards[i]->claims; claim; claim = claim->next) {
			if (claim->user == user && (ll_claim_slot(claim)->life & LL_LIFE_ENDED))
				return !is_exiting(user);
		}
	}
	return false;
}

void ll_users_disconnect(struct ll_server *server, struct ll_user *user)
{
	user->connection = NULL;
	if (has_new_program(user))
		end_claims(server, user);
	else
		server->wants_tick = true; /* it may execute another program before it connects again */
}

static void on_death(void *data)
{
	struct ll_user *user = data;
	struct ll_server *server = user->server;
	end_claims(server, user);
	ll_server_look(server);
}

/* Returns NULL, with errno, if it could not be made. */
static struct ll_user *new_user(struct ll_server *server, struct ll_job *job, int process_fd)
{
	int fd = fcntl(process_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	struct ll_user *user = calloc(1, sizeof *user);
	if (user)
		user->watch = ll_death_watch_new(&server->loop, fd, on_death, user);
	if (!user || !user->watch) {
		free(user);
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	user->server = server;
	user->job = job;
	user->pid = (uint32_t)ll_process_id_of_fd(fd);
	user->number = ++server->last_user;
	user->next = server->users;
	server->users = user;
	server->wants_tick |= !user->watch->is_polled;
	return user;
}

/* ---- identity ---- */

static bool are_equal(const struct ll_claim_identity *one, const struct ll_claim_identity *other)
{
	return one->pid == other->pid && one->namespaces == other->namespaces && one->start_ticks == other->start_ticks;
}

/* Two descriptors of living processes are of one process if the pids are equal. A process that the daemon does not see
 * is identified by what it reports about itself. A false report affects only its own job. */
static struct ll_user *find_user(const struct ll_server *server, const struct ll_job *job, uint32_t pid,
				 const struct ll_claim_identity *identity)
{
	for (struct ll_user *user = server->users; user; user = user->next) {
		bool is_seen = pid && user->pid, is_unseen = !pid && !user->pid;
		if (user->job == job && ((is_unseen && are_equal(&user->identity, identity)) ||
					 (is_seen && user->pid == pid && !ll_process_has_ended(user->watch->fd))))
			return user;
	}
	return NULL;
}

/* A process belongs to one job. It may have belonged to another job before, or processes of that job may have written
 * its pid into a slot. */
static void end_elsewhere(struct ll_server *server, const struct ll_claim_call *call, uint32_t pid)
{
	struct ll_user *next;
	for (struct ll_user *user = server->users; user; user = next) {
		next = user->next;
		if (pid && user->pid == pid && user->job != call->job && ll_rights_over(call->connection, user->job))
			end_claims(server, user);
	}
}

/* Ends the claims of an adopted page that the process had before exec. */
static void end_former(struct ll_server *server, const struct ll_job *job, const struct ll_claim_identity *identity)
{
	const struct ll_job_claims *claims = job->claims;
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++) {
		struct ll_claim_identity former;
		struct ll_job_claim *claim = claims->slots[i];
		if (!claim || claim->user)
			continue;
		ll_claim_identify(claim, &former);
		if (are_equal(&former, identity))
			ll_claims_end(server, claim, false);
	}
}

/* ---- a claim ---- */

/* The process has the slot already: a former daemon gave it, or the process lost its connection. */
static int take_back(struct ll_user *user, struct ll_job_claim *claim, const struct ll_claim_identity *identity)
{
	struct ll_claim_identity former;
	ll_claim_identify(claim, &former);
	if ((claim->user && claim->user != user) || !are_equal(&former, identity))
		return -ESTALE;
	if (!claim->user) {
		claim->user = user;
		user->claims++;
	}
	return 0;
}

/* A process has one claim on a card. If it requests a second one, it has not received the reply to the first. The new
 * claim replaces the first. */
static void end_double(struct ll_server *server, const struct ll_user *user, const struct ll_job_card *card)
{
	for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		if (claim->user == user) {
			ll_claims_end(server, claim, false);
			return;
		}
	}
}

static int take_new(struct ll_server *server, struct ll_user *user, const struct ll_message_claim *message,
		    struct ll_job_claim **ret_claim)
{
	struct ll_job_card *card;
	int rc = ll_job_card_get(server, user->job, message->uuid, message->first_card, &card);
	if (rc)
		return rc;
	user->claims++; /* so that the user is not freed with the former claim */
	end_double(server, user, card);
	rc = ll_claims_grant(server, card, user, &user->identity, ret_claim);
	user->claims--;
	return rc;
}

int ll_users_claim(struct ll_server *server, const struct ll_claim_call *call, struct ll_job_claim **ret_claim)
{
	const struct ll_message_claim *message = call->message;
	struct ll_claim_identity identity = {message->pid, message->namespaces, message->start_ticks};
	if (call->process_fd < 0 || ll_process_has_ended(call->process_fd))
		return -ESRCH;
	uint32_t pid = (uint32_t)ll_process_id_of_fd(call->process_fd);
	end_elsewhere(server, call, pid);
	struct ll_user *user = find_user(server, call->job, pid, &identity);
	bool is_new_image = user && user->connection != call->connection && !message->slot_token;
	if (is_new_image) {
		end_claims(server, user);
		user = NULL;
	}
	if (!user && !message->slot_token)
		end_former(server, call->job, &identity);
	if (!user)
		user = new_user(server, call->job, call->process_fd);
	if (!user)
		return -errno;
	if (user->connection != call->connection) {
		if (user->connection)
			user->connection->user = NULL;
		if (call->connection->user)
			call->connection->user->connection = NULL;
		user->connection = call->connection;
		call->connection->user = user;
	}
	user->identity = identity;
	int rc = -ESTALE;
	if (!message->slot_token)
		rc = take_new(server, user, message, ret_claim);
	else if ((*ret_claim = ll_claims_find(user->job, message->slot, message->slot_token)))
		rc = take_back(user, *ret_claim, &user->identity);
	if (!user->claims)
		free_user(user);
	else if (!user->watch->has_started)
		ll_death_watch_start(user->watch);
	return rc;
}

struct ll_user *ll_users_find(const struct ll_connection *connection, int process_fd)
{
	uint32_t pid = (uint32_t)ll_process_id_of_fd(process_fd);
	struct ll_user *found = NULL;
	for (struct ll_user *user = connection->server->users; user; user = user->next) {
		bool is_it = pid && user->pid == pid;
		if (is_it && ll_rights_over(connection, user->job))
			return user;
		found = is_it ? user : found;
	}
	return found;
}

void ll_users_set_checkpoint(const struct ll_user *user, uint32_t state)
{
	for (unsigned i = 0; i < user->job->claims->card_count; i++) {
		for (struct ll_job_claim *claim = user->job->claims->cards[i]->claims; claim; claim = claim->next) {
			if (claim->user == user)
				atomic_store(&ll_claim_slot(claim)->checkpoint, state);
		}
	}
}

/* ---- periodic checks ---- */

/* Whether it is certain that the process has ended. /proc may hide the processes of other users (hidepid). */
static bool is_gone(const struct ll_server *server, const struct ll_process_id *id)
{
	struct ll_process_stat stat;
	if (!ll_process_is_gone(id, server->namespaces))
		return false;
	return ll_process_stat_of(id->pid, &stat) == 0 || (kill(id->pid, 0) < 0 && errno == ESRCH);
}

/* Makes a user of a process that has no connection. */
static int find_process(struct ll_server *server, struct ll_job *job, const struct ll_process_id *id,
			struct ll_user **ret_user)
{
	int fd = ll_process_open(id->pid);
	if (fd < 0)
		return fd;
	/* Another process may have got the pid before it was opened. */
	int rc = is_gone(server, id) ? -ESRCH : 0;
	struct ll_user *user = rc ? NULL : new_user(server, job, fd);
	if (user)
		*ret_user = user;
	else if (!rc)
		rc = -errno;
	close(fd);
	return rc;
}

/* Finds the process of an adopted slot. Returns whether to try again, because there is no free descriptor. */
static bool judge_process(struct ll_server *server, struct ll_job *job, struct ll_job_claim *claim)
{
	struct ll_claim_identity identity;
	ll_claim_identify(claim, &identity);
	struct ll_process_id id = {
	    .pid = identity.pid, .start_ticks = identity.start_ticks, .namespaces = identity.namespaces};
	if (!server->namespaces || server->namespaces != identity.namespaces)
		return false; /* its pid has no meaning in this namespace: the process connects again, or the slot ends
				 with the job */
	if (is_gone(server, &id)) {
		ll_claims_end(server, claim, !job->facts.limits.space_permille);
		return false;
	}
	struct ll_user *user = find_user(server, job, (uint32_t)identity.pid, &identity);
	if (!user && find_process(server, job, &id, &user))
		return true;
	user->identity = identity;
	claim->user = user;
	user->claims++;
	ll_death_watch_start(user->watch);
	return false;
}

bool ll_users_adopt(struct ll_server *server, struct ll_job *job)
{
	const struct ll_job_claims *claims = job->claims;
	bool is_needed = false;
	for (unsigned i = 0; claims && claims->claim_count && i < LL_PAGE_SLOTS; i++) {
		struct ll_job_claim *claim = claims->slots[i];
		if (claim && !claim->user)
			is_needed |= judge_process(server, job, claim);
	}
	return is_needed;
}

bool ll_users_reap(struct ll_server *server)
{
	bool is_needed = false;
	struct ll_user *next;
	for (struct ll_user *user = server->users; user; user = next) {
		next = user->next;
		bool is_lost = !user->connection;
		if (user->watch->is_polled && !is_lost)
			continue;
		is_needed = true;
		if ((!user->watch->is_polled && ll_process_has_ended(user->watch->fd)) ||
		    (is_lost && has_new_program(user)))
			end_claims(server, user);
	}
	return is_needed;
}

bool ll_users_tick(struct ll_server *server)
{
	bool is_needed = ll_users_reap(server);
	for (struct ll_job *job = server->books.jobs; job; job = job->next)
		is_needed |= ll_users_adopt(server, job);
	return is_needed;
}

/* ---- tells the loop that a process has ended ---- */

static void free_watch(uv_handle_t *handle)
{
	struct ll_death_watch *watch = handle->data;
	close(watch->fd);
	free(watch);
}

struct ll_death_watch *ll_death_watch_new(uv_loop_t *loop, int fd, void (*on_end)(void *data), void *data)
{
	struct ll_death_watch *watch = calloc(1, sizeof *watch);
	if (!watch)
		return NULL;
	watch->fd = fd;
	watch->on_death = on_end;
	watch->data = data;
	watch->is_polled = ll_process_is_pidfd(fd) && uv_poll_init(loop, &watch->poll, fd) == 0;
	watch->poll.data = watch;
	return watch;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct ll_death_watch *watch = poll->data;
	(void)status;
	(void)events;
	uv_poll_stop(poll);
	watch->has_started = false;
	watch->on_death(watch->data);
}

void ll_death_watch_start(struct ll_death_watch *watch)
{
	if (watch->is_polled && !watch->has_started)
		watch->has_started = uv_poll_start(&watch->poll, UV_READABLE, on_readable) == 0;
}

void ll_death_watch_close(struct ll_death_watch *watch)
{
	if (watch && watch->is_polled)
		uv_close((uv_handle_t *)&watch->poll, free_watch);
	else if (watch)
		free_watch((uv_handle_t *)&watch->poll);
}
