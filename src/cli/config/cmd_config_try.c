/* Runs the jobs of the history again in model time, under the policy in force and under another one. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accounts/history.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/config/parts.h"
#include "cli/history/history.h"
#include "cli/options/help_text.h"
#include "cli/report/parts.h"
#include "config/check.h"
#include "driver/cards.h"
#include "rules/queue/replay.h"

/* The planned time of a job of which nobody says how long it runs, as in loadlined. */
#define GUESS_NS (24 * 3600 * LL_NS_PER_S)

_Static_assert((int)LL_CONFIG_STEP_EVICT == LL_LEND_EVICT && (int)LL_CONFIG_STEP_KILL == LL_LEND_KILL &&
		   (int)LL_CONFIG_ORDER_RESERVATION == LL_QUEUE_BY_RESERVATION &&
		   (int)LL_CONFIG_ORDER_AGE == LL_QUEUE_BY_AGE && LL_CONFIG_NONE == LL_QUEUE_NONE,
	       "words of the configuration are those of the rules");

struct try_args {
	const char *since, *from;
	bool json;
};

static const struct ll_option try_options[] = {
    {.name = "since",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct try_args, since),
     .fallback = "7d",
     .help = N_("The jobs that ended since then: so long ago (12h, 7d), or a moment of this machine's time zone.")},
    {.name = "from",
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct try_args, from),
     .complete = LL_COMPLETE_FILE,
     .help = N_("Compare with this file or folder, instead of /etc/loadline.")},
    LL_OPTION_JSON(struct try_args, json),
    LL_OPTION_END,
};

/* ---- the machine under a policy ---- */

/* One policy, and what it makes of the jobs. */
struct side {
	const char *name;
	struct ll_config config;
	struct ll_queue_machine machine;
	struct ll_queue_card cards[LL_QUEUE_CARDS_MAX];
	struct ll_queue_group *groups;
	struct ll_queue_tenant *tenants;
	struct ll_queue_amount *amounts; /* guarantees and limits */
	uint64_t *keep_free_bytes;
	struct ll_replay_job *jobs;
};

static void fini_side(struct side *side)
{
	free(side->groups);
	free(side->tenants);
	free(side->amounts);
	free(side->keep_free_bytes);
	free(side->jobs);
	ll_config_fini(&side->config);
}

/* Returns the group of a card; their number: it is in none. */
static uint32_t group_of(const struct ll_config_policy *policy, unsigned index, int slice)
{
	for (uint32_t group = 0; group < policy->cards.count; group++) {
		const struct ll_config_cards *cards = &policy->cards.items[group].cards;
		for (size_t i = 0; i < cards->count; i++) {
			if (cards->items[i].index == index && cards->items[i].slice == slice)
				return group;
		}
	}
	return (uint32_t)policy->cards.count;
}

static void add_cards(struct side *side, const struct ll_driver *driver)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	for (size_t i = 0; i < count && side->machine.card_count < LL_QUEUE_CARDS_MAX; i++) {
		const struct ll_card *card = &cards[i];
		uint32_t group = group_of(&side->config.policy, card->index, card->is_mig ? (int)card->slice : -1);
		uint64_t bytes = card->usable_bytes ? card->usable_bytes : card->memory_bytes;
		if (group < side->machine.group_count && !card->has_slices)
			side->cards[side->machine.card_count++] =
			    (struct ll_queue_card){bytes, group, ll_card_numa_node(card)};
	}
}

static void set_parts(const struct ll_config_policy *policy, const struct ll_config_parts *parts, uint64_t missing,
		      struct ll_queue_amount *amounts)
{
	for (size_t group = 0; group < policy->cards.count; group++) {
		amounts[group] = (struct ll_queue_amount){missing, missing, missing};
		for (size_t i = 0; i < parts->count; i++) {
			const struct ll_config_part *part = &parts->items[i];
			if (strcmp(part->of, policy->cards.items[group].name) == 0)
				amounts[group] = (struct ll_queue_amount){
				    part->cards == LL_CONFIG_NONE ? missing : part->cards,
				    part->memory_bytes == LL_CONFIG_NONE ? missing : part->memory_bytes,
				    part->compute_permille == LL_CONFIG_NONE ? missing : part->compute_permille};
		}
	}
}

