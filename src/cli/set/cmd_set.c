#include "cli/set/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/options/command.h"
#include "cli/options/limit_words.h"
#include "cli/queue/queue.h"
#include "hold/command/words.h"
#include "hold/hold.h"

enum { ID_SIZE = 24, LABEL_SIZE = 64 };

static int fail_unknown(const char *word, struct ll_err *err)
{
	ll_err_set(err, -ENOENT, "%.80s: no such claim or tenant", word);
	ll_err_hint(err, "`loadline status` shows them");
	return -ENOENT;
}

/* The card before the last slash; NULL: there is none, or several. */
static const struct ll_card *read_card(const struct ll_driver *driver, const char *word)
{
	char label[LABEL_SIZE];
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	snprintf(label, sizeof label, "%.*s", (int)(strrchr(word, '/') - word), word);
	return ll_cards_select(driver, label, &cards, &count, NULL) == 0 && count == 1 ? cards[0] : NULL;
}

bool ll_set_claim_read(const struct ll_driver *driver, const char *word, const struct ll_card **ret_card,
		       unsigned *ret_index)
{
	const char *slash = strrchr(word, '/');
	uint64_t index;
	if (!slash || ll_parse_uint(slash + 1, 0, UINT32_MAX, &index, NULL) < 0)
		return false;
	*ret_card = read_card(driver, word);
	*ret_index = (unsigned)index;
	return *ret_card;
}

static bool is_hold(const struct ll_driver *driver, const char *word)
{
	struct ll_hold_owner owner;
	const struct ll_card *card = strcmp(strrchr(word, '/'), "/hold") == 0 ? read_card(driver, word) : NULL;
	return card && ll_hold_query(card, ll_driver_sim_folder(driver), &owner, NULL, NULL) == 0;
}

static int find_claim(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		      const char *word, struct ll_err *err)
{
	const struct ll_card *card;
	unsigned index;
	if (is_hold(driver, word)) {
		ll_err_set(err, -EBUSY, "%.80s: is a synthetic load, which has no limits", word);
		return ll_err_hint(err, "end it and start `loadline hold` again");
	}
	if (!ll_set_claim_read(driver, word, &card, &index))
		return fail_unknown(word, err);
	for (size_t i = 0; i < list->claim_count; i++) {
		const struct ll_message_claim_row *claim = &list->claims[i];
		if (claim->index == index && strcmp(claim->uuid, card->uuid) == 0)
			target->job = ll_list_job(list, claim->job_number);
	}
	return target->job ? 0 : fail_unknown(word, err);
}

/* "0/17" or "0/hold", and not "USER/NAME". */
static bool is_claim(const struct ll_driver *driver, const char *word)
{
	const struct ll_card *card;
	unsigned index;
	return strchr(word, '/') && (is_hold(driver, word) || ll_set_claim_read(driver, word, &card, &index));
}

static bool is_named(const struct ll_message_job_row *job, const char *word)
{
	char id[ID_SIZE];
	snprintf(id, sizeof id, "%" PRIx64, job->job.token[0]);
	return strcmp(job->job.tenant, word) == 0 || strcmp(id, word) == 0;
}

/* Whose jobs are meant. */
enum owner { OWN, OTHERS, NAMED };

static bool is_meant(const struct ll_message_job_row *job, const char *word, enum owner owner)
{
	char user[LABEL_SIZE], uid[ID_SIZE];
	const char *slash = strchr(word, '/');
	bool is_own = job->job.uid == geteuid();
	if (owner != NAMED)
		return (owner == OWN) == is_own && is_named(job, word);
	size_t length = (size_t)(slash - word);
	ll_user_name(job->job.uid, user, sizeof user);
	snprintf(uid, sizeof uid, "%" PRIu32, job->job.uid);
	bool is_user = (strlen(user) == length && strncmp(user, word, length) == 0) ||
		       (strlen(uid) == length && strncmp(uid, word, length) == 0);
	return is_user && is_named(job, slash + 1);
}

