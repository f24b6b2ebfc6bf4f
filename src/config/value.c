#include "config/value.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"

struct ll_config_value *ll_config_value_new(struct ll_config_arena *arena, const struct ll_config_key *key,
					    bool is_list, struct ll_config_mark mark)
{
	struct ll_config_value *value = ll_config_alloc(arena, sizeof *value);
	if (!value)
		return NULL;
	*value = (struct ll_config_value){.key = key, .is_list = is_list, .mark = mark};
	if (key->kind != LL_CONFIG_MAP || is_list)
		return value;
	value->count = ll_config_map_count(key->map);
	value->items = ll_config_alloc(arena, value->count * sizeof(struct ll_config_value *));
	return value->items ? value : NULL;
}

void ll_config_value_add(struct ll_config_arena *arena, struct ll_config_value *list, struct ll_config_value *item)
{
	/* The room doubles at each power of two. */
	if ((list->count & (list->count - 1)) == 0) {
		size_t room = list->count ? 2 * list->count : 1;
		struct ll_config_value **items = ll_config_alloc(arena, room * sizeof(struct ll_config_value *));
		if (!items)
			return;
		if (list->count)
			memcpy(items, list->items, list->count * sizeof *items);
		list->items = items;
	}
	list->items[list->count++] = item;
}

struct ll_config_value *ll_config_value_get(const struct ll_config_value *map, const char *name)
{
	const struct ll_config_key *key = map ? ll_config_key_find(map->key->map, name) : NULL;
	return key ? map->items[key - map->key->map->keys] : NULL;
}

struct ll_config_mark ll_config_value_mark(const struct ll_config_value *map, const char *name)
{
	const struct ll_config_value *value = ll_config_value_get(map, name);
	return value && value->mark.file ? value->mark : map->mark;
}

const char *ll_config_value_identity(const struct ll_config_value *entry)
{
	const char *name = entry->key->kind == LL_CONFIG_MAP && !entry->is_list ? entry->key->map->identity : NULL;
	const struct ll_config_value *value = name ? ll_config_value_get(entry, name) : NULL;
	return value ? value->text : NULL;
}

/* ---- one file over another ---- */

static void put_entry(struct ll_config_arena *arena, struct ll_config_value *list, struct ll_config_value *entry)
{
	const char *identity = ll_config_value_identity(entry);
	for (size_t i = 0; identity && i < list->count; i++) {
		const char *other = ll_config_value_identity(list->items[i]);
		if (other && strcmp(identity, other) == 0) {
			list->items[i] = entry;
			return;
		}
	}
	ll_config_value_add(arena, list, entry);
}

void ll_config_value_put_over(struct ll_config_arena *arena, struct ll_config_value *map,
			      const struct ll_config_value *later)
{
	for (size_t i = 0; i < map->count; i++) {
		struct ll_config_value *mine = map->items[i], *theirs = later->items[i];
		if (!theirs)
			continue;
		if (mine && theirs->key->kind == LL_CONFIG_MAP && !theirs->is_list) {
			ll_config_value_put_over(arena, mine, theirs);
		} else if (mine && theirs->key->kind == LL_CONFIG_MAP && theirs->key->map->identity) {
			for (size_t j = 0; j < theirs->count; j++)
				put_entry(arena, mine, theirs->items[j]);
		} else {
			map->items[i] = theirs;
		}
	}
}

/* ---- defaults ---- */

static struct ll_config_value *read_default(struct ll_config_arena *arena, const struct ll_config_key *key,
					    const char *text, size_t length)
{
	struct ll_config_value *value = ll_config_value_new(arena, key, false, (struct ll_config_mark){0});
	char *word = ll_config_copy(arena, text, length);
	return value && word && ll_config_value_read(arena, word, value, NULL) == 0 ? value : NULL;
}

static bool has_needed(const struct ll_config_map *map)
{
	for (const struct ll_config_key *key = map->keys; key->name; key++) {
		if (key->is_needed)
			return true;
	}
	return false;
}

/* A map without needed keys is there with its defaults; one that has some is there or not. */
static struct ll_config_value *make_default(struct ll_config_arena *arena, const struct ll_config_key *key)
{
	if (key->kind == LL_CONFIG_MAP && !key->is_list && !has_needed(key->map))
		return ll_config_value_new(arena, key, false, (struct ll_config_mark){0});
	if (!key->fallback)
		return NULL;
	if (!key->is_list)
		return read_default(arena, key, key->fallback, strlen(key->fallback));
	struct ll_config_value *list = ll_config_value_new(arena, key, true, (struct ll_config_mark){0});
	for (const char *word = key->fallback; list && *word; word += strspn(word, " ")) {
		size_t length = strcspn(word, " ");
		struct ll_config_value *item = read_default(arena, key, word, length);
		if (item)
			ll_config_value_add(arena, list, item);
		word += length;
	}
	return list;
}

