#include "daemon/queue/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/state.h"

/* LOOK_REST: after a look there is none for so many times as long. */
enum { LOOK_MS = 1000, LOOK_REST = 4 };
#define TELL_NS (10 * LL_NS_PER_S)
#define REGISTER_NS (10 * LL_NS_PER_S)
#define SENSOR_NS (6 * LL_NS_PER_S) /* it reports each 5 s */
/* The monitors of running jobs try to reach a new loadlined each 0.25 s. Until they have, it may not know which cards
 * are taken: the stored state lacks what came just before a kill, and there may be none. */
#define MONITORS_NS LL_NS_PER_S
/* An estimate is sent again if it has changed by more than this. */
#define ESTIMATE_S 60

static void on_timer(uv_timer_t *timer);

int ll_admission_init(struct ll_server *server)
{
	struct ll_admission *admission = calloc(1, sizeof *admission);
	server->admission = admission;
	if (!admission)
		return -ENOMEM;
	admission->server = server;
	admission->is_system = server->is_system;
	admission->books = &server->books;
	admission->department = &server->department;
	admission->subordinates = &server->subordinates;
	admission->timer.data = admission;
	return uv_timer_init(&server->loop, &admission->timer);
}

void ll_admission_stop(struct ll_server *server)
{
	if (server->admission)
		uv_close((uv_handle_t *)&server->admission->timer, NULL);
}

void ll_admission_fini(struct ll_server *server)
{
	struct ll_admission *admission = server->admission;
	if (!admission)
		return;
	ll_admission_undescribe(admission);
	while (admission->entries) {
		struct ll_admission_entry *next = admission->entries->next;
		free(admission->entries);
		admission->entries = next;
	}
	free(admission->drains);
	free(admission->unused);
	free(admission->lend_jobs);
	free(admission->bans);
	ll_admission_former_fini(admission);
	ll_admission_keep_fini(admission);
	free(admission);
	server->admission = NULL;
}

/* A look at a long queue takes long, and whoever changes the queue wants one. So the looks have a part of the time, and
 * the rest is for the connections. */
void ll_admission_wake(struct ll_admission *admission)
{
	uint64_t now_ns = ll_now_ns();
	uint64_t wait_ns = admission->next_look_ns > now_ns ? admission->next_look_ns - now_ns : 0;
	admission->must_save = true;
	uv_timer_start(&admission->timer, on_timer, wait_ns / LL_NS_PER_MS, 0);
}

/* ---- entries ---- */

struct ll_admission_entry *ll_admission_find(const struct ll_admission *admission, uint64_t number)
{
	struct ll_admission_entry *entry = admission->entries;
	while (entry && entry->queued.number != number && (!entry->job_number || entry->job_number != number))
		entry = entry->next;
	return entry;
}

unsigned ll_admission_card_count(const struct ll_server *server, const struct ll_job *job)
{
	const struct ll_admission_entry *entry = ll_admission_find(server->admission, job->number);
	return entry ? entry->uuid_count : 0;
}

static struct ll_admission_entry *find_token(const struct ll_admission *admission, uint64_t token)
{
	struct ll_admission_entry *entry = admission->entries;
	while (entry && entry->token != token)
		entry = entry->next;
	return entry;
}

static void insert_entry(struct ll_admission *admission, struct ll_admission_entry *entry)
{
	struct ll_admission_entry **at = &admission->entries;
	while (*at && (*at)->queued.number < entry->queued.number)
		at = &(*at)->next;
	entry->next = *at;
	*at = entry;
}

static void unlink_entry(struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	struct ll_admission_entry **at = &admission->entries;
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
}

/* number: of the job, if it is in the books already; 0: the next one, which the job then gets there too. */
static struct ll_admission_entry *new_entry(struct ll_admission *admission, uint64_t token, uint64_t number)
{
	struct ll_admission_entry *entry = calloc(1, sizeof *entry);
	if (!entry)
		return NULL;
	entry->token = token;
	entry->slice = -1;
	entry->queued.number = number ? number : ++admission->books->last_job;
	entry->came_s = ll_wall_ns() / LL_NS_PER_S;
	ll_admission_keep_number(admission, entry->queued.number);
	insert_entry(admission, entry);
	return entry;
}

