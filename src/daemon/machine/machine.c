#include "daemon/machine/machine.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "config/keys.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "daemon/queue/queue.h"
#include "protocol/client.h"

struct rows {
	struct ll_message_sense_card *cards;
	struct ll_message_sense_process *processes;
	size_t card_count, process_count, card_room, process_room;
};

struct ll_machine {
	struct rows now, next;              /* next: of the round that arrives */
	struct ll_machine_card *cards;      /* as many as now.card_count */
	const struct ll_connection *sensor; /* whose round arrives; NULL: none is connected */
	uint64_t changes, heard_ns;
	char reason[LL_REASON_SIZE];
};

int ll_machine_init(struct ll_server *server)
{
	server->machine = calloc(1, sizeof *server->machine);
	return server->machine ? 0 : -ENOMEM;
}

void ll_machine_fini(struct ll_server *server)
{
	if (!server->machine)
		return;
	struct rows *const rows[] = {&server->machine->now, &server->machine->next};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		free(rows[i]->cards);
		free(rows[i]->processes);
	}
	free(server->machine->cards);
	free(server->machine);
	server->machine = NULL;
}

/* ---- what others read ---- */

size_t ll_machine_card_count(const struct ll_server *server)
{
	return server->machine->now.card_count;
}

const struct ll_machine_card *ll_machine_card(const struct ll_server *server, size_t place)
{
	return place < server->machine->now.card_count ? &server->machine->cards[place] : NULL;
}

static struct ll_machine_card *find_card(struct ll_machine *machine, const char *uuid)
{
	for (size_t i = 0; i < machine->now.card_count; i++) {
		if (strcmp(machine->cards[i].uuid, uuid) == 0)
			return &machine->cards[i];
	}
	return NULL;
}

const struct ll_machine_card *ll_machine_card_find(const struct ll_server *server, const char *uuid)
{
	return find_card(server->machine, uuid);
}

uint64_t ll_machine_card_changes(const struct ll_server *server)
{
	return server->machine->changes;
}

uint64_t ll_machine_silent_ns(const struct ll_server *server)
{
	uint64_t heard_ns = server->machine->heard_ns, now_ns = ll_now_ns();
	return !heard_ns ? UINT64_MAX : now_ns > heard_ns ? now_ns - heard_ns : 0;
}

const struct ll_message_sense_process *ll_machine_processes(const struct ll_server *server, size_t *ret_count)
{
	*ret_count = server->machine->now.process_count;
	return server->machine->now.processes;
}

const struct ll_message_sense_card *ll_machine_rows(const struct ll_server *server, size_t *ret_count)
{
	*ret_count = server->machine->now.card_count;
	return server->machine->now.cards;
}

/* ---- a round ---- */

/* Makes room for one more row. Returns false if there are too many, or there is no memory. */
static bool make_room(void *array, size_t count, size_t *room, size_t size, size_t most)
{
	void *rows;
	if (count < *room)
		return true;
	if (count >= most)
		return false;
	memcpy(&rows, array, sizeof rows);
	size_t wanted = *room ? 2 * *room : 16;
	void *larger = reallocarray(rows, wanted, size);
	if (!larger)
		return false;
	memcpy(array, &larger, sizeof larger);
	*room = wanted;
	return true;
}

/* If the driver goes for a while, what was known of the cards goes too. */
static void take_round(struct ll_server *server, const struct ll_message_sense_end *end)
{
	struct ll_machine *machine = server->machine;
	size_t count = machine->next.card_count, lost = 0;
	struct ll_machine_card *cards = calloc(count + 1, sizeof *cards);
	if (!cards)
		return;
	bool is_same = count == machine->now.card_count;
	for (size_t i = 0; i < count; i++) {
		const struct ll_message_sense_card *row = &machine->next.cards[i];
		const struct ll_machine_card *known = find_card(machine, row->uuid);
		const struct ll_machine_card *before = is_same ? &machine->cards[i] : NULL;
		struct ll_machine_card *card = &cards[i];
		if (known)
			*card = *known;
		card->index = row->index;
		card->slice = row->slice;
		memcpy(card->uuid, row->uuid, sizeof card->uuid);
		memcpy(card->bus_id, row->bus_id, sizeof card->bus_id);
		card->memory_bytes = row->memory_bytes;
		card->usable_bytes = row->usable_bytes;
		card->used_bytes = row->used_bytes;
		card->numa_node = row->numa_node;
		card->is_lost = row->flags & LL_SENSE_IS_LOST;
		card->has_slices = row->flags & LL_SENSE_HAS_SLICES;
		lost += card->is_lost;
		is_same = before && strcmp(before->uuid, card->uuid) == 0 && before->is_lost == card->is_lost &&
			  before->has_slices == card->has_slices && before->memory_bytes == card->memory_bytes;
	}
	struct rows old = machine->now;
	free(machine->cards);
	machine->cards = cards;
	machine->now = machine->next;
	machine->next = old;
	machine->next.card_count = machine->next.process_count = 0;
	memcpy(machine->reason, end->reason, sizeof machine->reason);
	if (!is_same || !machine->changes) {
		machine->changes++;
		ll_info("the sensor reports %zu cards and slices, %zu of them lost", count, lost);
		ll_admission_wake(server->admission);
	}
}