static int make_machine(struct side *side, const struct ll_driver *driver)
{
	const struct ll_config_policy *policy = &side->config.policy;
	size_t groups = policy->cards.count, tenants = policy->tenants.count;
	side->groups = calloc(groups + 1, sizeof *side->groups);
	side->tenants = calloc(tenants + 1, sizeof *side->tenants);
	side->amounts = calloc(2 * tenants * groups + 1, sizeof *side->amounts);
	side->keep_free_bytes = calloc(tenants + 1, sizeof *side->keep_free_bytes);
	if (!side->groups || !side->tenants || !side->amounts || !side->keep_free_bytes)
		return -ENOMEM;
	side->machine = (struct ll_queue_machine){.group_count = groups,
						  .tenant_count = tenants,
						  .cards = side->cards,
						  .groups = side->groups,
						  .tenants = side->tenants};
	for (size_t i = 0; i < groups; i++)
		side->groups[i].is_whole = policy->cards.items[i].give == LL_CONFIG_BY_CARD;
	for (size_t i = 0; i < tenants; i++) {
		const struct ll_config_tenant *tenant = &policy->tenants.items[i];
		const struct ll_config_each_user *each = &tenant->each_user;
		struct ll_queue_amount *guarantees = side->amounts + 2 * i * groups, *limits = guarantees + groups;
		set_parts(policy, &tenant->guarantee, 0, guarantees);
		set_parts(policy, &tenant->limit, LL_QUEUE_NONE, limits);
		side->tenants[i] = (struct ll_queue_tenant){
		    .guarantees = guarantees,
		    .limits = limits,
		    .weight = tenant->weight != LL_CONFIG_NONE ? tenant->weight : 1,
		    .each_user = {{each->cards, each->memory_bytes, each->compute_permille}, each->running}};
		side->keep_free_bytes[i] = tenant->keep_free_bytes == LL_CONFIG_NONE ? 0 : tenant->keep_free_bytes;
	}
	add_cards(side, driver);
	return 0;
}

/* ---- the jobs ---- */

/* Whether the job had whole cards: the history has where it ran. */
static bool had_whole_cards(const struct ll_config_policy *in_force, const struct ll_message_history_row *row)
{
	unsigned index;
	int slice = -1;
	if (sscanf(row->cards, "%u:%d", &index, &slice) < 1)
		return !row->memory_bytes;
	uint32_t group = group_of(in_force, index, slice);
	return group < in_force->cards.count ? in_force->cards.items[group].give == LL_CONFIG_BY_CARD
					     : !row->memory_bytes;
}

static bool may_have_class(const struct ll_config_tenant *tenant, uint32_t class)
{
	static const int words[] = {[LL_LIMIT_CLASS_NORMAL] = LL_CONFIG_NORMAL,
				    [LL_LIMIT_CLASS_HIGH] = LL_CONFIG_HIGH,
				    [LL_LIMIT_CLASS_LOW] = LL_CONFIG_LOW};
	for (size_t i = 0; i < tenant->classes.count; i++) {
		if (class <= LL_LIMIT_CLASS_LOW && tenant->classes.items[i] == words[class])
			return true;
	}
	return false;
}

/* As loadlined places a job that names no cards: on cards of the kind that it had, if there are any. */
static void make_job(const struct side *side, const struct ll_message_history_row *row, bool is_whole,
		     struct ll_replay_job *its)
{
	const struct ll_config_policy *policy = &side->config.policy;
	struct ll_queue_job *job = &its->queued;
	uint64_t shared = 0, whole = 0, most_bytes = 0;
	int64_t ran_s = row->ended_s - row->began_s - (int64_t)(row->slept_ns / LL_NS_PER_S);
	for (uint32_t card = 0; card < side->machine.card_count; card++) {
		*(side->groups[side->cards[card].group].is_whole ? &whole : &shared) |= UINT64_C(1) << card;
		most_bytes = side->cards[card].memory_bytes > most_bytes ? side->cards[card].memory_bytes : most_bytes;
	}
	while (job->tenant < policy->tenants.count && strcmp(policy->tenants.items[job->tenant].name, row->tenant) != 0)
		job->tenant++;
	job->uid = row->uid;
	job->card_count = row->card_count ? row->card_count : 1;
	job->allowed = is_whole ? (whole ? whole : shared) : shared ? shared : whole;
	job->memory_bytes = is_whole || !row->memory_bytes ? most_bytes : row->memory_bytes;
	job->compute_permille = row->compute_permille;
	job->has_time = row->time_ns != 0;
	job->duration_ns = row->time_ns                                 ? row->time_ns
			   : policy->defaults.time_ns == LL_CONFIG_NONE ? GUESS_NS
									: policy->defaults.time_ns;
	its->came_ns = (uint64_t)row->came_s * LL_NS_PER_S;
	its->runs_ns = (uint64_t)(ran_s > 0 ? ran_s : 1) * LL_NS_PER_S;
	its->may_borrow = row->class != LL_LIMIT_CLASS_HIGH;
	its->began_ns = LL_QUEUE_NONE;
	its->is_refused = true;
	if (job->tenant == policy->tenants.count)
		return;
	const struct ll_config_tenant *tenant = &policy->tenants.items[job->tenant];
	enum ll_queue_fault fault = ll_queue_check(&side->machine, job);
	bool may_borrow = its->may_borrow && policy->reclaim.steps.count && !policy->reclaim.does_observe;
	bool is_too_long = job->has_time && tenant->each_user.max_time_ns != LL_CONFIG_NONE &&
			   job->duration_ns > tenant->each_user.max_time_ns;
	its->is_refused = (fault && !(fault == LL_QUEUE_ALL_GUARANTEED && may_borrow)) || is_too_long ||
			  !may_have_class(tenant, row->class);
}

