/* The state of the queue as a text in JSON, and back. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/boot_id.h"
#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/machine/health.h"
#include "daemon/queue/state.h"

enum { VERSION = 1, HEX_SIZE = 17 };

#define INT(value) ((json_int_t)(value))

/* ---- to text ---- */

/* A token, or a mask of cards: a number of 64 bits is too large for many readers of JSON. */
static json_t *pack_hex(uint64_t number)
{
	char text[HEX_SIZE];
	snprintf(text, sizeof text, "%" PRIx64, number);
	return json_string(text);
}

static json_t *pack_limits(const struct ll_limits *limits)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "memory_bytes",
			 INT(limits->memory_bytes), "request_bytes", INT(limits->request_bytes), "max_kernel_ns",
			 INT(limits->max_kernel_ns), "compute_permille", INT(limits->compute_permille),
			 "space_permille", INT(limits->space_permille), "weight_permille", INT(limits->weight_permille),
			 "priority", INT(limits->priority), "flags", INT(limits->flags), "sharing",
			 INT(limits->sharing), "slowdown_permille", INT(limits->slowdown_permille));
}

static json_t *pack_uuids(const struct ll_admission_entry *entry)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < entry->uuid_count; i++)
		json_array_append_new(list, json_string(entry->uuids[i]));
	return list;
}

/* In the order of bits_of. */
static const char *const names_of_bits[] = {"has_memory",  "has_compute",        "has_count",  "is_paused",
					    "has_end",     "has_time",           "is_warned",  "is_ended",
					    "must_be_ok",  "tells_status",       "has_status", "has_run",
					    "is_signaled", "pause_is_operators", "has_project"};
enum { BITS = sizeof names_of_bits / sizeof *names_of_bits };

static void bits_of(struct ll_admission_entry *entry, bool *ret_bits[BITS])
{
	bool *const bits[BITS] = {
	    &entry->has_memory,  &entry->has_compute,        &entry->has_count,  &entry->is_paused,
	    &entry->has_end,     &entry->queued.has_time,    &entry->is_warned,  &entry->is_ended,
	    &entry->must_be_ok,  &entry->tells_status,       &entry->has_status, &entry->has_run,
	    &entry->is_signaled, &entry->pause_is_operators, &entry->has_project};
	memcpy(ret_bits, bits, sizeof bits);
}

static json_t *pack_entry(const struct ll_admission_entry *entry)
{
	struct ll_admission_entry copy = *entry;
	bool *bits[BITS];
	json_t *object = json_pack(
	    "{s:I, s:o, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
	    "number", INT(entry->queued.number), "job", pack_hex(entry->token), "uid", INT(entry->uid), "tenant",
	    entry->tenant, "command", entry->command, "came_s", INT(entry->came_s), "begin_ns", INT(entry->begin_ns),
	    "wait_until_ns", INT(entry->wait_until_ns), "duration_ns", INT(entry->queued.duration_ns), "after",
	    INT(entry->after), "position", INT(entry->queued.position), "card_count", INT(entry->queued.card_count),
	    "overtook", INT(entry->queued.overtook), "status", INT(entry->status), "stopped_ns",
	    INT(entry->stop.since_ns), "killed_ns", INT(entry->stop.killed_ns), "signal", INT(entry->signal),
	    "signal_before_s", INT(entry->signal_before_s), "limits", pack_limits(&entry->limits), "uuids",
	    pack_uuids(entry));
	bits_of(&copy, bits);
	for (int i = 0; i < BITS; i++)
		json_object_set_new(object, names_of_bits[i], json_boolean(*bits[i]));
	return object;
}

static json_t *pack_entries(const struct ll_admission *admission)
{
	json_t *list = json_array();
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next)
		json_array_append_new(list, pack_entry(entry));
	for (const struct ll_admission_entry *entry = admission->former; entry; entry = entry->next)
		json_array_append_new(list, pack_entry(entry));
	return list;
}

static json_t *pack_drains(const struct ll_admission *admission)
{
	json_t *list = json_array();
	for (size_t i = 0; i < admission->drain_count; i++)
		json_array_append_new(list, json_pack("{s:I, s:I, s:s}", "card", INT(admission->drains[i].index),
						      "since_s", INT(admission->drains[i].since_s), "reason",
						      admission->drains[i].reason));
	return list;
}

static json_t *pack_use(const char *tenant, uint32_t uid, double use_ns)
{
	return json_pack("{s:s, s:I, s:f}", "tenant", tenant, "uid", INT(uid), "use_ns", use_ns);
}

static json_t *pack_uses(const struct ll_admission *admission)
{
	json_t *list = json_array();
	const struct ll_queue *queue = &admission->queue;
	for (size_t i = 0; admission->has_queue && i < queue->user_count; i++)
		json_array_append_new(list, pack_use(admission->described.names[queue->users[i].tenant],
						     queue->users[i].uid, queue->users[i].use_ns));
	for (size_t i = 0; i < admission->former_use_count; i++) {
		const struct ll_admission_use *use = &admission->former_use[i];
		json_array_append_new(list, pack_use(use->tenant, use->uid, use->use_ns));
	}
	return list;
}

