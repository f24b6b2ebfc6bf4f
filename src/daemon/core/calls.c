/* Handles each message. Functions that return bool return false if the message is not allowed here; the connection is
 * then closed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "daemon/core/connection.h"
#include "daemon/jobs/jobs.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/queue.h"
#include "daemon/residency/residency.h"
#include "protocol/company.h"
#include "protocol/run_settings.h"

/* Of one user, in all connections. */
enum { ROW_BYTES_MAX = 16 << 20 };

static bool say_welcome(struct ll_connection *connection)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_WELCOME);
	ll_server_describe(connection->server, &message.welcome);
	message.welcome.is_operator = ll_department_is_operator(&connection->server->department, connection->uid);
	ll_rights_trim(connection, &message);
	ll_connection_reply(connection, &message, NULL, 0);
	return true;
}

static bool read_peer(const struct ll_connection *connection, struct ucred *ret_peer)
{
	socklen_t length = sizeof *ret_peer;
	return getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, ret_peer, &length) == 0;
}

/* A process may act only for itself. If the daemon does not see the process, it trusts the message. */
static bool is_of_peer(const struct ll_connection *connection, int process_fd)
{
	struct ucred peer;
	pid_t pid = ll_process_id_of_fd(process_fd);
	return !connection->server->has_own_proc || !pid || !read_peer(connection, &peer) || !peer.pid ||
	       peer.pid == pid;
}

static bool handle_hello(struct ll_connection *connection, const struct ll_message_hello *hello, int *fds, size_t count)
{
	if (connection->role || count > 1 || (count && !ll_process_is_valid(fds[0])))
		return false;
	if (connection->is_foreign && hello->role != LL_ROLE_PROCESS)
		return false;
	if (hello->role == LL_ROLE_SENSOR && !ll_machine_accepts(connection->server, connection->uid))
		return false;
	if (hello->role == LL_ROLE_SENSOR && ll_machine_has_other(connection)) {
		ll_connection_refuse(connection, -EBUSY, "another sensor reports the cards");
		return true;
	}
	if (count && (!is_of_peer(connection, fds[0]) || !ll_rights_over_process(connection, fds[0])))
		return false;
	connection->role = hello->role;
	connection->visitor->silent--;
	if (count) {
		connection->process_fd = fds[0];
		fds[0] = -1;
	} else {
		connection->process_fd = ll_process_of_peer(connection->fd);
	}
	if (hello->role == LL_ROLE_MONITOR || hello->role == LL_ROLE_COMMAND)
		ll_connection_park(connection);
	return say_welcome(connection);
}

