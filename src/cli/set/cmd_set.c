#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/common/print.h"
#include "cli/hold/words.h"
#include "cli/options/command.h"
#include "cli/options/limit_words.h"
#include "cli/set/target.h"

enum { MIB_SHIFT = 20 };

struct set_args {
	const char *mem, *mem_request, *compute, *weight, *priority; /* NULL: not given */
	bool overcommit;
};

static const struct ll_option set_options[] = {
    {.name = "mem",
     .letter = 'm',
     .placeholder = "SIZE",
     LL_OPTION_TEXT(struct set_args, mem),
     .help = LL_LIMIT_MEMORY_HELP " If the tenant already has more, it keeps that and gets no more."},
    {.name = "mem-request",
     .placeholder = "SIZE",
     LL_OPTION_TEXT(struct set_args, mem_request),
     .help = LL_LIMIT_REQUEST_HELP},
    {.name = "overcommit",
     LL_OPTION_FLAG(struct set_args, overcommit),
     .help = "Allow a request with which all requests on the card together are more than the card has. Then none "
	     "of them is certain."},
    {.name = "compute",
     .letter = 'c',
     .placeholder = "SHARE",
     LL_OPTION_TEXT(struct set_args, compute),
     .help = LL_LIMIT_COMPUTE_HELP},
    {.name = "weight",
     .letter = 'w',
     .placeholder = "NUMBER",
     LL_OPTION_TEXT(struct set_args, weight),
     .help = LL_LIMIT_WEIGHT_HELP},
    {.name = "priority",
     .letter = 'p',
     .placeholder = "CLASS",
     LL_OPTION_TEXT(struct set_args, priority),
     .choices = ll_limit_priorities,
     .help = LL_LIMIT_PRIORITY_HELP},
    LL_OPTION_END,
};

struct limits {
	uint64_t memory_bytes, request_bytes;
	unsigned compute_permille, weight_permille;
	enum ll_priority priority;
};

static int read_limits(const struct set_args *args, struct limits *limits, struct ll_err *err)
{
	int rc = 0;
	if (!args->mem && !args->mem_request && !args->compute && !args->weight && !args->priority) {
		ll_err_set(err, -EINVAL, "set: nothing to set");
		return ll_err_hint(err, "give --mem, --mem-request, --compute, --weight or --priority");
	}
	if (args->mem)
		rc = ll_limit_read_memory(args->mem, &limits->memory_bytes, err);
	if (!rc && args->mem_request)
		rc = ll_limit_read_request(args->mem_request, &limits->request_bytes, err);
	if (!rc && args->compute)
		rc = ll_limit_read_compute(args->compute, &limits->compute_permille, err);
	if (!rc && args->weight)
		rc = ll_limit_read_weight(args->weight, &limits->weight_permille, err);
	if (!rc && args->priority)
		rc = ll_limit_read_priority(args->priority, &limits->priority, err);
	return rc;
}

static int check_memory(const struct ll_set_targets *targets, uint64_t bytes, struct ll_err *err)
{
	for (size_t i = 0; i < targets->count; i++) {
		const struct ll_card *card = targets->items[i].card;
		if (card->memory_bytes && bytes > card->memory_bytes)
			return ll_err_set(err, -EINVAL, "--mem: card %s has only %llu MiB", card->label,
					  (unsigned long long)(card->memory_bytes >> MIB_SHIFT));
	}
	return 0;
}

/* Checks the request against the limit, where one of them is not set now. */
static int check_request(const struct set_args *args, const struct limits *limits, const struct ll_set_targets *targets,
			 struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < targets->count && !rc && (args->mem || args->mem_request); i++) {
		struct ll_tenant_info now;
		if (!ll_tenant_read(targets->items[i].ledger, targets->items[i].row, &now))
			continue;
		rc = ll_limit_check_request(args->mem_request ? limits->request_bytes : now.memory_request_bytes,
					    args->mem ? limits->memory_bytes : now.memory_limit_bytes, err);
	}
	return rc;
}

/* Refuses to change a share of space: the driver fixes it when a program starts. */
static int check_space(const struct set_args *args, const struct ll_set_targets *targets, struct ll_err *err)
{
	for (size_t i = 0; i < targets->count; i++) {
		const struct ll_set_target *target = &targets->items[i];
		if (!ll_tenant_shares_by_space(target->ledger, target->row) || !args->compute)
			continue;
		ll_err_set(err, -EBUSY, "--compute: this program shares card %s by space (MPS), as it was started",
			   target->card->label);
		return ll_err_hint(err, "start it again with another `run --by space --compute`");
	}
	return 0;
}

/* Only a request can be refused, so it comes first. */
static int apply_limits(const struct set_args *args, const struct limits *limits, const struct ll_set_target *target,
			struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = args->mem_request
		     ? ll_tenant_set_memory_request(target->ledger, target->row, limits->request_bytes,
						    args->overcommit ? 0 : target->card->usable_bytes, &why)
		     : 0;
	if (rc) {
		ll_err_wrap(&why, "--mem-request: card %s", target->card->label);
		ll_err_hint(&why, "--overcommit allows it");
		if (err)
			*err = why;
		return rc;
	}
	if (args->mem)
		ll_tenant_set_memory_limit(target->ledger, target->row, limits->memory_bytes);
	if (args->compute)
		ll_tenant_set_compute_cap(target->ledger, target->row, limits->compute_permille);
	if (args->weight)
		ll_tenant_set_weight(target->ledger, target->row, limits->weight_permille);
	if (args->priority)
		ll_tenant_set_priority(target->ledger, target->row, limits->priority, ll_now_ns());
	return 0;
}