static int replay_side(struct side *side, const struct ll_message_history_row *rows, size_t count,
		       const struct ll_config_policy *in_force)
{
	const struct ll_config_policy *policy = &side->config.policy;
	const struct ll_config_reclaim *reclaim = &policy->reclaim;
	uint64_t pool_bytes = policy->host_memory.from ? policy->host_memory.for_eviction_bytes : LL_CONFIG_NONE;
	side->jobs = calloc(count + 1, sizeof *side->jobs);
	if (!side->jobs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		make_job(side, &rows[i], had_whole_cards(in_force, &rows[i]), &side->jobs[i]);
	struct ll_replay replay = {.machine = &side->machine,
				   .has_backfill = policy->queue.backfill,
				   .half_life_ns = policy->queue.half_life_ns,
				   .pool_bytes = pool_bytes == LL_CONFIG_NONE ? 0 : pool_bytes,
				   .min_runtime_ns =
				       reclaim->min_runtime_ns == LL_CONFIG_NONE ? 0 : reclaim->min_runtime_ns,
				   .keep_free_bytes = side->keep_free_bytes,
				   .jobs = side->jobs,
				   .count = count};
	for (size_t i = 0; i < policy->queue.order.count && replay.rules.key_count < 4; i++)
		replay.rules.keys[replay.rules.key_count++] = (enum ll_queue_key)policy->queue.order.items[i];
	for (size_t i = 0; i < reclaim->steps.count && !reclaim->does_observe; i++)
		replay.steps |= 1U << reclaim->steps.items[i];
	return ll_replay_run(&replay);
}

/* ---- sums ---- */

struct line {
	const char *tenant, *policy;
	uint64_t jobs, recalls, refused, never;
	double wait_median_s, wait_95_s, gib_h, borrowed_gib_h;
};

static const struct ll_row_column columns[] = {
    {.heading = N_("tenant"), .key = "tenant", LL_ROW_TEXT(struct line, tenant), .least = 6},
    {.heading = N_("policy"), .key = "policy", LL_ROW_TEXT(struct line, policy), .least = 8},
    {.heading = N_("jobs"), .key = "jobs", LL_ROW_NUMBER(struct line, jobs)},
    {.heading = N_("wait s"), .key = "wait_median_seconds", LL_ROW_REAL(struct line, wait_median_s), .decimals = 1},
    {.heading = N_("wait 95 % s"),
     .key = "wait_95_percent_seconds",
     LL_ROW_REAL(struct line, wait_95_s),
     .decimals = 1},
    {.heading = N_("GiB h"), .key = "gib_hours", LL_ROW_REAL(struct line, gib_h), .decimals = 2},
    {.heading = N_("borrowed GiB h"),
     .key = "borrowed_gib_hours",
     LL_ROW_REAL(struct line, borrowed_gib_h),
     .decimals = 2},
    {.heading = N_("recalls"), .key = "recalls", LL_ROW_NUMBER(struct line, recalls)},
    {.heading = N_("refused"), .key = "refused", LL_ROW_NUMBER(struct line, refused)},
    {.heading = N_("never began"), .key = "never_began", LL_ROW_NUMBER(struct line, never)},
    LL_ROW_END,
};

static int compare_numbers(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;
	return (a > b) - (a < b);
}

/* Sums the jobs of the tenant. waits: room for all jobs. */
static struct line sum_tenant(const struct side *side, const struct ll_message_history_row *rows, size_t count,
			      const char *tenant, double *waits)
{
	static const double gib = 1073741824, ns_per_h = 3600e9;
	struct line line = {.tenant = tenant, .policy = side->name, .wait_median_s = NAN, .wait_95_s = NAN};
	size_t began = 0;
	for (size_t i = 0; i < count; i++) {
		const struct ll_replay_job *its = &side->jobs[i];
		if (strcmp(rows[i].tenant, tenant) != 0)
			continue;
		double gib_all = (double)its->queued.memory_bytes / gib * its->queued.card_count;
		line.jobs++;
		line.refused += its->is_refused;
		line.never += !its->is_refused && its->began_ns == LL_QUEUE_NONE;
		line.recalls += its->recalls;
		line.gib_h += gib_all * (double)its->on_card_ns / ns_per_h;
		line.borrowed_gib_h += gib_all * (double)its->borrowed_ns / ns_per_h;
		if (its->began_ns != LL_QUEUE_NONE)
			waits[began++] = (double)(its->began_ns - its->came_ns) / (double)LL_NS_PER_S;
	}
	if (began) {
		qsort(waits, began, sizeof *waits, compare_numbers);
		line.wait_median_s = waits[(began - 1) / 2];
		line.wait_95_s = waits[(size_t)ceil(0.95 * (double)began) - 1];
	}
	return line;
}

static int print_sides(const struct try_args *args, const struct side sides[2],
		       const struct ll_message_history_row *rows, size_t count, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	LL_SCOPE_FREE struct line *lines = calloc(2 * count + 1, sizeof *lines);
	LL_SCOPE_FREE double *waits = calloc(count + 1, sizeof *waits);
	size_t line_count = 0;
	int rc = 0;
	if (!lines || !waits)
		return ll_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		size_t known = 0;
		while (known < line_count && strcmp(lines[known].tenant, rows[i].tenant) != 0)
			known++;
		for (size_t k = 0; k < 2 && known == line_count - k; k++)
			lines[line_count++] = sum_tenant(&sides[k], rows, count, rows[i].tenant, waits);
	}
	for (size_t i = 0; i < line_count && args->json && !rc; i++)
		rc = ll_json_line(ll_row_json(columns, &lines[i]), err);
	if (rc || args->json)
		return rc;
	ll_rows_add_table(columns, lines, sizeof *lines, line_count, ll_table_terminal_width(), &out);
	ll_strbuf_adds(&out, _("Each job is taken to run as long as it ran, and to fill the memory that it asked for. "
			       "Whether it would run slower or faster beside others, or would not have been started, "
			       "nobody knows.\n"));
	return ll_print_text(&out, err);
}