static void remove_entry(struct ll_admission *admission, struct ll_admission_entry *entry)
{
	unlink_entry(admission, entry);
	ll_admission_note_end(admission, entry);
	ll_admission_note_unused(admission, entry);
	ll_lending_note_end(admission, entry);
	if (admission->has_queue)
		ll_queue_remove(&admission->queue, &entry->queued, ll_now_ns());
	if (entry->loan.is_requeued)
		ll_admission_former_keep(admission, entry);
	else
		free(entry);
	ll_admission_wake(admission);
}

/* ---- sending ---- */

static void send_to(struct ll_admission_entry *entry, union ll_message *message)
{
	entry->connection->serial = entry->serial;
	ll_connection_reply(entry->connection, message, NULL, 0);
}

void ll_admission_refuse(struct ll_admission *admission, struct ll_admission_entry *entry, int code, const char *reason)
{
	if (entry->connection) {
		entry->connection->serial = entry->serial;
		ll_connection_refuse(entry->connection, code, reason);
	}
	ll_message_text_set(entry->left_why, sizeof entry->left_why, reason);
	remove_entry(admission, entry);
}

static struct ll_message_queued describe_wait(const struct ll_admission *admission,
					      const struct ll_admission_entry *entry)
{
	bool sees_others = ll_rights_see_others(entry->connection);
	if (ll_admission_is_reserved(entry)) /* of position 0 */
		return (struct ll_message_queued){.number = entry->queued.number};
	return (struct ll_message_queued){
	    .number = entry->queued.number,
	    .start_s = ll_admission_second(entry->queued.planned.begin_ns),
	    .position = (uint32_t)ll_queue_position(&admission->queue, &entry->queued),
	    .untimed = (uint32_t)ll_queue_untimed_ahead(&admission->queue, &entry->queued),
	    .waits = ll_admission_waits(admission, entry, sees_others),
	    .why = ll_admission_why(admission, entry, sees_others),
	};
}

static void tell_wait(const struct ll_admission *admission, struct ll_admission_entry *entry)
{
	uint64_t now_ns = ll_now_ns();
	union ll_message message;
	struct ll_message_queued queued = describe_wait(admission, entry);
	const struct ll_message_queued *old = &entry->told;
	uint64_t later_s =
	    queued.start_s > old->start_s ? queued.start_s - old->start_s : old->start_s - queued.start_s;
	bool has_changed = old->position != queued.position || old->untimed != queued.untimed || later_s > ESTIMATE_S ||
			   old->waits.number != queued.waits.number || old->waits.kind != queued.waits.kind ||
			   old->why.rule != queued.why.rule || old->why.what != queued.why.what ||
			   old->why.number != queued.why.number;
	bool is_told_lately = entry->told_ns && now_ns - entry->told_ns < TELL_NS;
	if (entry->connection->has_pending || (is_told_lately && !has_changed))
		return;
	entry->told = queued;
	entry->told_ns = now_ns;
	ll_message_init(&message, LL_MESSAGE_QUEUED);
	queued.header = message.header;
	message.queued = queued;
	send_to(entry, &message);
}

/* ---- a place ---- */

void ll_admission_admit(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns)
{
	const struct ll_admission_machine *described = &admission->described;
	uint64_t cards = entry->queued.planned.cards;
	uint32_t count = (uint32_t)described->machine.card_count;
	ll_queue_start(&admission->queue, &entry->queued, now_ns);
	for (uint32_t card = 0; card < count && entry->uuid_count < LL_QUEUE_CARDS_OF_JOB; card++) {
		if (cards >> card & 1)
			ll_message_text_set(entry->uuids[entry->uuid_count++], LL_CARD_UUID_SIZE,
					    described->cards[card].uuid);
	}
	/* A job with whole cards may use all of their memory, if it does not say less. */
	uint32_t group = described->queue_cards[__builtin_ctzll(cards)].group;
	if (described->groups[group].is_whole) {
		entry->limits.memory_bytes = entry->has_memory ? entry->limits.memory_bytes : 0;
		entry->limits.compute_permille = entry->has_compute ? entry->limits.compute_permille : 0;
	}
	entry->begin_ns = now_ns;
}