/* The end that only reads. If this process had a writable end, no lifeline would end. */
static bool is_lifeline(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

static void refuse_right(struct ll_connection *connection)
{
	ll_connection_refuse(connection, -EPERM, "the job is another user's");
}

/* What the configuration made of the request of the job. */
static void describe_accepted(const struct ll_job *job, struct ll_message_accepted *accepted)
{
	accepted->number = job->number;
	if (!job->department_tenant[0])
		return;
	accepted->limits = job->facts.limits;
	ll_message_text_set(accepted->tenant, sizeof accepted->tenant, job->department_tenant);
}

/* The descriptors are for the monitor to keep, and to pass to the next daemon. A monitor of another user gets read-only
 * orders. The next daemon has the uid of this one, and reopens them. */
static void accept_monitor(struct ll_connection *connection, const struct ll_job *job)
{
	int fds[2] = {job->pages.page_fd, job->pages.orders_fd};
	bool is_other = connection->uid != geteuid();
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	describe_accepted(job, &message.accepted);
	int rc = is_other ? ll_pages_share(&job->pages, true, fds) : 0;
	ll_connection_reply(connection, &message, fds, rc ? 0 : 2);
	if (is_other && !rc)
		ll_message_close_fds(fds, 2);
}

void ll_job_group_on_placed(struct ll_connection *connection, const struct ll_job *job)
{
	accept_monitor(connection, job);
}

static const char *reason_of_job(int code)
{
	return code == -EBUSY   ? "another monitor has the job"
	       : code == -EPERM ? "the job is another user's"
				: strerror(-code);
}

static bool handle_job(struct ll_connection *connection, struct ll_message_job *message, int *fds, size_t count)
{
	struct ll_job_facts *facts = &message->job;
	struct ll_job *job;
	if (connection->role != LL_ROLE_MONITOR || connection->job || (count != 2 && count != 4) ||
	    !ll_process_is_valid(fds[0]) || !is_lifeline(fds[1]) || facts->state == LL_JOB_ENDED)
		return false;
	if (connection->process_fd < 0) {
		ll_connection_refuse(connection, -ESRCH, "a monitor that cannot be watched");
		return true;
	}
	if (!ll_rights_over_process(connection, fds[0])) {
		ll_connection_refuse(connection, -EPERM, "the job's first process is another user's");
		return true;
	}
	if (!ll_rights_have_room_for_job(connection, facts->token[0], count == 4 ? &fds[2] : NULL)) {
		ll_connection_refuse(connection, -EMFILE,
				     "loadlined has as many jobs of this user as one may have now");
		return true;
	}
	facts->uid = connection->uid;
	facts->pid = (uint32_t)ll_process_id_of_fd(fds[0]);
	char tenant[LL_NAME_SIZE], container[LL_CGROUP_SIZE];
	struct ll_err why = {0};
	int of_container =
	    ll_job_group_of_container(connection->server, facts, fds[0], connection->process_fd, container);
	if (of_container) {
		ll_connection_refuse(connection, of_container,
				     of_container == -EEXIST ? "the container has a job already"
							     : "the container has no control group of its own");
		return true;
	}
	if (*container)
		memcpy(facts->cgroup, container, sizeof facts->cgroup);
	struct ll_job_call call = {.connection = connection,
				   .facts = facts,
				   .department_tenant = tenant,
				   .project = message->project,
				   .name = message->name,
				   .pod = *container && !connection->uid ? message->pod : "",
				   .container = container,
				   .said = message->said,
				   .monitor_fd = connection->process_fd,
				   .process_fd = fds[0],
				   .lifeline_fd = fds[1],
				   .page_fds = count == 4 ? &fds[2] : NULL};
	int rc = ll_job_read_brought(connection->server, &call, facts);
	if (rc) {
		ll_connection_refuse(connection, rc, reason_of_job(rc));
		return true;
	}
	rc = ll_admission_claim(connection->server, message, call.page_fds, tenant, &why);
	if (rc) {
		ll_connection_refuse(connection, rc == -ESTALE ? rc : -EACCES, why.text);
		return true;
	}
	rc = ll_job_register(connection->server, &call, &job);
	if (rc) {
		ll_connection_refuse(connection, rc, reason_of_job(rc));
		return true;
	}
	fds[0] = fds[1] = -1;
	connection->job = job;
	ll_admission_register(connection->server, job);
	if (message->program)
		ll_company_write_program(job->pages.orders, message->program, message->program_name);
	/* The processes of a job that has its pages already are where they are. */
	if (count == 4 || *job->container || !ll_job_group_place(connection->server, job))
		accept_monitor(connection, job);
	return true;
}

static bool handle_job_ended(struct ll_connection *connection, const struct ll_message_job_ended *ended)
{
	struct ll_job *job = connection->job;
	if (!job || memcmp(job->facts.token, ended->token, sizeof ended->token) != 0)
		return false;
	connection->job = NULL;
	ll_job_end(connection->server, job);
	return true;
}

static bool handle_decisions(struct ll_connection *connection, const struct ll_message_decisions *message)
{
	if (!ll_rights_see_others(connection)) {
		ll_connection_refuse(connection, -EACCES, "the configuration shows users nothing of others");
		return true;
	}
	ll_list_decisions(connection, message->uuid);
	return true;
}

static bool handle_handover(struct ll_connection *connection, const struct ll_message_handover *handover)
{
	struct ll_server *server = connection->server;
	union ll_message message;
	if (server->is_system) {
		ll_connection_refuse(connection, -EPERM, "the system's loadlined is replaced by who keeps it");
		return true;
	}
	if (handover->version <= ll_version_number(server->version)) {
		ll_connection_refuse(connection, -EPERM, "this loadlined is as new");
		return true;
	}
	ll_message_init(&message, LL_MESSAGE_HANDED_OVER);
	message.header.serial = connection->serial;
	if (ll_message_send(connection->fd, &message, &server->door.listen_fd, 1) == 0)
		ll_server_stop(server);
	else
		ll_connection_refuse(connection, -EAGAIN, "the listening socket could not be sent");
	return true;
}

static void accept_job(struct ll_connection *connection, const struct ll_job *job)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	describe_accepted(job, &message.accepted);
	ll_connection_reply(connection, &message, NULL, 0);
}

