#include <errno.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/config/parts.h"
#include "cli/options/help_text.h"

struct check_args {
	bool is_alone;
	bool json;
};

static const struct ll_option check_options[] = {
    {.name = "file-only",
     LL_OPTION_FLAG(struct check_args, is_alone),
     .help = N_("Do not compare it with this machine's cards, users and groups.")},
    LL_OPTION_JSON(struct check_args, json),
    LL_OPTION_END,
};

static int print_json(const struct ll_config_findings *findings, bool has_cards, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < findings->count; i++) {
		const struct ll_config_finding *finding = &findings->items[i];
		const struct ll_config_mark *mark = &finding->mark;
		json_t *line = json_pack(
		    "{s:s, s:o, s:o}", "level", finding->level == LL_CONFIG_FAULT ? "fault" : "warning", "file",
		    mark->file ? ll_json_text(mark->file) : json_null(), "text", ll_json_text(finding->text));
		if (line && mark->file && mark->line) {
			json_object_set_new(line, "line", json_integer(mark->line));
			json_object_set_new(line, "column", json_integer(mark->column));
		}
		rc = ll_json_line(line, err);
	}
	if (!rc)
		rc = ll_json_line(json_pack("{s:I, s:I, s:b}", "faults", (json_int_t)findings->fault_count, "warnings",
					    (json_int_t)findings->warning_count, "cards_compared", has_cards),
				  err);
	return rc;
}

static void add_total(const struct ll_config *config, const struct ll_config_findings *findings, struct ll_strbuf *out)
{
	ll_strbuf_addf(out, ll_translate_count("%zu fault", "%zu faults", (unsigned long)findings->fault_count),
		       findings->fault_count);
	ll_strbuf_adds(out, ", ");
	ll_strbuf_addf(out, ll_translate_count("%zu warning", "%zu warnings", (unsigned long)findings->warning_count),
		       findings->warning_count);
	ll_strbuf_adds(out, "; ");
	ll_strbuf_addf(out, _("groups of cards: %zu, tenants: %zu\n"), config->policy.cards.count,
		       config->policy.tenants.count);
}

static int run_check(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct check_args *args = data;
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	bool has_cards = false;
	if (operands->count > 1)
		return ll_err_set(err, -EINVAL, "%.60s: unexpected word", operands->words[1]);
	int rc =
	    ll_config_open(&config, operands->count ? operands->words[0] : NULL,
			   args->is_alone ? LL_CONFIG_SCOPE_FILE : LL_CONFIG_SCOPE_MACHINE, &findings, &has_cards, err);
	if (rc)
		ll_err_exit_with(err, LL_EXIT_FAILED);
	if (!rc && args->json) {
		rc = print_json(&findings, has_cards, err);
	} else if (!rc) {
		ll_config_add_findings(&findings, true, &out);
		if (config.root && !args->is_alone && !has_cards)
			ll_strbuf_adds(&out, _("no driver here: not compared with cards\n"));
		add_total(&config, &findings, &out);
		rc = ll_print_text(&out, err);
	}
	if (!rc && findings.fault_count)
		rc = LL_EXIT_FAILED;
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return rc;
}

static const struct ll_example check_examples[] = {
    {"loadline config check", N_("What is in /etc/loadline.")},
    {"loadline config check --file-only new.yaml", N_("A file for another machine.")},
    {"loadline --sim=h100x8 config check new.yaml", N_("Against eight simulated cards.")},
    {NULL, NULL},
};

static const struct ll_help_status check_statuses[] = {
    {0, N_("No fault; there may be warnings.")},
    {1, N_("A fault, or a file that cannot be read.")},
    {2, N_("Bad usage.")},
    {0, NULL},
};

const struct ll_command ll_config_check_command = {
    .name = "check",
    .group = &ll_command_config,
    .summary = N_("find what is wrong with a configuration"),
    .operands = "[FILE]",
    .description =
	N_("Prints every fault and every warning with its file, line and column. Faults are unknown keys, values out "
	   "of their range, names that nothing has, cards in two groups or in none, guarantees that do not fit. "
	   "Warnings are keys that are not in force in this version, users and groups that this machine does not "
	   "know, reservations that are past.\n\n"
	   "FILE is a file, or a folder with loadline.yaml and loadline.d in it. The default is /etc/loadline. If the "
	   "machine has a driver, the cards are compared with its cards."),
    .examples = check_examples,
    .options = check_options,
    .complete = LL_COMPLETE_FILE,
    .args_size = sizeof(struct check_args),
    .statuses = check_statuses,
    .run = run_check,
};