static json_t *pack_ended(const struct ll_ended *ended)
{
	json_t *list = json_array();
	for (size_t i = 0; i < ended->count; i++) {
		const struct ll_ended_job *job = &ended->jobs[i];
		json_array_append_new(
		    list, json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:b, s:b, s:b}", "number", INT(job->number),
				    "job_number", INT(job->job_number), "job", pack_hex(job->token), "ended_s",
				    INT(job->ended_s), "uid", INT(job->uid), "status", INT(job->status), "has_status",
				    job->has_status, "has_run", job->has_run, "is_killed", job->is_killed));
	}
	return list;
}

char *ll_admission_pack(const struct ll_admission *admission)
{
	char boot[LL_BOOT_ID_SIZE];
	bool is_counted = admission->has_queue && admission->queue.charged_ns;
	ll_boot_id_read(boot);
	json_t *object = json_pack("{s:i, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "version", VERSION, "boot",
				   boot, "saved_s", INT(ll_wall_ns() / LL_NS_PER_S), "counted_ns",
				   INT(is_counted ? admission->queue.charged_ns : admission->former_use_ns), "last_job",
				   INT(admission->server->books.last_job), "drains", pack_drains(admission), "use",
				   pack_uses(admission), "health", ll_health_pack(admission->server), "jobs",
				   pack_entries(admission), "ended", pack_ended(&admission->ended));
	char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
	json_decref(object);
	return text;
}

/* ---- from text ---- */

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static uint64_t hex_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? strtoull(text, NULL, 16) : 0;
}

static void copy_text(const json_t *object, const char *key, char *ret_text, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));
	ll_message_text_set(ret_text, size, text ? text : "");
}

static void unpack_limits(const json_t *object, struct ll_limits *limits)
{
	*limits = (struct ll_limits){
	    .memory_bytes = number_of(object, "memory_bytes"),
	    .request_bytes = number_of(object, "request_bytes"),
	    .max_kernel_ns = number_of(object, "max_kernel_ns"),
	    .compute_permille = (uint32_t)number_of(object, "compute_permille"),
	    .space_permille = (uint32_t)number_of(object, "space_permille"),
	    .weight_permille = (uint32_t)number_of(object, "weight_permille"),
	    .priority = (uint32_t)number_of(object, "priority"),
	    .flags = (uint32_t)number_of(object, "flags"),
	    .sharing = (uint16_t)number_of(object, "sharing"),
	    .slowdown_permille = (uint16_t)number_of(object, "slowdown_permille"),
	};
	if (!ll_limits_are_valid(limits))
		*limits = (struct ll_limits){0};
}

static struct ll_admission_entry *unpack_entry(const json_t *object)
{
	struct ll_admission_entry *entry = calloc(1, sizeof *entry);
	bool *bits[BITS];
	const json_t *uuids = json_object_get(object, "uuids");
	if (!entry)
		return NULL;
	entry->slice = -1;
	entry->queued.number = number_of(object, "number");
	entry->token = hex_of(object, "job");
	entry->uid = entry->queued.uid = (uint32_t)number_of(object, "uid");
	copy_text(object, "tenant", entry->tenant, sizeof entry->tenant);
	copy_text(object, "command", entry->command, sizeof entry->command);
	entry->came_s = number_of(object, "came_s");
	entry->begin_ns = number_of(object, "begin_ns");
	entry->wait_until_ns = number_of(object, "wait_until_ns");
	entry->queued.duration_ns = number_of(object, "duration_ns");
	entry->after = number_of(object, "after");
	entry->queued.position = (uint32_t)number_of(object, "position");
	entry->queued.card_count = (uint32_t)number_of(object, "card_count");
	entry->queued.overtook = number_of(object, "overtook");
	entry->status = (uint32_t)number_of(object, "status");
	entry->stop.since_ns = number_of(object, "stopped_ns");
	entry->stop.killed_ns = number_of(object, "killed_ns");
	entry->signal = (uint16_t)number_of(object, "signal");
	entry->signal_before_s = (uint16_t)number_of(object, "signal_before_s");
	unpack_limits(json_object_get(object, "limits"), &entry->limits);
	for (; entry->uuid_count < json_array_size(uuids) && entry->uuid_count < LL_QUEUE_CARDS_OF_JOB;
	     entry->uuid_count++) {
		const char *uuid = json_string_value(json_array_get(uuids, entry->uuid_count));
		ll_message_text_set(entry->uuids[entry->uuid_count], LL_CARD_UUID_SIZE, uuid ? uuid : "");
	}
	bits_of(entry, bits);
	for (int i = 0; i < BITS; i++)
		*bits[i] = json_is_true(json_object_get(object, names_of_bits[i]));
	return entry;
}

