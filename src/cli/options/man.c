#include "cli/options/help_text.h"

#include <ctype.h>

#include "base/strbuf.h"
#include "cli/options/command.h"
#include "cli/options/option.h"
#include "config/keys.h"

/* Adds text escaped, so that roff prints it literally: no requests, no escapes, real hyphens. */
static void add_escaped(struct ll_strbuf *out, const char *text, size_t length)
{
	bool at_line_start = !out->length || out->buf[out->length - 1] == '\n';
	for (size_t i = 0; i < length && text[i]; i++) {
		if (at_line_start && (text[i] == '.' || text[i] == '\''))
			ll_strbuf_adds(out, "\\&");
		if (text[i] == '\\')
			ll_strbuf_adds(out, "\\e");
		else if (text[i] == '-')
			ll_strbuf_adds(out, "\\-");
		else if (text[i] == '\'')
			ll_strbuf_adds(out, "\\(aq");
		else
			ll_strbuf_addc(out, text[i]);
		at_line_start = text[i] == '\n';
	}
}

static void add_line(struct ll_strbuf *out, const char *text)
{
	add_escaped(out, text, SIZE_MAX);
	ll_strbuf_addc(out, '\n');
}

static void add_section(struct ll_strbuf *out, const char *title)
{
	ll_strbuf_addf(out, ".SH %s\n", title);
}

static void add_paragraphs(struct ll_strbuf *out, const char *text)
{
	for (bool is_first = true; *text; is_first = false) {
		const char *next;
		size_t length = ll_wrap_paragraph(text, &next);
		ll_strbuf_adds(out, is_first ? "" : ".PP\n");
		ll_strbuf_adds(out, *text == ' ' ? ".EX\n" : "");
		add_escaped(out, text, length);
		ll_strbuf_adds(out, *text == ' ' ? "\n.EE\n" : "\n");
		text = next;
	}
}

static void add_head(struct ll_strbuf *out, const char *suffix, const char *summary)
{
	LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
	ll_strbuf_addf(&name, "loadline%s%s", *suffix ? "-" : "", suffix);
	ll_strbuf_adds(out, ".TH ");
	for (const char *c = name.buf; *c; c++)
		ll_strbuf_addc(out, (char)toupper((unsigned char)*c));
	ll_strbuf_addf(out, " 1 \"\" \"loadline %s\" \"User Commands\"\n", LOADLINE_VERSION);
	add_section(out, "NAME");
	add_escaped(out, name.buf, SIZE_MAX);
	ll_strbuf_adds(out, " \\- ");
	add_line(out, summary);
}

static void add_synopsis(struct ll_strbuf *out, const struct ll_command *command)
{
	LL_SCOPE_STRBUF struct ll_strbuf usage = LL_STRBUF_INIT;
	ll_help_usage(command, &usage);
	add_section(out, "SYNOPSIS");
	ll_strbuf_adds(out, ".B loadline\n");
	add_line(out, usage.buf);
}

static void add_options(struct ll_strbuf *out, const struct ll_option *option)
{
	for (; option->name; option++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_strbuf_adds(out, ".TP\n\\fB");
		ll_help_signature(option, &text);
		add_escaped(out, text.buf, text.length);
		ll_strbuf_adds(out, "\\fR\n");
		ll_strbuf_reset(&text);
		ll_help_option(option, &text);
		add_paragraphs(out, text.buf);
	}
	ll_strbuf_adds(out, ".TP\n\\fB\\-h, \\-\\-help\\fR\nPrint a short help and exit.\n");
}

static void add_examples(struct ll_strbuf *out, const struct ll_example *example)
{
	for (; example->line; example++) {
		ll_strbuf_adds(out, ".TP\n\\fB");
		add_escaped(out, example->line, SIZE_MAX);
		ll_strbuf_adds(out, "\\fR\n");
		add_line(out, example->does);
	}
}

static void add_statuses(struct ll_strbuf *out, const struct ll_help_status *row)
{
	for (; row->meaning; row++) {
		ll_strbuf_addf(out, ".TP\n\\fB%d\\fR\n", row->status);
		add_line(out, row->meaning);
	}
}

