#include "daemon/machine/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "daemon/accounts/write.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/jobs/job_group.h"
#include "daemon/jobs/users.h"
#include "daemon/machine/health.h"
#include "daemon/machine/mismatch.h"
#include "daemon/machine/ungoverned.h"
#include "daemon/queue/admission.h"
#include "daemon/queue/state.h"

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

static void free_rows(struct rows *rows)
{
	free(rows->cards);
	free(rows->processes);
	*rows = (struct rows){0};
}

void ll_machine_fini(struct ll_server *server)
{
	if (!server->machine)
		return;
	free_rows(&server->machine->now);
	free_rows(&server->machine->next);
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

static void add_card(struct rows *rows, const struct ll_message_sense_card *card)
{
	if (make_room(&rows->cards, rows->card_count, &rows->card_room, sizeof *card, LL_MACHINE_CARDS_MAX))
		rows->cards[rows->card_count++] = *card;
}

static void add_process(struct rows *rows, const struct ll_message_sense_process *process)
{
	if (make_room(&rows->processes, rows->process_count, &rows->process_room, sizeof *process,
		      LL_MACHINE_PROCESSES_MAX))
		rows->processes[rows->process_count++] = *process;
}

static struct ll_machine_card card_of(struct ll_machine *machine, const struct ll_message_sense_card *row)
{
	const struct ll_machine_card *before = find_card(machine, row->uuid);
	struct ll_machine_card card = before ? *before : (struct ll_machine_card){0};
	card.index = row->index;
	card.slice = row->slice;
	memcpy(card.uuid, row->uuid, sizeof card.uuid);
	memcpy(card.bus_id, row->bus_id, sizeof card.bus_id);
	card.memory_bytes = row->memory_bytes;
	card.usable_bytes = row->usable_bytes;
	card.used_bytes = row->used_bytes;
	card.numa_node = row->numa_node;
	card.is_lost = row->flags & LL_SENSE_IS_LOST;
	card.has_slices = row->flags & LL_SENSE_HAS_SLICES;
	return card;
}

static bool is_same_list(const struct ll_machine *machine, const struct ll_machine_card *cards, size_t count)
{
	if (count != machine->now.card_count)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct ll_machine_card *before = &machine->cards[i];
		if (strcmp(before->uuid, cards[i].uuid) != 0 || before->is_lost != cards[i].is_lost ||
		    before->has_slices != cards[i].has_slices || before->memory_bytes != cards[i].memory_bytes)
			return false;
	}
	return true;
}

static void log_change(const struct ll_machine *machine)
{
	size_t lost = 0;
	for (size_t i = 0; i < machine->now.card_count; i++)
		lost += machine->cards[i].is_lost;
	ll_info("the sensor reports %zu cards and slices, %zu of them lost", machine->now.card_count, lost);
}

/* If the driver goes for a while, what was known of the cards goes too. */
static void take_round(struct ll_server *server, const struct ll_message_sense_end *end)
{
	struct ll_machine *machine = server->machine;
	size_t count = machine->next.card_count;
	struct ll_machine_card *cards = calloc(count + 1, sizeof *cards);
	if (!cards)
		return;
	for (size_t i = 0; i < count; i++)
		cards[i] = card_of(machine, &machine->next.cards[i]);
	bool is_same = is_same_list(machine, cards, count);
	struct rows old = machine->now;
	free(machine->cards);
	machine->cards = cards;
	machine->now = machine->next;
	machine->next = old;
	machine->next.card_count = machine->next.process_count = 0;
	memcpy(machine->reason, end->reason, sizeof machine->reason);
	if (!is_same || !machine->changes) {
		machine->changes++;
		log_change(machine);
		ll_admission_wake(server->admission);
	}
}

/* ---- to which job a process belongs ---- */

/* Whether the job's first process has not ended: its number may be another process's now. */
static bool is_alive(const struct ll_job *job)
{
	for (const struct ll_job_process *process = job->processes; process; process = process->next) {
		if (process->role == LL_PROCESS_FIRST)
			return !ll_process_has_ended(process->fd);
	}
	return false;
}

static const struct ll_job *job_of_pid(const struct ll_server *server, uint32_t pid)
{
	for (const struct ll_user *user = server->users; user; user = user->next) {
		if (user->pid == pid)
			return user->job;
	}
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		if ((job->facts.pid == pid && is_alive(job)) || ll_job_monitor_pid(job) == pid)
			return job;
	}
	return NULL;
}

static const struct ll_job *job_of_group(struct ll_server *server, uint32_t pid)
{
	int fd = ll_process_open((pid_t)pid);
	if (fd < 0)
		return NULL;
	const struct ll_job *job = ll_job_group_find(server, fd);
	close(fd);
	return job;
}

