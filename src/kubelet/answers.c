#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "kubelet/deviceplugin.pb-c.h"
#include "kubelet/messages.h"
#include "kubelet/plugin.h"

enum { KEY_SIZE = 128 };

static void add_pair(void *array, size_t *count, const char *key, const char *value)
{
	Ll__Pair *pair = add_message(array, count, &ll__pair__descriptor);
	set_text(&pair->key, key);
	set_text(&pair->value, value);
}

/* ---- options, registration, list ---- */

static void set_options(Ll__DevicePluginOptions *options)
{
	ll__device_plugin_options__init(options);
	options->pre_start_required = true;
	options->get_preferred_allocation_available = true;
}

int ll_kubelet_answer_options(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			      struct ll_strbuf *reply, struct ll_err *err)
{
	Ll__DevicePluginOptions options;
	(void)cuts, (void)resource, (void)request, (void)length, (void)err;
	set_options(&options);
	add_packed(&options.base, reply);
	return 0;
}

void ll_kubelet_add_registration(const char *resource, const char *endpoint, struct ll_strbuf *request)
{
	Ll__RegisterRequest message = LL__REGISTER_REQUEST__INIT;
	Ll__DevicePluginOptions options;
	char version[] = "v1beta1", *name = need(strdup(resource)), *socket = need(strdup(endpoint));
	set_options(&options);
	message.version = version;
	message.endpoint = socket;
	message.resource_name = name;
	message.options = &options;
	add_packed(&message.base, request);
	free(name);
	free(socket);
}

void ll_kubelet_add_list(const struct ll_kubelet_cuts *cuts, const char *resource, struct ll_strbuf *reply)
{
	Ll__ListAndWatchResponse *list = need(calloc(1, sizeof *list));
	ll__list_and_watch_response__init(list);
	for (size_t i = 0; i < cuts->count; i++) {
		const struct ll_kubelet_cut *cut = &cuts->items[i];
		if (strcmp(cut->resource, resource) != 0)
			continue;
		Ll__Device *device = add_message(&list->devices, &list->n_devices, &ll__device__descriptor);
		set_text(&device->id, cut->id);
		set_text(&device->health, cut->is_healthy ? "Healthy" : "Unhealthy");
		if (cut->numa_node < 0)
			continue;
		device->topology = need(calloc(1, sizeof *device->topology));
		ll__topology_info__init(device->topology);
		Ll__NUMANode *node =
		    add_message(&device->topology->nodes, &device->topology->n_nodes, &ll__numanode__descriptor);
		node->id = cut->numa_node;
	}
	add_packed(&list->base, reply);
	ll__list_and_watch_response__free_unpacked(list, NULL);
}

/* ---- which cuts are better ---- */

static bool has_text(char *const *texts, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(texts[i], text) == 0)
			return true;
	}
	return false;
}

/* How many cuts of the card are free, of this resource. */
static size_t count_free(const struct ll_kubelet_cuts *cuts, const char *resource,
			 const Ll__ContainerPreferredAllocationRequest *wish, const char *uuid)
{
	size_t count = 0;
	for (size_t i = 0; i < wish->n_available_device_ids; i++) {
		const struct ll_kubelet_cut *cut = ll_kubelet_cuts_find(cuts, resource, wish->available_device_ids[i]);
		count += cut && strcmp(cut->uuid, uuid) == 0;
	}
	return count;
}

/* A card is filled before another is begun, so that whole cards stay free for as long as can be. */
static const char *find_fullest(const struct ll_kubelet_cuts *cuts, const char *resource,
				const Ll__ContainerPreferredAllocationRequest *wish,
				const Ll__ContainerPreferredAllocationResponse *chosen)
{
	const char *best = NULL;
	size_t least = SIZE_MAX;
	for (size_t i = 0; i < wish->n_available_device_ids; i++) {
		const char *id = wish->available_device_ids[i];
		const struct ll_kubelet_cut *cut = ll_kubelet_cuts_find(cuts, resource, id);
		if (!cut || has_text(chosen->device_ids, chosen->n_device_ids, id))
			continue;
		size_t count = count_free(cuts, resource, wish, cut->uuid);
		best = count < least ? id : best;
		least = count < least ? count : least;
	}
	return best;
}

int ll_kubelet_answer_prefer(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			     struct ll_strbuf *reply, struct ll_err *err)
{
	Ll__PreferredAllocationRequest *wishes = ll__preferred_allocation_request__unpack(NULL, length, request);
	if (!wishes)
		return cannot_read(err);
	Ll__PreferredAllocationResponse *answer = need(calloc(1, sizeof *answer));
	ll__preferred_allocation_response__init(answer);
	for (size_t i = 0; i < wishes->n_container_requests; i++) {
		const Ll__ContainerPreferredAllocationRequest *wish = wishes->container_requests[i];
		Ll__ContainerPreferredAllocationResponse *chosen =
		    add_message(&answer->container_responses, &answer->n_container_responses,
				&ll__container_preferred_allocation_response__descriptor);
		size_t wanted = wish->allocation_size > 0 ? (size_t)wish->allocation_size : 0;
		const char *id = NULL;
		for (size_t j = 0; j < wish->n_must_include_device_ids && chosen->n_device_ids < wanted; j++)
			add_text(&chosen->device_ids, &chosen->n_device_ids, wish->must_include_device_ids[j]);
		while (chosen->n_device_ids < wanted && (id = find_fullest(cuts, resource, wish, chosen)))
			add_text(&chosen->device_ids, &chosen->n_device_ids, id);
	}
	add_packed(&answer->base, reply);
	ll__preferred_allocation_response__free_unpacked(answer, NULL);
	ll__preferred_allocation_request__free_unpacked(wishes, NULL);
	return 0;
}

