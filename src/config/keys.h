/*
 * keys.h - the one table of the keys of loadline.yaml. The parser, the manual page loadline.yaml(5), the JSON schema,
 * `config show` and `config diff` all come from it.
 */
#ifndef LOADLINE_CONFIG_KEYS_H
#define LOADLINE_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum ll_config_kind {
	LL_CONFIG_MAP,      /* a struct of .map */
	LL_CONFIG_TEXT,     /* const char *, not empty */
	LL_CONFIG_NAME,     /* the same of letters, digits and -_.  */
	LL_CONFIG_USER,     /* the same of what a user, a group or an account may be called; "*" is one */
	LL_CONFIG_RESOURCE, /* the same of DOMAIN/NAME */
	LL_CONFIG_PATH,     /* the same, absolute */
	LL_CONFIG_ADDRESS,  /* the same, HOST:PORT or unix:/PATH */
	LL_CONFIG_CARDS,    /* struct ll_config_cards */
	LL_CONFIG_TIME,     /* struct ll_config_time */
	LL_CONFIG_WORD,     /* int, an index of .words */
	LL_CONFIG_BOOL,     /* bool */
	LL_CONFIG_UINT,     /* uint64_t, .min to .max */
	LL_CONFIG_DECIMAL,  /* double, .min to .max */
	LL_CONFIG_BYTES,    /* uint64_t bytes */
	LL_CONFIG_DURATION, /* uint64_t nanoseconds */
	LL_CONFIG_SHARE,    /* uint64_t permille, .max in percent */
};

struct ll_config_map;

struct ll_config_key {
	const char *name; /* NULL ends a table */
	enum ll_config_kind kind;
	bool is_list; /* a list of this kind: a count and a pointer, in this order */
	bool is_set;  /* a list whose order means nothing */
	bool is_needed;
	bool is_in_force;     /* of the root: in this version something acts on it */
	bool is_idle;         /* of a map whose key is in force: in this version nothing acts on it yet */
	size_t offset;        /* in the struct of the map; set by the macros of keys.c */
	const char *fallback; /* the default, as a file would have it; a list's words with blanks between; NULL: none */
	bool was_address; /* of a path: it was LL_CONFIG_ADDRESS in an older version; load.c leaves such a value out */
	const char *const *words; /* NULL-ended */
	double min, max;          /* max 0: no limit */
	const struct ll_config_map *map;
	const char *help; /* whole sentences, in English */
};

struct ll_config_map {
	const char *identity; /* the key by which entries of a list are told apart: a later file's entry replaces the
				 earlier one. NULL: a later file's list replaces the list */
	size_t size;          /* of the struct, whose first member is `from` */
	const struct ll_config_key *keys;
};

/* The whole file. */
extern const struct ll_config_key ll_config_root;

/* Words of loadline.yaml that several rooms use, NULL-ended. */
extern const char *const ll_config_classes[], *const ll_config_conditions[], *const ll_config_events[],
										 *const ll_config_signals[];

/* Returns the number of keys of a map. */
size_t ll_config_map_count(const struct ll_config_map *map);

/* Returns the key of a map with that name, or NULL. */
const struct ll_config_key *ll_config_key_find(const struct ll_config_map *map, const char *name);

/* Calls visit with each key that is not in force: of the root by its name, of its maps by a path such as
 * "tenants.budget". */
void ll_config_visit_idle(void (*visit)(void *data, const char *path), void *data);

/* Returns what a value of this kind looks like, such as "a size such as 20G". English. */
const char *ll_config_kind_example(enum ll_config_kind kind);

#endif
