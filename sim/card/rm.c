#include "card/rm.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "card/defaults.h"
#include "card/namespace.h"
#include "card/trace.h"
#include "card/turn.h"

/* A client's handle, and those of objects whose maker leaves the choice to the driver. */
#define CLIENT_HANDLE UINT32_C(0xc1d00000)
#define OTHER_HANDLE UINT32_C(0xcaf00000)
#define MOST_MEMORY_BYTES (UINT64_C(64) << 20)

/* ---- files ---- */

uint32_t sim_rm_find_file(const struct sim_world *w, uint64_t device, uint64_t inode)
{
	for (uint32_t i = 0; i < SIM_RM_FILES; i++) {
		const struct sim_rm_file *file = &w->rm_files[i];
		if (file->is_used && file->inode == inode && file->device == device)
			return i;
	}
	return SIM_NONE;
}

uint32_t sim_rm_add_file(struct sim_world *w, uint32_t proc, uint64_t device, uint64_t inode)
{
	uint32_t index = 0;
	while (index < SIM_RM_FILES && w->rm_files[index].is_used)
		index++;
	if (index == SIM_RM_FILES)
		return SIM_NONE;
	*SIM_EDIT(w, &w->rm_files[index]) =
	    (struct sim_rm_file){.is_used = 1, .proc = proc, .device = device, .inode = inode, .first = SIM_NONE};
	return index;
}

/* ---- objects ---- */

static uint32_t find_object(const struct sim_world *w, uint32_t file, uint32_t client, uint32_t handle)
{
	for (uint32_t i = w->rm_files[file].first; i != SIM_NONE; i = w->rm_objects[i].next) {
		if (w->rm_objects[i].client == client && w->rm_objects[i].handle == handle)
			return i;
	}
	return SIM_NONE;
}

static bool is_channel(const struct sim_rm_object *object)
{
	return (object->class & 0xff) == LL_RM_CLASS_CHANNEL_SUFFIX;
}

/* Returns the context that a group governs. SIM_NONE: none, or it has ended. */
static uint32_t governed_context(const struct sim_world *w, const struct sim_rm_object *group)
{
	if (group->context == SIM_NONE)
		return SIM_NONE;
	const struct sim_context *context = &w->contexts[group->context];
	return context->is_used && context->generation == group->generation ? group->context : SIM_NONE;
}

/* Whether a compute group of the file governs the context. */
static bool is_governed(const struct sim_world *w, uint32_t file, uint32_t context)
{
	for (uint32_t i = w->rm_files[file].first; i != SIM_NONE; i = w->rm_objects[i].next) {
		const struct sim_rm_object *object = &w->rm_objects[i];
		if (object->class == LL_RM_CLASS_CHANNEL_GROUP && governed_context(w, object) == context)
			return true;
	}
	return false;
}

/* Returns the channels of a group that are off, one bit for each. */
static uint32_t off_channels(const struct sim_world *w, uint32_t file, const struct sim_rm_object *group)
{
	uint32_t channels = 0;
	for (uint32_t i = w->rm_files[file].first; i != SIM_NONE; i = w->rm_objects[i].next) {
		const struct sim_rm_object *object = &w->rm_objects[i];
		if (is_channel(object) && object->client == group->client && object->parent == group->handle &&
		    object->off_count)
			channels |= UINT32_C(1) << object->number % 32;
	}
	return channels;
}

static void put_group_off(struct sim_world *w, uint32_t file, const struct sim_rm_object *group)
{
	uint32_t context = governed_context(w, group);
	if (context != SIM_NONE)
		sim_turn_put_off(w, context, off_channels(w, file, group));
}

/* ---- making ---- */

/* Returns the object's parameters, if there are as many bytes of them as that. A size of 0 is that of the class. */
static void *params_of(const struct ll_rm_alloc *alloc, size_t size)
{
	return alloc->params && (!alloc->params_size || alloc->params_size >= size) ? (void *)(uintptr_t)alloc->params
										    : NULL;
}

static uint32_t make_device(const struct sim_world *w, const struct ll_rm_alloc *alloc, struct sim_rm_object *object)
{
	const uint32_t *number = params_of(alloc, sizeof *number);
	object->card = number ? *number : 0;
	return object->card < w->card_count ? 0 : SIM_RM_BAD_DEVICE;
}