/* Adds the subcommands of a group, one after the other. */
static void add_subcommands(struct ll_strbuf *out, const struct ll_command *const *command)
{
	add_section(out, "COMMANDS");
	for (; *command; command++) {
		LL_SCOPE_STRBUF struct ll_strbuf usage = LL_STRBUF_INIT;
		ll_help_usage(*command, &usage);
		ll_strbuf_adds(out, ".SS loadline ");
		add_line(out, usage.buf);
		add_paragraphs(out, (*command)->description);
		add_options(out, (*command)->options);
		if ((*command)->statuses) {
			ll_strbuf_adds(out, ".PP\nExit status:\n");
			add_statuses(out, (*command)->statuses);
		}
		if ((*command)->examples)
			add_examples(out, (*command)->examples);
	}
}

static void add_see_also(struct ll_strbuf *out, const struct ll_command *self)
{
	add_section(out, "SEE ALSO");
	ll_strbuf_adds(out, self ? "\\fBloadline\\fR(1)" : "");
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		if (*command != self)
			ll_strbuf_addf(out, "%s\\fBloadline\\-%s\\fR(1)", self || command != ll_commands ? ", " : "",
				       (*command)->name);
	}
	ll_strbuf_addc(out, '\n');
}

static const struct ll_example environment[] = {
    {"LD_LIBRARY_PATH", "Folders in which the driver's libraries are looked for. --sim puts the simulator's "
			"folder in front."},
    {"LOADLINE_SIM_DIR",
     "The folder of the simulated world. Default: $XDG_RUNTIME_DIR/loadline-sim, or /tmp/loadline-sim-UID."},
    {"LOADLINE_SIM_SCENARIO", "The file that describes the simulated world; --sim=SCENARIO sets it."},
    {"LOADLINE_RUN", "The limits of `loadline run`, for the programs that it starts. `loadline run` sets this "
		     "variable itself."},
    {"LOADLINE_SHIM", "The library that `loadline run` preloads, if it is not beside the program."},
    {"CUDA_MPS_PIPE_DIRECTORY",
     "The folder where `loadline mps` and `loadline run --by space` look for the MPS daemon, "
     "and where `loadline mps start` starts one."},
    {"XDG_RUNTIME_DIR",
     "What is known of memory that programs share is in its subfolder loadline; if it is unset, in /tmp/loadline-UID."},
    {"XDG_STATE_HOME",
     "What programs did beside others is kept in its subfolder loadline, for `loadline status`, `loadline "
     "doctor` and `loadline run --by auto`; if it is unset, in ~/.local/state/loadline."},
    {NULL, NULL},
};

static void add_environment(struct ll_strbuf *out)
{
	add_section(out, "ENVIRONMENT");
	for (const struct ll_example *row = environment; row->line; row++) {
		ll_strbuf_addf(out, ".TP\n\\fB%s\\fR\n", row->line);
		add_line(out, row->does);
	}
}

void ll_man_command(const struct ll_command *command, struct ll_strbuf *out)
{
	char name[LL_COMMAND_NAME_SIZE];
	add_head(out, ll_command_name(command, '-', name), command->summary);
	add_synopsis(out, command);
	add_section(out, "DESCRIPTION");
	add_paragraphs(out, command->description);
	if (command->subcommands)
		add_subcommands(out, command->subcommands);
	add_section(out, "OPTIONS");
	add_options(out, command->options);
	if (command->examples) {
		add_section(out, "EXAMPLES");
		add_examples(out, command->examples);
	}
	add_section(out, "EXIT STATUS");
	add_statuses(out, command->statuses ? command->statuses : ll_help_statuses);
	add_see_also(out, command);
}

void ll_man_program(struct ll_strbuf *out)
{
	add_head(out, "", "share NVIDIA cards, and keep them at a chosen load");
	add_synopsis(out, NULL);
	add_section(out, "DESCRIPTION");
	add_paragraphs(out, ll_help_about);
	add_section(out, "COMMANDS");
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		ll_strbuf_addf(out, ".TP\n\\fB%s\\fR\n", (*command)->name);
		add_line(out, (*command)->summary);
	}
	add_section(out, "GLOBAL OPTIONS");
	add_options(out, ll_global_options);
	add_environment(out);
	add_section(out, "EXIT STATUS");
	add_statuses(out, ll_help_statuses);
	add_see_also(out, NULL);
}

/* ---- loadline.yaml(5) ---- */