void ll_admission_tell_place(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns)
{
	union ll_message message;
	/* It may have waited for borrowers to leave. */
	if (entry->begin_ns != now_ns)
		ll_queue_changed(&admission->queue);
	entry->begin_ns = entry->queued.planned.begin_ns = now_ns;
	entry->register_until_ns = now_ns + REGISTER_NS;
	ll_message_init(&message, LL_MESSAGE_ADMITTED);
	message.admitted.number = entry->queued.number;
	message.admitted.limits = entry->limits;
	message.admitted.end_s = entry->has_end ? ll_admission_second(ll_queue_end_ns(&entry->queued)) : 0;
	message.admitted.card_count = entry->uuid_count;
	ll_message_text_set(message.admitted.tenant, LL_NAME_SIZE, entry->tenant);
	memcpy(message.admitted.uuids, entry->uuids, sizeof entry->uuids);
	send_to(entry, &message);
}

/* ---- the time of jobs that run ---- */

#define TELL_BEFORE_NS (300 * LL_NS_PER_S)

/* The user is told first: the signal may end the job, and its terminal with it. */
static void warn_entry(struct ll_server *server, const struct ll_job *job, struct ll_admission_entry *entry,
		       uint64_t left_ns)
{
	const struct ll_config_warn_signal *warn = &ll_department_policy(&server->department)->reclaim.warn;
	struct ll_event_about about = {.job = job};
	char left[LL_EVENT_DURATION_SIZE];
	entry->is_warned = true;
	server->admission->must_save = true;
	ll_event_duration(left_ns, left);
	ll_events_tell(server, LL_EVENT_TIME_ENDING, &about, "the time of job %" PRIu64 " ends in %s",
		       entry->queued.number, left);
	if (warn->from && warn->signal >= 0 && !entry->signal)
		ll_job_stop_warn(server, job, ll_job_signals[warn->signal], "its time ends");
}

static void keep_time_of(struct ll_server *server, struct ll_admission_entry *entry, uint64_t now_ns)
{
	const struct ll_config_warn_signal *warn = &ll_department_policy(&server->department)->reclaim.warn;
	struct ll_job *job = ll_books_find_number(&server->books, entry->job_number);
	uint64_t end_ns = ll_queue_end_ns(&entry->queued), half_ns = entry->queued.duration_ns / 2;
	if (end_ns == LL_QUEUE_NONE || !job)
		return;
	/* Without a configured time the users are told when half of the job's time is left, but not earlier than 5
	 * minutes before its end. */
	uint64_t before_ns = half_ns < TELL_BEFORE_NS ? half_ns : TELL_BEFORE_NS;
	if (warn->from && warn->before_ns != LL_CONFIG_NONE)
		before_ns = warn->before_ns;
	if (!entry->is_warned && now_ns + before_ns >= end_ns)
		warn_entry(server, job, entry, end_ns > now_ns ? end_ns - now_ns : 0);
	if (entry->signal && !entry->is_signaled && now_ns + entry->signal_before_s * LL_NS_PER_S >= end_ns) {
		entry->is_signaled = server->admission->must_save = true;
		ll_job_stop_warn(server, job, entry->signal, "its time ends, and it wishes a signal");
	}
	if (now_ns < end_ns)
		return;
	server->admission->must_save |= !entry->stop.since_ns || !entry->stop.killed_ns;
	ll_job_stop_step(server, job, &entry->stop);
}

/* ---- the look at all ---- */

/* Jobs of a former loadlined, and of a time without a queue, have their cards already. */
static void adopt_job(struct ll_admission *admission, struct ll_job *job)
{
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
	if (find_token(admission, job->facts.token[0]) || !job->claims || !job->claims->card_count)
		return;
	struct ll_admission_entry *entry = new_entry(admission, job->facts.token[0], job->number);
	if (!entry)
		return;
	entry->uid = job->facts.uid;
	entry->limits = job->facts.limits;
	entry->job_number = job->number;
	entry->has_run = true;
	entry->begin_ns = ll_now_ns();
	ll_message_text_set(entry->tenant, sizeof entry->tenant, job->department_tenant);
	ll_message_text_set(entry->command, sizeof entry->command, job->facts.command);
	ll_message_text_set(entry->name, sizeof entry->name, job->name);
	for (unsigned i = 0; i < job->claims->card_count && entry->uuid_count < LL_QUEUE_CARDS_OF_JOB; i++)
		ll_message_text_set(entry->uuids[entry->uuid_count++], LL_CARD_UUID_SIZE, job->claims->cards[i]->uuid);
	entry->queued.uid = entry->uid;
	entry->queued.card_count = entry->uuid_count;
	entry->queued.duration_ns =
	    policy->defaults.time_ns != LL_CONFIG_NONE ? policy->defaults.time_ns : LL_ADMISSION_GUESS_NS;
	ll_admission_place_wish(admission, entry);
	if (ll_queue_add_running(&admission->queue, &entry->queued, entry->begin_ns,
				 ll_admission_mask(&admission->described, entry)))
		remove_entry(admission, entry);
}

