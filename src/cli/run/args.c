#include "cli/run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/options/limit_words.h"

#define ARGS struct ll_run_args

enum { MIB_SHIFT = 20, NAME_TAIL = 16 };

/* The library charges a context this (footprint.c): 2 MiB for each SM, and the default stack of each thread that the
 * card holds (doc/facts.md, "Memory of a context"). */
#define CONTEXT_BYTES_PER_SM (UINT64_C(2) << MIB_SHIFT)
#define STACK_BYTES_PER_SM UINT64_C(1024 * 2048)

static const char *const ways[] = {"slices", "space", "auto", NULL};
static const char *const which_cpus[] = {"all", "near", NULL};
static const char *const way_aliases[] = {"time", NULL};
static const char *const yes_no[] = {"yes", "no", NULL};

const struct ll_option ll_run_options[] = {
    {.name = "card",
     .letter = 'i',
     .placeholder = "CARDS",
     LL_OPTION_LIST(ARGS, cards),
     .complete = LL_COMPLETE_CARD,
     .help =
	 N_("Cards to use, in PCI order: an index, a range (2-3), a UUID, a PCI address, 'all', or several of these "
	    "with commas. May be repeated. 'auto': the queue of the machine chooses, as without this option.")},
    {.name = "cards",
     .placeholder = "NUMBER",
     LL_OPTION_UINT(ARGS, card_count),
     .min = 1,
     .max = 16,
     .help = N_("How many cards the queue of the machine shall give. The default is 1, or all of -i.")},
    {.name = "mem", .letter = 'm', .placeholder = "SIZE", LL_OPTION_TEXT(ARGS, mem), .help = LL_LIMIT_MEMORY_HELP},
    {.name = "mem-request",
     .placeholder = "SIZE",
     LL_OPTION_TEXT(ARGS, mem_request),
     .help = LL_LIMIT_REQUEST_HELP,
     .more = N_("Implies --evictable. --mem stays the most that the tenant may have.")},
    {.name = "overcommit",
     LL_OPTION_FLAG(ARGS, overcommit),
     .help = N_("Start the command even if the requests of the card's tenants together are more than the card has. "
		"Then none of them is certain.")},
    {.name = "compute",
     .letter = 'c',
     .placeholder = "SHARE",
     LL_OPTION_TEXT(ARGS, compute),
     .help = LL_LIMIT_COMPUTE_HELP},
    {.name = "by",
     .placeholder = "WAY",
     LL_OPTION_CHOICE(ARGS, by),
     .choices = ways,
     .choice_aliases = way_aliases,
     .fallback = "slices",
     .help =
	 N_("How programs share the card: slices, its time, by its own time slices; space, the card's SMs at the same "
	    "time, as "
	    "clients of MPS, whose daemon is started if none runs, and --compute is a share of "
	    "the SMs; auto, what was better in earlier runs beside the programs on the card or, where "
	    "nothing is known, space if a running daemon takes the program with these options, otherwise "
	    "slices, and --compute is a share of the time.")},
    {.name = "cpus",
     .placeholder = "WHICH",
     LL_OPTION_CHOICE(ARGS, cpus),
     .choices = which_cpus,
     .fallback = "all",
     .help = N_("On which of its CPUs the command runs: all, or near, those that the kernel says are near its cards; "
		"memory of the host is then taken from the nodes near the cards while they have some.")},
    LL_RUN_OPTION_WEIGHT,
    LL_RUN_OPTION_CLASS,
    LL_RUN_OPTION_SLOWDOWN,
    {.name = "tenant",
     .placeholder = "NAME",
     LL_OPTION_TEXT(ARGS, tenant),
     .help = N_("Name of the tenant, for status and set: letters and digits in UTF-8, and ._-+@: only. The default is "
		"the command's name and process id. On a machine with a configuration it is one of its tenants, in "
		"which this user is; the default is the first of them (`loadline limits`).")},
    {.name = "project",
     .placeholder = "NAME",
     LL_OPTION_TEXT(ARGS, project),
     .help = N_("The project for which the job's use is written down in the accounts (`loadline report --by project`): "
		"letters and digits in UTF-8, and ._-+@: only.")},
    {.name = "name",
     .placeholder = "NAME",
     LL_OPTION_TEXT(ARGS, name),
     .help = N_("A name of the job, for `loadline queue` and `loadline history`: letters and digits in UTF-8, and "
		"._-+@: only. The default is the name of the command.")},
    {.name = "count-context",
     .placeholder = "ANSWER",
     LL_OPTION_CHOICE(ARGS, count_context),
     .choices = yes_no,
     .fallback = "yes",
     .help = N_("Whether the driver's memory for the program's contexts counts against --mem.")},
    {.name = "max-kernel",
     .placeholder = "TIME[:kill]",
     LL_OPTION_TEXT(ARGS, max_kernel),
     .help = N_("Report a kernel that runs for longer than this time, such as 10s. With :kill, end its "
		"program.")},
    {.name = "evictable",
     LL_OPTION_FLAG(ARGS, evictable),
     .help = N_("Make the program's memory so that it can be taken off the card and put back: by hand "
		"(`loadline evict`), or when another evictable program needs the room. The program "
		"moves its memory itself, into memory of the host that counts as its own.")},
    {.name = "no-neighbour",
     LL_OPTION_FLAG(ARGS, no_neighbour),
     .help = N_("Take the memory of an evictable program to the host always. Without this option it goes to "
		"another card that NVLink joins to the program's, while nobody uses that card.")},
    {.name = "strict",
     LL_OPTION_FLAG(ARGS, strict),
     .help = N_("Refuse work that cannot be held to the limits: if the program has lost its claim and "
		"gets no other, its launches end with CUDA's error 800 (not permitted). Without this "
		"option they go on, and one line says so. A command that has its work started elsewhere "
		"(docker, srun, ssh, ...) is not run.")},
    {.name = "allow-ungoverned",
     LL_OPTION_FLAG(ARGS, allow_ungoverned),
     .help = N_("Run the command even if its limits cannot be put in force: a static program, a program "
		"with more rights than its user, a program for another machine.")},
    {.name = "time",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, time_ns),
     .min = 1,
     .help =
	 N_("How long the command runs at most, for the queue. Then it is ended. The default is defaults: time of the "
	    "configuration.")},
    {.name = "signal",
     .placeholder = "SIGNAL[@TIME]",
     LL_OPTION_TEXT(ARGS, signal),
     .help = N_("Send the command this signal before its time ends, such as USR1@60s: HUP, INT, TERM, USR1 or USR2. "
		"The default of TIME is 60s. It ends a program that does not handle it.")},
    {.name = "timeout",
     .alias = "wait",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, wait_ns),
     .min = 1,
     .help = N_("How long to wait for a place in the queue. The default is queue: wait of the configuration.")},
    {.name = "no-wait",
     LL_OPTION_FLAG(ARGS, no_wait),
     .help = N_("Do not run the command if the queue has no place now.")},
    {.name = "after",
     .placeholder = "JOB",
     LL_OPTION_UINT(ARGS, after),
     .min = 1,
     .help = N_("Wait until the job with that number (`loadline queue`) has ended.")},
    {.name = "after-ok",
     .placeholder = "JOB",
     LL_OPTION_UINT(ARGS, after_ok),
     .min = 1,
     .help =
	 N_("Wait until your job with that number has ended with status 0. If it ends otherwise, the command is not "
	    "run.")},
    LL_OPTION_END,
};

