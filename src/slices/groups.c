#include "slices/groups.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

enum { SUBDEVICES = 64 };

struct subdevice {
	uint32_t client, device, object;
};

static struct {
	pthread_mutex_t lock; /* taken only where a request was one of those that are noted */
	_Atomic uint32_t changes;
	size_t group_count, missed, subdevice_count;
	struct ll_group groups[LL_GROUPS];
	struct subdevice subdevices[SUBDEVICES];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_change(void)
{
	atomic_fetch_add_explicit(&known.changes, 1, memory_order_release);
}

static struct ll_group *find_group(uint32_t client, uint32_t object)
{
	for (size_t i = 0; i < known.group_count; i++) {
		if (known.groups[i].client == client && known.groups[i].group == object)
			return &known.groups[i];
	}
	return NULL;
}

/* ---- what libcuda makes ---- */

bool ll_driver_file_note(int fd, struct ll_driver_file *ret_file)
{
	struct stat st;
	if (fstat(fd, &st))
		return false;
	*ret_file =
	    (struct ll_driver_file){.fd = fd, .inode = st.st_ino, .device = st.st_rdev ? st.st_rdev : st.st_dev};
	return true;
}

bool ll_driver_file_is_open(const struct ll_driver_file *file)
{
	struct ll_driver_file now;
	return ll_driver_file_note(file->fd, &now) && now.inode == file->inode && now.device == file->device;
}

/* The group's subdevice may be made later, so it is looked for when the groups are read. */
static void add_group(int fd, const struct ll_rm_alloc *made)
{
	const struct ll_rm_group_params *params = (const void *)(uintptr_t)made->params;
	struct ll_driver_file file;
	if (!params || params->engine != LL_RM_ENGINE_COMPUTE || !ll_driver_file_note(fd, &file))
		return;
	if (known.group_count == LL_GROUPS) {
		known.missed++;
		return;
	}
	known.groups[known.group_count++] =
	    (struct ll_group){.file = file, .client = made->root, .device = made->parent, .group = made->object};
	note_change();
}

static void add_channel(const struct ll_rm_alloc *made)
{
	struct ll_group *group = find_group(made->root, made->parent);
	if (!group)
		return;
	note_change();
	if (group->channel_count >= LL_RM_DISABLE_MAX) {
		group->channel_count++;
		return;
	}
	const char *params = (const char *)(uintptr_t)made->params;
	group->channels[group->channel_count] = made->object;
	/* Of size 0 they are as large as the class has them. */
	if (params && (!made->params_size || made->params_size >= LL_RM_CHANNEL_CID_OFFSET + sizeof(uint32_t)))
		memcpy(&group->contexts[group->channel_count], params + LL_RM_CHANNEL_CID_OFFSET, sizeof(uint32_t));
	group->channel_count++;
}

static void add_subdevice(const struct ll_rm_alloc *made)
{
	if (known.subdevice_count < SUBDEVICES)
		known.subdevices[known.subdevice_count++] =
		    (struct subdevice){.client = made->root, .device = made->parent, .object = made->object};
	note_change();
}

static void note_alloc(int fd, const struct ll_rm_alloc *made)
{
	bool is_channel = (made->class & 0xff) == LL_RM_CLASS_CHANNEL_SUFFIX;
	if (!is_channel && made->class != LL_RM_CLASS_CHANNEL_GROUP && made->class != LL_RM_CLASS_SUBDEVICE)
		return;
	pthread_mutex_lock(&known.lock);
	if (made->class == LL_RM_CLASS_CHANNEL_GROUP)
		add_group(fd, made);
	else if (is_channel)
		add_channel(made);
	else
		add_subdevice(made);
	pthread_mutex_unlock(&known.lock);
}

/* ---- what it frees ---- */

static void free_channel(uint32_t client, uint32_t object)
{
	for (size_t i = 0; i < known.group_count; i++) {
		struct ll_group *group = &known.groups[i];
		size_t known_count =
		    group->channel_count < LL_RM_DISABLE_MAX ? group->channel_count : LL_RM_DISABLE_MAX;
		for (size_t c = 0; c < known_count && group->client == client; c++) {
			if (group->channels[c] != object)
				continue;
			group->channels[c] = group->channels[known_count - 1];
			group->contexts[c] = group->contexts[known_count - 1];
			group->channel_count--;
			note_change();
			return;
		}
	}
}

/* An object takes along what was made in it: a client all, a device its groups. */
static void note_free(const struct ll_rm_free *freed)
{
	bool is_client = freed->object == freed->root;
	pthread_mutex_lock(&known.lock);
	free_channel(freed->root, freed->object);
	for (size_t i = known.group_count; i-- > 0;) {
		const struct ll_group *group = &known.groups[i];
		if (group->client != freed->root ||
		    (!is_client && group->group != freed->object && group->device != freed->object))
			continue;
		known.groups[i] = known.groups[--known.group_count];
		note_change();
	}
	for (size_t i = known.subdevice_count; i-- > 0;) {
		const struct subdevice *sub = &known.subdevices[i];
		if (sub->client == freed->root &&
		    (is_client || sub->object == freed->object || sub->device == freed->object))
			known.subdevices[i] = known.subdevices[--known.subdevice_count];
	}
	pthread_mutex_unlock(&known.lock);
}

/* ---- what it sets ---- */

static void store_slice(uint32_t client, uint32_t object, uint64_t us)
{
	pthread_mutex_lock(&known.lock);
	struct ll_group *group = find_group(client, object);
	if (group)
		group->slice_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
	pthread_mutex_unlock(&known.lock);
}

static void note_control(const struct ll_rm_control *asked)
{
	uint64_t us;
	if (asked->command != LL_RM_CONTROL_SET_SLICE || asked->params_size != sizeof us || !asked->params)
		return;
	memcpy(&us, (const void *)(uintptr_t)asked->params, sizeof us);
	store_slice(asked->client, asked->object, us);
	note_change();
}

/* ---- all requests ---- */

/* The two forms of an allocation differ in their size. */
static bool read_alloc(const void *argument, unsigned size, struct ll_rm_alloc *ret_alloc)
{
	if (size == sizeof *ret_alloc) {
		memcpy(ret_alloc, argument, sizeof *ret_alloc);
		return !ret_alloc->status;
	}
	struct ll_rm_alloc_short made;
	if (size != sizeof made)
		return false;
	memcpy(&made, argument, sizeof made);
	*ret_alloc = (struct ll_rm_alloc){.root = made.root,
					  .parent = made.parent,
					  .object = made.object,
					  .class = made.class,
					  .params = made.params,
					  .params_size = made.params_size};
	return !made.status;
}

static void note_request(int fd, unsigned number, unsigned size, const void *argument)
{
	struct ll_rm_alloc made;
	if (number == LL_RM_ESC_XFER && size == sizeof(struct ll_rm_xfer)) {
		const struct ll_rm_xfer *xfer = argument;
		number = xfer->request;
		size = xfer->size;
		argument = (const void *)(uintptr_t)xfer->argument;
	}
	if (number == LL_RM_ESC_ALLOC && argument && read_alloc(argument, size, &made))
		note_alloc(fd, &made);
	else if (number == LL_RM_ESC_FREE && argument && !((const struct ll_rm_free *)argument)->status)
		note_free(argument);
	else if (number == LL_RM_ESC_CONTROL && argument && !((const struct ll_rm_control *)argument)->status)
		note_control(argument);
}

/* The request's type is in its second byte, the number in the first, the size of the argument above. */
int ll_groups_note(ll_ioctl_fn next, int fd, unsigned long request, void *argument)
{
	int rc = next(fd, request, argument);
	if (__builtin_expect((request >> 8 & 0xff) == LL_RM_IOCTL_TYPE, 0) && rc == 0) {
		int code = errno;
		note_request(fd, request & 0xff, request >> 16 & 0x3fff, argument);
		errno = code;
	}
	return rc;
}

uint32_t ll_groups_changes(void)
{
	return atomic_load_explicit(&known.changes, memory_order_acquire);
}

size_t ll_groups_read(struct ll_group ret_groups[LL_GROUPS])
{
	pthread_mutex_lock(&known.lock);
	size_t count = known.group_count;
	memcpy(ret_groups, known.groups, count * sizeof *ret_groups);
	for (size_t i = 0; i < count; i++) {
		struct ll_group *group = &ret_groups[i];
		for (size_t s = 0; s < known.subdevice_count; s++) {
			const struct subdevice *sub = &known.subdevices[s];
			if (sub->client == group->client && sub->device == group->device)
				group->subdevice = sub->object;
		}
	}
	count += known.missed;
	pthread_mutex_unlock(&known.lock);
	return count;
}

void ll_groups_forget(void)
{
	pthread_mutex_init(&known.lock, NULL);
	known.group_count = known.subdevice_count = known.missed = 0;
	note_change();
}

/* ---- asking ---- */

static int ask_driver(ll_ioctl_fn next, const struct ll_group *group, uint32_t object, uint32_t command, void *params,
		      uint32_t size)
{
	struct ll_rm_control control = {.client = group->client,
					.object = object,
					.command = command,
					.params = (uintptr_t)params,
					.params_size = size};
	if (!ll_driver_file_is_open(&group->file))
		return -EBADF;
	if (next(group->file.fd, LL_RM_REQUEST(LL_RM_ESC_CONTROL, struct ll_rm_control), &control))
		return -errno;
	switch (control.status) {
	case 0:
		return 0;
	case LL_RM_NO_RIGHT:
		return -EPERM;
	case LL_RM_BAD_CHANNEL:
		return -ESTALE;
	default:
		return -EIO;
	}
}

int ll_group_set_slice(ll_ioctl_fn next, const struct ll_group *group, uint32_t us)
{
	uint64_t params = us;
	int rc = ask_driver(next, group, group->group, LL_RM_CONTROL_SET_SLICE, &params, sizeof params);
	if (!rc)
		store_slice(group->client, group->group, us);
	return rc;
}

int ll_group_preempt(ll_ioctl_fn next, const struct ll_group *group)
{
	struct ll_rm_preempt params = {.waits = 1};
	return ask_driver(next, group, group->group, LL_RM_CONTROL_PREEMPT, &params, sizeof params);
}

int ll_group_switch(ll_ioctl_fn next, const struct ll_group *group, bool is_off)
{
	struct ll_rm_disable params = {.is_off = is_off, .count = group->channel_count};
	if (!group->subdevice || !group->channel_count)
		return -ESTALE;
	if (group->channel_count > LL_RM_DISABLE_MAX)
		return -E2BIG;
	memcpy(params.channels, group->channels, group->channel_count * sizeof *params.channels);
	for (uint32_t i = 0; i < group->channel_count; i++)
		params.clients[i] = group->client;
	return ask_driver(next, group, group->subdevice, LL_RM_CONTROL_DISABLE_CHANNELS, &params, sizeof params);
}

int ll_group_read_uuid(ll_ioctl_fn next, const struct ll_group *group, char *ret_uuid, size_t size)
{
	struct ll_rm_uuid params = {0};
	int rc = ask_driver(next, group, group->subdevice, LL_RM_CONTROL_GET_UUID, &params, sizeof params);
	if (!rc && (!params.length || params.length > sizeof params.data || params.length >= size))
		rc = -EIO;
	if (rc)
		return rc;
	memcpy(ret_uuid, params.data, params.length);
	ret_uuid[params.length] = '\0';
	return 0;
}
