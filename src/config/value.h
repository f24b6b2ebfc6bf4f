/*
 * value.h - a configuration as a tree of values, each with its key and its place. Files are read into such trees, which
 * are put one over the other; the structs of config.h are filled from the result.
 */
#ifndef LOADLINE_CONFIG_VALUE_H
#define LOADLINE_CONFIG_VALUE_H

#include "config/config.h"
#include "config/keys.h"

struct ll_config_value {
	const struct ll_config_key *key; /* of an element of a list: the list's */
	bool is_list;
	bool is_bad;                /* a fault was found in it: it stands for the key, and has no content */
	bool has_bad;               /* a key or an entry of it was left out, because it has a fault */
	struct ll_config_mark mark; /* file NULL: the default */
	unsigned key_line;          /* where its key is, of a value of a map */
	const char *text;           /* of a scalar: the value in one spelling, so that equal values have equal texts */
	uint64_t number;            /* in the unit of the kind; the index of a word; 0 or 1 of a bool */
	double decimal;
	struct ll_config_cards cards;
	struct ll_config_time time;
	size_t count; /* of a map: one item for each key, NULL where it has none. Of a list: the elements */
	struct ll_config_value **items;
};

/* Makes a value without items; of a map, with room for its keys. NULL: out of memory. */
struct ll_config_value *ll_config_value_new(struct ll_config_arena *arena, const struct ll_config_key *key,
					    bool is_list, struct ll_config_mark mark);

/* Adds an item to a list. */
void ll_config_value_add(struct ll_config_arena *arena, struct ll_config_value *list, struct ll_config_value *item);

/* Returns a key's value in a map, or NULL. map may be NULL. */
struct ll_config_value *ll_config_value_get(const struct ll_config_value *map, const char *name);

/* Returns the place of a key's value; the place of the map, if the file does not have the key. map is not NULL. */
struct ll_config_mark ll_config_value_mark(const struct ll_config_value *map, const char *name);

/* Returns what tells this entry of a list from others: the text of its map's identity; NULL: nothing. */
const char *ll_config_value_identity(const struct ll_config_value *entry);

/*
 * Reads a text as a scalar of value's key into value: number, decimal, cards, time and text. -EINVAL: "'abc': why",
 * with a hint perhaps; value is unchanged.
 */
int ll_config_value_read(struct ll_config_arena *arena, const char *text, struct ll_config_value *value,
			 struct ll_err *err);

/* Puts a later file's map over an earlier one's, which is changed. */
void ll_config_value_put_over(struct ll_config_arena *arena, struct ll_config_value *map,
			      const struct ll_config_value *later);

/* Adds the defaults of keys that a map lacks, and the maps in it that it lacks, but for
 * maps with needed keys. */
void ll_config_value_add_defaults(struct ll_config_arena *arena, struct ll_config_value *map);

/* Fills the struct of a map, which is zeroed. value: a map with defaults; NULL: there is none, and no field has a
 * value. */
void ll_config_value_fill(struct ll_config_arena *arena, const struct ll_config_map *map,
			  const struct ll_config_value *value, void *fields);

#endif