static int fail_several(const char *word, bool are_of_several_users, struct ll_err *err)
{
	ll_err_set(err, -EEXIST, "%.80s: several jobs have this name", word);
	return ll_err_hint(err, are_of_several_users
				    ? N_("say whose: USER/NAME, or the number of a claim (see `loadline status`)")
				    : N_("choose one by the number of a claim (see `loadline status`)"));
}

/* 0: one or none. */
static int find_jobs_of(struct ll_set_target *target, const struct ll_list *list, const char *word, enum owner owner,
			struct ll_err *err)
{
	for (size_t i = 0; i < list->job_count; i++) {
		const struct ll_message_job_row *job = &list->jobs[i];
		if (!is_meant(job, word, owner))
			continue;
		if (target->job)
			return fail_several(word, target->job->job.uid != job->job.uid, err);
		target->job = job;
	}
	return 0;
}

/* A number is that of a job. Two users may have tenants of one name: the caller's own comes first. */
static int find_job(struct ll_set_target *target, const struct ll_list *list, const char *word, struct ll_err *err)
{
	uint64_t number;
	if (!ll_parse_uint(word, 1, UINT64_MAX - 1, &number, NULL))
		target->job = ll_list_job(list, number);
	if (target->job)
		return 0;
	int rc = find_jobs_of(target, list, word, strchr(word, '/') ? NAMED : OWN, err);
	if (!rc && !target->job && !strchr(word, '/'))
		rc = find_jobs_of(target, list, word, OTHERS, err);
	return rc || target->job ? rc : fail_unknown(word, err);
}

int ll_set_job_check(const struct ll_message_job_row *job, const char *word, struct ll_err *err)
{
	char user[LABEL_SIZE];
	if (job->job.token[1])
		return 0;
	ll_user_name(job->job.uid, user, sizeof user);
	ll_err_set(err, -EPERM, "%.80s: is a job of user %s", word, user);
	return ll_err_hint(err, "that user and root may change it");
}

static int find_cards(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		      struct ll_err *err)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	target->cards = calloc(count + 1, sizeof *target->cards);
	if (!target->cards)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (size_t i = 0; i < count; i++) {
		if (!cards[i].fault && ll_list_card(list, target->job->number, cards[i].uuid))
			target->cards[target->card_count++] = &cards[i];
	}
	return 0;
}

int ll_set_target_find(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		       const char *word, struct ll_err *err)
{
	*target = (struct ll_set_target){0};
	int rc =
	    is_claim(driver, word) ? find_claim(target, list, driver, word, err) : find_job(target, list, word, err);
	if (!rc)
		rc = ll_set_job_check(target->job, word, err);
	return rc ? rc : find_cards(target, list, driver, err);
}

void ll_set_target_fini(struct ll_set_target *target)
{
	free(target->cards);
	*target = (struct ll_set_target){0};
}

enum { MIB_SHIFT = 20 };

struct set_args {
	const char *mem, *mem_request, *compute, *weight, *class, *slowdown, *sharing; /* NULL: not given */
	bool overcommit;
	const char *time;
	const char *reason;
};

static const struct ll_option set_options[] = {
    {.name = "mem",
     .letter = 'm',
     .placeholder = "SIZE",
     LL_OPTION_TEXT(struct set_args, mem),
     .help = LL_LIMIT_MEMORY_HELP,
     .more = N_("If the tenant already has more, it keeps that and gets no more.")},
    {.name = "mem-request",
     .placeholder = "SIZE",
     LL_OPTION_TEXT(struct set_args, mem_request),
     .help = LL_LIMIT_REQUEST_HELP},
    {.name = "overcommit",
     LL_OPTION_FLAG(struct set_args, overcommit),
     .help = N_("Allow a request with which all requests on the card together are more than the card has. Then none "
		"of them is certain.")},
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
    {.name = "class",
     .alias = "priority",
     .letter = 'p',
     .placeholder = "CLASS",
     LL_OPTION_TEXT(struct set_args, class),
     .choices = ll_limit_classes,
     .help = LL_LIMIT_CLASS_HELP},
    {.name = "slowdown",
     .placeholder = "NUMBER",
     LL_OPTION_TEXT(struct set_args, slowdown),
     .help = LL_LIMIT_SLOWDOWN_HELP},
    {.name = "sharing",
     .placeholder = "HOW",
     LL_OPTION_TEXT(struct set_args, sharing),
     .help = N_(
	 "How the cards of the job are shared while it is on them: slices (the card's own, all gates open), visits "
	 "(one tenant after the other, by weight), or measured, which is the default: what gives the programs more "
	 "progress is measured on them. held-0, held-0.5 and held-1 hold lower classes for that part of the time, to "
	 "see what it is worth.")},
    {.name = "time",
     .placeholder = "+TIME",
     LL_OPTION_TEXT(struct set_args, time),
     .help =
	 N_("So much more time for a job of the queue of the machine, such as +2h. CLAIM may then be the job's number "
	    "in the queue. Users may prolong their own jobs up to max-time of the configuration, if nobody else has "
	    "the cards by "
	    "then, operators all jobs.")},
    {.name = "reason", .placeholder = "TEXT", LL_OPTION_TEXT(struct set_args, reason), .help = LL_REASON_HELP},
    LL_OPTION_END,
};