static uint32_t make_group(const struct sim_world *w, uint32_t file, const struct ll_rm_alloc *alloc,
			   struct sim_rm_object *object)
{
	const struct ll_rm_group_params *params = params_of(alloc, sizeof *params);
	if (!params)
		return SIM_RM_BAD_ARGUMENT;
	uint32_t context = params->address_space - sim_rm_address_space(0);
	bool is_own = context < SIM_CONTEXTS && w->contexts[context].is_used &&
		      w->contexts[context].proc == w->rm_files[file].proc;
	if (params->engine != LL_RM_ENGINE_COMPUTE || !is_own || is_governed(w, file, context))
		return 0;
	object->context = context;
	object->generation = w->contexts[context].generation;
	return 0;
}

static uint32_t make_memory(const struct ll_rm_alloc *alloc, uint32_t index)
{
	const struct ll_rm_memory_params *params = params_of(alloc, sizeof *params);
	if (!params || !params->size || params->size > MOST_MEMORY_BYTES)
		return SIM_RM_BAD_ARGUMENT;
	return sim_memory_make(index, params->size) ? 0 : SIM_RM_NO_MEMORY;
}

static uint32_t make_buffer(struct sim_world *w, uint32_t file, const struct ll_rm_alloc *alloc,
			    struct sim_rm_object *object)
{
	const struct ll_rm_event_buffer_params *params = params_of(alloc, sizeof *params);
	if (!params || params->record_count < 2 || params->record_size != sizeof(struct ll_rm_switch_record))
		return SIM_RM_BAD_ARGUMENT;
	uint32_t header = find_object(w, file, object->client, params->header);
	uint32_t records = find_object(w, file, object->client, params->records);
	if (header == SIM_NONE || records == SIM_NONE || w->rm_objects[header].class != LL_RM_CLASS_READ_ONLY_MEMORY ||
	    w->rm_objects[records].class != LL_RM_CLASS_READ_ONLY_MEMORY)
		return SIM_RM_BAD_ARGUMENT;
	object->trace = sim_trace_new(w, header, records, params->record_count);
	return object->trace == SIM_NONE ? SIM_RM_NO_MEMORY : 0;
}

static uint32_t make_channel(struct sim_world *w, uint32_t file, const struct ll_rm_alloc *alloc,
			     struct sim_rm_object *object)
{
	char *params = params_of(alloc, LL_RM_CHANNEL_CID_OFFSET + sizeof object->cid);
	if (!params)
		return SIM_RM_BAD_ARGUMENT;
	for (uint32_t i = w->rm_files[file].first; i != SIM_NONE; i = w->rm_objects[i].next)
		object->number +=
		    w->rm_objects[i].client == object->client && w->rm_objects[i].parent == object->parent;
	object->cid = ++*SIM_EDIT(w, &w->rm_last_cid);
	uint32_t context = governed_context(w, &w->rm_objects[find_object(w, file, object->client, object->parent)]);
	if (context != SIM_NONE && !w->contexts[context].cid)
		*SIM_EDIT(w, &w->contexts[context].cid) = object->cid;
	memcpy(params + LL_RM_CHANNEL_CID_OFFSET, &object->cid, sizeof object->cid);
	return 0;
}

/* Returns the class that an object's parent must have. 0: there is no such class. */
static uint32_t parent_class(const struct sim_rm_object *object)
{
	if (is_channel(object))
		return LL_RM_CLASS_CHANNEL_GROUP;
	switch (object->class) {
	case LL_RM_CLASS_DEVICE:
	case LL_RM_CLASS_READ_ONLY_MEMORY:
	case LL_RM_CLASS_EVENT_BUFFER:
		return LL_RM_CLASS_ROOT;
	case LL_RM_CLASS_SUBDEVICE:
	case LL_RM_CLASS_CHANNEL_GROUP:
		return LL_RM_CLASS_DEVICE;
	default:
		return 0;
	}
}