/* ---- commands and holds ---- */

static bool handle_bind(struct ll_connection *connection, const struct ll_message_bind *bind)
{
	struct ll_job *job = ll_books_find_id(&connection->server->books, bind->job);
	char reason[LL_REASON_SIZE] = "there is no such job";
	if (job && !ll_rights_over(connection, job)) {
		refuse_right(connection);
		return true;
	}
	struct ll_err why = {0};
	int rc = job ? ll_admission_check_card(connection->server, job, bind->uuid, &why) : -ESRCH;
	if (rc == -EACCES)
		ll_message_text_set(reason, sizeof reason, why.text);
	if (!rc)
		rc = ll_promises_bind(connection->server, job, bind, reason);
	if (rc) {
		ll_connection_refuse(connection, rc, reason);
		return true;
	}
	if (ll_department_fit_limits(connection->server, job, bind->uuid))
		ll_promises_apply(connection->server, job);
	ll_weights_settle(connection->server);
	accept_job(connection, job);
	return true;
}

/* Checks the limits that a user sets on its own job. Admins set any. */
static int check_set(const struct ll_connection *connection, const struct ll_job *job, const struct ll_message_set *set,
		     char ret_reason[LL_REASON_SIZE])
{
	struct ll_limits limits = job->facts.limits;
	struct ll_err why = {0};
	ll_promises_merge(&limits, set);
	bool is_admin = ll_department_is_admin(&connection->server->department, connection->uid);
	int rc = is_admin ? 0 : ll_department_check_limits(connection->server, job, &limits, &why);
	if (!rc && !is_admin)
		rc = ll_admission_check_limits(connection->server->admission, job, &limits, &why);
	ll_message_text_set(ret_reason, LL_REASON_SIZE, why.text);
	return rc;
}

static bool handle_set(struct ll_connection *connection, const struct ll_message_set *set)
{
	struct ll_job *job = ll_books_find_number(&connection->server->books, set->job_number);
	char reason[LL_REASON_SIZE] = "the job has ended";
	if (job && !ll_rights_know(connection, job->facts.uid))
		job = NULL;
	if (job && !ll_rights_over(connection, job)) {
		refuse_right(connection);
		return true;
	}
	int rc = job ? check_set(connection, job, set, reason) : -ESRCH;
	if (!rc)
		rc = ll_promises_set(connection->server, job, set, reason);
	if (rc) {
		ll_connection_refuse(connection, rc, reason);
		return true;
	}
	ll_admission_set_limits(connection->server->admission, job);
	ll_rights_note(connection, job, "sets limits of", set->reason);
	ll_weights_settle(connection->server);
	accept_job(connection, job);
	return true;
}

static bool handle_checkpoint(struct ll_connection *connection, const struct ll_message_checkpoint *checkpoint, int fd)
{
	const struct ll_user *user = ll_users_find(connection, fd);
	if (!user || !ll_rights_know(connection, user->job->facts.uid)) {
		ll_connection_refuse(connection, -ESRCH, "the process is on no card, as far as loadlined knows");
	} else if (!ll_rights_to_move(connection, user->job)) {
		refuse_right(connection);
	} else {
		ll_users_set_checkpoint(user, checkpoint->state);
		accept_job(connection, user->job);
	}
	return true;
}

/* A request about memory. The reply is sent later. */
static bool handle_move(struct ll_connection *connection, enum ll_message_kind kind, const struct ll_message_move *move)
{
	const struct ll_job *job = ll_books_find_id(&connection->server->books, move->job);
	if (job && !ll_rights_to_move(connection, job)) {
		refuse_right(connection);
		return true;
	}
	const char *verb = kind == LL_MESSAGE_EVICT ? "evicts" : kind == LL_MESSAGE_SUSPEND ? "suspends" : "resumes";
	if (job)
		ll_rights_note(connection, job, verb, move->reason);
	ll_residency_request(connection->server, connection, kind, move);
	return true;
}

static bool handle_watch(struct ll_connection *connection)
{
	connection->server->watcher_count += !connection->is_watching;
	connection->is_watching = true;
	connection->watched = 0;
	connection->watch_serial = connection->serial;
	return true;
}