/* ---- to which job a process belongs ---- */

static const struct ll_job *job_of_pid(const struct ll_server *server, uint32_t pid)
{
	for (const struct ll_user *user = server->users; user; user = user->next) {
		if (user->pid == pid)
			return user->job;
	}
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		/* The number of a first process that has ended may be another process's now. */
		if ((job->facts.pid == pid && !ll_process_has_ended(job->process_fd)) || ll_job_monitor_pid(job) == pid)
			return job;
	}
	return NULL;
}

/* By its claim; else by its control group, which it cannot leave; else by a parent that belongs to a job. */
static const struct ll_job *job_of(struct ll_server *server, const struct ll_message_sense_process *process)
{
	const struct ll_job *job = job_of_pid(server, process->pid);
	int fd = job ? -1 : ll_process_open((pid_t)process->pid);
	if (fd >= 0) {
		job = ll_job_group_find(server, fd);
		close(fd);
	}
	for (int i = 0; !job && i < LL_SENSE_ANCESTORS && process->ancestors[i]; i++)
		job = job_of_pid(server, process->ancestors[i]);
	return job;
}

/* ---- faults of cards ---- */

#define WARN_AGAIN_NS (3600 * LL_NS_PER_S)

struct ll_health_card {
	struct ll_health_card *next;
	char uuid[LL_CARD_UUID_SIZE];
	bool is_known;                         /* a first report has come */
	uint64_t values[LL_SENSE_CONDITIONS];  /* that have been told */
	uint64_t told_ns[LL_SENSE_CONDITIONS]; /* when; 0: never */
};

static const struct ll_config_health *policy_of(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	return policy && policy->health.from ? &policy->health : NULL;
}

static void drain_card(struct ll_server *server, const struct ll_machine_card *card, const char *reason)
{
	struct ll_event_about about = {.card = card->uuid};
	int rc = ll_admission_drain_card(server, card->index, reason);
	if (rc == 0)
		ll_events_tell(server, LL_EVENT_DRAINED, &about, "card %u (%s) gets no more jobs: %s", card->index,
			       card->uuid, reason);
	else if (rc > 0)
		ll_warn("card %u (%s) is drained already: %s", card->index, card->uuid, reason);
	else
		ll_error("card %u (%s) cannot be drained: %s: %s", card->index, card->uuid, reason, strerror(-rc));
}

static bool has_word(const struct ll_config_words *words, int word)
{
	for (size_t i = 0; i < words->count; i++) {
		if (words->items[i] == word)
			return true;
	}
	return false;
}

static struct ll_health_card *find_health(struct ll_server *server, const char *uuid)
{
	struct ll_health_card *card = server->health;
	while (card && strcmp(card->uuid, uuid) != 0)
		card = card->next;
	if (card)
		return card;
	card = calloc(1, sizeof *card);
	if (!card)
		return NULL;
	memcpy(card->uuid, uuid, sizeof card->uuid);
	card->next = server->health;
	server->health = card;
	return card;
}

static void note_value(struct ll_server *server, struct ll_health_card *seen, int condition, uint64_t value)
{
	if (seen->values[condition] == value)
		return;
	seen->values[condition] = value;
	ll_admission_keep_change(server->admission);
}

/* A value below the one that was told is a repair, or a reset of the card. */
static void take_condition(struct ll_server *server, const struct ll_machine_card *card, struct ll_health_card *seen,
			   int condition, uint64_t value)
{
	const struct ll_config_health *policy = policy_of(server);
	uint64_t now_ns = ll_now_ns(), told = seen->values[condition], told_ns = seen->told_ns[condition];
	if (value < told || (condition == LL_SENSE_NVLINK_ERRORS && !seen->is_known))
		note_value(server, seen, condition, value);
	if (!policy || value <= seen->values[condition])
		return;
	if (has_word(&policy->drain, condition)) {
		drain_card(server, card, ll_config_conditions[condition]);
	} else if (has_word(&policy->warn, condition)) {
		if (told_ns && now_ns - told_ns < WARN_AGAIN_NS && condition == LL_SENSE_NVLINK_ERRORS)
			return;
		ll_events_tell(server, LL_EVENT_UNHEALTHY, &(struct ll_event_about){.card = card->uuid},
			       "card %u (%s) reports %s (%llu)", card->index, card->uuid,
			       ll_config_conditions[condition], (unsigned long long)(value - seen->values[condition]));
	} else {
		return;
	}
	note_value(server, seen, condition, value);
	seen->told_ns[condition] = now_ns;
}