static uint32_t make_object(struct sim_world *w, uint32_t file, const struct ll_rm_alloc *alloc, uint32_t index,
			    struct sim_rm_object *object)
{
	uint32_t class = parent_class(object);
	if (!class)
		return SIM_RM_BAD_CLASS;
	uint32_t parent = find_object(w, file, object->client, object->parent);
	if (find_object(w, file, object->client, object->client) == SIM_NONE)
		return LL_RM_NO_RIGHT;
	if (parent == SIM_NONE || w->rm_objects[parent].class != class)
		return SIM_RM_BAD_PARENT;
	if (find_object(w, file, object->client, object->handle) != SIM_NONE)
		return SIM_RM_DUPLICATE;
	object->card = w->rm_objects[parent].card;
	if (object->class == LL_RM_CLASS_DEVICE)
		return make_device(w, alloc, object);
	if (object->class == LL_RM_CLASS_CHANNEL_GROUP)
		return make_group(w, file, alloc, object);
	if (object->class == LL_RM_CLASS_READ_ONLY_MEMORY)
		return make_memory(alloc, index);
	if (object->class == LL_RM_CLASS_EVENT_BUFFER)
		return make_buffer(w, file, alloc, object);
	return is_channel(object) ? make_channel(w, file, alloc, object) : 0;
}

uint32_t sim_rm_alloc(struct sim_world *w, uint32_t file, struct ll_rm_alloc *alloc)
{
	uint32_t index = 0;
	while (index < SIM_RM_OBJECTS && w->rm_objects[index].class)
		index++;
	if (index == SIM_RM_OBJECTS)
		return SIM_RM_NO_MEMORY;
	struct sim_rm_object object = {
	    .next = w->rm_files[file].first,
	    .class = alloc->class,
	    .client = alloc->root,
	    .handle = alloc->object,
	    .parent = alloc->parent,
	    .context = SIM_NONE,
	};
	bool is_client = object.class == LL_RM_CLASS_ROOT;
	if (is_client)
		object.client = object.handle = CLIENT_HANDLE + index;
	else if (!object.handle)
		object.handle = OTHER_HANDLE + index;
	uint32_t status = is_client ? 0 : make_object(w, file, alloc, index, &object);
	if (status)
		return status;
	*SIM_EDIT(w, &w->rm_objects[index]) = object;
	*SIM_EDIT(w, &w->rm_files[file].first) = index;
	alloc->object = object.handle;
	return 0;
}

/* ---- freeing ---- */

static void remove_object(struct sim_world *w, uint32_t file, uint32_t index)
{
	struct sim_rm_object removed = w->rm_objects[index];
	uint32_t *link = &w->rm_files[file].first;
	while (*link != index)
		link = &w->rm_objects[*link].next;
	*SIM_EDIT(w, link) = removed.next;
	*SIM_EDIT(w, &w->rm_objects[index].class) = 0;
	uint32_t group = removed.off_count ? find_object(w, file, removed.client, removed.parent) : SIM_NONE;
	if (group != SIM_NONE)
		put_group_off(w, file, &w->rm_objects[group]);
	if (removed.class == LL_RM_CLASS_EVENT_BUFFER)
		sim_trace_free(w, removed.trace);
	else if (removed.class == LL_RM_CLASS_READ_ONLY_MEMORY)
		sim_memory_drop(index);
	sim_commit(w);
}

static void free_objects_in(struct sim_world *w, uint32_t file, uint32_t client, uint32_t parent)
{
	uint32_t next;
	for (uint32_t i = w->rm_files[file].first; i != SIM_NONE; i = next) {
		struct sim_rm_object object = w->rm_objects[i];
		next = object.next;
		if (object.client != client || object.parent != parent || object.handle == parent)
			continue;
		free_objects_in(w, file, client, object.handle);
		remove_object(w, file, i);
		next = w->rm_files[file].first; /* the one behind may have been freed too */
	}
}

uint32_t sim_rm_free(struct sim_world *w, uint32_t file, const struct ll_rm_free *free)
{
	uint32_t index = find_object(w, file, free->root, free->object);
	if (find_object(w, file, free->root, free->root) == SIM_NONE)
		return LL_RM_NO_RIGHT;
	if (index == SIM_NONE)
		return SIM_RM_NO_OBJECT;
	free_objects_in(w, file, free->root, free->object);
	remove_object(w, file, index);
	return 0;
}

void sim_rm_drop(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_RM_FILES; i++) {
		if (!w->rm_files[i].is_used || w->rm_files[i].proc != proc)
			continue;
		while (w->rm_files[i].first != SIM_NONE)
			remove_object(w, i, w->rm_files[i].first);
		*SIM_EDIT(w, &w->rm_files[i].is_used) = 0;
		sim_commit(w);
	}
}

/* ---- slices ---- */

