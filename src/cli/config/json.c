#include <jansson.h>

#include "base/clock.h"
#include "cli/common/json_line.h"
#include "cli/config/parts.h"
#include "config/value.h"

static json_t *make_scalar(const struct ll_config_value *value)
{
	switch (value->key->kind) {
	case LL_CONFIG_UINT:
	case LL_CONFIG_BYTES:
		return json_integer((json_int_t)value->number);
	case LL_CONFIG_DURATION:
		return ll_json_real((double)value->number / (double)LL_NS_PER_S, 9);
	case LL_CONFIG_SHARE:
		return ll_json_real((double)value->number / 10, 1);
	case LL_CONFIG_DECIMAL:
		return json_real(value->decimal);
	case LL_CONFIG_BOOL:
		return json_boolean(value->number);
	default:
		return ll_json_text(value->text);
	}
}

/* The unit is in the name, as in all JSON of loadline. */
static const char *suffix_of(const struct ll_config_key *key)
{
	switch (key->kind) {
	case LL_CONFIG_BYTES:
		return "_bytes";
	case LL_CONFIG_DURATION:
		return "_s";
	case LL_CONFIG_SHARE:
		return "_percent";
	default:
		return "";
	}
}

static json_t *make_map(const struct ll_config_value *map, bool with_origin)
{
	json_t *object = json_object();
	for (size_t i = 0; object && i < map->count; i++) {
		const struct ll_config_value *item = map->items[i];
		char name[64];
		size_t length = 0;
		if (!item)
			continue;
		for (const char *c = item->key->name; *c && length < sizeof name - 16; c++)
			name[length++] = *c == '-' ? '_' : *c;
		for (const char *c = suffix_of(item->key); *c; c++)
			name[length++] = *c;
		name[length] = '\0';
		if (json_object_set_new(object, name, ll_config_make_json(item, with_origin)) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *make_list(const struct ll_config_value *list, bool with_origin)
{
	json_t *array = json_array();
	bool has_maps = list->key->kind == LL_CONFIG_MAP;
	for (size_t i = 0; array && i < list->count; i++) {
		json_t *item =
		    has_maps ? ll_config_make_json(list->items[i], with_origin) : make_scalar(list->items[i]);
		if (json_array_append_new(array, item) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

json_t *ll_config_make_json(const struct ll_config_value *value, bool with_origin)
{
	bool is_map = value->key->kind == LL_CONFIG_MAP;
	if (is_map && !value->is_list)
		return make_map(value, with_origin);
	json_t *json = value->is_list ? make_list(value, with_origin) : make_scalar(value);
	if (!with_origin || is_map || !json)
		return json;
	if (!value->mark.file)
		return json_pack("{s:o, s:n}", "value", json, "file");
	return json_pack("{s:o, s:o, s:i, s:i}", "value", json, "file", ll_json_text(value->mark.file), "line",
			 (int)value->mark.line, "column", (int)value->mark.column);
}