static void update_hold(struct ll_admission *admission, struct ll_admission_entry *entry)
{
	char reason[LL_REASON_SIZE];
	if (!ll_admission_look_after(admission, entry, reason)) {
		ll_admission_refuse(admission, entry, -ECANCELED, reason);
		return;
	}
	bool is_held = entry->is_paused || entry->after || ll_admission_owes(admission, entry) ||
		       ll_admission_check_high_now(admission, entry, NULL) != 0;
	if (is_held == entry->queued.is_held)
		return;
	entry->queued.is_held = is_held;
	admission->must_arrange = true;
}

/* Waits that are over, and places that nobody took. */
static void expire_entries(struct ll_admission *admission, uint64_t now_ns)
{
	struct ll_admission_entry *next;
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = next) {
		next = entry->next;
		bool is_waiting = ll_admission_is_waiting(entry) || ll_admission_is_reserved(entry);
		if (is_waiting && now_ns >= entry->wait_until_ns)
			ll_admission_refuse(admission, entry, -ECANCELED, "the wait is over");
		else if (entry->register_until_ns && now_ns >= entry->register_until_ns)
			remove_entry(admission, entry);
		else if (ll_admission_is_waiting(entry))
			update_hold(admission, entry);
	}
}

_Static_assert((int)LL_CONFIG_ORDER_RESERVATION == LL_QUEUE_BY_RESERVATION &&
		   (int)LL_CONFIG_ORDER_GUARANTEE == LL_QUEUE_BY_GUARANTEE &&
		   (int)LL_CONFIG_ORDER_FAIRSHARE == LL_QUEUE_BY_FAIRSHARE &&
		   (int)LL_CONFIG_ORDER_AGE == LL_QUEUE_BY_AGE,
	       "a word of the configuration is a key of the order");

/* A job that starts goes to the running ones, before those that are not looked at yet. */
static void start_due(struct ll_admission *admission, uint64_t now_ns)
{
	struct ll_queue *queue = &admission->queue;
	for (size_t i = queue->running_count; i < queue->count;) {
		struct ll_admission_entry *entry = ll_admission_entry_of(queue->jobs[i]);
		struct ll_err why = {0};
		bool is_due = entry->queued.planned.begin_ns <= now_ns;
		int rc = is_due ? ll_admission_check_now(admission, entry, &why) : 0;
		if (rc) {
			ll_admission_refuse(admission, entry, rc, why.text);
			continue;
		}
		i++;
		if (!is_due || !ll_lending_claim(admission, entry, now_ns))
			continue;
		ll_admission_admit(admission, entry, now_ns);
		if (!ll_admission_is_reserved(entry))
			ll_admission_tell_place(admission, entry, now_ns);
	}
}

/* Refuses the waiting jobs, or those alone that take no wait. */
static void refuse_waiting(struct ll_admission *admission, bool is_impatient, int code, const char *reason)
{
	struct ll_admission_entry *next;
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = next) {
		next = entry->next;
		if (ll_admission_is_waiting(entry) && (entry->takes_no_wait || !is_impatient))
			ll_admission_refuse(admission, entry, code, reason);
	}
}

static void tell_waiting(struct ll_admission *admission)
{
	struct ll_admission_entry *next;
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = next) {
		next = entry->next;
		bool is_waiting = ll_admission_is_waiting(entry) && !entry->takes_no_wait;
		if (is_waiting || ll_admission_is_reserved(entry))
			tell_wait(admission, entry);
	}
}

