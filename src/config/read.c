#include "config/read.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/translate.h"

struct reader {
	struct ll_config_arena *arena;
	const char *file;
	struct ll_config_findings *findings;
	yaml_document_t *document;
};

static struct ll_config_mark mark_at(const struct reader *reader, const yaml_mark_t *at)
{
	return (struct ll_config_mark){reader->file, (unsigned)at->line + 1, (unsigned)at->column + 1};
}

/* ---- the text as YAML ---- */

/* A fault of libyaml. Bytes that are no UTF-8 have an offset, and no mark. */
static void add_syntax_fault(const struct reader *reader, const yaml_parser_t *parser, const char *text, size_t length)
{
	struct ll_config_mark mark = mark_at(reader, &parser->problem_mark);
	const char *problem = parser->problem ? parser->problem : "?";
	if (parser->error == YAML_MEMORY_ERROR) {
		reader->findings->failed = true;
		return;
	}
	if (parser->error == YAML_READER_ERROR) {
		mark.line = mark.column = 1;
		for (size_t i = 0; i < parser->problem_offset && i < length; i++) {
			mark.column = text[i] == '\n' ? 1 : mark.column + 1;
			mark.line += text[i] == '\n';
		}
	}
	ll_config_fault(reader->findings, mark, "not YAML: %s", problem);
}

/* Returns whether the event is fine; if not, there is a fault. */
static bool check_properties(const struct reader *reader, const yaml_mark_t *at, const yaml_char_t *anchor,
			     const yaml_char_t *tag)
{
	if (anchor)
		ll_config_fault(reader->findings, mark_at(reader, at),
				"anchor '&%.60s': not supported: write the value out", (const char *)anchor);
	if (tag)
		ll_config_fault(reader->findings, mark_at(reader, at), "tag '%.60s': not supported", (const char *)tag);
	return !anchor && !tag;
}