static void add_memory(struct ll_strbuf *text, uint64_t bytes)
{
	if (bytes)
		ll_hold_add_bytes(text, bytes);
	else
		ll_strbuf_adds(text, "none");
}

static void add_share(struct ll_strbuf *text, unsigned permille)
{
	if (permille)
		ll_strbuf_addf(text, "%g %%", permille / 10.0);
	else
		ll_strbuf_adds(text, "none");
}

/* Adds a line such as "card 0, night: memory 20.0 GiB -> 10.0 GiB, weight 1 -> 2" */
static void add_change(struct ll_strbuf *text, const struct set_args *args, const struct limits *limits,
		       const struct ll_card *card, const struct ll_tenant_info *before)
{
	ll_strbuf_addf(text, "card %s, %s:", card->label, before->name);
	const char *comma = "";
	if (args->mem) {
		ll_strbuf_adds(text, " memory ");
		add_memory(text, before->memory_limit_bytes);
		ll_strbuf_adds(text, " -> ");
		add_memory(text, limits->memory_bytes);
		comma = ",";
	}
	if (args->mem_request) {
		ll_strbuf_addf(text, "%s memory request ", comma);
		add_memory(text, before->memory_request_bytes);
		ll_strbuf_adds(text, " -> ");
		add_memory(text, limits->request_bytes);
		comma = ",";
	}
	if (args->compute) {
		ll_strbuf_addf(text, "%s compute ", comma);
		add_share(text, before->compute_cap_permille);
		ll_strbuf_adds(text, " -> ");
		add_share(text, limits->compute_permille);
		comma = ",";
	}
	if (args->weight) {
		ll_strbuf_addf(text, "%s weight %g -> %g", comma, before->weight_permille / 1000.0,
			       limits->weight_permille / 1000.0);
		comma = ",";
	}
	if (args->priority)
		ll_strbuf_addf(text, "%s priority %s -> %s", comma, ll_priority_name(before->priority),
			       ll_priority_name(limits->priority));
	ll_strbuf_addc(text, '\n');
}

static int change_targets(const struct set_args *args, const struct limits *limits,
			  const struct ll_set_targets *targets, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	size_t changed = 0;
	int rc = 0;
	for (size_t i = 0; i < targets->count; i++) {
		const struct ll_set_target *target = &targets->items[i];
		struct ll_tenant_info before;
		if (!ll_tenant_read(target->ledger, target->row, &before))
			continue;
		rc = apply_limits(args, limits, target, err);
		if (rc)
			break;
		add_change(&text, args, limits, target->card, &before);
		changed++;
	}
	if (!changed && !rc)
		return ll_err_set(err, -ESRCH, "set: the program ended meanwhile");
	int printed = changed ? ll_print_text(&text, rc ? NULL : err) : 0;
	return rc ? rc : printed;
}

static int run_set(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct set_args *args = data;
	struct limits limits = {0};
	struct ll_driver *driver = NULL;
	struct ll_set_targets targets = {0};
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "set: %s", operands->count ? "one claim at a time" : "no claim named");
	int rc = read_limits(args, &limits, err);
	if (!rc)
		rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = ll_set_targets_find(&targets, driver, operands->words[0], err);
	if (!rc)
		rc = check_memory(&targets, limits.memory_bytes, err);
	if (!rc)
		rc = check_request(args, &limits, &targets, err);
	if (!rc)
		rc = check_space(args, &targets, err);
	if (!rc)
		rc = change_targets(args, &limits, &targets, err);
	if (!rc && args->weight && limits.weight_permille != LL_DEFAULT_WEIGHT_PERMILLE)
		ll_log(LL_LOG_WARN, "%s", LL_LIMIT_WEIGHT_NOTE);
	ll_set_targets_fini(&targets);
	ll_driver_close(driver);
	return rc;
}

static const struct ll_example set_examples[] = {
    {"loadline set 0/17 --mem 10G", "At most 10 GiB from now on for the tenant of that claim, on that card."},
    {"loadline set night --compute 50% --weight 2", "Tenant night, on every card that it uses."},
    {"loadline set night --mem-request 10G", "Promise 10 GiB of the card to it from now on."},
    {"loadline set night --compute none", "Remove the cap."},
    {"loadline set night --priority low", "From now on, queue little work beside programs of higher classes."},
    {NULL, NULL},
};

const struct ll_command ll_command_set = {
    .name = "set",
    .summary = "change the limits of a running program",
    .operands = "CLAIM",
    .description = "Changes the limits that `loadline run` gave a program, while the program runs. CLAIM is the number "
		   "of a claim in `loadline status` (0/17), for its tenant on that card, or the name of a tenant, for "
		   "all cards that it uses. Limits without an option stay as they are. One line for each card has the "
		   "old values and the new ones.\n\n"
		   "A synthetic load has no limits: to change it, end it and start another.",
    .examples = set_examples,
    .options = set_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct set_args),
    .run = run_set,
};
