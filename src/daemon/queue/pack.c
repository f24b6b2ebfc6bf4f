/* The state of the queue as a text in JSON, and back. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "daemon/machine/machine.h"
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

/* A member of a structure, and its name in the text. */
enum kind { NUMBER, HEX, TEXT, BIT };
struct field {
	const char *name;
	enum kind kind;
	size_t offset, size;
};

#define FIELD(kind, type, name, member)                                                                                \
	{                                                                                                              \
		name, kind, offsetof(struct type, member), sizeof((struct type *)NULL)->member                         \
	}

#define ENTRY(kind, name, member) FIELD(kind, ll_admission_entry, name, member)
static const struct field entry_fields[] = {
    ENTRY(NUMBER, "number", queued.number),
    ENTRY(HEX, "job", token),
    ENTRY(NUMBER, "uid", uid),
    ENTRY(TEXT, "tenant", tenant),
    ENTRY(TEXT, "command", command),
    ENTRY(NUMBER, "came_s", came_s),
    ENTRY(NUMBER, "begin_ns", begin_ns),
    ENTRY(NUMBER, "wait_until_ns", wait_until_ns),
    ENTRY(NUMBER, "duration_ns", queued.duration_ns),
    ENTRY(NUMBER, "after", after),
    ENTRY(NUMBER, "position", queued.position),
    ENTRY(NUMBER, "card_count", queued.card_count),
    ENTRY(NUMBER, "overtook", queued.overtook),
    ENTRY(NUMBER, "status", status),
    ENTRY(NUMBER, "stopped_ns", stop.since_ns),
    ENTRY(NUMBER, "killed_ns", stop.killed_ns),
    ENTRY(NUMBER, "signal", signal),
    ENTRY(NUMBER, "signal_before_s", signal_before_s),
    ENTRY(BIT, "has_memory", has_memory),
    ENTRY(BIT, "has_compute", has_compute),
    ENTRY(BIT, "has_count", has_count),
    ENTRY(BIT, "is_paused", is_paused),
    ENTRY(BIT, "has_end", has_end),
    ENTRY(BIT, "has_time", queued.has_time),
    ENTRY(BIT, "is_warned", is_warned),
    ENTRY(BIT, "is_ended", is_ended),
    ENTRY(BIT, "must_be_ok", must_be_ok),
    ENTRY(BIT, "tells_status", tells_status),
    ENTRY(BIT, "can_restart", can_restart),
    ENTRY(BIT, "is_requeued", loan.is_requeued),
    ENTRY(BIT, "has_status", has_status),
    ENTRY(BIT, "has_run", has_run),
    ENTRY(BIT, "is_signaled", is_signaled),
    ENTRY(BIT, "pause_is_operators", pause_is_operators),
    ENTRY(BIT, "has_project", has_project),
    ENTRY(BIT, "is_lent", queued.is_lent),
    ENTRY(BIT, "is_asleep", queued.is_asleep),
    ENTRY(BIT, "is_pooled", loan.is_pooled),
    ENTRY(NUMBER, "lend_state", loan.state),
    ENTRY(NUMBER, "lend_step", loan.step),
    ENTRY(NUMBER, "lend_since_ns", loan.since_ns),
    ENTRY(NUMBER, "own_class", loan.own_class),
    ENTRY(NUMBER, "recalls", loan.recalls),
    ENTRY(NUMBER, "all_recalls", loan.all_recalls),
    ENTRY(NUMBER, "slept_ns", loan.slept_ns),
    ENTRY(NUMBER, "owner", loan.owner),
    ENTRY(NUMBER, "lendable_since_ns", loan.told_ns),
    {.name = NULL},
};

#define LIMIT(member) FIELD(NUMBER, ll_limits, #member, member)
static const struct field limit_fields[] = {
    LIMIT(memory_bytes),   LIMIT(request_bytes),     LIMIT(max_kernel_ns), LIMIT(compute_permille),
    LIMIT(space_permille), LIMIT(weight_permille),   LIMIT(priority),      LIMIT(flags),
    LIMIT(sharing),        LIMIT(slowdown_permille), {.name = NULL},
};

#define ENDED(kind, member) FIELD(kind, ll_ended_job, #member, member)
static const struct field ended_fields[] = {
    ENDED(NUMBER, number),  ENDED(NUMBER, job_number), FIELD(HEX, ll_ended_job, "job", token),
    ENDED(NUMBER, ended_s), ENDED(NUMBER, uid),        ENDED(NUMBER, status),
    ENDED(BIT, has_status), ENDED(BIT, has_run),       ENDED(BIT, is_killed),
    {.name = NULL},
};

static const struct field drain_fields[] = {
    FIELD(NUMBER, ll_admission_drain, "card", index),
    FIELD(NUMBER, ll_admission_drain, "since_s", since_s),
    FIELD(TEXT, ll_admission_drain, "reason", reason),
    {.name = NULL},
};

static json_t *pack_fields(const struct field *fields, const void *from)
{
	json_t *object = json_object();
	for (const struct field *field = fields; field->name; field++) {
		const char *at = (const char *)from + field->offset;
		uint64_t number = field->size == 8   ? *(const uint64_t *)(const void *)at
				  : field->size == 4 ? *(const uint32_t *)(const void *)at
				  : field->size == 2 ? *(const uint16_t *)(const void *)at
						     : 0;
		json_object_set_new(object, field->name,
				    field->kind == NUMBER ? json_integer((json_int_t)number)
				    : field->kind == HEX  ? pack_hex(number)
				    : field->kind == TEXT ? json_string(at)
							  : json_boolean(*(const bool *)(const void *)at));
	}
	return object;
}

