#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/config/parts.h"
#include "config/value.h"

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
