#include "cli/config/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "config/value.h"

struct changes {
	struct ll_strbuf *out;
	size_t count;
};

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The text of a scalar, of a list in brackets, of a map in braces. A set is sorted: its order means nothing. */
static void add_text(const struct ll_config_value *value, struct ll_strbuf *out)
{
	bool is_map = value->key->kind == LL_CONFIG_MAP && !value->is_list;
	if (!is_map && !value->is_list) {
		ll_strbuf_adds(out, value->text);
		return;
	}
	bool is_sorted = value->is_list && value->key->is_set && value->count;
	LL_SCOPE_FREE const char **texts = is_sorted ? calloc(value->count, sizeof *texts) : NULL;
	for (size_t i = 0; texts && i < value->count; i++)
		texts[i] = value->items[i]->text;
	if (texts)
		qsort(texts, value->count, sizeof *texts, compare_texts);
	const char *between = "";
	ll_strbuf_addc(out, is_map ? '{' : '[');
	for (size_t i = 0; i < value->count; i++) {
		if (!value->items[i])
			continue;
		ll_strbuf_adds(out, between);
		between = ", ";
		if (is_map)
			ll_strbuf_addf(out, "%s: ", value->items[i]->key->name);
		if (texts)
			ll_strbuf_adds(out, texts[i]);
		else
			add_text(value->items[i], out);
	}
	ll_strbuf_addc(out, is_map ? '}' : ']');
}

static const struct ll_config_value *find_entry(const struct ll_config_value *list, const char *identity)
{
	for (size_t i = 0; list && i < list->count; i++) {
		const char *other = ll_config_value_identity(list->items[i]);
		if (other && strcmp(other, identity) == 0)
			return list->items[i];
	}
	return NULL;
}

static void compare(struct changes *changes, const char *path, const struct ll_config_value *before,
		    const struct ll_config_value *after);

static void compare_maps(struct changes *changes, const char *path, const struct ll_config_value *before,
			 const struct ll_config_value *after)
{
	for (size_t i = 0; i < after->count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
		ll_strbuf_addf(&name, "%s%s%s", path, *path ? "." : "", after->key->map->keys[i].name);
		compare(changes, name.buf, before->items[i], after->items[i]);
	}
}

/* Whether the entries that both lists have are in the same order. */
static bool is_same_order(const struct ll_config_value *before, const struct ll_config_value *after)
{
	size_t at = 0;
	for (size_t i = 0; i < after->count; i++) {
		const char *identity = ll_config_value_identity(after->items[i]);
		if (!find_entry(before, identity))
			continue;
		while (at < before->count && !find_entry(after, ll_config_value_identity(before->items[at])))
			at++;
		if (at == before->count || strcmp(ll_config_value_identity(before->items[at++]), identity) != 0)
			return false;
	}
	return true;
}

static void add_order(const struct ll_config_value *list, struct ll_strbuf *out)
{
	for (size_t i = 0; i < list->count; i++)
		ll_strbuf_addf(out, "%s%s", i ? ", " : "", ll_config_value_identity(list->items[i]));
}

/* Lists of entries with names: by name. */
static void compare_entries(struct changes *changes, const char *path, const struct ll_config_value *before,
			    const struct ll_config_value *after)
{
	for (size_t i = 0; before && i < before->count; i++) {
		const char *identity = ll_config_value_identity(before->items[i]);
		LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
		ll_strbuf_addf(&name, "%s[%s]", path, identity);
		compare(changes, name.buf, before->items[i], find_entry(after, identity));
	}
	for (size_t i = 0; after && i < after->count; i++) {
		const char *identity = ll_config_value_identity(after->items[i]);
		LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
		ll_strbuf_addf(&name, "%s[%s]", path, identity);
		if (!find_entry(before, identity))
			compare(changes, name.buf, NULL, after->items[i]);
	}
	if (before && after && !is_same_order(before, after)) {
		ll_strbuf_addf(changes->out, _("  %s: order: "), path);
		add_order(before, changes->out);
		ll_strbuf_adds(changes->out, " -> ");
		add_order(after, changes->out);
		ll_strbuf_addc(changes->out, '\n');
		changes->count++;
	}
}