/* A slice of 2048 us lasts 2.09 ms on an H200 (doc/facts.md). */
static void apply_slice(struct sim_world *w, const struct sim_rm_object *group)
{
	uint32_t context = governed_context(w, group);
	uint64_t us = group->slice_us < UINT32_MAX ? group->slice_us : UINT32_MAX;
	if (context != SIM_NONE)
		sim_turn_set_slice(w, context, us * LL_NS_PER_US * SIM_SLICE_LASTS / SIM_SLICE_ASKED);
}

static uint32_t set_slice(struct sim_world *w, struct sim_rm_object *group, const uint64_t *us)
{
	SIM_EDIT(w, group)->slice_us = *us;
	if (w->cards[group->card].slices == SIM_SLICES_OBEY)
		apply_slice(w, group);
	return 0;
}

static uint32_t yield_turn(struct sim_world *w, const struct sim_rm_object *group)
{
	uint32_t context = governed_context(w, group);
	if (w->cards[group->card].slices == SIM_SLICES_COMMIT)
		apply_slice(w, group);
	if (context != SIM_NONE)
		sim_turn_yield(w, context);
	return 0;
}

/* ---- off and on ---- */

static uint32_t find_channel(const struct sim_world *w, uint32_t file, const struct ll_rm_disable *list, uint32_t i)
{
	uint32_t index = find_object(w, file, list->clients[i], list->channels[i]);
	return index != SIM_NONE && is_channel(&w->rm_objects[index]) ? index : SIM_NONE;
}

/* All channels of the list, or none. */
static uint32_t switch_channels(struct sim_world *w, uint32_t file, const struct sim_rm_object *subdevice,
				const struct ll_rm_disable *list)
{
	if (w->cards[subdevice->card].off == SIM_OFF_NO)
		return SIM_RM_NO_PERMISSION;
	if (list->count > LL_RM_DISABLE_MAX)
		return SIM_RM_BAD_ARGUMENT;
	for (uint32_t i = 0; i < list->count; i++) {
		if (find_channel(w, file, list, i) == SIM_NONE)
			return LL_RM_BAD_CHANNEL;
	}
	if (w->cards[subdevice->card].off == SIM_OFF_IGNORE)
		return 0;
	for (uint32_t i = 0; i < list->count; i++) {
		struct sim_rm_object *channel = &w->rm_objects[find_channel(w, file, list, i)];
		if (list->is_off)
			SIM_EDIT(w, channel)->off_count++;
		else if (channel->off_count)
			SIM_EDIT(w, channel)->off_count--;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const struct sim_rm_object *channel = &w->rm_objects[find_channel(w, file, list, i)];
		put_group_off(w, file, &w->rm_objects[find_object(w, file, channel->client, channel->parent)]);
	}
	return 0;
}

/* ---- control calls ---- */

static uint32_t tell_uuid(const struct sim_world *w, const struct sim_rm_object *subdevice, struct ll_rm_uuid *uuid)
{
	const char *text = w->cards[subdevice->card].uuid;
	uuid->length = (uint32_t)strlen(text) + 1;
	memcpy(uuid->data, text, uuid->length);
	return uuid->flags ? SIM_RM_BAD_ARGUMENT : 0;
}

static uint32_t bind_switches(struct sim_world *w, uint32_t file, const struct sim_rm_object *subdevice,
			      struct ll_rm_bind_switches *bind)
{
	uint32_t buffer = find_object(w, file, subdevice->client, bind->buffer);
	bind->reason = 0;
	if (buffer == SIM_NONE || w->rm_objects[buffer].class != LL_RM_CLASS_EVENT_BUFFER ||
	    bind->record_size != sizeof(struct ll_rm_switch_record) || bind->detail != LL_RM_SWITCHES_SIMPLE)
		return SIM_RM_BAD_ARGUMENT;
	sim_trace_bind(w, w->rm_objects[buffer].trace, subdevice->card, w->procs[w->rm_files[file].proc].uid,
		       bind->all_users);
	return 0;
}

