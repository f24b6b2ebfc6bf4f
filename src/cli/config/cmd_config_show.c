#include "cli/config/parts.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "config/check.h"
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

enum { INDENT = 2, ORIGIN_COLUMN = 48 };

/* Whether YAML reads the text as this text without quotes. */
static bool is_plain(const struct ll_config_value *value)
{
	const char *text = value->text;
	if (value->key->kind == LL_CONFIG_CARDS || value->key->kind == LL_CONFIG_TIME || !isalnum((unsigned char)*text))
		return *text == '/' && value->key->kind == LL_CONFIG_PATH && !strpbrk(text, " :#,[]{}\\\"'");
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("-_./%", *text))
			return false;
	}
	return strcmp(value->text, "null") != 0;
}

static void add_scalar(struct ll_strbuf *out, const struct ll_config_value *value)
{
	if (is_plain(value)) {
		ll_strbuf_adds(out, value->text);
		return;
	}
	ll_strbuf_addc(out, '"');
	for (const char *c = value->text; *c; c++) {
		if (*c == '"' || *c == '\\')
			ll_strbuf_addf(out, "\\%c", *c);
		else if (iscntrl((unsigned char)*c))
			ll_strbuf_addf(out, "\\x%02x", (unsigned)(unsigned char)*c);
		else
			ll_strbuf_addc(out, *c);
	}
	ll_strbuf_addc(out, '"');
}

/* Ends a line; its value's place is a comment. */
static void end_line(struct ll_strbuf *out, const struct ll_config_value *value, bool with_origin)
{
	if (with_origin && !out->failed) {
		const char *newline = memrchr(out->buf, '\n', out->length);
		size_t width = (size_t)(out->buf + out->length - (newline ? newline + 1 : out->buf));
		ll_strbuf_addf(out, "%*s", width < ORIGIN_COLUMN ? (int)(ORIGIN_COLUMN - width) : 1, "");
		if (value->mark.file)
			ll_strbuf_addf(out, "# %s:%u:%u", value->mark.file, value->mark.line, value->mark.column);
		else
			ll_strbuf_adds(out, "# default");
	}
	ll_strbuf_addc(out, '\n');
}

/* A map that has nothing is left out: it would be no map when read again. */
static bool is_empty(const struct ll_config_value *value)
{
	if (value->key->kind != LL_CONFIG_MAP || value->is_list)
		return false;
	for (size_t i = 0; i < value->count; i++) {
		if (value->items[i] && !is_empty(value->items[i]))
			return false;
	}
	return true;
}

static void add_map(struct ll_strbuf *out, const struct ll_config_value *map, int depth, bool is_entry,
		    bool with_origin);

static void add_value(struct ll_strbuf *out, const struct ll_config_value *value, int depth, bool with_origin)
{
	bool has_maps = value->key->kind == LL_CONFIG_MAP;
	if (has_maps && !value->is_list) {
		ll_strbuf_addc(out, '\n');
		add_map(out, value, depth + 1, false, with_origin);
	} else if (has_maps && value->count) {
		ll_strbuf_addc(out, '\n');
		for (size_t i = 0; i < value->count; i++) {
			ll_strbuf_addf(out, "%*s- ", (depth + 1) * INDENT, "");
			add_map(out, value->items[i], depth + 2, true, with_origin);
		}
	} else if (value->is_list) {
		ll_strbuf_adds(out, " [");
		for (size_t i = 0; i < value->count; i++) {
			ll_strbuf_adds(out, i ? ", " : "");
			add_scalar(out, value->items[i]);
		}
		ll_strbuf_addc(out, ']');
		end_line(out, value, with_origin);
	} else {
		ll_strbuf_addc(out, ' ');
		add_scalar(out, value);
		end_line(out, value, with_origin);
	}
}

/* is_entry: the first line goes on behind "- ". */
static void add_map(struct ll_strbuf *out, const struct ll_config_value *map, int depth, bool is_entry,
		    bool with_origin)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct ll_config_value *value = map->items[i];
		if (!value || is_empty(value))
			continue;
		ll_strbuf_addf(out, "%*s%s:", is_entry ? 0 : depth * INDENT, "", value->key->name);
		is_entry = false;
		add_value(out, value, depth, with_origin);
	}
}