/* ---- processes ---- */

/* Returns the number that the process adds to its clock to get the daemon's clock. The upper half of `namespaces`
 * identifies the time namespace. */
static int64_t clock_ahead_ns(const struct ll_server *server, const struct ll_message_claim *claim)
{
	enum { TIME_SHIFT = 32 };
	bool is_same = claim->namespaces >> TIME_SHIFT == server->namespaces >> TIME_SHIFT;
	return is_same || !claim->clock_ns ? 0 : (int64_t)(ll_now_ns() - claim->clock_ns);
}

static void say_claimed(struct ll_connection *connection, const struct ll_job *job, const struct ll_message_claim *call,
			const struct ll_job_claim *claim)
{
	union ll_message message;
	int fds[2];
	int rc = ll_pages_share(&job->pages, true, fds);
	if (rc) {
		ll_connection_refuse(connection, rc, "loadlined has no descriptors left");
		return;
	}
	ll_message_init(&message, LL_MESSAGE_CLAIMED);
	message.claimed.clock_ahead_ns = clock_ahead_ns(connection->server, call);
	if (claim) {
		message.claimed.slot_token = claim->token;
		message.claimed.slot = claim->slot;
		message.claimed.card = claim->card->index;
	}
	ll_connection_reply(connection, &message, fds, 2);
	ll_message_close_fds(fds, 2);
}

static const char *reason_of(int code)
{
	switch (code) {
	case -ESRCH:
		return "a process that cannot be watched";
	case -ESTALE:
		return "the slot is not this process's";
	case -ENOSPC:
		return "the job's page is full: 64 cards, 1024 processes";
	default:
		return strerror(-code);
	}
}

/* The monitor of a job may register it a moment after its processes connect. Returns false if it has refused. */
static bool prove_job(struct ll_connection *connection, uint64_t id, struct ll_job **ret_job)
{
	int rc = ll_job_group_prove(connection, id, ret_job);
	if (rc == -EAGAIN && ll_admission_has_ended(connection->server, id))
		rc = -EACCES;
	if (rc)
		ll_connection_refuse(connection, rc,
				     rc == -EAGAIN   ? "the job is not known yet"
				     : rc == -EACCES ? "the job has ended"
						     : "the job is another user's");
	connection->has_read |= !rc;
	return !rc;
}

static bool handle_claim(struct ll_connection *connection, const struct ll_message_claim *message)
{
	struct ll_server *server = connection->server;
	struct ll_job *job = NULL;
	struct ll_job_claim *claim = NULL;
	if (!prove_job(connection, message->job, &job))
		return true;
	struct ll_err why = {0};
	if (ll_admission_check_claim(server, job, message, &why)) {
		ll_connection_refuse(connection, -EACCES, why.text);
		return true;
	}
	struct ll_claim_call call = {connection, connection->process_fd, job, message};
	int rc = message->uuid[0] ? ll_users_claim(server, &call, &claim) : 0;
	if (rc) {
		ll_connection_refuse(connection, rc, reason_of(rc));
		return true;
	}
	say_claimed(connection, job, message, claim);
	if (claim) {
		ll_claims_wake(server, claim);
		ll_neighbours_clear(server, message->uuid);
		ll_weights_settle(server);
	}
	return true;
}

/* Returns NULL if the slot was just released, or is another process's. */
static struct ll_job_claim *find_own(const struct ll_connection *connection, const struct ll_message_slot *message)
{
	const struct ll_user *user = connection->user;
	struct ll_job_claim *claim = user ? ll_claims_find(user->job, message->slot, message->slot_token) : NULL;
	return claim && claim->user == user ? claim : NULL;
}

static bool handle_leave(struct ll_connection *connection, const struct ll_message_slot *message)
{
	struct ll_job_claim *claim = find_own(connection, message);
	if (claim)
		ll_claims_end(connection->server, claim, false);
	return true;
}

/* Processes that are not watched may have ended: their memory may satisfy the want. */
static bool handle_wake(struct ll_connection *connection, const struct ll_message_slot *message)
{
	struct ll_job_claim *claim = find_own(connection, message);
	if (claim && ll_memory_has_want(claim)) {
		ll_users_reap(connection->server);
		claim = find_own(connection, message);
	}
	if (claim)
		ll_claims_wake(connection->server, claim);
	return true;
}