static void compare(struct changes *changes, const char *path, const struct ll_config_value *before,
		    const struct ll_config_value *after)
{
	const struct ll_config_value *any = before ? before : after;
	LL_SCOPE_STRBUF struct ll_strbuf old = LL_STRBUF_INIT, new = LL_STRBUF_INIT;
	if (!any)
		return;
	if (any->is_list && any->key->kind == LL_CONFIG_MAP && any->key->map->identity) {
		compare_entries(changes, path, before, after);
		return;
	}
	if (before && after && any->key->kind == LL_CONFIG_MAP && !any->is_list) {
		compare_maps(changes, path, before, after);
		return;
	}
	if (before)
		add_text(before, &old);
	if (after)
		add_text(after, &new);
	if (before && after && strcmp(old.buf, new.buf) == 0)
		return;
	if (before && after)
		ll_strbuf_addf(changes->out, "  %s: %s -> %s\n", path, old.buf, new.buf);
	else
		ll_strbuf_addf(changes->out, "%c %s: %s\n", after ? '+' : '-', path, after ? new.buf : old.buf);
	changes->count++;
}

size_t ll_config_add_changes(const struct ll_config_value *before, const struct ll_config_value *after,
			     struct ll_strbuf *out)
{
	struct changes changes = {.out = out};
	compare(&changes, "", before, after);
	return changes.count;
}

struct diff_args {
	const char *from;
};

static const struct ll_option diff_options[] = {
    {.name = "from",
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct diff_args, from),
     .complete = LL_COMPLETE_FILE,
     .help = N_("Compare with this file or folder, instead of /etc/loadline.")},
    LL_OPTION_END,
};

/* Reads one of the two. -EBADMSG: it has faults, which are printed. */
static int open_side(struct ll_config *config, const char *path, struct ll_err *err)
{
	struct ll_config_findings findings = {0};
	bool has_cards;
	int rc = ll_config_open(config, path, LL_CONFIG_SCOPE_FILE, &findings, &has_cards, err);
	if (rc)
		ll_err_exit_with(err, LL_EXIT_FAILED);
	if (!rc)
		rc = ll_config_refuse_faults(&findings, err);
	ll_config_findings_fini(&findings);
	return rc;
}

static int run_diff(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct diff_args *args = data;
	struct ll_config before = {0}, after = {0};
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "config diff: %s",
				  operands->count ? _("one file at a time") : _("no file named"));
	int rc = open_side(&before, args->from, err);
	if (!rc)
		rc = open_side(&after, operands->words[0], err);
	if (!rc) {
		if (!ll_config_add_changes(before.root, after.root, &out))
			ll_strbuf_adds(&out, _("no difference\n"));
		rc = ll_print_text(&out, err);
	}
	ll_config_fini(&before);
	ll_config_fini(&after);
	return rc;
}

static const struct ll_example diff_examples[] = {
    {"loadline config diff new.yaml", N_("What new.yaml would change.")},
    {"loadline config diff --from old.yaml new.yaml", N_("Two files.")},
    {NULL, NULL},
};

const struct ll_command ll_config_diff_command = {
    .name = "diff",
    .group = &ll_command_config,
    .summary = N_("print what another configuration would change"),
    .operands = "FILE",
    .description =
	N_("Compares the effective configuration with that of FILE, a file or a folder, by what they mean: 1024M is "
	   "1G, a default is the same whether it is written or not, and a tenant is found by its name. One line for "
	   "each difference; + is new, - is gone. Both must be without faults."),
    .examples = diff_examples,
    .options = diff_options,
    .complete = LL_COMPLETE_FILE,
    .args_size = sizeof(struct diff_args),
    .run = run_diff,
};