void ll_config_value_add_defaults(struct ll_config_arena *arena, struct ll_config_value *map)
{
	for (size_t i = 0; i < map->count; i++) {
		if (!map->items[i])
			map->items[i] = make_default(arena, &map->key->map->keys[i]);
		struct ll_config_value *value = map->items[i];
		if (!value || value->key->kind != LL_CONFIG_MAP)
			continue;
		if (!value->is_list)
			ll_config_value_add_defaults(arena, value);
		for (size_t j = 0; value->is_list && j < value->count; j++)
			ll_config_value_add_defaults(arena, value->items[j]);
	}
}

/* ---- the structs ---- */

static size_t scalar_size(const struct ll_config_key *key)
{
	switch (key->kind) {
	case LL_CONFIG_MAP:
		return key->map->size;
	case LL_CONFIG_TEXT:
	case LL_CONFIG_NAME:
	case LL_CONFIG_USER:
	case LL_CONFIG_RESOURCE:
	case LL_CONFIG_PATH:
	case LL_CONFIG_ADDRESS:
		return sizeof(const char *);
	case LL_CONFIG_CARDS:
		return sizeof(struct ll_config_cards);
	case LL_CONFIG_TIME:
		return sizeof(struct ll_config_time);
	case LL_CONFIG_WORD:
		return sizeof(int);
	case LL_CONFIG_BOOL:
		return sizeof(bool);
	case LL_CONFIG_DECIMAL:
		return sizeof(double);
	case LL_CONFIG_UINT:
	case LL_CONFIG_BYTES:
	case LL_CONFIG_DURATION:
	case LL_CONFIG_SHARE:
		break;
	}
	return sizeof(uint64_t);
}

/* value NULL: the file has none, and there is no default. */
static void fill_scalar(struct ll_config_arena *arena, const struct ll_config_key *key,
			const struct ll_config_value *value, void *field)
{
	uint64_t number = value ? value->number : LL_CONFIG_NONE;
	double decimal = value ? value->decimal : NAN;
	int word = value ? (int)value->number : -1;
	bool is_true = value && value->number;
	size_t size = scalar_size(key);
	switch (key->kind) {
	case LL_CONFIG_MAP:
		ll_config_value_fill(arena, key->map, value, field);
		return;
	case LL_CONFIG_CARDS:
		if (value)
			memcpy(field, &value->cards, size);
		return;
	case LL_CONFIG_TIME:
		if (value)
			memcpy(field, &value->time, size);
		return;
	case LL_CONFIG_WORD:
		memcpy(field, &word, size);
		return;
	case LL_CONFIG_BOOL:
		memcpy(field, &is_true, size);
		return;
	case LL_CONFIG_DECIMAL:
		memcpy(field, &decimal, size);
		return;
	case LL_CONFIG_UINT:
	case LL_CONFIG_BYTES:
	case LL_CONFIG_DURATION:
	case LL_CONFIG_SHARE:
		memcpy(field, &number, size);
		return;
	case LL_CONFIG_TEXT:
	case LL_CONFIG_NAME:
	case LL_CONFIG_USER:
	case LL_CONFIG_RESOURCE:
	case LL_CONFIG_PATH:
	case LL_CONFIG_ADDRESS:
		if (value)
			memcpy(field, &value->text, size);
		return;
	}
}

static void fill_list(struct ll_config_arena *arena, const struct ll_config_key *key,
		      const struct ll_config_value *value, void *field)
{
	size_t count = value ? value->count : 0, size = scalar_size(key);
	char *items = count ? ll_config_alloc(arena, count * size) : NULL;
	if (!items)
		return;
	for (size_t i = 0; i < count; i++)
		fill_scalar(arena, key, value->items[i], items + i * size);
	memcpy(field, &count, sizeof count);
	memcpy((char *)field + sizeof count, &items, sizeof items);
}

void ll_config_value_fill(struct ll_config_arena *arena, const struct ll_config_map *map,
			  const struct ll_config_value *value, void *fields)
{
	if (value && value->mark.file)
		memcpy(fields, &value, sizeof(const struct ll_config_value *));
	for (size_t i = 0; map->keys[i].name; i++) {
		const struct ll_config_key *key = &map->keys[i];
		const struct ll_config_value *item = value ? value->items[i] : NULL;
		if (key->is_list)
			fill_list(arena, key, item, (char *)fields + key->offset);
		else
			fill_scalar(arena, key, item, (char *)fields + key->offset);
	}
}
