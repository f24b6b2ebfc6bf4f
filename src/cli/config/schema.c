#include <jansson.h>

#include "base/strbuf.h"
#include "cli/config/parts.h"
#include "config/keys.h"

static json_t *make_key(const struct ll_config_key *key, bool is_list);

/* The texts that a scalar of this kind may have, as far as a regular expression says it. */
static const char *pattern_of(enum ll_config_kind kind)
{
	switch (kind) {
	case LL_CONFIG_NAME:
		return "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$";
	case LL_CONFIG_PATH:
		return "^/";
	case LL_CONFIG_RESOURCE:
		return "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$";
	case LL_CONFIG_BYTES:
		return "^(0|[0-9]*\\.?[0-9]+[BKMGTbkmgt](i[Bb])?)$";
	case LL_CONFIG_DURATION:
		return "^(0|[0-9]*\\.?[0-9]+(ns|us|ms|s|m|h|d))$";
	case LL_CONFIG_SHARE:
		return "^(0|[0-9]+(\\.[0-9])?%)$";
	case LL_CONFIG_CARDS:
		return "^[0-9]+([-:][0-9]+)?( *, *[0-9]+([-:][0-9]+)?)*$";
	case LL_CONFIG_TIME:
		return "^([0-9]{4}-[0-9]{2}-[0-9]{2} )?[0-9]{2}:[0-9]{2}$";
	default:
		return NULL;
	}
}

static json_t *make_words(const char *const *words)
{
	json_t *list = json_array();
	for (; *words; words++)
		json_array_append_new(list, json_string(*words));
	return list;
}

static json_t *make_scalar(const struct ll_config_key *key)
{
	const char *pattern = pattern_of(key->kind);
	json_t *schema = json_object();
	switch (key->kind) {
	case LL_CONFIG_WORD:
		json_object_set_new(schema, "enum", make_words(key->words));
		return schema;
	case LL_CONFIG_BOOL:
		json_object_set_new(schema, "type", json_string("boolean"));
		return schema;
	case LL_CONFIG_UINT:
	case LL_CONFIG_DECIMAL:
		json_object_set_new(schema, "type", json_string(key->kind == LL_CONFIG_UINT ? "integer" : "number"));
		json_object_set_new(schema, "minimum", json_integer((json_int_t)key->min));
		if (key->max > 0)
			json_object_set_new(schema, "maximum", json_integer((json_int_t)key->max));
		return schema;
	case LL_CONFIG_CARDS:
		/* A single index without quotes is a number in YAML's schema. */
		json_object_set_new(schema, "type", json_pack("[s, s]", "string", "integer"));
		break;
	default:
		json_object_set_new(schema, "type", json_string("string"));
	}
	if (pattern)
		json_object_set_new(schema, "pattern", json_string(pattern));
	return schema;
}

static json_t *make_map(const struct ll_config_map *map)
{
	json_t *properties = json_object(), *needed = json_array();
	for (const struct ll_config_key *key = map->keys; key->name; key++) {
		json_t *schema = make_key(key, key->is_list);
		LL_SCOPE_STRBUF struct ll_strbuf help = LL_STRBUF_INIT;
		ll_strbuf_adds(&help, key->help);
		if (key->fallback)
			ll_strbuf_addf(&help, " Default: %s.", key->fallback);
		json_object_set_new(schema, "description", json_string(help.buf));
		json_object_set_new(properties, key->name, schema);
		if (key->is_needed)
			json_array_append_new(needed, json_string(key->name));
	}
	return json_pack("{s:s, s:b, s:o, s:o}", "type", "object", "additionalProperties", 0, "properties", properties,
			 "required", needed);
}

static json_t *make_key(const struct ll_config_key *key, bool is_list)
{
	if (is_list)
		return json_pack("{s:s, s:o}", "type", "array", "items", make_key(key, false));
	return key->kind == LL_CONFIG_MAP ? make_map(key->map) : make_scalar(key);
}

json_t *ll_config_make_schema(void)
{
	json_t *schema = make_key(&ll_config_root, false);
	json_object_set_new(schema, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
	json_object_set_new(schema, "title", json_string("loadline.yaml"));
	return schema;
}