static void add_key_facts(struct ll_strbuf *out, const struct ll_config_key *key)
{
	LL_SCOPE_STRBUF struct ll_strbuf facts = LL_STRBUF_INIT;
	bool is_number = key->kind == LL_CONFIG_UINT || key->kind == LL_CONFIG_DECIMAL || key->kind == LL_CONFIG_SHARE;
	const char *sign = key->kind == LL_CONFIG_SHARE ? "%" : "";
	ll_strbuf_adds(&facts, key->is_list ? "A list of entries, each " : "Its value is ");
	ll_strbuf_adds(&facts, key->words ? "one of" : ll_config_kind_example(key->kind));
	for (const char *const *word = key->words; word && *word; word++)
		ll_strbuf_addf(&facts, "%s %s", word == key->words ? "" : ",", *word);
	if (is_number && key->max > 0)
		ll_strbuf_addf(&facts, ", from %.15g%s to %.15g%s", key->min, sign, key->max, sign);
	ll_strbuf_adds(&facts, key->is_needed ? ". It is needed." : ".");
	if (key->fallback)
		ll_strbuf_addf(&facts, " Default: %s.", key->fallback);
	add_line(out, facts.buf);
}

/* Adds the keys of a map; path is that of the map. */
static void add_keys(struct ll_strbuf *out, const struct ll_config_map *map, const char *path)
{
	for (const struct ll_config_key *key = map->keys; key->name; key++) {
		LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
		ll_strbuf_addf(&name, "%s%s%s", path, *path ? "." : "", key->name);
		ll_strbuf_adds(out, ".TP\n\\fB");
		add_escaped(out, name.buf, name.length);
		ll_strbuf_adds(out, "\\fR\n");
		add_line(out, key->help);
		add_key_facts(out, key);
		if (key->kind == LL_CONFIG_MAP) {
			ll_strbuf_adds(&name, key->is_list ? "[]" : "");
			add_keys(out, key->map, name.buf);
		}
	}
}

static const char config_about[] =
    "The policy of one machine. `loadline config check` finds what is wrong with it, `loadline config show` prints "
    "what "
    "holds, `loadline config diff` what another file would change.\n\n"
    "The system's loadlined reads the files at its start, and again at SIGHUP (systemctl reload loadlined), which "
    "touches no running work. Files with faults do not come into force. The section NOT IN FORCE names the keys that "
    "this version accepts and does not act on.\n\n"
    "The files of the folder loadline.d that end in .yaml are read after loadline.yaml, in the order of their names. A "
    "later value replaces an earlier one. An entry of a list of entries with a name, or a resource, replaces the entry "
    "of "
    "that name; a list without names is replaced as a whole.";

static const char config_format[] =
    "A part of YAML: maps with the keys below, lists, and scalars. Each key is there once. Anchors, aliases, tags, "
    "directives, empty values and further documents are faults. A size has a unit of 1024: 20G, 512M. A time has a "
    "unit: "
    "90s, 15m, 2h, 7d. A share has its sign, and is one of a single card: 30%, 150%. A name has up to 64 letters, "
    "digits, "
    "'-', '_' and '.'.";

static void add_idle_line(void *out, const char *path)
{
	add_line(out, path);
}

void ll_man_config(struct ll_strbuf *out)
{
	ll_strbuf_addf(out, ".TH LOADLINE.YAML 5 \"\" \"loadline %s\" \"File Formats\"\n", LOADLINE_VERSION);
	add_section(out, "NAME");
	ll_strbuf_adds(out, "loadline.yaml \\- the configuration of a machine\n");
	add_section(out, "SYNOPSIS");
	ll_strbuf_adds(out, ".nf\n/etc/loadline/loadline.yaml\n/etc/loadline/loadline.d/*.yaml\n.fi\n");
	add_section(out, "DESCRIPTION");
	add_paragraphs(out, config_about);
	add_section(out, "FORMAT");
	add_paragraphs(out, config_format);
	add_section(out, "KEYS");
	add_keys(out, ll_config_root.map, "");
	add_section(out, "IN FORCE");
	for (const struct ll_config_key *key = ll_config_root.map->keys; key->name; key++) {
		if (key->is_in_force)
			add_line(out, key->name);
	}
	add_section(out, "NOT IN FORCE");
	ll_config_visit_idle(add_idle_line, out);
	add_section(out, "SEE ALSO");
	ll_strbuf_adds(out, "\\fBloadline\\-config\\fR(1)\n");
}