_Static_assert((int)LL_SETTINGS_SIZE == (int)LL_RUN_TEXT_SIZE, "a message holds the text");

/* Writes the text of LOADLINE_RUN, with the limits that are in force now, for a program of the job that has lost it.
 * -ENAMETOOLONG. */
static int write_settings(const struct ll_server *server, const struct ll_job *job, char ret_text[LL_RUN_TEXT_SIZE])
{
	const struct ll_limits *limits = &job->facts.limits;
	struct ll_run_settings settings = {
	    .id = job->facts.token[0],
	    .priority = ll_priority_of_class(limits->priority),
	    .memory_limit_bytes = limits->memory_bytes,
	    .memory_request_bytes = limits->request_bytes,
	    .compute_cap_permille = limits->compute_permille,
	    .weight_permille = limits->weight_permille,
	    .slowdown_permille = limits->slowdown_permille,
	    .space_permille = limits->space_permille,
	    .counts_context = limits->flags & LL_LIMIT_COUNTS_CONTEXT,
	    .max_kernel_ns = limits->max_kernel_ns,
	    .kills_at_max_kernel = limits->flags & LL_LIMIT_KILLS_MAX_KERNEL,
	    .is_evictable = limits->flags & LL_LIMIT_EVICTABLE,
	    .is_strict = limits->flags & LL_LIMIT_STRICT,
	};
	ll_message_text_set(settings.tenant, sizeof settings.tenant, job->facts.tenant);
	if (job->claims->card_count > 1)
		ll_message_text_set(settings.first_card, sizeof settings.first_card, job->claims->cards[0]->uuid);
	/* The folder is not used for a system's place; it is that of the socket. */
	memcpy(settings.place, server->place.name, sizeof settings.place);
	memcpy(settings.folder, server->place.name, sizeof server->place.name);
	*strrchr(settings.folder, '/') = '\0';
	return ll_run_settings_write(&settings, ret_text);
}

/* A process without LOADLINE_RUN. */
static bool handle_own_job(struct ll_connection *connection)
{
	union ll_message message;
	struct ll_job *job;
	int rc = ll_job_group_prove(connection, 0, &job);
	ll_message_init(&message, LL_MESSAGE_OWN_SETTINGS);
	if (!rc)
		rc = write_settings(connection->server, job, message.own_settings.text);
	if (rc)
		ll_connection_refuse(connection, -ENOENT, "the process is in the control group of no job");
	else
		ll_connection_reply(connection, &message, NULL, 0);
	return true;
}

static bool handle_evictable(struct ll_connection *connection, const struct ll_message_move *message)
{
	struct ll_job *job;
	struct ll_message_move own = *message;
	if (!prove_job(connection, message->job, &job))
		return true;
	own.job = job->facts.token[0];
	int rc = ll_residency_join(connection->server, connection, &own);
	if (rc)
		ll_connection_refuse(connection, rc, reason_of(rc));
	return true;
}

/* Messages of a process about memory that it shares. Another process needs only the key. */
static bool handle_share(struct ll_connection *connection, const union ll_message *message, int *fds, size_t count)
{
	struct ll_shares *shares = &connection->server->residency.shares;
	if (message->header.kind == LL_MESSAGE_OPEN)
		ll_shares_open(shares, connection, &message->share);
	else if (message->header.kind == LL_MESSAGE_SHARE && connection->evictable &&
		 ll_rights_have_room(connection->server, connection->uid))
		ll_shares_add(shares, connection, &message->share, fds, count);
	else if (message->header.kind == LL_MESSAGE_UNSHARE)
		ll_shares_remove(shares, connection, &message->share);
	return true;
}

/* ---- all messages ---- */

static bool call_of_process(struct ll_connection *connection, const union ll_message *message)
{
	enum ll_message_kind kind = message->header.kind;
	switch (kind) {
	case LL_MESSAGE_CLAIM:
		return handle_claim(connection, &message->claim);
	case LL_MESSAGE_RELEASE:
		return handle_leave(connection, &message->slot);
	case LL_MESSAGE_WAKE:
		return handle_wake(connection, &message->slot);
	case LL_MESSAGE_OWN_JOB:
		return handle_own_job(connection);
	case LL_MESSAGE_EVICTABLE:
		return handle_evictable(connection, &message->move);
	default:
		if ((kind < LL_MESSAGE_SIZES || kind > LL_MESSAGE_MEASURED) && kind != LL_MESSAGE_NEIGHBOUR)
			return false;
		ll_residency_handle(connection->server, connection, kind, &message->move);
		return true;
	}
}