static uint64_t make_id(void)
{
	uint64_t id = 0;
	while (!id) {
		if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
			id = (uint64_t)getpid();
	}
	return id;
}

/* Makes a name such as "train.py-4711". Characters that a name may not have become underscores. */
static void make_name(const char *command, char name[LL_TENANT_NAME_SIZE])
{
	const char *slash = strrchr(command, '/');
	const char *base = slash && slash[1] ? slash + 1 : command;
	size_t used = 0, length;
	for (uint32_t character; (length = ll_utf8_next(base, &character)); base += length) {
		bool is_good = ll_tenant_name_may_have(character);
		if (used + length >= LL_TENANT_NAME_SIZE - NAME_TAIL)
			break;
		memcpy(name + used, is_good ? base : "_", is_good ? length : 1);
		used += is_good ? length : 1;
	}
	snprintf(name + used, NAME_TAIL, "-%d", (int)getpid());
}

/* Says why this is not a tenant's name, by the first character that it may not have. */
static int refuse_name(const char *option, const char *text, struct ll_err *err)
{
	char shown[2 * LL_TENANT_NAME_SIZE];
	uint32_t character;
	size_t length;
	const char *at = text;
	snprintf(shown, sizeof shown, "%s", text);
	ll_utf8_clean(shown);
	while ((length = ll_utf8_next(at, &character)) && ll_tenant_name_may_have(character))
		at += length;
	if (length && character == LL_UTF8_BAD)
		ll_err_set(err, -EINVAL, "--%s: '%s': not a name: byte 0x%02x is not UTF-8", option, shown,
			   (unsigned char)*at);
	else if (length && !ll_utf8_is_printable(character))
		ll_err_set(err, -EINVAL, "--%s: '%s': not a name: U+%04X is not printable", option, shown, character);
	else if (length)
		ll_err_set(err, -EINVAL, "--%s: '%s': not a name: '%.*s'", option, shown, (int)length, at);
	else
		ll_err_set(err, -EINVAL, "--%s: '%s': not a name: %zu bytes", option, shown, strlen(text));
	return ll_err_hint(err,
			   "use up to %d bytes of letters and digits in UTF-8, and ._-+@:", LL_TENANT_NAME_SIZE - 1);
}