static void append_entry(struct ll_admission_entry **list, struct ll_admission_entry *entry)
{
	while (*list && (*list)->queued.number < entry->queued.number)
		list = &(*list)->next;
	entry->next = *list;
	*list = entry;
}

/* Jobs of another boot have ended, and nobody saw how. */
static void unpack_entries(struct ll_admission *admission, const json_t *list, bool is_same_boot)
{
	size_t i;
	const json_t *object;
	json_array_foreach(list, i, object)
	{
		struct ll_admission_entry *entry = unpack_entry(object);
		if (!entry)
			return;
		if (!entry->token || !entry->queued.number) {
			free(entry);
		} else if (!is_same_boot) {
			entry->told_ns = 1;
			ll_admission_note_end(admission, entry);
			free(entry);
		} else if (entry->uuid_count) {
			entry->register_until_ns = ll_now_ns() + LL_ADMISSION_RETURN_NS;
			append_entry(&admission->entries, entry);
		} else {
			append_entry(&admission->former, entry);
		}
	}
}

static void unpack_drains(struct ll_admission *admission, const json_t *list)
{
	size_t i, count = json_array_size(list);
	const json_t *object;
	struct ll_admission_drain *drains = count ? calloc(count, sizeof *drains) : NULL;
	if (!drains)
		return;
	json_array_foreach(list, i, object)
	{
		drains[i].index = (unsigned)number_of(object, "card");
		drains[i].since_s = number_of(object, "since_s");
		copy_text(object, "reason", drains[i].reason, sizeof drains[i].reason);
	}
	free(admission->drains);
	admission->drains = drains;
	admission->drain_count = count;
}

static void unpack_uses(struct ll_admission *admission, const json_t *list)
{
	size_t i, count = json_array_size(list);
	const json_t *object;
	struct ll_admission_use *uses = count ? calloc(count, sizeof *uses) : NULL;
	if (!uses)
		return;
	json_array_foreach(list, i, object)
	{
		double use_ns = json_number_value(json_object_get(object, "use_ns"));
		uses[i].uid = (uint32_t)number_of(object, "uid");
		uses[i].use_ns = use_ns > 0 ? use_ns : 0;
		copy_text(object, "tenant", uses[i].tenant, sizeof uses[i].tenant);
	}
	free(admission->former_use);
	admission->former_use = uses;
	admission->former_use_count = count;
}

static void unpack_ended(struct ll_admission *admission, const json_t *list)
{
	size_t i;
	const json_t *object;
	json_array_foreach(list, i, object)
	{
		ll_ended_add(&admission->ended, &(struct ll_ended_job){
						    .number = number_of(object, "number"),
						    .job_number = number_of(object, "job_number"),
						    .token = hex_of(object, "job"),
						    .ended_s = number_of(object, "ended_s"),
						    .uid = (uint32_t)number_of(object, "uid"),
						    .status = (uint32_t)number_of(object, "status"),
						    .has_status = json_is_true(json_object_get(object, "has_status")),
						    .has_run = json_is_true(json_object_get(object, "has_run")),
						    .is_killed = json_is_true(json_object_get(object, "is_killed")),
						});
	}
}

/* Use halves also while nobody counts. On another boot the clock of the former loadlined means nothing: the time of day
 * tells how long ago it was. */
static void find_use_time(struct ll_admission *admission, const json_t *object, bool is_same_boot)
{
	uint64_t now_ns = ll_now_ns(), wall_s = ll_wall_ns() / LL_NS_PER_S;
	uint64_t counted_ns = number_of(object, "counted_ns"), saved_s = number_of(object, "saved_s");
	admission->former_use_ns = is_same_boot && counted_ns < now_ns ? counted_ns : now_ns;
	admission->former_use_age_s = is_same_boot || saved_s > wall_s ? 0 : wall_s - saved_s;
}

int ll_admission_unpack(struct ll_admission *admission, const char *text)
{
	char boot[LL_BOOT_ID_SIZE];
	json_error_t fault;
	json_t *object = json_loads(text, 0, &fault);
	if (!json_is_object(object) || number_of(object, "version") != VERSION) {
		json_decref(object);
		return -EBADMSG;
	}
	const char *its_boot = json_string_value(json_object_get(object, "boot"));
	ll_boot_id_read(boot);
	bool is_same_boot = its_boot && boot[0] && strcmp(boot, its_boot) == 0;
	struct ll_books *books = &admission->server->books;
	uint64_t last_job = number_of(object, "last_job");
	books->last_job = last_job > books->last_job && last_job < INT64_MAX ? last_job : books->last_job;
	unpack_ended(admission, json_object_get(object, "ended"));
	unpack_entries(admission, json_object_get(object, "jobs"), is_same_boot);
	unpack_drains(admission, json_object_get(object, "drains"));
	ll_health_unpack(admission->server, json_object_get(object, "health"));
	unpack_uses(admission, json_object_get(object, "use"));
	find_use_time(admission, object, is_same_boot);
	json_decref(object);
	return 0;
}