/* ---- the command ---- */

static int compare_arrivals(const void *one, const void *other)
{
	const struct ll_message_history_row *a = one, *b = other;
	int64_t difference = a->came_s != b->came_s ? a->came_s - b->came_s : (int64_t)(a->number - b->number);
	return (difference > 0) - (difference < 0);
}

/* The jobs of all users, in the order of their arrival. A job that never ran has no time to run. */
static int read_jobs(const struct try_args *args, struct ll_history_answer *answer, struct ll_err *err)
{
	struct ll_report_period period = {0};
	struct ll_message_history asked = {.most = LL_PAST_MOST};
	int rc = ll_report_parse_period(args->since, NULL, false, &period, err);
	if (rc)
		return rc;
	asked.since_s = period.since_s;
	asked.until_s = period.until_s;
	rc = ll_history_ask(&asked, answer, err);
	if (!rc && answer->end.is_of_one_user) {
		ll_err_set(err, -EACCES, "config try: loadlined tells you of your own jobs alone");
		return ll_err_hint(err, "root, admins and operators see those of all");
	}
	if (rc)
		return ll_err_exit_with(err, LL_EXIT_FAILED);
	size_t kept = 0;
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->rows[i].began_s && answer->rows[i].came_s)
			answer->rows[kept++] = answer->rows[i];
	}
	if (answer->end.has_more)
		ll_log(LL_LOG_WARN, "these are the last %d jobs alone; a later --since has all of its time",
		       LL_PAST_MOST);
	answer->count = kept;
	if (kept)
		qsort(answer->rows, kept, sizeof *answer->rows, compare_arrivals);
	else
		rc = ll_err_set(err, -ENOENT, "config try: no job of this time ran, as far as the history knows");
	return rc ? ll_err_exit_with(err, LL_EXIT_FAILED) : 0;
}