/* Rows that a user does not read take memory. */
static bool call_for_rows(struct ll_connection *connection, const union ll_message *message)
{
	unsigned kind = message->header.kind;
	if (kind != LL_MESSAGE_LIST && connection->role != LL_ROLE_COMMAND)
		return false;
	if (connection->visitor->is_bounded && connection->visitor->row_bytes > ROW_BYTES_MAX) {
		ll_connection_refuse(connection, -EBUSY, "this user has too many rows to read already");
		return true;
	}
	if (kind == LL_MESSAGE_REPORT || kind == LL_MESSAGE_HISTORY)
		return ll_report_handle(connection, message);
	if (kind == LL_MESSAGE_QUEUE)
		return ll_admission_handle(connection, message);
	if (kind == LL_MESSAGE_DECISIONS)
		return handle_decisions(connection, &message->decisions);
	if (kind == LL_MESSAGE_LIST) {
		ll_list_books(connection);
	} else if (kind == LL_MESSAGE_POLICY) {
		ll_lending_list(connection);
		ll_list_policy(connection);
	} else if (kind == LL_MESSAGE_METRICS) {
		ll_list_metrics(connection);
	} else {
		ll_list_machine(connection);
	}
	return true;
}

static bool call_of_anybody(struct ll_connection *connection, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_LIST:
	case LL_MESSAGE_DECISIONS:
	case LL_MESSAGE_POLICY:
	case LL_MESSAGE_METRICS:
	case LL_MESSAGE_SENSED:
	case LL_MESSAGE_REPORT:
	case LL_MESSAGE_HISTORY:
	case LL_MESSAGE_QUEUE:
		return call_for_rows(connection, message);
	case LL_MESSAGE_ADMIT:
	case LL_MESSAGE_QUEUE_ACT:
		return ll_admission_handle(connection, message);
	case LL_MESSAGE_JOB_STATUS:
		return ll_admission_handle_status(connection, &message->job_status);
	case LL_MESSAGE_HANDOVER:
		return handle_handover(connection, &message->handover);
	case LL_MESSAGE_JOB_ENDED:
		return handle_job_ended(connection, &message->job_ended);
	case LL_MESSAGE_WATCH:
		return connection->role == LL_ROLE_HOLD && handle_watch(connection);
	case LL_MESSAGE_BIND:
		return (connection->role == LL_ROLE_COMMAND || connection->role == LL_ROLE_MONITOR) &&
		       handle_bind(connection, &message->bind);
	case LL_MESSAGE_SET:
		return connection->role == LL_ROLE_COMMAND && handle_set(connection, &message->set);
	case LL_MESSAGE_EVICT:
	case LL_MESSAGE_SUSPEND:
	case LL_MESSAGE_RESUME:
		return connection->role == LL_ROLE_COMMAND &&
		       handle_move(connection, message->header.kind, &message->move);
	default:
		return connection->role == LL_ROLE_PROCESS && call_of_process(connection, message);
	}
}

bool ll_call(struct ll_connection *connection, union ll_message *message, int *fds, size_t count)
{
	unsigned kind = message->header.kind;
	connection->serial = message->header.serial;
	if (kind == LL_MESSAGE_HELLO)
		return handle_hello(connection, &message->hello, fds, count);
	if (!connection->role)
		return false;
	bool is_share = kind == LL_MESSAGE_SHARE || kind == LL_MESSAGE_UNSHARE || kind == LL_MESSAGE_OPEN;
	if (is_share)
		return connection->role == LL_ROLE_PROCESS && handle_share(connection, message, fds, count);
	if (connection->is_foreign)
		return !count && call_of_process(connection, message);
	if (connection->role == LL_ROLE_SENSOR)
		return !count && ll_machine_handle(connection, message);
	if (kind == LL_MESSAGE_JOB)
		return handle_job(connection, &message->job, fds, count);
	if (kind == LL_MESSAGE_CHECKPOINT)
		return connection->role == LL_ROLE_COMMAND && count == 1 && ll_process_is_valid(fds[0]) &&
		       handle_checkpoint(connection, &message->checkpoint, fds[0]);
	return !count && call_of_anybody(connection, message);
}