static const char *const sharing_words[] = {"measured", "slices", "visits", "held-0", "held-0.5", "held-1"};

static int read_sharing(const char *text, struct ll_limits *limits, struct ll_err *err)
{
	for (unsigned i = 0; i <= LL_LIMIT_SHARING_HELD_ALL; i++) {
		limits->sharing = (uint16_t)i;
		if (strcmp(text, sharing_words[i]) == 0)
			return 0;
	}
	return ll_err_set(err, -EINVAL, "--sharing %s: measured, slices, visits, held-0, held-0.5 or held-1", text);
}

static int read_class(const char *text, struct ll_limits *limits, struct ll_err *err)
{
	enum ll_priority priority;
	int rc = ll_limit_read_class(text, &priority, err);
	if (!rc)
		limits->priority = ll_class_of_priority(priority);
	return rc;
}

static int read_slowdown(const char *text, struct ll_limits *limits, struct ll_err *err)
{
	unsigned permille = 0;
	int rc = ll_limit_read_slowdown(text, &permille, err);
	limits->slowdown_permille = (uint16_t)permille;
	return rc;
}

static bool has_limits(const struct set_args *args)
{
	return args->mem || args->mem_request || args->compute || args->weight || args->class || args->slowdown ||
	       args->sharing;
}

static int read_limits(const struct set_args *args, struct ll_limits *limits, struct ll_err *err)
{
	int rc = 0;
	if (!has_limits(args) && !args->time) {
		ll_err_set(err, -EINVAL, "set: nothing to set");
		return ll_err_hint(err, "give --mem, --mem-request, --compute, --weight, --class, --slowdown, "
					"--sharing or --time");
	}
	if (args->mem)
		rc = ll_limit_read_memory(args->mem, &limits->memory_bytes, err);
	if (!rc && args->mem_request)
		rc = ll_limit_read_request(args->mem_request, &limits->request_bytes, err);
	if (!rc && args->compute)
		rc = ll_limit_read_compute(args->compute, &limits->compute_permille, err);
	if (!rc && args->weight)
		rc = ll_limit_read_weight(args->weight, &limits->weight_permille, err);
	if (!rc && args->class)
		rc = read_class(args->class, limits, err);
	if (!rc && args->slowdown)
		rc = read_slowdown(args->slowdown, limits, err);
	if (!rc && args->sharing)
		rc = read_sharing(args->sharing, limits, err);
	return rc;
}

static int check_memory(const struct ll_set_target *target, uint64_t bytes, struct ll_err *err)
{
	for (size_t i = 0; i < target->card_count; i++) {
		const struct ll_card *card = target->cards[i];
		if (card->memory_bytes && bytes > card->memory_bytes)
			return ll_err_set(err, -EINVAL, "--mem: card %s has only %llu MiB", card->label,
					  (unsigned long long)(card->memory_bytes >> MIB_SHIFT));
	}
	return 0;
}