static uint32_t control_buffer(struct sim_world *w, const struct sim_rm_object *buffer,
			       const struct ll_rm_control *control)
{
	const void *params = (const void *)(uintptr_t)control->params;
	switch (control->command) {
	case LL_RM_CONTROL_ENABLE_EVENTS:
		if (!params || control->params_size != sizeof(struct ll_rm_enable_events))
			return SIM_RM_BAD_ARGUMENT;
		sim_trace_enable(w, buffer->trace, ((const struct ll_rm_enable_events *)params)->is_on);
		return 0;
	case LL_RM_CONTROL_UPDATE_GET:
		if (!params || control->params_size != sizeof(struct ll_rm_update_get))
			return SIM_RM_BAD_ARGUMENT;
		sim_trace_set_get(w, buffer->trace, ((const struct ll_rm_update_get *)params)->get);
		return 0;
	case LL_RM_CONTROL_FLUSH:
		sim_trace_deliver(w, buffer->trace);
		return 0;
	default:
		return SIM_RM_BAD_COMMAND;
	}
}

static uint32_t control_group(struct sim_world *w, struct sim_rm_object *group, const struct ll_rm_control *control)
{
	uint64_t *us = (void *)(uintptr_t)control->params;
	bool has_us = us && control->params_size == sizeof *us;
	switch (control->command) {
	case LL_RM_CONTROL_SET_SLICE:
		return has_us ? set_slice(w, group, us) : SIM_RM_BAD_ARGUMENT;
	case LL_RM_CONTROL_GET_SLICE:
		if (has_us)
			*us = group->slice_us;
		return has_us ? 0 : SIM_RM_BAD_ARGUMENT;
	case LL_RM_CONTROL_PREEMPT:
		return yield_turn(w, group);
	case SIM_RM_GROUP_SCHEDULE:
		return 0; /* it stops no group that has work */
	default:
		return SIM_RM_BAD_COMMAND;
	}
}

static uint32_t control_subdevice(struct sim_world *w, uint32_t file, const struct sim_rm_object *subdevice,
				  const struct ll_rm_control *control)
{
	void *params = (void *)(uintptr_t)control->params;
	switch (control->command) {
	case LL_RM_CONTROL_DISABLE_CHANNELS:
		if (!params || control->params_size != sizeof(struct ll_rm_disable))
			return SIM_RM_BAD_ARGUMENT;
		return switch_channels(w, file, subdevice, params);
	case LL_RM_CONTROL_BIND_SWITCHES:
		if (!params || control->params_size != sizeof(struct ll_rm_bind_switches))
			return SIM_RM_BAD_ARGUMENT;
		return bind_switches(w, file, subdevice, params);
	case LL_RM_CONTROL_GET_UUID:
		if (!params || control->params_size != sizeof(struct ll_rm_uuid))
			return SIM_RM_BAD_ARGUMENT;
		return tell_uuid(w, subdevice, params);
	default:
		return SIM_RM_BAD_COMMAND;
	}
}

uint32_t sim_rm_control(struct sim_world *w, uint32_t file, const struct ll_rm_control *control)
{
	uint32_t index = find_object(w, file, control->client, control->object);
	if (find_object(w, file, control->client, control->client) == SIM_NONE)
		return LL_RM_NO_RIGHT;
	if (index == SIM_NONE)
		return SIM_RM_NO_OBJECT;
	struct sim_rm_object *object = &w->rm_objects[index];
	if (object->class == LL_RM_CLASS_CHANNEL_GROUP)
		return control_group(w, object, control);
	if (object->class == LL_RM_CLASS_SUBDEVICE)
		return control_subdevice(w, file, object, control);
	if (object->class == LL_RM_CLASS_EVENT_BUFFER)
		return control_buffer(w, object, control);
	return SIM_RM_BAD_COMMAND;
}

/* ---- mappings ---- */

uint32_t sim_rm_open_memory(const struct sim_world *w, uint32_t file, const struct ll_rm_map *map, int *ret_fd)
{
	const struct sim_proc *owner = &w->procs[w->rm_files[file].proc];
	uint32_t index = find_object(w, file, map->client, map->memory);
	if (owner->pid != getpid() || owner->pid_namespace != sim_namespace_own() ||
	    find_object(w, file, map->client, map->client) == SIM_NONE)
		return LL_RM_NO_RIGHT;
	if (index == SIM_NONE || w->rm_objects[index].class != LL_RM_CLASS_READ_ONLY_MEMORY)
		return SIM_RM_NO_OBJECT;
	*ret_fd = sim_memory_open(index, O_RDONLY);
	return *ret_fd < 0 ? SIM_RM_NO_MEMORY : 0;
}