void ll_config_add_yaml(const struct ll_config_value *root, bool with_origin, struct ll_strbuf *out)
{
	add_map(out, root, 0, false, with_origin);
}

/* ---- show ---- */

struct show_args {
	bool with_origin;
	bool json;
};

static const struct ll_option show_options[] = {
    {.name = "origin",
     LL_OPTION_FLAG(struct show_args, with_origin),
     .help = N_("Say for each value which line of which file has it, or that it is the default.")},
    LL_OPTION_JSON(struct show_args, json),
    LL_OPTION_END,
};

static void add_idle_key(void *names, const char *path)
{
	json_array_append_new(names, json_string(path));
}

static json_t *make_idle_keys(void)
{
	json_t *names = json_array();
	if (names)
		ll_config_visit_idle(add_idle_key, names);
	return names;
}

static int print(const struct show_args *args, const struct ll_config_value *root, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf idle = LL_STRBUF_INIT;
	if (args->json)
		return ll_json_line(json_pack("{s:o, s:o}", "configuration",
					      ll_config_make_json(root, args->with_origin), "not_in_force",
					      make_idle_keys()),
				    err);
	/* What is printed is a file again, so its words are not translated. */
	if (ll_config_add_idle_keys(root, &idle))
		ll_strbuf_addf(&out, "# Not in force in this version: %s, and their defaults.\n", idle.buf);
	else
		ll_strbuf_adds(&out, "# All of it is in force in this version.\n");
	ll_config_add_yaml(root, args->with_origin, &out);
	return ll_print_text(&out, err);
}

static int run_show(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	bool has_cards;
	if (operands->count > 1)
		return ll_err_set(err, -EINVAL, "%.60s: unexpected word", operands->words[1]);
	int rc = ll_config_open(&config, operands->count ? operands->words[0] : NULL, LL_CONFIG_SCOPE_FILE, &findings,
				&has_cards, err);
	if (rc)
		ll_err_exit_with(err, LL_EXIT_FAILED);
	if (!rc)
		rc = ll_config_refuse_faults(&findings, err);
	if (!rc)
		rc = print(data, config.root, err);
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return rc;
}

static const struct ll_example show_examples[] = {
    {"loadline config show --origin", N_("Each value, and where it comes from.")},
    {"loadline config show --json | jq .configuration.tenants", N_("For a script.")},
    {NULL, NULL},
};

const struct ll_command ll_config_show_command = {
    .name = "show",
    .group = &ll_command_config,
    .summary = N_("print the effective configuration"),
    .operands = "[FILE]",
    .description = N_("Prints what the files say together, with the defaults, as one YAML file. FILE is a file or a "
		      "folder, as for `config check`. A first line names the keys that are not in force in this "
		      "version."),
    .examples = show_examples,
    .options = show_options,
    .complete = LL_COMPLETE_FILE,
    .args_size = sizeof(struct show_args),
    .run = run_show,
};

/* ---- schema ---- */

static const struct ll_option schema_options[] = {LL_OPTION_END};

static int run_schema(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	json_t *schema = ll_config_make_schema();
	(void)data, (void)operands;
	char *text = schema ? json_dumps(schema, JSON_INDENT(2)) : NULL;
	json_decref(schema);
	if (!text)
		return ll_err_set(err, -ENOMEM, "out of memory");
	ll_strbuf_addf(&out, "%s\n", text);
	free(text);
	return ll_print_text(&out, err);
}

const struct ll_command ll_config_schema_command = {
    .name = "schema",
    .group = &ll_command_config,
    .summary = N_("print a JSON schema of loadline.yaml"),
    .description = N_("Prints the table of keys as a JSON schema, with which an editor completes and checks "
		      "loadline.yaml. `config check` finds more: the schema knows no sums and no names."),
    .options = schema_options,
    .run = run_schema,
};