/* Checks the request against the limit, where one of them is not set now. */
static int check_request(const struct set_args *args, const struct ll_limits *limits, const struct ll_limits *now,
			 struct ll_err *err)
{
	if (!args->mem && !args->mem_request)
		return 0;
	return ll_limit_check_request(args->mem_request ? limits->request_bytes : now->request_bytes,
				      args->mem ? limits->memory_bytes : now->memory_bytes, err);
}

/* Refuses to change a share of space: the driver fixes it when a program starts. */
static int check_space(const struct set_args *args, const struct ll_set_target *target, struct ll_err *err)
{
	if (!target->job->job.limits.space_permille || !args->compute)
		return 0;
	ll_err_set(err, -EBUSY, "--compute: this program shares card %s by space (MPS), as it was started",
		   target->card_count ? target->cards[0]->label : "");
	return ll_err_hint(err, "start it again with another `run --by space --compute`");
}

static uint64_t find_fields(const struct set_args *args)
{
	return (args->mem ? LL_SET_MEMORY : 0U) | (args->mem_request ? LL_SET_REQUEST : 0U) |
	       (args->compute ? LL_SET_COMPUTE : 0U) | (args->weight ? LL_SET_WEIGHT : 0U) |
	       (args->class ? LL_SET_PRIORITY : 0U) | (args->sharing ? LL_SET_SHARING : 0U) |
	       (args->slowdown ? LL_SET_SLOWDOWN : 0U) | (args->overcommit ? LL_SET_OVERCOMMIT : 0U);
}

static int apply_limits(const struct set_args *args, const struct ll_limits *limits, const struct ll_set_target *target,
			struct ll_client *client, struct ll_err *err)
{
	union ll_message message;
	struct ll_err why = {0};
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = target->job->number;
	message.set.fields = find_fields(args);
	message.set.limits = *limits;
	ll_message_text_set(message.set.reason, sizeof message.set.reason, args->reason ? args->reason : "");
	int rc = ll_client_request(client, &message, NULL, 0, NULL, ll_now_ns() + LL_CLIENT_REPLY_NS, &why);
	if (rc == -ESRCH || rc == -ENOENT)
		ll_err_set(&why, -ESRCH, "set: the program ended meanwhile");
	if (rc == -EACCES) {
		ll_err_hint(&why, "`loadline limits` tells what you may have");
		ll_err_exit_with(&why, LL_EXIT_REFUSED);
	}
	if (rc == -EDQUOT) {
		if (target->card_count == 1)
			ll_err_wrap(&why, "--mem-request: card %s", target->cards[0]->label);
		else
			ll_err_wrap(&why, "--mem-request");
		ll_err_hint(&why, "--overcommit allows it");
	}
	if (rc && err)
		*err = why;
	return why.code;
}

static void add_memory(struct ll_strbuf *text, uint64_t bytes)
{
	if (bytes)
		ll_hold_add_bytes(text, bytes);
	else
		ll_strbuf_adds(text, _("none"));
}

static void add_share(struct ll_strbuf *text, unsigned permille)
{
	if (permille)
		ll_strbuf_addf(text, "%g %%", permille / 10.0);
	else
		ll_strbuf_adds(text, _("none"));
}

static unsigned or_default(unsigned permille, unsigned default_permille)
{
	return permille ? permille : default_permille;
}

static void add_memory_changes(struct ll_strbuf *text, const struct set_args *args, const struct ll_limits *limits,
			       const struct ll_limits *old)
{
	if (args->mem) {
		ll_strbuf_adds(text, _(", memory "));
		add_memory(text, old->memory_bytes);
		ll_strbuf_adds(text, " -> ");
		add_memory(text, limits->memory_bytes);
	}
	if (args->mem_request) {
		ll_strbuf_adds(text, _(", memory request "));
		add_memory(text, old->request_bytes);
		ll_strbuf_adds(text, " -> ");
		add_memory(text, limits->request_bytes);
	}
}