static json_t *pack_entries(json_t *list, const struct ll_admission_entry *entry)
{
	for (; entry; entry = entry->next) {
		json_t *object = pack_fields(entry_fields, entry), *uuids = json_array();
		for (uint32_t i = 0; i < entry->uuid_count; i++)
			json_array_append_new(uuids, json_string(entry->uuids[i]));
		json_object_set_new(object, "limits", pack_fields(limit_fields, &entry->limits));
		json_object_set_new(object, "uuids", uuids);
		json_array_append_new(list, object);
	}
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

char *ll_admission_pack(const struct ll_admission *admission)
{
	char boot[LL_BOOT_ID_SIZE];
	bool is_counted = admission->has_queue && admission->queue.charged_ns;
	ll_boot_id_read(boot);
	json_t *drains = json_array(), *ended = json_array();
	for (size_t i = 0; i < admission->drain_count; i++)
		json_array_append_new(drains, pack_fields(drain_fields, &admission->drains[i]));
	for (size_t i = 0; i < admission->ended.count; i++)
		json_array_append_new(ended, pack_fields(ended_fields, &admission->ended.jobs[i]));
	json_t *object =
	    json_pack("{s:i, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "version", VERSION, "boot", boot, "saved_s",
		      INT(ll_wall_ns() / LL_NS_PER_S), "counted_ns",
		      INT(is_counted ? admission->queue.charged_ns : admission->former_use_ns), "last_job",
		      INT(admission->books->last_job), "drains", drains, "use", pack_uses(admission), "health",
		      ll_health_pack(admission->server), "jobs",
		      pack_entries(pack_entries(json_array(), admission->entries), admission->former), "ended", ended);
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

static void unpack_fields(const struct field *fields, const json_t *object, void *to)
{
	for (const struct field *field = fields; field->name; field++) {
		char *at = (char *)to + field->offset;
		uint64_t number = field->kind == HEX ? hex_of(object, field->name) : number_of(object, field->name);
		if (field->kind == TEXT)
			copy_text(object, field->name, at, field->size);
		else if (field->kind == BIT)
			*(bool *)(void *)at = json_is_true(json_object_get(object, field->name));
		else if (field->size == 8)
			*(uint64_t *)(void *)at = number;
		else if (field->size == 4)
			*(uint32_t *)(void *)at = (uint32_t)number;
		else
			*(uint16_t *)(void *)at = (uint16_t)number;
	}
}

static struct ll_admission_entry *unpack_entry(const json_t *object)
{
	struct ll_admission_entry *entry = calloc(1, sizeof *entry);
	const json_t *uuids = json_object_get(object, "uuids");
	if (!entry)
		return NULL;
	unpack_fields(entry_fields, object, entry);
	unpack_fields(limit_fields, json_object_get(object, "limits"), &entry->limits);
	if (!ll_limits_are_valid(&entry->limits))
		entry->limits = (struct ll_limits){0};
	entry->slice = -1;
	entry->queued.uid = entry->uid;
	if (ll_admission_is_reserved(entry)) { /* it asks again */
		entry->loan.state = LL_LEND_RUNS;
		return entry;
	}
	for (; entry->uuid_count < json_array_size(uuids) && entry->uuid_count < LL_QUEUE_CARDS_OF_JOB;
	     entry->uuid_count++) {
		const char *uuid = json_string_value(json_array_get(uuids, entry->uuid_count));
		ll_message_text_set(entry->uuids[entry->uuid_count], LL_CARD_UUID_SIZE, uuid ? uuid : "");
	}
	bool is_good = entry->uuid_count && entry->loan.state <= LL_LEND_ASLEEP && entry->loan.step <= LL_LEND_KILL &&
		       entry->loan.own_class <= LL_LIMIT_CLASS_LOW;
	if (!is_good) { /* one that waits borrows nothing */
		entry->loan = (struct ll_loan){.recalls = entry->loan.recalls,
					       .since_ns = entry->loan.since_ns,
					       .is_requeued = entry->loan.is_requeued};
		entry->queued.is_lent = entry->queued.is_asleep = false;
	}
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
			if (!entry->begin_ns)
				entry->loan.told_ns = 0; /* of a clock that began anew */
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
		unpack_fields(drain_fields, object, &drains[i]);
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
	if (!boot[0])
		ll_warn("queue: the number of this boot cannot be read: jobs of the former loadlined count as ended");
	bool is_same_boot = its_boot && boot[0] && strcmp(boot, its_boot) == 0;
	struct ll_books *books = admission->books;
	uint64_t last_job = number_of(object, "last_job");
	books->last_job = last_job > books->last_job && last_job < INT64_MAX ? last_job : books->last_job;
	size_t i;
	const json_t *item;
	json_array_foreach(json_object_get(object, "ended"), i, item)
	{
		struct ll_ended_job job = {0};
		unpack_fields(ended_fields, item, &job);
		ll_ended_add(&admission->ended, &job);
	}
	unpack_entries(admission, json_object_get(object, "jobs"), is_same_boot);
	unpack_drains(admission, json_object_get(object, "drains"));
	ll_health_unpack(admission->server, json_object_get(object, "health"));
	unpack_uses(admission, json_object_get(object, "use"));
	find_use_time(admission, object, is_same_boot);
	json_decref(object);
	return 0;
}
