/*
 * parts.h - what the commands of `loadline config` share: a configuration read, checked against this machine, and what
 * was found.
 */
#ifndef LOADLINE_CLI_CONFIG_PARTS_H
#define LOADLINE_CLI_CONFIG_PARTS_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/options/command.h"
#include "config/config.h"

struct ll_config_value;
struct ll_strbuf;

extern const struct ll_command ll_config_check_command, ll_config_show_command, ll_config_diff_command,
    ll_config_schema_command, ll_config_try_command;

/* How much of this machine a configuration is compared with. */
enum ll_config_scope {
	LL_CONFIG_SCOPE_FILE,    /* nothing */
	LL_CONFIG_SCOPE_MACHINE, /* its cards, if there is a driver, its users and groups */
};

/*
 * Reads and checks a configuration; findings are sorted. path: as ll_config_load. *ret_has_cards: the
 * cards of this machine were looked at; not if there is no driver.
 */
int ll_config_open(struct ll_config *config, const char *path, enum ll_config_scope scope,
		   struct ll_config_findings *findings, bool *ret_has_cards, struct ll_err *err);

/* Adds a line for each fault, and for each warning if with_warnings: FILE:LINE:COLUMN: fault: text. */
void ll_config_add_findings(const struct ll_config_findings *findings, bool with_warnings, struct ll_strbuf *out);

/* Returns an error if there are faults; they are printed on standard error. */
int ll_config_refuse_faults(const struct ll_config_findings *findings, struct ll_err *err);

/* Adds the effective configuration as YAML. with_origin: each value's place in a comment. */
void ll_config_add_yaml(const struct ll_config_value *root, bool with_origin, struct ll_strbuf *out);

/* Returns it as JSON: sizes in bytes, times in seconds, shares in percent are numbers; NULL: out of memory.
 * with_origin: each value is {"value", "file", "line", "column"}; file null is the default. */
json_t *ll_config_make_json(const struct ll_config_value *value, bool with_origin);

/* Adds a line for each difference, "path: old -> new"; "+" and "-" before what is new or gone. Returns their number. */
size_t ll_config_add_changes(const struct ll_config_value *before, const struct ll_config_value *after,
			     struct ll_strbuf *out);

/* Returns a JSON schema of loadline.yaml; NULL: out of memory. */
json_t *ll_config_make_schema(void);

#endif