/* ---- what of their health outlives loadlined ---- */

json_t *ll_health_pack(const struct ll_server *server)
{
	json_t *list = json_array();
	for (const struct ll_health_card *card = server->health; card; card = card->next) {
		json_t *values = json_object();
		for (int i = 0; i < LL_SENSE_CONDITIONS; i++)
			json_object_set_new(values, ll_config_conditions[i], json_integer((json_int_t)card->values[i]));
		json_array_append_new(list, json_pack("{s:s, s:o}", "uuid", card->uuid, "values", values));
	}
	return list;
}

void ll_health_unpack(struct ll_server *server, const json_t *list)
{
	size_t i;
	const json_t *object;
	json_array_foreach(list, i, object)
	{
		char uuid[LL_CARD_UUID_SIZE];
		const char *text = json_string_value(json_object_get(object, "uuid"));
		snprintf(uuid, sizeof uuid, "%s", text ? text : "");
		struct ll_health_card *card = uuid[0] ? find_health(server, uuid) : NULL;
		const json_t *values = json_object_get(object, "values");
		for (int condition = 0; card && condition < LL_SENSE_CONDITIONS; condition++)
			card->values[condition] =
			    (uint64_t)json_integer_value(json_object_get(values, ll_config_conditions[condition]));
		if (card)
			card->is_known = true;
	}
}

void ll_health_fini(struct ll_server *server)
{
	while (server->health) {
		struct ll_health_card *card = server->health;
		server->health = card->next;
		free(card);
	}
}

/* ---- the sensor's messages ---- */

bool ll_machine_accepts(const struct ll_server *server, uint32_t uid)
{
	return server->is_system && (uid == 0 || uid == geteuid());
}

bool ll_machine_has_other(const struct ll_connection *connection)
{
	const struct ll_server *server = connection->server;
	return server->machine->sensor && server->machine->sensor != connection &&
	       ll_machine_silent_ns(server) < LL_SENSED_FRESH_NS;
}

static void take_xid(struct ll_server *server, struct ll_machine_card *card, uint64_t xid)
{
	const struct ll_config_health *policy = policy_of(server);
	char reason[LL_NAME_SIZE];
	bool is_to_drain = false;
	card->last_xid = xid;
	card->xid_ns = ll_now_ns();
	card->xids++;
	ll_warn("card %u (%s): the driver reports Xid %llu", card->index, card->uuid, (unsigned long long)xid);
	snprintf(reason, sizeof reason, "Xid %llu", (unsigned long long)xid);
	for (size_t i = 0; policy && i < policy->drain_xid.count; i++)
		is_to_drain |= policy->drain_xid.items[i] == xid;
	if (is_to_drain)
		drain_card(server, card, reason);
}

/* The first message of the next sensor begins its own round. */
bool ll_machine_handle(struct ll_connection *connection, const union ll_message *message)
{
	struct ll_server *server = connection->server;
	struct ll_machine *machine = server->machine;
	struct rows *next = &machine->next;
	struct ll_machine_card *card;
	struct ll_health_card *seen;
	if (ll_machine_has_other(connection))
		return false;
	if (machine->sensor != connection)
		next->card_count = next->process_count = 0;
	machine->sensor = connection;
	/* Before the first report is whole there are no cards to tell. */
	if (machine->heard_ns || message->header.kind == LL_MESSAGE_SENSE_END)
		machine->heard_ns = ll_now_ns();
	switch (message->header.kind) {
	case LL_MESSAGE_SENSE_CARD:
		if (make_room(&next->cards, next->card_count, &next->card_room, sizeof *next->cards,
			      LL_MACHINE_CARDS_MAX))
			next->cards[next->card_count++] = message->sense_card;
		return true;
	case LL_MESSAGE_SENSE_PROCESS:
		if (make_room(&next->processes, next->process_count, &next->process_room, sizeof *next->processes,
			      LL_MACHINE_PROCESSES_MAX))
			next->processes[next->process_count++] = message->sense_process;
		return true;
	case LL_MESSAGE_SENSE_HEALTH:
		card = find_card(machine, message->sense_health.uuid);
		if (card)
			take_xid(server, card, message->sense_health.xid);
		return true;
	case LL_MESSAGE_SENSE_CONDITIONS:
		card = find_card(machine, message->sense_conditions.uuid);
		seen = card ? find_health(server, card->uuid) : NULL;
		for (int i = 0; seen && i < LL_SENSE_CONDITIONS; i++) {
			if (message->sense_conditions.values[i] != UINT64_MAX)
				take_condition(server, card, seen, i, message->sense_conditions.values[i]);
		}
		if (seen)
			seen->is_known = true;
		return true;
	case LL_MESSAGE_SENSE_END:
		take_round(server, &message->sense_end);
		ll_accounting_note_energy(server->accounting);
		for (size_t i = 0; i < machine->now.process_count; i++) {
			const struct ll_job *job = job_of(server, &machine->now.processes[i]);
			machine->now.processes[i].job_number = job ? job->number : 0;
			machine->now.processes[i].flags = 0;
		}
		ll_mismatch_look(server);
		ll_ungoverned_look(server, machine->now.processes, machine->now.process_count);
		return true;
	default:
		return false;
	}
}

