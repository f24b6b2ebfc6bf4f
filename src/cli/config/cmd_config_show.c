#include <errno.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/json_line.h"
#include "cli/common/print.h"
#include "cli/config/parts.h"
#include "config/check.h"
#include "config/value.h"

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