static int read_name(const char *text, char name[LL_TENANT_NAME_SIZE], struct ll_err *err)
{
	if (!ll_tenant_name_is_valid(text))
		return refuse_name("tenant", text, err);
	memcpy(name, text, strlen(text) + 1);
	return 0;
}

/* Reads "10s" or "10s:kill". */
static int read_max_kernel(const char *text, struct ll_run_settings *settings, struct ll_err *err)
{
	char copy[64];
	size_t length = strcspn(text, ":");
	if (text[length] && strcmp(text + length, ":kill") != 0)
		return ll_err_set(err, -EINVAL, "--max-kernel: '%.60s': only :kill may follow the time", text);
	snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), text);
	int rc = ll_parse_duration(copy, &settings->max_kernel_ns, err);
	if (rc < 0)
		return ll_err_wrap(err, "--max-kernel");
	if (!settings->max_kernel_ns)
		return ll_err_set(err, -EINVAL, "--max-kernel: '%.60s': shorter than any kernel", text);
	settings->kills_at_max_kernel = text[length];
	return 0;
}

int ll_run_args_signal(const struct ll_run_args *args, uint16_t *ret_signal, uint16_t *ret_before_s, struct ll_err *err)
{
	static const struct {
		const char *name;
		uint16_t number;
	} signals[] = {{"HUP", SIGHUP}, {"INT", SIGINT}, {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
	const char *name = args->signal + (strncmp(args->signal, "SIG", 3) == 0 ? 3 : 0);
	size_t length = strcspn(name, "@"), at = 0;
	uint64_t before_ns = 60 * LL_NS_PER_S;
	int rc = name[length] ? ll_parse_duration(name + length + 1, &before_ns, err) : 0;
	if (rc)
		return ll_err_wrap(err, "--signal");
	while (at < sizeof signals / sizeof *signals &&
	       (strncmp(signals[at].name, name, length) != 0 || signals[at].name[length]))
		at++;
	if (at == sizeof signals / sizeof *signals)
		return ll_err_set(err, -EINVAL, "--signal: '%.60s': not one of HUP, INT, TERM, USR1, USR2",
				  args->signal);
	if (before_ns / LL_NS_PER_S > UINT16_MAX)
		return ll_err_set(err, -EINVAL, "--signal: '%.60s': at most 18 hours before", args->signal);
	*ret_signal = signals[at].number;
	*ret_before_s = (uint16_t)(before_ns / LL_NS_PER_S);
	return 0;
}

static int check_space(const struct ll_run_args *args, const struct ll_run_settings *settings, struct ll_err *err)
{
	if (!settings->kills_at_max_kernel)
		return 0;
	ll_err_set(err, -EINVAL,
		   "--max-kernel=%s: would kill a client of MPS while its kernel runs, and may "
		   "leave the server unusable for all others",
		   args->max_kernel);
	return ll_err_hint(err, "leave :kill out, and end it with `loadline mps kill`");
}

static int read_memory(const struct ll_run_args *args, struct ll_run_settings *settings, struct ll_err *err)
{
	int rc = 0;
	if (args->mem)
		rc = ll_limit_read_memory(args->mem, &settings->memory_limit_bytes, err);
	if (!rc && args->mem_request)
		rc = ll_limit_read_request(args->mem_request, &settings->memory_request_bytes, err);
	if (!rc)
		rc = ll_limit_check_request(settings->memory_request_bytes, settings->memory_limit_bytes, err);
	settings->is_evictable |= !rc && settings->memory_request_bytes;
	return rc;
}

int ll_run_args_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 struct ll_err *err)
{
	struct ll_run_settings settings = {
	    .id = make_id(),
	    .priority = LL_PRIORITY_NORMAL,
	    .weight_permille = 1000,
	    .counts_context = args->count_context == 0,
	    .is_strict = args->strict,
	    .is_evictable = args->evictable,
	    .avoids_neighbours = args->no_neighbour,
	};
	int rc = read_memory(args, &settings, err);
	if (!rc && args->compute)
		rc = ll_limit_read_compute(args->compute, &settings.compute_cap_permille, err);
	if (!rc && args->by == LL_RUN_BY_SPACE) {
		settings.space_permille = settings.compute_cap_permille;
		settings.compute_cap_permille = 0;
	}
	if (!rc && args->weight)
		rc = ll_limit_read_weight(args->weight, &settings.weight_permille, err);
	if (!rc && args->class)
		rc = ll_limit_read_class(args->class, &settings.priority, err);
	if (!rc && args->slowdown)
		rc = ll_limit_read_slowdown(args->slowdown, &settings.slowdown_permille, err);
	if (!rc && args->max_kernel)
		rc = read_max_kernel(args->max_kernel, &settings, err);
	if (!rc && args->by == LL_RUN_BY_SPACE)
		rc = check_space(args, &settings, err);
	if (!rc && args->tenant)
		rc = read_name(args->tenant, settings.tenant, err);
	else if (!rc)
		make_name(command, settings.tenant);
	if (!rc && args->project && !ll_tenant_name_is_valid(args->project))
		rc = refuse_name("project", args->project, err);
	if (!rc && args->name && !ll_tenant_name_is_valid(args->name))
		rc = refuse_name("name", args->name, err);
	if (!rc)
		*ret_settings = settings;
	return rc;
}

int ll_run_args_check_nested(const struct ll_run_args *args, const struct ll_run_settings *outer, struct ll_err *err)
{
	if (!args->mem && !args->mem_request && !args->compute && !args->weight && !args->tenant && !args->max_kernel &&
	    !args->project && !args->name && !args->class && !args->slowdown && !args->time_ns && !args->wait_ns &&
	    !args->no_wait && !args->signal && !args->after && !args->after_ok && !args->card_count &&
	    !args->count_context && !args->strict && !args->evictable && !args->no_neighbour &&
	    (args->by != LL_RUN_BY_SPACE || outer->space_permille))
		return 0;
	ll_err_set(err, -EPERM,
		   "this program is already governed, as tenant %s: its limits hold for all programs that "
		   "it starts",
		   outer->tenant);
	return ll_err_hint(err, "leave the limits out, or change them from outside with `loadline set %s`",
			   outer->tenant);
}

int ll_run_args_check_card(const struct ll_run_settings *settings, const struct ll_card *card, struct ll_err *err)
{
	uint64_t limit = settings->memory_limit_bytes;
	if (limit && card->memory_bytes && limit > card->memory_bytes) {
		ll_err_set(err, -EINVAL, "--mem: card %s has only %llu MiB", card->label,
			   (unsigned long long)(card->memory_bytes >> MIB_SHIFT));
		return ll_err_hint(err, "give at most that, or leave the limit out");
	}
	uint64_t request = settings->memory_request_bytes;
	if (request && card->usable_bytes && request > card->usable_bytes)
		return ll_err_set(err, -EINVAL, "--mem-request: card %s has only %llu MiB", card->label,
				  (unsigned long long)(card->usable_bytes >> MIB_SHIFT));
	/* By space a context has a part of the SMs only. */
	unsigned sms =
	    settings->space_permille ? (card->sm_count * settings->space_permille + 999) / 1000 : card->sm_count;
	uint64_t least = (CONTEXT_BYTES_PER_SM + STACK_BYTES_PER_SM) * sms;
	if (limit && settings->counts_context && limit < least) {
		ll_err_set(err, -EINVAL, "--mem: a program's context alone takes some %llu MiB of card %s",
			   (unsigned long long)(least >> MIB_SHIFT), card->label);
		return ll_err_hint(err, "give at least --mem %lluM, or --count-context=no to leave contexts out of it",
				   (unsigned long long)(least >> MIB_SHIFT));
	}
	return 0;
}