static void look_at_queue(struct ll_admission *admission)
{
	const struct ll_config_policy *policy = ll_department_policy(admission->department);
	uint64_t now_ns = ll_now_ns();
	for (struct ll_job *job = admission->books->jobs; job; job = job->next)
		adopt_job(admission, job);
	expire_entries(admission, now_ns);
	ll_queue_charge(&admission->queue, now_ns, policy->queue.half_life_ns);
	struct ll_queue_rules rules = {0};
	const struct ll_config_words *order = &policy->queue.order;
	for (size_t i = 0; i < order->count && rules.key_count < sizeof rules.keys / sizeof *rules.keys; i++)
		rules.keys[rules.key_count++] = (enum ll_queue_key)order->items[i];
	if (admission->must_arrange)
		ll_queue_arrange(&admission->queue, &rules, now_ns);
	admission->must_arrange = false;
	ll_lending_settle(admission, now_ns);
	if (ll_queue_plan(&admission->queue, now_ns))
		return; /* no memory: the next look tries again */
	bool holds = ll_admission_former_holds(admission, now_ns);
	if (!holds && now_ns - admission->server->born_ns >= MONITORS_NS) {
		start_due(admission, now_ns);
		ll_lending_lend(admission, now_ns);
		refuse_waiting(admission, true, -EAGAIN, "no place is free now");
	}
	tell_waiting(admission);
	now_ns = ll_now_ns();
	for (struct ll_admission_entry *entry = admission->entries, *next; entry; entry = next) {
		next = entry->next;
		bool has_time = entry->has_end && (!entry->queued.is_asleep || entry->stop.why);
		if (has_time && entry->uuid_count && entry->job_number)
			keep_time_of(admission->server, entry, now_ns);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_admission *admission = timer->data;
	uint64_t begun_ns = ll_now_ns();
	if (!ll_admission_is_possible(admission))
		refuse_waiting(admission, false, -ENOENT, "there is no queue any more");
	else if (!ll_admission_describe(admission))
		look_at_queue(admission);
	ll_admission_save(admission);
	uint64_t now_ns = ll_now_ns(), rest_ns = LOOK_REST * (now_ns - begun_ns);
	admission->next_look_ns = now_ns + (rest_ns < LOOK_MS * LL_NS_PER_MS ? rest_ns : LOOK_MS * LL_NS_PER_MS);
	bool has_more = admission->entries || admission->books->job_count || admission->former || admission->must_save;
	if (has_more && !uv_is_active((uv_handle_t *)timer))
		uv_timer_start(timer, on_timer, LOOK_MS, 0);
}

/* ---- ADMIT ---- */

static bool handle_admit(struct ll_connection *connection, const struct ll_message_admit *admit)
{
	struct ll_admission *admission = connection->server->admission;
	struct ll_err why = {0};
	if (find_token(admission, admit->job)) {
		ll_connection_refuse(connection, -EEXIST, "the job is in the queue already");
		return true;
	}
	const struct ll_admission_entry *left = admit->again ? ll_admission_find(admission, admit->again) : NULL;
	if (left && left->uid == connection->uid && left->loan.is_requeued) {
		ll_connection_refuse(connection, -EBUSY, "what is left of the job has not ended yet");
		return true;
	}
	struct ll_admission_entry *entry = new_entry(admission, admit->job, 0);
	if (!entry) {
		ll_connection_refuse(connection, -ENOMEM, "loadlined has no memory");
		return true;
	}
	entry->uid = connection->uid;
	entry->connection = connection;
	entry->serial = connection->serial;
	int rc = ll_admission_read_request(admission, admit, entry, &why);
	if (!rc) { /* it may get the number back that it had under a former loadlined */
		unlink_entry(admission, entry);
		ll_admission_former_return(admission, entry, admit->again);
		insert_entry(admission, entry);
	}
	entry->asked_time_ns = entry->queued.has_time || entry->has_end ? entry->queued.duration_ns : 0;
	if (!rc && ll_queue_add(&admission->queue, &entry->queued))
		rc = ll_err_set(&why, -ENOMEM, "loadlined has no memory");
	if (rc) {
		ll_admission_refuse(admission, entry, rc, why.text);
		return true;
	}
	admission->must_arrange = true;
	ll_admission_wake(admission);
	return true;
}

/* Without a sensor there is no queue, although the configuration wants one. Right after the start of loadlined the
 * sensor connects: the other side then asks again. Returns whether it has refused. */
static bool refuse_without_sensor(struct ll_connection *connection)
{
	const struct ll_server *server = connection->server;
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	if (!server->is_system || !policy || !policy->cards.count || ll_machine_card_count(server))
		return false;
	if (ll_now_ns() - server->born_ns < SENSOR_NS)
		ll_connection_refuse(connection, -EBUSY, "the sensor has not reported the cards yet");
	else
		ll_connection_refuse(connection, -ENODEV,
				     "the sensor does not report the cards, so this machine has no queue");
	return true;
}

bool ll_admission_handle(struct ll_connection *connection, const union ll_message *message)
{
	struct ll_server *server = connection->server;
	const struct ll_department *department = &server->department;
	struct ll_err why = {0};
	/* Of an older version `run` asks itself, as a command; it may wait while loadlined is replaced. */
	bool is_monitors = connection->role == LL_ROLE_MONITOR && message->header.kind == LL_MESSAGE_ADMIT;
	if (connection->role != LL_ROLE_COMMAND && !is_monitors)
		return false;
	/* A directory that answers slowly refuses no job: the other side asks again. */
	if (message->header.kind == LL_MESSAGE_ADMIT && ll_department_policy(department) &&
	    !ll_identities_find(&department->identities, connection->uid, &why) && why.code == -EAGAIN) {
		ll_connection_refuse(connection, -EINPROGRESS, why.text);
		return true;
	}
	if (refuse_without_sensor(connection))
		return true;
	if (!ll_admission_is_possible(server->admission) || ll_admission_describe(server->admission)) {
		ll_connection_refuse(connection, -ENOENT, "this machine has no queue for its cards");
		return true;
	}
	switch (message->header.kind) {
	case LL_MESSAGE_ADMIT:
		return handle_admit(connection, &message->admit);
	case LL_MESSAGE_QUEUE:
		ll_list_queue(connection);
		return true;
	default:
		ll_admission_act(connection, &message->queue_act);
		return true;
	}
}

/* A job that has its place and ends before it registers, because it cannot start, gives it back. */
void ll_admission_disconnect(struct ll_server *server, const struct ll_connection *connection)
{
	struct ll_admission_entry *next;
	for (struct ll_admission_entry *entry = server->admission->entries; entry; entry = next) {
		next = entry->next;
		if (entry->connection != connection)
			continue;
		entry->connection = NULL;
		ll_message_text_set(entry->left_why, sizeof entry->left_why, "its command ended while it waited");
		remove_entry(server->admission, entry);
	}
}

/* ---- jobs of the books ---- */

int ll_admission_claim(const struct ll_server *server, struct ll_message_job *message, const int *page_fds,
		       char ret_tenant[LL_NAME_SIZE], struct ll_err *err)
{
	struct ll_job_facts *facts = &message->job;
	const struct ll_admission_entry *entry = find_token(server->admission, facts->token[0]);
	if (entry && entry->uuid_count && entry->uid == facts->uid && entry->register_until_ns && !page_fds) {
		if (entry->has_project != (message->project[0] != '\0'))
			return ll_err_set(err, -EACCES, "project: the job has not asked for its place with it");
		facts->limits = entry->limits;
		ll_message_text_set(ret_tenant, LL_NAME_SIZE, entry->tenant);
		return 0;
	}
	if (ll_admission_has_ended(server, facts->token[0]) && !ll_books_find_id(&server->books, facts->token[0]))
		return ll_err_set(err, -EACCES, "the job has ended, and its place was given back");
	bool is_taken = ll_takeover_is_due(server, facts, page_fds) && !ll_department_was_admitted(server, page_fds) &&
			!ll_books_find_id(&server->books, facts->token[0]);
	if (is_taken && ll_department_policy(&server->department))
		ll_takeover_log(&server->admission->told, facts, true);
	if (!ll_admission_is_possible(server->admission) || ll_department_was_admitted(server, page_fds) || is_taken ||
	    ll_books_find_id(&server->books, facts->token[0]))
		return ll_department_admit(server, message, page_fds, ret_tenant, err);
	if (page_fds)
		ll_takeover_log(&server->admission->told, facts, false);
	/* A new job may have asked for it, and be late, or its place may have been a former loadlined's. */
	ll_err_set(err, page_fds ? -EACCES : -ESTALE, "the job has no place on the cards");
	return ll_err_hint(err, "this machine has a queue: `loadline run` asks it");
}

uint64_t ll_admission_number(const struct ll_server *server, const struct ll_job_facts *facts)
{
	const struct ll_admission_entry *entry =
	    server->admission ? find_token(server->admission, facts->token[0]) : NULL;
	return entry && entry->uid == facts->uid ? entry->queued.number : 0;
}

bool ll_admission_has_ended(const struct ll_server *server, uint64_t id)
{
	const struct ll_admission *admission = server->admission;
	return admission && !find_token(admission, id) && ll_ended_was_killed(&admission->ended, id);
}

void ll_admission_register(struct ll_server *server, struct ll_job *job)
{
	struct ll_admission_entry *entry = find_token(server->admission, job->facts.token[0]);
	if (entry && entry->uid == job->facts.uid) {
		entry->job_number = job->number;
		ll_message_text_set(entry->name, sizeof entry->name, job->name); /* a stored state has it not */
		entry->register_until_ns = 0;
		entry->connection = NULL;
		if (!entry->has_run)
			ll_lending_note_start(server->admission, entry);
		entry->has_run = true;
	} else if (ll_department_policy(&server->department)) { /* there may be a queue later: the sensor reports */
		ll_admission_wake(server->admission);
	}
}

void ll_admission_end(struct ll_server *server, const struct ll_job *job)
{
	struct ll_admission_entry *entry =
	    server->admission ? find_token(server->admission, job->facts.token[0]) : NULL;
	if (entry && entry->job_number == job->number)
		remove_entry(server->admission, entry);
}

int ll_admission_check_card(const struct ll_server *server, const struct ll_job *job, const char *uuid,
			    struct ll_err *err)
{
	const struct ll_admission_entry *entry = find_token(server->admission, job->facts.token[0]);
	if (!entry || entry->job_number != job->number)
		return ll_department_check_card(server, job, uuid, err);
	for (uint32_t i = 0; i < entry->uuid_count; i++) {
		/* The queue keeps the limits; class high and promised memory within the guarantee are not its matter.
		 */
		if (strcmp(entry->uuids[i], uuid) == 0)
			return ll_department_check_card(server, job, uuid, err);
	}
	return ll_err_set(err, -EACCES, "the card is not of the job's place");
}

int ll_admission_check_claim(const struct ll_server *server, const struct ll_job *job,
			     const struct ll_message_claim *claim, struct ll_err *err)
{
	int rc = claim->uuid[0] ? ll_admission_check_card(server, job, claim->uuid, err) : 0;
	return !rc && claim->first_card[0] ? ll_admission_check_card(server, job, claim->first_card, err) : rc;
}

/* ---- what metrics tell of the queue ---- */

void ll_admission_refresh(const struct ll_server *server)
{
	if (ll_admission_is_possible(server->admission))
		(void)ll_admission_describe(server->admission); /* without memory there is no queue */
}

void ll_admission_count_waiting(const struct ll_server *server, const char *tenant, uint32_t *ret_count,
				uint64_t *ret_oldest_s)
{
	const struct ll_admission *admission = server->admission;
	uint64_t now_s = ll_wall_ns() / LL_NS_PER_S;
	*ret_count = 0;
	*ret_oldest_s = 0;
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (!ll_admission_is_waiting(entry) || strcmp(entry->tenant, tenant) != 0)
			continue;
		/* A clock that was set back makes no wait longer. */
		uint64_t wait_s = now_s > entry->came_s ? now_s - entry->came_s : 0;
		++*ret_count;
		*ret_oldest_s = wait_s > *ret_oldest_s ? wait_s : *ret_oldest_s;
	}
}

bool ll_admission_out_of_use(const struct ll_server *server, uint64_t *ret_indices)
{
	const struct ll_admission *admission = server->admission;
	const struct ll_queue_machine *machine = &admission->described.machine;
	uint64_t now_ns = ll_now_ns(), cards = 0;
	*ret_indices = 0;
	if (!admission->has_queue)
		return false;
	for (size_t i = 0; i < machine->interval_count; i++) {
		const struct ll_queue_interval *interval = &machine->intervals[i];
		if (interval->tenant == LL_QUEUE_NOBODY && interval->begin_ns <= now_ns && now_ns < interval->end_ns)
			cards |= UINT64_C(1) << interval->card;
	}
	*ret_indices = ll_admission_indices(&admission->described, cards);
	return true;
}