void ll_machine_disconnect(struct ll_server *server, const struct ll_connection *connection)
{
	if (server->machine && server->machine->sensor == connection)
		server->machine->sensor = NULL;
}

/* ---- the reply to SENSED ---- */

/* The process that watches jobs as a hold is the load's process, or started it. A user can say so of own processes
 * alone. */
static bool is_synthetic(const struct ll_server *server, const struct ll_message_sense_process *row)
{
	for (const struct ll_connection *at = server->connections; at; at = at->next) {
		struct ucred peer;
		socklen_t length = sizeof peer;
		if (!at->is_watching || at->uid != row->uid ||
		    getsockopt(at->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.pid <= 0)
			continue;
		bool is_its = row->pid == (uint32_t)peer.pid;
		for (size_t i = 0; i < LL_SENSE_ANCESTORS && row->ancestors[i]; i++)
			is_its |= row->ancestors[i] == (uint32_t)peer.pid;
		if (is_its)
			return true;
	}
	return false;
}

void ll_list_machine(struct ll_connection *connection)
{
	const struct ll_server *server = connection->server;
	const struct ll_machine *machine = server->machine;
	struct ll_message_header header;
	union ll_message row;
	for (size_t i = 0; i < machine->now.card_count; i++) {
		ll_message_init(&row, LL_MESSAGE_SENSE_CARD);
		header = row.header;
		row.sense_card = machine->now.cards[i];
		row.header = header; /* the sensor's may be of another version's size */
		const struct ll_machine_card *card = &machine->cards[i];
		row.sense_card.xid = card->last_xid;
		row.sense_card.xid_age_ns = card->xids ? ll_now_ns() - card->xid_ns : 0;
		row.sense_card.xids = card->xids;
		for (size_t k = 0; k < machine->now.process_count; k++) {
			const struct ll_message_sense_process *process = &machine->now.processes[k];
			if (strcmp(process->uuid, row.sense_card.uuid) == 0 && is_synthetic(server, process))
				row.sense_card.flags |= LL_SENSE_HAS_SYNTHETIC;
		}
		ll_connection_row(connection, &row);
	}
	for (size_t i = 0; i < machine->now.process_count; i++) {
		ll_message_init(&row, LL_MESSAGE_SENSE_PROCESS);
		header = row.header;
		row.sense_process = machine->now.processes[i];
		row.header = header;
		ll_connection_row(connection, &row);
	}
	ll_message_init(&row, LL_MESSAGE_SENSE_DRAINED);
	for (size_t i = 0; ll_admission_drained(server, i, &row.sense_drained); i++) {
		ll_connection_row(connection, &row);
		ll_message_init(&row, LL_MESSAGE_SENSE_DRAINED);
	}
	ll_message_init(&row, LL_MESSAGE_SENSE_END);
	row.sense_end.cards = (uint32_t)machine->now.card_count;
	row.sense_end.processes = (uint32_t)machine->now.process_count;
	row.sense_end.silent_ns = ll_machine_silent_ns(server);
	memcpy(row.sense_end.reason, machine->reason, sizeof machine->reason);
	ll_connection_row(connection, &row);
}

void ll_machine_add_label(const struct ll_server *server, const char *uuid, char *text, size_t size)
{
	const struct ll_machine_card *card = ll_machine_card_find(server, uuid);
	size_t used = strlen(text);
	char label[LL_CARD_UUID_SIZE + 1];
	if (card && card->slice != LL_MACHINE_NO_SLICE)
		snprintf(label, sizeof label, "%u:%d", card->index, card->slice);
	else if (card)
		snprintf(label, sizeof label, "%u", card->index);
	else
		snprintf(label, sizeof label, "%s", uuid);
	if (used + strlen(label) + 1 < size)
		snprintf(text + used, size - used, "%s%s", used ? "," : "", label);
}