/* depth: of open maps and lists. documents: that have begun. */
static bool check_event(const struct reader *reader, const yaml_event_t *event, unsigned *depth, unsigned *documents)
{
	const yaml_mark_t *at = &event->start_mark;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (event->data.document_start.version_directive ||
		    event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end) {
			ll_config_fault(reader->findings, mark_at(reader, at), "directives are not supported");
			return false;
		}
		if (++*documents == 1)
			return true;
		ll_config_fault(reader->findings, mark_at(reader, at), "a second document: a file has one");
		return false;
	case YAML_ALIAS_EVENT:
		ll_config_fault(reader->findings, mark_at(reader, at),
				"alias '*%.60s': not supported: write the value out",
				(const char *)event->data.alias.anchor);
		return false;
	case YAML_SCALAR_EVENT:
		return check_properties(reader, at, event->data.scalar.anchor, event->data.scalar.tag);
	case YAML_SEQUENCE_START_EVENT:
		++*depth;
		return check_properties(reader, at, event->data.sequence_start.anchor, event->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		++*depth;
		return check_properties(reader, at, event->data.mapping_start.anchor, event->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		--*depth;
		return true;
	default:
		return true;
	}
}

/* Looks at the events before a document is made of them: aliases in a document would be maps with themselves inside. */
static bool check_events(const struct reader *reader, const char *text, size_t length)
{
	yaml_parser_t parser;
	bool is_good = true, has_ended = false;
	unsigned depth = 0, documents = 0;
	if (!yaml_parser_initialize(&parser)) {
		reader->findings->failed = true;
		return false;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	while (!has_ended) {
		yaml_event_t event;
		if (!yaml_parser_parse(&parser, &event)) {
			add_syntax_fault(reader, &parser, text, length);
			is_good = false;
			break;
		}
		is_good = check_event(reader, &event, &depth, &documents) && is_good;
		if (depth > LL_CONFIG_DEPTH_MAX) {
			ll_config_fault(reader->findings, mark_at(reader, &event.start_mark),
					"more than %d maps and lists inside each other", LL_CONFIG_DEPTH_MAX);
			is_good = false;
		}
		has_ended = event.type == YAML_STREAM_END_EVENT || depth > LL_CONFIG_DEPTH_MAX;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return is_good;
}

/* ---- nodes ---- */

static struct ll_config_value *read_node(const struct reader *reader, const yaml_node_t *node,
					 const struct ll_config_key *key, bool is_list);

/* The value stands for the key, so that nobody says that the key is missing. */
static struct ll_config_value *make_bad(const struct reader *reader, const yaml_node_t *node,
					const struct ll_config_key *key, bool is_list)
{
	struct ll_config_value *value =
	    ll_config_value_new(reader->arena, key, is_list, mark_at(reader, &node->start_mark));
	if (value)
		value->is_bad = true;
	return value;
}

static bool is_nothing(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;
	return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static struct ll_config_value *read_scalar(const struct reader *reader, const yaml_node_t *node,
					   const struct ll_config_key *key)
{
	struct ll_config_mark mark = mark_at(reader, &node->start_mark);
	struct ll_err err = {0};
	if (node->type != YAML_SCALAR_NODE) {
		ll_config_fault(reader->findings, mark, "%s: takes one value, no list and no map", key->name);
		return make_bad(reader, node, key, false);
	}
	const char *text = (const char *)node->data.scalar.value;
	if (strlen(text) != node->data.scalar.length) {
		ll_config_fault(reader->findings, mark, "%s: has a NUL", key->name);
		return make_bad(reader, node, key, false);
	}
	struct ll_config_value *value = ll_config_value_new(reader->arena, key, false, mark);
	if (value && ll_config_value_read(reader->arena, text, value, &err)) {
		ll_config_fault(reader->findings, mark, "%s: %s", key->name, err.text);
		value->is_bad = true;
	}
	return value;
}

static const struct ll_config_value *find_same(const struct ll_config_value *list, const struct ll_config_value *item)
{
	const char *identity = ll_config_value_identity(item);
	for (size_t i = 0; i < list->count; i++) {
		const struct ll_config_value *other = list->items[i];
		const char *others = ll_config_value_identity(other);
		bool is_scalar = item->key->kind != LL_CONFIG_MAP && item->text && other->text;
		if ((identity && others && strcmp(identity, others) == 0) ||
		    (is_scalar && strcmp(item->text, other->text) == 0))
			return other;
	}
	return NULL;
}

static struct ll_config_value *read_list(const struct reader *reader, const yaml_node_t *node,
					 const struct ll_config_key *key)
{
	struct ll_config_mark mark = mark_at(reader, &node->start_mark);
	struct ll_config_value *list = ll_config_value_new(reader->arena, key, true, mark);
	if (node->type != YAML_SEQUENCE_NODE) {
		ll_config_fault(reader->findings, mark, "%s: not a list; one entry is a list too: [entry]", key->name);
		return make_bad(reader, node, key, true);
	}
	for (const yaml_node_item_t *item = node->data.sequence.items.start;
	     list && item < node->data.sequence.items.top; item++) {
		const yaml_node_t *child = yaml_document_get_node(reader->document, *item);
		struct ll_config_value *value = read_node(reader, child, key, false);
		const struct ll_config_value *same = value ? find_same(list, value) : NULL;
		const char *name = same ? ll_config_value_identity(value) : NULL;
		list->has_bad |= same != NULL;
		if (same)
			ll_config_fault(reader->findings, value->mark, "%s: '%.60s' is there twice, first on line %u",
					key->name, name ? name : value->text, same->mark.line);
		else if (value)
			ll_config_value_add(reader->arena, list, value);
	}
	return list;
}

static void add_unknown_key(const struct reader *reader, const yaml_node_t *node, const struct ll_config_key *key)
{
	struct ll_config_mark mark = mark_at(reader, &node->start_mark);
	const char *name = (const char *)node->data.scalar.value;
	struct ll_nearest nearest = {.word = name};
	for (const struct ll_config_key *known = key->map->keys; known->name; known++)
		ll_nearest_offer(&nearest, known->name);
	if (nearest.name)
		ll_config_fault(reader->findings, mark, "unknown key '%.60s': did you mean '%s'?", name, nearest.name);
	else if (*key->name)
		ll_config_fault(reader->findings, mark, "unknown key '%.60s' in '%s'", name, key->name);
	else
		ll_config_fault(reader->findings, mark, "unknown key '%.60s'", name);
}

static void read_pair(const struct reader *reader, const yaml_node_pair_t *pair, struct ll_config_value *map)
{
	const yaml_node_t *name = yaml_document_get_node(reader->document, pair->key);
	const yaml_node_t *node = yaml_document_get_node(reader->document, pair->value);
	struct ll_config_mark mark = mark_at(reader, &name->start_mark);
	if (name->type != YAML_SCALAR_NODE) {
		ll_config_fault(reader->findings, mark, "a key is a word");
		return;
	}
	const struct ll_config_key *key = ll_config_key_find(map->key->map, (const char *)name->data.scalar.value);
	if (!key) {
		add_unknown_key(reader, name, map->key);
		map->has_bad = true;
		return;
	}
	struct ll_config_value **slot = &map->items[key - map->key->map->keys];
	if (*slot) {
		ll_config_fault(reader->findings, mark, "%s: the key is there twice, first on line %u", key->name,
				(*slot)->key_line);
	} else if (is_nothing(node)) {
		ll_config_fault(reader->findings, mark, "%s: no value: leave the key out for its default", key->name);
		*slot = make_bad(reader, node, key, key->is_list);
	} else {
		*slot = read_node(reader, node, key, key->is_list);
	}
	if (*slot && !(*slot)->key_line)
		(*slot)->key_line = mark.line;
}

static struct ll_config_value *read_map(const struct reader *reader, const yaml_node_t *node,
					const struct ll_config_key *key)
{
	struct ll_config_mark mark = mark_at(reader, &node->start_mark);
	struct ll_config_value *map = ll_config_value_new(reader->arena, key, false, mark);
	if (node->type != YAML_MAPPING_NODE) {
		if (*key->name)
			ll_config_fault(reader->findings, mark, "%s: not a map such as {key: value}", key->name);
		else
			ll_config_fault(reader->findings, mark, "not a map such as {key: value}");
		return make_bad(reader, node, key, false);
	}
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; map && pair < node->data.mapping.pairs.top;
	     pair++)
		read_pair(reader, pair, map);
	return map;
}

static struct ll_config_value *read_node(const struct reader *reader, const yaml_node_t *node,
					 const struct ll_config_key *key, bool is_list)
{
	if (is_list)
		return read_list(reader, node, key);
	return key->kind == LL_CONFIG_MAP ? read_map(reader, node, key) : read_scalar(reader, node, key);
}

static struct ll_config_value *read_document(struct reader *reader, const char *text, size_t length)
{
	yaml_document_t document;
	yaml_parser_t parser;
	struct ll_config_value *root = NULL;
	if (!yaml_parser_initialize(&parser)) {
		reader->findings->failed = true;
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	if (!yaml_parser_load(&parser, &document)) {
		add_syntax_fault(reader, &parser, text, length);
	} else {
		const yaml_node_t *node = yaml_document_get_root_node(&document);
		reader->document = &document;
		/* A file of comments alone is empty, and says nothing. */
		root = node ? read_map(reader, node, &ll_config_root)
			    : ll_config_value_new(reader->arena, &ll_config_root, false,
						  (struct ll_config_mark){reader->file, 1, 1});
		reader->document = NULL;
		yaml_document_delete(&document);
	}
	yaml_parser_delete(&parser);
	return root && !root->is_bad ? root : NULL;
}

struct ll_config_value *ll_config_read(struct ll_config_arena *arena, const char *file, const char *text, size_t length,
				       struct ll_config_findings *findings)
{
	struct reader reader = {.arena = arena, .file = file, .findings = findings};
	if (length > LL_CONFIG_BYTES_MAX) {
		ll_config_fault(findings, (struct ll_config_mark){file, 0, 0}, "larger than %d KiB",
				LL_CONFIG_BYTES_MAX / 1024);
		return NULL;
	}
	return check_events(&reader, text, length) ? read_document(&reader, text, length) : NULL;
}