static void add_time_changes(struct ll_strbuf *text, const struct set_args *args, const struct ll_limits *limits,
			     const struct ll_limits *old)
{
	if (args->compute) {
		ll_strbuf_adds(text, _(", compute "));
		add_share(text, old->compute_permille);
		ll_strbuf_adds(text, " -> ");
		add_share(text, limits->compute_permille);
	}
	if (args->weight)
		ll_strbuf_addf(text, _(", weight %g -> %g"),
			       or_default(old->weight_permille, LL_DEFAULT_WEIGHT_PERMILLE) / 1000.0,
			       limits->weight_permille / 1000.0);
	if (args->class)
		ll_strbuf_addf(text, _(", class %s -> %s"), ll_priority_name(ll_priority_of_class(old->priority)),
			       ll_priority_name(ll_priority_of_class(limits->priority)));
	if (args->slowdown)
		ll_strbuf_addf(text, _(", slowdown %g -> %g"),
			       or_default(old->slowdown_permille, LL_DEFAULT_SLOWDOWN_PERMILLE) / 1000.0,
			       limits->slowdown_permille / 1000.0);
	if (args->sharing && old->sharing <= LL_LIMIT_SHARING_HELD_ALL)
		ll_strbuf_addf(text, _(", sharing %s -> %s"), sharing_words[old->sharing],
			       sharing_words[limits->sharing]);
}

/* Adds a line such as "card 0, night: memory 20.0 GiB -> 10.0 GiB, weight 1 -> 2" */
static void add_change(struct ll_strbuf *text, const struct set_args *args, const struct ll_limits *limits,
		       const struct ll_card *card, const struct ll_job_facts *before)
{
	LL_SCOPE_STRBUF struct ll_strbuf changes = LL_STRBUF_INIT;
	add_memory_changes(&changes, args, limits, &before->limits);
	add_time_changes(&changes, args, limits, &before->limits);
	ll_strbuf_addf(text, "%s%s%s%s:", card ? _("card ") : "", card ? card->label : "", card ? ", " : "",
		       before->tenant);
	if (changes.length)
		ll_strbuf_adds(text, changes.buf + strlen(","));
	ll_strbuf_addc(text, '\n');
}

static int print_changes(const struct set_args *args, const struct ll_limits *limits,
			 const struct ll_set_target *target, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	for (size_t i = 0; i < target->card_count; i++)
		add_change(&text, args, limits, target->cards[i], &target->job->job);
	if (!target->card_count)
		add_change(&text, args, limits, NULL, &target->job->job);
	return ll_print_text(&text, err);
}

struct change {
	const struct set_args *args;
	const struct ll_limits *limits;
	const struct ll_driver *driver;
	const char *word;
	uint64_t more_ns; /* of time; 0: none */
};

/* A limit takes no memory away. */
static void say_excess(const struct ll_limits *limits, const struct ll_set_target *target, const struct ll_list *list)
{
	for (size_t i = 0; limits->memory_bytes && i < list->card_count; i++) {
		const struct ll_message_card_row *row = &list->cards[i];
		LL_SCOPE_STRBUF struct ll_strbuf used = LL_STRBUF_INIT;
		size_t at = 0;
		while (at < target->card_count && strcmp(target->cards[at]->uuid, row->uuid) != 0)
			at++;
		if (row->job_number != target->job->number || row->used_bytes <= limits->memory_bytes)
			continue;
		ll_hold_add_bytes(&used, row->used_bytes);
		ll_log(
		    LL_LOG_WARN,
		    "card %s, %s: has %s, more than the new limit: it keeps that, and gets no more until it has less",
		    at < target->card_count ? target->cards[at]->label : row->uuid, target->job->job.tenant, used.buf);
	}
}

static int change_target(const struct change *change, const struct ll_set_target *target, const struct ll_list *list,
			 struct ll_client *client, struct ll_err *err)
{
	const struct set_args *args = change->args;
	const struct ll_limits *limits = change->limits;

	int rc = check_memory(target, limits->memory_bytes, err);
	if (!rc)
		rc = check_request(args, limits, &target->job->job.limits, err);
	if (!rc)
		rc = check_space(args, target, err);
	if (!rc)
		rc = apply_limits(args, limits, target, client, err);
	if (!rc && args->weight && target->job->job.limits.space_permille)
		ll_log(LL_LOG_WARN, "%s", LL_LIMIT_WEIGHT_BY_SPACE);
	if (!rc)
		say_excess(limits, target, list);
	return rc ? rc : print_changes(args, limits, target, err);
}

