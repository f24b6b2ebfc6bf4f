#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "kubelet/claims.h"
#include "kubelet/dra.pb-c.h"
#include "kubelet/messages.h"

#define MILLI 1000
#define MIB_SHIFT 20
#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define LOOK_NS (30 * LL_NS_PER_S)
#define AGAIN_NS (5 * LL_NS_PER_S)

enum { HTTP_OK = 200, HTTP_CREATED = 201, HTTP_NOT_FOUND = 404, DEVICES_MAX = 128, UID_MAX = 64, KIND_LENGTH = 19 };

static const char claim_kind[] = "loadline.dev/claim=";

/* ---- descriptions of claims ---- */

/* What is part of a path, of a file or of a URL. */
static bool is_name(const char *text, size_t most)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
	size_t length = strlen(text);
	return length && length < most && text[0] != '.' && strspn(text, letters) == length;
}

static void name_description(const struct ll_kubelet_driver *driver, const char *uid, char ret_path[PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s/loadline-claim-%s.json", driver->folder, uid);
}

/* *ret: NULL: the claim is not prepared. */
static int read_description(const char *path, json_t **ret, struct ll_err *err)
{
	json_error_t why;
	*ret = NULL;
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	*ret = json_load_file(path, 0, &why);
	return *ret ? 0 : ll_err_set(err, -EINVAL, "%.200s: %s", path, why.text);
}

/* A runtime may read the folder at any time. */
static int write_description(const struct ll_kubelet_driver *driver, const char *uid, const json_t *description,
			     struct ll_err *err)
{
	char path[PATH_MAX], made[PATH_MAX];
	name_description(driver, uid, path);
	snprintf(made, sizeof made, "%s/.loadline-claim-%s.new", driver->folder, uid);
	if (!json_dump_file(description, made, JSON_INDENT(2)) && !rename(made, path))
		return 0;
	int rc = errno ? -errno : -EIO;
	unlink(made);
	return ll_err_set(err, rc, "%.200s: %s", path, strerror(-rc));
}

static bool names_card(const json_t *device, const char *uuid)
{
	const char *cards = ll_kubelet_device_word(device, "--cards");
	size_t length = strlen(uuid);
	for (const char *at = cards; at && *at; at += strcspn(at, ","), at += *at == ',') {
		if (strcspn(at, ",") == length && strncmp(at, uuid, length) == 0)
			return true;
	}
	return false;
}

/* Adds what the claims that are prepared have of a card. */
static int add_taken(const struct ll_kubelet_driver *driver, const char *uuid, uint64_t *bytes, uint64_t *milli,
		     struct ll_err *err)
{
	static const char begin[] = "loadline-claim-", end[] = ".json";
	char path[PATH_MAX];
	const struct dirent *entry;
	int rc = 0;
	DIR *folder = opendir(driver->folder);
	if (!folder)
		return ll_err_set(err, -errno, "%.200s: %s", driver->folder, strerror(errno));
	while (!rc && (entry = readdir(folder))) {
		size_t length = strlen(entry->d_name), index;
		json_t *description = NULL;
		const json_t *device;
		if (strncmp(entry->d_name, begin, sizeof begin - 1) != 0 || length < sizeof end ||
		    strcmp(entry->d_name + length - (sizeof end - 1), end) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", driver->folder, entry->d_name);
		rc = read_description(path, &description, err);
		json_array_foreach(json_object_get(description, "devices"), index, device)
		{
			uint64_t its_bytes = 0, its_milli = 0;
			if (rc || !names_card(device, uuid))
				continue;
			rc = ll_kubelet_device_limits(device, &its_bytes, &its_milli, err);
			*bytes += its_bytes;
			*milli += its_milli;
		}
		json_decref(description);
	}
	closedir(folder);
	return rc;
}

/* The scheduler gives no more than there is. But the next claim of a card may come before the last one's end. */
static int check_fits(const struct ll_kubelet_driver *driver, const struct ll_kubelet_claim *claim,
		      const struct ll_kubelet_cuts *cuts, const struct ll_kubelet_cut *card, struct ll_err *err)
{
	uint64_t bytes = 0, milli = 0, taken_bytes = 0, taken_milli = 0, wanted_bytes = 0, wanted_milli = 0;
	int rc = ll_kubelet_capacity(cuts, card, &bytes, &milli, err);
	if (!rc)
		rc = add_taken(driver, card->uuid, &taken_bytes, &taken_milli, err);
	for (size_t i = 0; i < claim->count; i++) {
		for (size_t j = 0; j < claim->parts[i].count; j++) {
			bool is_it = claim->parts[i].cards[j] == card;
			wanted_bytes += is_it ? claim->parts[i].memory_bytes : 0;
			wanted_milli += is_it ? claim->parts[i].compute_milli : 0;
		}
	}
	if (!rc && (taken_bytes + wanted_bytes > bytes || taken_milli + wanted_milli > milli))
		rc = ll_err_set(err, -ENOSPC,
				"it does not fit in card %s: of %" PRIu64 " MiB and %g%% other claims have %" PRIu64
				" MiB and %g%%, and this one wants %" PRIu64 " MiB and %g%%",
				card->uuid, bytes >> MIB_SHIFT, (double)milli / MILLI, taken_bytes >> MIB_SHIFT,
				(double)taken_milli / MILLI, wanted_bytes >> MIB_SHIFT, (double)wanted_milli / MILLI);
	return rc;
}

static int check_cards(const struct ll_kubelet_driver *driver, const struct ll_kubelet_claim *claim,
		       const struct ll_kubelet_cuts *cuts, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < claim->count; i++) {
		for (size_t j = 0; !rc && j < claim->parts[i].count; j++) {
			const struct ll_kubelet_cut *card = claim->parts[i].cards[j];
			if (!card->is_healthy)
				rc = ll_err_set(err, -EIO, "card %s does not answer, or is drained", card->uuid);
			else
				rc = check_fits(driver, claim, cuts, card, err);
		}
	}
	return rc;
}

/* ---- prepare ---- */

static int get_claim(struct ll_kubelet_driver *driver, const Ll__Dra__Claim *claim, json_t **ret_object,
		     struct ll_err *err)
{
	char path[LL_KUBELET_PATH_SIZE * 2];
	long status = 0;
	snprintf(path, sizeof path, "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s", claim->namespace_,
		 claim->name);
	int rc = ll_kubelet_api_call(&driver->api, "GET", path, NULL, &status, ret_object, err);
	if (!rc && status != HTTP_OK)
		rc = ll_kubelet_api_refused("the claim", status, *ret_object, err);
	return rc;
}

static int make_description(struct ll_kubelet_driver *driver, struct ll_kubelet_cuts *cuts, const Ll__Dra__Claim *claim,
			    json_t **ret_description, struct ll_err *err)
{
	struct ll_kubelet_claim its;
	json_t *object = NULL;
	int rc = ll_kubelet_cuts_look(cuts, err);
	if (!rc)
		rc = get_claim(driver, claim, &object, err);
	if (!rc)
		rc = ll_kubelet_claim_read(&its, object, claim->uid, driver->node, cuts, err);
	if (!rc)
		rc = check_cards(driver, &its, cuts, err);
	if (!rc)
		rc = ll_kubelet_check_mounts(cuts, err);
	if (!rc) {
		*ret_description = need(ll_kubelet_claim_describe(&its, claim->uid, driver->folder, cuts));
		rc = write_description(driver, claim->uid, *ret_description, err);
	}
	json_decref(object);
	return rc;
}

/* The kubelet joins devices and containers by the name of a request: of an alternative, which is REQUEST:ALTERNATIVE
 * here, by REQUEST alone. A request with several cards is one device of containers, which stands at the first of them.
 */
static void add_devices(const struct ll_kubelet_driver *driver, const json_t *description, Ll__Dra__Prepared *prepared)
{
	size_t index;
	const json_t *each;
	json_array_foreach(json_object_get(description, "devices"), index, each)
	{
		char id[LL_KUBELET_PATH_SIZE], request[LL_KUBELET_REQUEST_SIZE], name[LL_CARD_UUID_SIZE];
		const char *its = json_string_value(json_object_get(each, "name"));
		const char *cards = ll_kubelet_device_word(each, "--cards"), *colon = its ? strchr(its, ':') : NULL;
		snprintf(id, sizeof id, "%s%s", claim_kind, its ? its : "");
		snprintf(request, sizeof request, "%.*s", (int)strcspn(colon ? colon + 1 : "", ":"),
			 colon ? colon + 1 : "");
		for (const char *at = cards; at && *at; at += strcspn(at, ","), at += *at == ',') {
			char uuid[LL_CARD_UUID_SIZE];
			snprintf(uuid, sizeof uuid, "%.*s", (int)strcspn(at, ","), at);
			const struct ll_kubelet_cut card = {.uuid = uuid};
			Ll__Dra__Device *device =
			    add_message(&prepared->devices, &prepared->n_devices, &ll__dra__device__descriptor);
			ll_kubelet_device_name(&card, name);
			add_text(&device->request_names, &device->n_request_names, request);
			set_text(&device->pool_name, driver->node);
			set_text(&device->device_name, name);
			if (at == cards)
				add_text(&device->cdi_device_ids, &device->n_cdi_device_ids, id);
		}
	}
}

static int check_claim(const Ll__Dra__Claim *claim, struct ll_err *err)
{
	if (is_name(claim->uid, UID_MAX) && is_name(claim->namespace_, LL_KUBELET_NAME_SIZE) &&
	    is_name(claim->name, LL_KUBELET_NAME_SIZE))
		return 0;
	return ll_err_set(err, -EINVAL, "the claim's uid, namespace or name cannot be one");
}

/* A claim that is prepared stays as it is: a pod that uses it may run. */
static int prepare(struct ll_kubelet_driver *driver, struct ll_kubelet_cuts *cuts, const Ll__Dra__Claim *claim,
		   Ll__Dra__Prepared *prepared, struct ll_err *err)
{
	char path[PATH_MAX];
	json_t *description = NULL;
	int rc = check_claim(claim, err);
	if (rc)
		return rc;
	name_description(driver, claim->uid, path);
	rc = read_description(path, &description, err);
	if (!rc && !description) {
		rc = make_description(driver, cuts, claim, &description, err);
		if (!rc)
			ll_info("claim %s/%s: prepared", claim->namespace_, claim->name);
	}
	if (!rc)
		add_devices(driver, description, prepared);
	json_decref(description);
	return rc;
}

static int answer_prepare(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			  struct ll_strbuf *reply, struct ll_err *err)
{
	(void)resource;
	Ll__Dra__ClaimsRequest *claims = ll__dra__claims_request__unpack(NULL, length, request);
	if (!claims)
		return cannot_read(err);
	Ll__Dra__PrepareResponse *answer = need(calloc(1, sizeof *answer));
	ll__dra__prepare_response__init(answer);
	for (size_t i = 0; i < claims->n_claims; i++) {
		const Ll__Dra__Claim *claim = claims->claims[i];
		struct ll_err why = {0};
		Ll__Dra__PreparedEntry *entry =
		    add_message(&answer->claims, &answer->n_claims, &ll__dra__prepared_entry__descriptor);
		set_text(&entry->key, claim->uid);
		entry->value = need(calloc(1, sizeof *entry->value));
		ll__dra__prepared__init(entry->value);
		if (!prepare(cuts->driver, cuts, claim, entry->value, &why))
			continue;
		ll_warn("claim %.200s/%.200s: not prepared: %s", claim->namespace_, claim->name, why.text);
		set_text(&entry->value->error, why.text);
	}
	add_packed(&answer->base, reply);
	ll__dra__prepare_response__free_unpacked(answer, NULL);
	ll__dra__claims_request__free_unpacked(claims, NULL);
	return 0;
}

/* ---- unprepare ---- */

static void remove_holders(const json_t *description)
{
	size_t index;
	const json_t *device;
	json_array_foreach(json_object_get(description, "devices"), index, device)
	{
		const char *holder = ll_kubelet_device_word(device, "--holder");
		if (holder)
			unlink(holder);
	}
}

/* The kubelet has ended the containers. The description goes last, as it is the record. */
static int unprepare(const struct ll_kubelet_driver *driver, const Ll__Dra__Claim *claim, struct ll_err *err)
{
	char path[PATH_MAX];
	json_t *description = NULL;
	int rc = check_claim(claim, err);
	if (rc)
		return rc;
	name_description(driver, claim->uid, path);
	rc = read_description(path, &description, err);
	if (rc || !description)
		return rc;
	remove_holders(description);
	json_decref(description);
	if (unlink(path) && errno != ENOENT)
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	ll_info("claim %s/%s: its part is free", claim->namespace_, claim->name);
	return 0;
}

static int answer_unprepare(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			    struct ll_strbuf *reply, struct ll_err *err)
{
	(void)resource;
	Ll__Dra__ClaimsRequest *claims = ll__dra__claims_request__unpack(NULL, length, request);
	if (!claims)
		return cannot_read(err);
	Ll__Dra__UnprepareResponse *answer = need(calloc(1, sizeof *answer));
	ll__dra__unprepare_response__init(answer);
	for (size_t i = 0; i < claims->n_claims; i++) {
		const Ll__Dra__Claim *claim = claims->claims[i];
		struct ll_err why = {0};
		Ll__Dra__UnpreparedEntry *entry =
		    add_message(&answer->claims, &answer->n_claims, &ll__dra__unprepared_entry__descriptor);
		set_text(&entry->key, claim->uid);
		entry->value = need(calloc(1, sizeof *entry->value));
		ll__dra__unprepared__init(entry->value);
		if (!unprepare(cuts->driver, claim, &why))
			continue;
		ll_warn("claim %.200s/%.200s: it cannot end: %s", claim->namespace_, claim->name, why.text);
		set_text(&entry->value->error, why.text);
	}
	add_packed(&answer->base, reply);
	ll__dra__unprepare_response__free_unpacked(answer, NULL);
	ll__dra__claims_request__free_unpacked(claims, NULL);
	return 0;
}

/* ---- registration ---- */

static const char service_socket[] = LL_KUBELET_DRIVER_FOLDER "/dra.sock";

static int answer_info(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
		       struct ll_strbuf *reply, struct ll_err *err)
{
	char path[PATH_MAX], type[] = "DRAPlugin", name[] = LL_KUBELET_DRIVER, version[] = "v1.DRAPlugin";
	char *versions[] = {version};
	Ll__Dra__PluginInfo info = LL__DRA__PLUGIN_INFO__INIT;
	(void)resource, (void)request, (void)length, (void)err;
	snprintf(path, sizeof path, "%s/%s", cuts->driver->kubelet, service_socket);
	info.type = type;
	info.name = name;
	info.endpoint = path;
	info.n_supported_versions = 1;
	info.supported_versions = versions;
	add_packed(&info.base, reply);
	return 0;
}

/* A kubelet that was started again has removed the slices of its node. */
static int answer_registered(struct ll_kubelet_cuts *cuts, const char *resource, const void *request, size_t length,
			     struct ll_strbuf *reply, struct ll_err *err)
{
	(void)resource, (void)reply; /* an empty message */
	Ll__Dra__RegistrationStatus *status = ll__dra__registration_status__unpack(NULL, length, request);
	if (!status)
		return cannot_read(err);
	if (status->plugin_registered)
		ll_info(LL_KUBELET_DRIVER ": registered");
	else
		ll_warn(LL_KUBELET_DRIVER ": not registered: %.300s; Kubernetes from 1.34 knows this interface",
			status->error);
	cuts->driver->publish_ns = 0;
	ll__dra__registration_status__free_unpacked(status, NULL);
	return 0;
}

static const struct ll_kubelet_method service_methods[] = {
    {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", answer_prepare},
    {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", answer_unprepare},
};
static const struct ll_kubelet_method registration_methods[] = {
    {"/pluginregistration.Registration/GetInfo", answer_info},
    {"/pluginregistration.Registration/NotifyRegistrationStatus", answer_registered},
};

const struct ll_kubelet_socket ll_kubelet_driver_sockets[] = {
    {service_socket, service_methods, sizeof service_methods / sizeof *service_methods},
    {"plugins_registry/" LL_KUBELET_DRIVER "-reg.sock", registration_methods,
     sizeof registration_methods / sizeof *registration_methods},
    {NULL, NULL, 0},
};

/* ---- the slice ---- */

/* All of a capacity, unless a claim asks for less. */
static json_t *make_capacity(const char *value, const char *step)
{
	return json_pack("{s:s, s:{s:s, s:{s:s, s:s, s:s}}}", "value", value, "requestPolicy", "default", value,
			 "validRange", "min", step, "max", value, "step", step);
}

static int make_device(const struct ll_kubelet_cuts *cuts, const struct ll_kubelet_cut *card, json_t **ret_device,
		       struct ll_err *err)
{
	char name[LL_CARD_UUID_SIZE], memory[UID_MAX], compute[UID_MAX];
	uint64_t bytes = 0, milli = 0;
	int rc = ll_kubelet_capacity(cuts, card, &bytes, &milli, err);
	if (rc)
		return rc;
	ll_kubelet_device_name(card, name);
	snprintf(memory, sizeof memory, "%" PRIu64 "Mi", bytes >> MIB_SHIFT);
	snprintf(compute, sizeof compute, "%" PRIu64, milli / MILLI);
	*ret_device = need(json_pack("{s:s, s:b, s:{s:{s:s}}, s:{s:o, s:o}}", "name", name, "allowMultipleAllocations",
				     1, "attributes", "uuid", "string", card->uuid, "capacity", "memory",
				     make_capacity(memory, "1Mi"), "compute", make_capacity(compute, "1")));
	if (card->numa_node >= 0)
		json_object_set_new(json_object_get(*ret_device, "attributes"), "numaNode",
				    json_pack("{s:i}", "int", (int)card->numa_node));
	return 0;
}

/* Those that serve: no claim is given another card then. */
static int make_devices(const struct ll_kubelet_cuts *cuts, json_t *devices, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < cuts->count; i++) {
		json_t *device = NULL;
		if (cuts->items[i].is_healthy && !(rc = make_device(cuts, &cuts->items[i], &device, err)))
			json_array_append_new(devices, device);
	}
	if (!rc && json_array_size(devices) > DEVICES_MAX)
		rc = ll_err_set(err, -E2BIG, "a ResourceSlice has %d devices at most", DEVICES_MAX);
	return rc;
}

/* With the node as its owner a slice goes when the node does. */
static int find_owner(struct ll_kubelet_driver *driver, struct ll_err *err)
{
	char path[LL_KUBELET_PATH_SIZE];
	long status = 0;
	json_t *node = NULL;
	if (driver->owner)
		return 0;
	snprintf(path, sizeof path, "/api/v1/nodes/%s", driver->node);
	int rc = ll_kubelet_api_call(&driver->api, "GET", path, NULL, &status, &node, err);
	const char *uid = json_string_value(json_object_get(json_object_get(node, "metadata"), "uid"));
	if (!rc && (status != HTTP_OK || !uid))
		rc = ll_kubelet_api_refused("this node", status, node, err);
	if (!rc)
		driver->owner = need(json_pack("{s:s, s:s, s:s, s:s, s:b}", "apiVersion", "v1", "kind", "Node", "name",
					       driver->node, "uid", uid, "controller", 1));
	json_decref(node);
	return rc;
}

/* Takes the reply, of which it keeps the devices. */
static void keep_stored(struct ll_kubelet_driver *driver, json_t *wanted, json_t *reply)
{
	json_t *devices = json_object_get(json_object_get(reply, "spec"), "devices");
	const json_t *first = json_array_get(devices, 0);
	json_decref(driver->wanted);
	json_decref(driver->stored);
	driver->wanted = json_incref(wanted);
	driver->stored = json_incref(devices);
	if (first && !json_is_true(json_object_get(first, "allowMultipleAllocations")) && !driver->has_told) {
		ll_warn("the API server keeps no shares of devices: its feature gate DRAConsumableCapacity is off. A "
			"claim has a "
			"card alone");
		driver->has_told = true;
	}
	json_decref(reply);
}

/* old: the slice that is there; NULL: none. */
static int write_slice(struct ll_kubelet_driver *driver, const char *name, const json_t *old, json_t *devices,
		       struct ll_err *err)
{
	char path[LL_KUBELET_PATH_SIZE * 2];
	long status = 0;
	json_t *reply = NULL;
	const json_t *pool = json_object_get(json_object_get(old, "spec"), "pool");
	json_t *slice = need(json_pack(
	    "{s:s, s:s, s:{s:s, s:[O]}, s:{s:s, s:s, s:{s:s, s:I, s:i}, s:O}}", "apiVersion", "resource.k8s.io/v1",
	    "kind", "ResourceSlice", "metadata", "name", name, "ownerReferences", driver->owner, "spec", "driver",
	    LL_KUBELET_DRIVER, "nodeName", driver->node, "pool", "name", driver->node, "generation",
	    json_integer_value(json_object_get(pool, "generation")) + 1, "resourceSliceCount", 1, "devices", devices));
	json_t *version = json_object_get(json_object_get(old, "metadata"), "resourceVersion");
	if (version)
		json_object_set(json_object_get(slice, "metadata"), "resourceVersion", version);
	snprintf(path, sizeof path, SLICES "%s%s", old ? "/" : "", old ? name : "");
	int rc = ll_kubelet_api_call(&driver->api, old ? "PUT" : "POST", path, slice, &status, &reply, err);
	if (!rc && status != HTTP_OK && status != HTTP_CREATED)
		rc = ll_kubelet_api_refused("this node's ResourceSlice", status, reply, err);
	if (rc) {
		json_decref(reply);
	} else {
		keep_stored(driver, devices, reply);
		ll_info("published: %zu cards", json_array_size(devices));
	}
	json_decref(slice);
	return rc;
}

/* An API server may keep less than it was told, and writes some of it in its own way. */
static bool is_as_wanted(const struct ll_kubelet_driver *driver, const json_t *slice, const json_t *devices)
{
	const json_t *its = json_object_get(json_object_get(slice, "spec"), "devices");
	if (driver->wanted && json_equal(driver->wanted, devices))
		return driver->stored ? json_equal(its, driver->stored) : !json_array_size(its);
	return !driver->wanted && json_equal(its, devices);
}

static int publish(struct ll_kubelet_driver *driver, json_t *devices, struct ll_err *err)
{
	char name[LL_KUBELET_PATH_SIZE], path[LL_KUBELET_PATH_SIZE * 2];
	long status = 0;
	json_t *old = NULL;
	snprintf(name, sizeof name, "%s-" LL_KUBELET_DRIVER, driver->node);
	snprintf(path, sizeof path, SLICES "/%s", name);
	int rc = find_owner(driver, err);
	if (!rc)
		rc = ll_kubelet_api_call(&driver->api, "GET", path, NULL, &status, &old, err);
	if (!rc && status != HTTP_OK && status != HTTP_NOT_FOUND)
		rc = ll_kubelet_api_refused("this node's ResourceSlice", status, old, err);
	if (!rc && (status == HTTP_NOT_FOUND || !is_as_wanted(driver, old, devices)))
		rc = write_slice(driver, name, status == HTTP_OK ? old : NULL, devices, err);
	json_decref(old);
	return rc;
}

void ll_kubelet_driver_publish(struct ll_kubelet_driver *driver, struct ll_kubelet_cuts *cuts)
{
	struct ll_err err = {0};
	if (!cuts->has_news && ll_now_ns() < driver->publish_ns)
		return;
	cuts->has_news = false;
	json_t *devices = need(json_array());
	int rc = make_devices(cuts, devices, &err);
	if (!rc)
		rc = publish(driver, devices, &err);
	json_decref(devices);
	if (rc && strcmp(driver->said, err.text) != 0)
		ll_warn("%s; it is tried again each %d s", err.text, (int)(AGAIN_NS / LL_NS_PER_S));
	else if (!rc && driver->said[0])
		ll_info("the API server replies");
	snprintf(driver->said, sizeof driver->said, "%s", rc ? err.text : "");
	driver->publish_ns = ll_now_ns() + (rc ? AGAIN_NS : LOOK_NS);
}

void ll_kubelet_driver_fini(struct ll_kubelet_driver *driver)
{
	json_decref(driver->owner);
	json_decref(driver->wanted);
	json_decref(driver->stored);
	ll_kubelet_api_fini(&driver->api);
}