/* By its claim; else by its control group, which it cannot leave; else by a parent that belongs to a job. */
static const struct ll_job *job_of(struct ll_server *server, const struct ll_message_sense_process *process)
{
	const struct ll_job *job = job_of_pid(server, process->pid);
	if (!job)
		job = job_of_group(server, process->pid);
	for (int i = 0; !job && i < LL_SENSE_ANCESTORS && process->ancestors[i]; i++)
		job = job_of_pid(server, process->ancestors[i]);
	return job;
}

static void complete_processes(struct ll_server *server)
{
	struct rows *rows = &server->machine->now;
	for (size_t i = 0; i < rows->process_count; i++) {
		const struct ll_job *job = job_of(server, &rows->processes[i]);
		rows->processes[i].job_number = job ? job->number : 0;
		rows->processes[i].flags = 0;
	}
}

/* ---- the sensor's messages ---- */

bool ll_machine_accepts(const struct ll_server *server, uint32_t uid)
{
	return server->is_system && (uid == 0 || uid == geteuid());
}

static void take_health(struct ll_server *server, const struct ll_message_sense_health *health)
{
	struct ll_machine_card *card = find_card(server->machine, health->uuid);
	if (!card)
		return;
	card->last_xid = health->xid;
	card->xid_ns = ll_now_ns();
	card->xids++;
	ll_warn("card %u (%s): the driver reports Xid %llu", card->index, card->uuid, (unsigned long long)health->xid);
	ll_health_xid(server, card, health->xid);
}

static void take_conditions(struct ll_server *server, const struct ll_message_sense_conditions *conditions)
{
	const struct ll_machine_card *card = find_card(server->machine, conditions->uuid);
	if (card)
		ll_health_conditions(server, card, conditions);
}

/* A second sensor's first message begins its own round. */
bool ll_machine_handle(struct ll_connection *connection, const union ll_message *message)
{
	struct ll_server *server = connection->server;
	struct ll_machine *machine = server->machine;
	if (machine->sensor != connection)
		machine->next.card_count = machine->next.process_count = 0;
	machine->sensor = connection;
	machine->heard_ns = ll_now_ns();
	switch (message->header.kind) {
	case LL_MESSAGE_SENSE_CARD:
		add_card(&machine->next, &message->sense_card);
		return true;
	case LL_MESSAGE_SENSE_PROCESS:
		add_process(&machine->next, &message->sense_process);
		return true;
	case LL_MESSAGE_SENSE_HEALTH:
		take_health(server, &message->sense_health);
		return true;
	case LL_MESSAGE_SENSE_CONDITIONS:
		take_conditions(server, &message->sense_conditions);
		return true;
	case LL_MESSAGE_SENSE_END:
		take_round(server, &message->sense_end);
		ll_accounting_note_energy(server->accounting);
		complete_processes(server);
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

bool ll_machine_list(struct ll_connection *connection)
{
	connection->is_listing_machine = true;
	connection->machine_listing = (struct ll_machine_listing){0};
	return true;
}

static void complete_card(const struct ll_machine *machine, size_t place, struct ll_message_sense_card *row)
{
	const struct ll_machine_card *card = &machine->cards[place];
	row->xid = card->last_xid;
	row->xid_age_ns = card->xids ? ll_now_ns() - card->xid_ns : 0;
	row->xids = card->xids;
}

bool ll_machine_listing_next(const struct ll_server *server, struct ll_machine_listing *listing,
			     union ll_message *ret_message)
{
	const struct ll_machine *machine = server->machine;
	if (listing->cards < machine->now.card_count) {
		ll_message_init(ret_message, LL_MESSAGE_SENSE_CARD);
		struct ll_message_header header = ret_message->header;
		ret_message->sense_card = machine->now.cards[listing->cards];
		ret_message->header = header; /* the sensor's may be of another version's size */
		complete_card(machine, listing->cards++, &ret_message->sense_card);
		return true;
	}
	if (listing->processes < machine->now.process_count) {
		ll_message_init(ret_message, LL_MESSAGE_SENSE_PROCESS);
		struct ll_message_header header = ret_message->header;
		ret_message->sense_process = machine->now.processes[listing->processes++];
		ret_message->header = header;
		return true;
	}
	ll_message_init(ret_message, LL_MESSAGE_SENSE_DRAINED);
	if (ll_admission_drained(server, listing->drained, &ret_message->sense_drained)) {
		listing->drained++;
		return true;
	}
	ll_message_init(ret_message, LL_MESSAGE_SENSE_END);
	ret_message->sense_end.cards = (uint32_t)listing->cards;
	ret_message->sense_end.processes = (uint32_t)listing->processes;
	ret_message->sense_end.silent_ns = ll_machine_silent_ns(server);
	memcpy(ret_message->sense_end.reason, machine->reason, sizeof machine->reason);
	return false;
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