/* ---- what a container gets ---- */

/* Mounted by the kubelet too: if the runtime does not know the device, the library is in the container nevertheless,
 * finds no job, and lets no program use a card. */
static void add_mounts(const struct ll_kubelet_cuts *cuts, Ll__ContainerAllocateResponse *container)
{
	size_t index;
	const json_t *mount;
	json_array_foreach(json_object_get(json_object_get(cuts->description, "containerEdits"), "mounts"), index,
			   mount)
	{
		Ll__Mount *its = add_message(&container->mounts, &container->n_mounts, &ll__mount__descriptor);
		set_text(&its->host_path, json_string_value(json_object_get(mount, "hostPath")));
		set_text(&its->container_path, json_string_value(json_object_get(mount, "containerPath")));
		its->read_only = true;
	}
}

static void add_device(Ll__ContainerAllocateResponse *container, const char *id, struct ll_strbuf *names)
{
	LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
	ll_strbuf_addf(&name, "loadline.dev/cut=%s", id);
	ll_strbuf_addf(names, "%s%s", names->length ? "," : "", name.buf);
	Ll__CDIDevice *device =
	    add_message(&container->cdi_devices, &container->n_cdi_devices, &ll__cdidevice__descriptor);
	set_text(&device->name, name.buf);
}

/*
 * The device is named twice: in the field, which kubelets from 1.28 on hand to the runtime, and in an annotation, which
 * all kubelets do; a runtime that sees both takes it once. A part of a card is shown by its device alone, so a runtime
 * that does not know the device shows no card.
 */
static int add_container(const struct ll_kubelet_cuts *cuts, const char *resource,
			 const Ll__ContainerAllocateRequest *wish, Ll__ContainerAllocateResponse *container,
			 struct ll_err *err)
{
	char key[KEY_SIZE];
	bool is_part = false;
	LL_SCOPE_STRBUF struct ll_strbuf names = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf uuids = LL_STRBUF_INIT;
	for (size_t i = 0; i < wish->n_device_ids; i++) {
		const struct ll_kubelet_cut *cut = ll_kubelet_cuts_find(cuts, resource, wish->device_ids[i]);
		if (!cut)
			return ll_err_set(err, -ENODEV, "%s has no device %.150s now", resource, wish->device_ids[i]);
		is_part |= cut->is_part;
		ll_strbuf_addf(&uuids, "%s%s", uuids.length ? "," : "", cut->uuid);
		add_device(container, cut->id, &names);
	}
	if (is_part && wish->n_device_ids > 1)
		return ll_err_set(err, -EINVAL, "a container has one %s, and not %zu", resource, wish->n_device_ids);
	snprintf(key, sizeof key, "cdi.k8s.io/loadline_%.40s", strrchr(resource, '/') + 1);
	add_pair(&container->annotations, &container->n_annotations, key, names.buf);
	add_pair(&container->envs, &container->n_envs, "NVIDIA_VISIBLE_DEVICES", is_part ? "void" : uuids.buf);
	add_mounts(cuts, container);
	need(names.failed || uuids.failed ? NULL : container);
	return 0;
}

int ll_kubelet_answer_allocate(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			       struct ll_strbuf *reply, struct ll_err *err)
{
	int rc = 0;
	Ll__AllocateRequest *wishes = ll__allocate_request__unpack(NULL, length, request);
	if (!wishes)
		return cannot_read(err);
	Ll__AllocateResponse *answer = need(calloc(1, sizeof *answer));
	ll__allocate_response__init(answer);
	for (size_t i = 0; !rc && i < wishes->n_container_requests; i++) {
		Ll__ContainerAllocateResponse *container =
		    add_message(&answer->container_responses, &answer->n_container_responses,
				&ll__container_allocate_response__descriptor);
		rc = add_container(cuts, resource, wishes->container_requests[i], container, err);
	}
	if (!rc)
		add_packed(&answer->base, reply);
	ll__allocate_response__free_unpacked(answer, NULL);
	ll__allocate_request__free_unpacked(wishes, NULL);
	return rc;
}

/* ---- right before a container starts ---- */

int ll_kubelet_check_mounts(const struct ll_kubelet_cuts *cuts, struct ll_err *err)
{
	size_t index;
	const json_t *mount;
	json_array_foreach(json_object_get(json_object_get(cuts->description, "containerEdits"), "mounts"), index,
			   mount)
	{
		const char *path = json_string_value(json_object_get(mount, "hostPath"));
		if (path && access(path, R_OK))
			return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	}
	return 0;
}

int ll_kubelet_answer_start(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			    struct ll_strbuf *reply, struct ll_err *err)
{
	(void)reply; /* an empty message */
	Ll__PreStartContainerRequest *wish = ll__pre_start_container_request__unpack(NULL, length, request);
	if (!wish)
		return cannot_read(err);
	int rc = ll_kubelet_cuts_look(cuts, err);
	for (size_t i = 0; !rc && i < wish->n_device_ids; i++) {
		const struct ll_kubelet_cut *cut = ll_kubelet_cuts_find(cuts, resource, wish->device_ids[i]);
		if (!cut)
			rc = ll_err_set(err, -ENODEV, "%s has no device %.150s now", resource, wish->device_ids[i]);
		else if (!cut->is_healthy)
			rc = ll_err_set(err, -EIO, "card %s does not answer, or is drained", cut->uuid);
	}
	ll__pre_start_container_request__free_unpacked(wish, NULL);
	return rc ? rc : ll_kubelet_check_mounts(cuts, err);
}