static int open_sides(struct side sides[2], const char *from, const char *file, struct ll_err *err)
{
	const char *const paths[2] = {from, file};
	int rc = 0;
	for (size_t i = 0; i < 2 && !rc; i++) {
		struct ll_config_findings findings = {0};
		bool has_cards;
		rc = ll_config_open(&sides[i].config, paths[i], LL_CONFIG_SCOPE_FILE, &findings, &has_cards, err);
		if (rc)
			ll_err_exit_with(err, LL_EXIT_FAILED);
		else
			rc = ll_config_refuse_faults(&findings, err);
		if (!rc && !sides[i].config.policy.cards.count) {
			ll_err_set(err, -ENOENT, "config try: %.200s has no `cards`, so there is no queue",
				   paths[i] ? paths[i] : LL_CONFIG_FILE);
			rc = ll_err_exit_with(err, LL_EXIT_FAILED);
		}
		ll_config_findings_fini(&findings);
	}
	return rc;
}

static int run_try(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct try_args *args = data;
	struct side sides[2] = {{.name = args->json ? "in_force" : _("in force")}, {.name = "try"}};
	struct ll_history_answer answer = {0};
	struct ll_driver *driver = NULL;
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "config try: one FILE");
	if (!args->json)
		sides[1].name = operands->words[0];
	int rc = open_sides(sides, args->from, operands->words[0], err);
	if (!rc)
		rc = read_jobs(args, &answer, err);
	if (!rc)
		rc = ll_driver_open(&driver, err);
	for (size_t i = 0; i < 2 && !rc; i++) {
		rc = make_machine(&sides[i], driver);
		if (!rc)
			rc = replay_side(&sides[i], answer.rows, answer.count, &sides[0].config.policy);
		if (rc)
			ll_err_set(err, rc, "out of memory");
	}
	if (!rc)
		rc = print_sides(args, sides, answer.rows, answer.count, err);
	ll_driver_close(driver);
	free(answer.rows);
	fini_side(&sides[0]);
	fini_side(&sides[1]);
	return rc;
}

static const struct ll_example try_examples[] = {
    {"loadline config try new.yaml", N_("What new.yaml would have done with the jobs of the last seven days.")},
    {"loadline config try --since 30d --json new.yaml", N_("Those of a month, for a script.")},
    {NULL, NULL},
};

static const struct ll_help_status try_statuses[] = {
    {0, N_("Both are printed.")},
    {1, N_("No history, or a file with faults.")},
    {2, N_("Bad usage.")},
    {0, NULL},
};

const struct ll_command ll_config_try_command = {
    .name = "try",
    .group = &ll_command_config,
    .summary = N_("run the recorded jobs again under another configuration"),
    .operands = "FILE",
    .description = N_(
	"Takes the jobs of the history with the moment at which each came, what it asked for and how long it ran, and "
	"runs them in model time through the rules of loadlined's queue: once under the configuration in force, once "
	"under FILE, both on the cards of this machine. Prints for each tenant: jobs; how long they waited, the median "
	"and what 95 % did not exceed; memory asked for times the time that they ran, and what of it was borrowed; how "
	"often borrowers were recalled; the jobs that the configuration would refuse; and those that never began.\n\n"
	"Root, admins and operators may use it, since it needs the jobs of all. Nothing is changed.\n\n"
	"It cannot know: whether a job would run longer or shorter beside others, whether users would have asked for "
	"something else, which jobs were never asked for. It does not know from the history: which cards a user chose "
	"by name, shares of SMs, positions that operators gave, jobs that ended while they waited. It leaves out: "
	"reservations, maintenance, drained cards, budgets, `queued`, `max-sleep` and `idle-after`; a job keeps the "
	"tenant that it had, by name; at a time 64 waiting jobs have a planned start, 16 of one user. A borrower takes "
	"1 s to leave; one that can only be stopped ends there."),
    .examples = try_examples,
    .options = try_options,
    .complete = LL_COMPLETE_FILE,
    .args_size = sizeof(struct try_args),
    .statuses = try_statuses,
    .run = run_try,
};
