#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "kubelet/plugin.h"
#include "protocol/client.h"

/* ---- the description ---- */

const char *ll_kubelet_device_word(const json_t *device, const char *word)
{
	const json_t *hooks = json_object_get(json_object_get(device, "containerEdits"), "hooks");
	const json_t *words = json_object_get(json_array_get(hooks, 0), "args");
	for (size_t i = 0; i + 1 < json_array_size(words); i++) {
		const char *text = json_string_value(json_array_get(words, i));
		if (text && strcmp(text, word) == 0)
			return json_string_value(json_array_get(words, i + 1));
	}
	return NULL;
}

static bool read_cut(const json_t *device, struct ll_kubelet_cut *cut)
{
	*cut = (struct ll_kubelet_cut){.id = json_string_value(json_object_get(device, "name")),
				       .uuid = ll_kubelet_device_word(device, "--cards"),
				       .resource = ll_kubelet_device_word(device, "--resource"),
				       .is_part = ll_kubelet_device_word(device, "--mem") ||
						  ll_kubelet_device_word(device, "--compute"),
				       .numa_node = -1};
	return cut->id && cut->uuid && cut->resource && strchr(cut->resource, '/');
}

int ll_kubelet_cuts_read(struct ll_kubelet_cuts *ret_cuts, const char *path, const char *kind,
			 const struct ll_place *place, struct ll_err *err)
{
	json_error_t why;
	size_t index;
	const json_t *device;
	*ret_cuts = (struct ll_kubelet_cuts){.place = *place};
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	ret_cuts->description = json_load_file(path, 0, &why);
	if (!ret_cuts->description)
		return ll_err_set(err, -EINVAL, "%.200s: %s", path, why.text);
	const char *its_kind = json_string_value(json_object_get(ret_cuts->description, "kind"));
	const json_t *devices = json_object_get(ret_cuts->description, "devices");
	if (!its_kind || strcmp(its_kind, kind) != 0)
		return ll_err_set(err, -EINVAL, "%.200s: its kind is not %s", path, kind);
	ret_cuts->items = calloc(json_array_size(devices) + 1, sizeof *ret_cuts->items);
	if (!ret_cuts->items)
		return ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	json_array_foreach(devices, index, device)
	{
		if (!read_cut(device, &ret_cuts->items[ret_cuts->count++]))
			return ll_err_set(err, -EINVAL, "%.200s: device %zu is not of this version of loadline", path,
					  index);
	}
	return 0;
}

void ll_kubelet_cuts_fini(struct ll_kubelet_cuts *cuts)
{
	json_decref(cuts->description);
	free(cuts->items);
	*cuts = (struct ll_kubelet_cuts){.description = NULL};
}

const struct ll_kubelet_cut *ll_kubelet_cuts_find(const struct ll_kubelet_cuts *cuts, const char *resource,
						  const char *id)
{
	for (size_t i = 0; i < cuts->count; i++) {
		if (strcmp(cuts->items[i].id, id) == 0 && strcmp(cuts->items[i].resource, resource) == 0)
			return &cuts->items[i];
	}
	return NULL;
}

/* ---- the cards ---- */

static bool serves(const struct ll_sensed *sensed, const struct ll_message_sense_card *card)
{
	if (!card || (card->flags & (LL_SENSE_IS_LOST | LL_SENSE_HAS_SLICES)))
		return false;
	for (size_t i = 0; i < sensed->drained_count; i++) {
		const struct ll_message_sense_drained *drained = &sensed->drained[i];
		if (drained->index == card->index && drained->since_s <= (uint64_t)time(NULL))
			return false;
	}
	return true;
}

static void look_at(struct ll_kubelet_cuts *cuts, struct ll_kubelet_cut *cut, const struct ll_sensed *sensed)
{
	const struct ll_message_sense_card *card = NULL;
	for (size_t i = 0; sensed && i < sensed->card_count; i++) {
		if (strcmp(sensed->cards[i].uuid, cut->uuid) == 0)
			card = &sensed->cards[i];
	}
	bool is_healthy = sensed && serves(sensed, card);
	int32_t node = card ? card->numa_node : cut->numa_node;
	cuts->has_news |= is_healthy != cut->is_healthy || node != cut->numa_node;
	cut->is_healthy = is_healthy;
	cut->numa_node = node;
}

static int ask_loadlined(const struct ll_place *place, struct ll_sensed *sensed, struct ll_err *err)
{
	struct ll_client client;
	uint64_t until_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_client_open(&client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), until_ns, err);
	if (!rc)
		rc = ll_sensed_read(sensed, &client, until_ns, err);
	if (!rc && sensed->end.silent_ns > LL_SENSED_FRESH_NS)
		rc = ll_err_set(err, -EAGAIN, "loadline-sensor reports nothing");
	ll_client_close(&client);
	return rc ? ll_err_wrap(err, "the system's loadlined at %s", place->name) : 0;
}

int ll_kubelet_cuts_look(struct ll_kubelet_cuts *cuts, struct ll_err *err)
{
	struct ll_sensed sensed = {0};
	int rc = ask_loadlined(&cuts->place, &sensed, err);
	uint64_t now_ns = ll_now_ns();
	if (!rc)
		cuts->looked_ns = now_ns;
	bool may_be_back = rc && cuts->looked_ns && now_ns - cuts->looked_ns < LL_SENSED_FRESH_NS;
	for (size_t i = 0; !may_be_back && i < cuts->count; i++)
		look_at(cuts, &cuts->items[i], rc ? NULL : &sensed);
	ll_sensed_fini(&sensed);
	return rc;
}