static int change_time(const struct change *change, uint64_t number, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	const struct ll_message_queue_act act = {.act = LL_QUEUE_TIME, .number = number, .value = change->more_ns};
	int rc = ll_queue_change(&act, err);
	if (rc)
		return ll_err_wrap(err, "--time");
	ll_strbuf_addf(&text, _("%s: %s more time\n"), change->word, change->args->time + 1);
	return ll_print_text(&text, err);
}

static int find_and_change(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err)
{
	const struct change *change = data;
	struct ll_set_target target;
	int rc = ll_set_target_find(&target, list, change->driver, change->word, err);
	if (!rc && has_limits(change->args))
		rc = change_target(change, &target, list, client, err);
	if (!rc && change->more_ns)
		rc = change_time(change, target.job->number, err);
	ll_set_target_fini(&target);
	return rc;
}

static int read_more(const struct set_args *args, uint64_t *ret_ns, struct ll_err *err)
{
	if (!args->time)
		return 0;
	if (args->time[0] != '+')
		return ll_err_set(err, -EINVAL, "--time: '%.60s': begins with +, such as +2h", args->time);
	int rc = ll_parse_duration(args->time + 1, ret_ns, err);
	if (!rc && !*ret_ns)
		rc = ll_err_set(err, -EINVAL, "'%.60s': no time", args->time);
	return rc ? ll_err_wrap(err, "--time") : 0;
}

/* A job of the queue is known by its number there, also while it waits and has no claim. */
static int change_found(struct change *change, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	uint64_t number;
	if (!has_limits(change->args) && !ll_parse_uint(change->word, 1, UINT64_MAX - 1, &number, NULL))
		return change_time(change, number, err);
	int rc = ll_cards_open(0, &driver, err);
	change->driver = driver;
	if (!rc)
		rc = ll_daemon_look(ll_driver_sim_folder(driver), false, find_and_change, change, err);
	ll_driver_close(driver);
	return rc;
}

static int run_set(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct set_args *args = data;
	struct ll_limits limits = {0};
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "set: %s",
				  operands->count ? _("one claim at a time") : _("no claim named"));
	struct change change = {.args = args, .limits = &limits, .word = operands->words[0]};
	int rc = read_limits(args, &limits, err);
	if (!rc)
		rc = read_more(args, &change.more_ns, err);
	return rc ? rc : change_found(&change, err);
}

static const struct ll_example set_examples[] = {
    {"loadline set 12 --mem 10G", N_("At most 10 GiB on each card from now on for job 12.")},
    {"loadline set 0/17 --mem 10G", N_("At most 10 GiB on each card from now on for the job of that claim.")},
    {"loadline set night --compute 50% --weight 2", N_("Tenant night, on every card that it uses.")},
    {"loadline set night --mem-request 10G", N_("Promise 10 GiB of the card to it from now on.")},
    {"loadline set night --compute none", N_("Remove the cap.")},
    {"loadline set 12 --time +2h", N_("Two more hours for job 12 of the queue.")},
    {"loadline set night --class low", N_("From now on, queue little work beside programs of higher classes.")},
    {NULL, NULL},
};

const struct ll_command ll_command_set = {
    .name = "set",
    .summary = N_("change the limits of a running program"),
    .operands = "CLAIM",
    .description =
	N_("Changes the limits that `loadline run` gave a program, while the program runs. CLAIM is the number "
	   "of a job (12), or of one of its claims in `loadline status` (0/17), or the name of a tenant, or the id of "
	   "a job; "
	   "under the system's loadlined USER/NAME, for a tenant of another user, whose limits root may change. The "
	   "limits hold on "
	   "each card that the job uses. Limits without an option stay as they are. One line for "
	   "each card has the old values and the new ones.\n\n"
	   "A synthetic load has no limits: to change it, end it and start another."),
    .examples = set_examples,
    .options = set_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct set_args),
    .run = run_set,
};
