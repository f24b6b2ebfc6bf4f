#include "hold/command/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "hold/hold.h"

/* ---- args ---- */

#define ARGS struct ll_hold_args

#define IDLE_AFTER_NS (600 * LL_NS_PER_S)
#define MIB_BYTES (UINT64_C(1) << 20)

enum { REPLAY_MAX_BYTES = 64 << 20 };

static const char *const metric_words[] = {"util", "sm", "occupancy", "tensor", "dram", "power", NULL};
static const char *const mode_words[] = {"yield", "fill", "ignore", NULL};
static const char *const payload_words[] = {"auto", "vulkan", "cuda", NULL};

const struct ll_option ll_hold_options[] = {
    LL_OPTION_CARDS(ARGS, cards),
    {.name = "skip-unusable",
     LL_OPTION_FLAG(ARGS, skip_unusable),
     .help = N_("Leave out cards that cannot be held, with a warning for each, instead of failing. The "
		"systemd service does so.")},
    {.name = "target",
     .letter = 't',
     .placeholder = "LEVEL",
     LL_OPTION_TEXT(ARGS, target),
     .help = N_("Level to hold: 1-99 percent, or watts (200W) for the power metric. The default is 50%.")},
    {.name = "metric",
     .letter = 'm',
     .placeholder = "METRIC",
     LL_OPTION_CHOICE(ARGS, metric),
     .choices = metric_words,
     .fallback = "util",
     .help = N_("The measure of the level: util (NVML, share of time), sm, occupancy, tensor or dram "
		"(GPM, newer cards), power. dram also takes GPU memory: four times the card's L2 cache.")},
    {.name = "curve",
     .placeholder = "CURVE",
     LL_OPTION_TEXT(ARGS, curve),
     .help =
	 N_("A target that changes with time: sine:20-80@60s, square:20-80@60s, sawtooth:20-80@60s, or replay:FILE.csv "
	    "with rows time_s,target.")},
    {.name = "idle-target",
     .placeholder = "LEVEL",
     LL_OPTION_TEXT(ARGS, idle_target),
     /* xgettext:no-c-format */
     .help = N_("Level to hold after --idle-after without work of other programs; 'off' keeps --target. "
		"The default is 60% if neither --target nor --curve is given.")},
    {.name = "idle-after",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, idle_after_ns),
     .min = 1,
     .help = N_("Time without work of other programs after which --idle-target is held. The default is "
		"10m.")},
    {.name = "mode",
     .placeholder = "MODE",
     LL_OPTION_CHOICE(ARGS, mode),
     .choices = mode_words,
     .fallback = "yield",
     .help = N_("What to do while other programs work on the card: yield (stop within milliseconds), "
		"fill (add load up to the target), ignore (keep holding).")},
    {.name = "resume-after",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, resume_after_ns),
     .fallback = "5s",
     .help = N_("Hold again when no other program has worked on the card for this long.")},
    {.name = "release-after",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, release_after_ns),
     .fallback = "0s",
     .help = N_("Give the GPU memory back after yielding for this long; 0 keeps it.")},
    {.name = "max-memory",
     .placeholder = "SIZE",
     LL_OPTION_BYTES(ARGS, max_memory_bytes),
     .min = 1,
     .help = N_("Refuse to hold if the context takes more GPU memory than this, also if it does so only while "
		"it is made.")},
    {.name = "max-temperature",
     .placeholder = "CELSIUS",
     LL_OPTION_CELSIUS(ARGS, max_temperature_c),
     .fallback = "80",
     .min = 30,
     .max = 120,
     .help = N_("Stop at this temperature and go on when the card is 5 degrees cooler.")},
    {.name = "payload",
     .placeholder = "PAYLOAD",
     LL_OPTION_CHOICE(ARGS, payload),
     .choices = payload_words,
     .fallback = "auto",
     .help = N_("The load on the card: vulkan takes the least GPU memory, cuda works everywhere, auto "
		"tries them in this order.")},
    {.name = "mps",
     LL_OPTION_FLAG(ARGS, mps),
     /* xgettext:no-c-format */
     .help = N_("Join the running MPS daemon, as a client with 1 % of the SMs (payload cuda). Without a "
		"daemon the hold is refused. This takes the least memory. But a fault of any client can "
		"end all, and only readings show the work of other programs.")},
    {.name = "timeout",
     .alias = "wait",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, wait_ns),
     .fallback = "0s",
     .help = N_("Wait this long for a card that has no memory left for a context, instead of failing.")},
    {.name = "for",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, for_ns),
     .min = 1,
     .help = N_("End after this time. Without it the hold goes on until a signal.")},
    LL_OPTION_JSON(ARGS, json),
    {.name = "dry-run",
     LL_OPTION_FLAG(ARGS, dry_run),
     .help = N_("Check everything and print what the hold would do, without doing it.")},
    {.name = "record",
     .placeholder = "FILE",
     LL_OPTION_TEXT(ARGS, record),
     .complete = LL_COMPLETE_FILE,
     .help = N_("Write every sample to this CSV file.")},
    {.name = "metrics-listen",
     .placeholder = "ADDR:PORT",
     LL_OPTION_TEXT(ARGS, metrics_listen),
     .help = N_("Serve Prometheus metrics at /metrics and health at /healthz, for example at "
		"127.0.0.1:9409.")},
    {.name = "log-every",
     .placeholder = "TIME",
     LL_OPTION_DURATION(ARGS, log_every_ns),
     .fallback = "10s",
     .help = N_("Time between two log lines of a card. Every change of state has a line too; 0 logs "
		"changes only.")},
    {.name = "kernel-log",
     .placeholder = "FILE",
     LL_OPTION_TEXT(ARGS, kernel_log),
     .complete = LL_COMPLETE_FILE,
     .help = N_("For measurements: write a line for each kernel of the hold, with its start and end in "
		"ns of the card's clock.")},
    LL_OPTION_END,
};

/* "50%" -> 0.5 within 1..99 %, or "200W" for the power metric. */
static int parse_level(const struct ll_hold_args *args, const char *option, const char *text, double *ret_level,
		       struct ll_err *err)
{
	double level;
	if (args->metric == LL_METRIC_POWER) {
		if (ll_parse_watts(text, &level, err) < 0) {
			ll_err_wrap(err, "--%s", option);
			return ll_err_hint(err, "the power metric takes watts, like --target 200W");
		}
		if (level < 1 || level > 100000)
			return ll_err_set(err, -EINVAL, "--%s: '%s': no card takes this power", option, text);
		*ret_level = level;
		return 0;
	}
	if (ll_parse_share(text, &level, err) < 0)
		return ll_err_wrap(err, "--%s", option);
	if (level < 1 || level > 99)
		return ll_err_set(err, -EINVAL, "--%s: '%s': not within 1 and 99 %%", option, text);
	*ret_level = level / 100;
	return 0;
}

static int parse_curve(const char *text, struct ll_curve *ret_curve, struct ll_err *err)
{
	const char *path = ll_curve_replay_path(text);
	LL_SCOPE_STRBUF struct ll_strbuf csv = LL_STRBUF_INIT;
	int rc = path ? ll_strbuf_add_file(&csv, AT_FDCWD, path, REPLAY_MAX_BYTES) : 0;
	if (rc == -E2BIG || rc == -ENOMEM)
		return ll_err_set(err, -EINVAL, "--curve: %s: over %d MiB", path, REPLAY_MAX_BYTES >> 20);
	if (rc < 0)
		return ll_err_set(err, -EINVAL, "--curve: %s: %s", path, strerror(-rc));
	rc = path ? ll_curve_parse_replay(path, csv.buf, csv.length, ret_curve, err)
		  : ll_curve_parse(text, ret_curve, err);
	return rc < 0 ? ll_err_wrap(err, "--curve") : 0;
}

static int find_target(const struct ll_hold_args *args, struct ll_hold_config *config, struct ll_err *err)
{
	bool is_power = args->metric == LL_METRIC_POWER;
	if (args->curve) {
		if (args->target)
			return ll_err_set(err, -EINVAL, "--target and --curve: only one of them can set the level");
		if (is_power)
			return ll_err_set(err, -EINVAL,
					  "--curve: curves are in percent and do not go with --metric power");
		return parse_curve(args->curve, &config->curve, err);
	}
	if (is_power && !args->target) {
		ll_err_set(err, -EINVAL, "--metric power: no target");
		return ll_err_hint(err, "give the power in watts, like --target 200W");
	}
	double level = 0;
	int rc = parse_level(args, "target", args->target ? args->target : "50%", &level, err);
	if (rc < 0)
		return rc;
	ll_curve_init_constant(&config->curve, level);
	config->target_watts = is_power ? level : 0;
	return 0;
}

/* The idle target is on by default, as in the original of 2018. A user who names a level gets that level at all times.
 */
static int find_idle_target(const struct ll_hold_args *args, struct ll_hold_config *config, struct ll_err *err)
{
	const char *text = args->idle_target;
	bool has_own_level = args->target || args->curve || args->metric != LL_METRIC_UTIL;
	if (!text)
		text = has_own_level && !args->idle_after_ns ? "off" : "60%";
	if (strcmp(text, "off") == 0)
		return 0;
	config->has_idle_target = true;
	return parse_level(args, "idle-target", text, &config->idle_target, err);
}

int ll_hold_args_config(const struct ll_hold_args *args, struct ll_hold_config *ret_config, struct ll_err *err)
{
	struct ll_hold_config config = {
	    .metric = (enum ll_metric)args->metric,
	    .mode = (enum ll_hold_mode)args->mode,
	    .idle_after_ns = args->idle_after_ns ? args->idle_after_ns : IDLE_AFTER_NS,
	    .resume_after_ns = args->resume_after_ns,
	    .release_after_ns = args->release_after_ns,
	    .max_memory_bytes = args->max_memory_bytes,
	    .wait_ns = args->wait_ns,
	    .max_temperature_c = args->max_temperature_c,
	    .payload = (enum ll_payload_choice)args->payload,
	    .as_mps_client = args->mps,
	};
	if (args->mps && config.payload == LL_PAYLOAD_VULKAN)
		return ll_err_set(err, -EINVAL, "--mps: only the cuda payload can be an MPS client");
	if (ll_metric_needs_cuda(config.metric) && config.payload == LL_PAYLOAD_VULKAN)
		return ll_err_set(err, -EINVAL, "--metric %s: only the cuda payload has a kernel for it",
				  ll_metric_name(config.metric));
	if (ll_metric_needs_cuda(config.metric))
		config.payload = LL_PAYLOAD_CUDA;
	if (args->max_memory_bytes && args->max_memory_bytes < MIB_BYTES)
		return ll_err_set(err, -EINVAL, "--max-memory: less than 1 MiB");
	int rc = find_target(args, &config, err);
	if (rc == 0)
		rc = find_idle_target(args, &config, err);
	if (rc < 0) {
		ll_curve_fini(&config.curve);
		return rc;
	}
	*ret_config = config;
	return 0;
}

/* ---- cards ---- */

struct choice {
	size_t named, unusable;
	struct ll_err *why; /* why each unusable card cannot be held */
};

/* Puts the reasons of all cards into one line, because scripts often show the last line only. */
static int refuse_cards(const struct choice *choice, struct ll_err *err)
{
	if (choice->named == 1) {
		*err = choice->why[0];
		return err->code;
	}
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	for (size_t i = 0; i < choice->unusable; i++)
		ll_strbuf_addf(&text, "%s%s", i ? "; " : "", choice->why[i].text);
	ll_err_set(err, choice->why[0].code, "%zu of %zu cards cannot be held: %s", choice->unusable, choice->named,
		   text.failed ? _("out of memory") : text.buf);
	if (choice->unusable < choice->named)
		ll_err_hint(err, "choose other cards with -i, or leave these out with --skip-unusable");
	return err->code;
}

/* Leaves in cards those that can be held. */
static int keep_usable(struct choice *choice, const struct ll_hold_config *config, bool skips_unusable,
		       const struct ll_card **cards, size_t *count, struct ll_err *err)
{
	size_t usable = 0;
	for (size_t i = 0; i < *count; i++) {
		if (ll_hold_check(config, cards[i], &choice->why[choice->unusable]) == 0)
			cards[usable++] = cards[i];
		else
			choice->unusable++;
	}
	choice->named += *count;
	*count = usable;
	if (choice->unusable && (!skips_unusable || !usable))
		return refuse_cards(choice, err);
	for (size_t i = 0; i < choice->unusable; i++)
		ll_warn("%s: not held", choice->why[i].text);
	return 0;
}

int ll_hold_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_hold_config *config,
			 bool skips_unusable, const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err)
{
	const struct ll_card *all, **cards = NULL;
	size_t all_count = ll_driver_cards(driver, &all), count;
	*ret_cards = NULL;
	int rc = ll_cards_select(driver, text, &cards, &count, err);
	if (rc < 0)
		return rc;
	struct choice choice = {.why = calloc(all_count + 1, sizeof *choice.why)};
	if (!choice.why) {
		free(cards);
		return ll_err_set(err, -ENOMEM, "choose the cards: %s", strerror(ENOMEM));
	}
	/* ll_cards_select leaves cards that do not answer out of "all". */
	for (size_t i = 0; strstr(text, "all") && i < all_count; i++) {
		if (!all[i].fault)
			continue;
		ll_err_set(&choice.why[choice.unusable++], all[i].fault, "card %s: does not answer: %s", all[i].label,
			   strerror(-all[i].fault));
		choice.named++;
	}
	rc = keep_usable(&choice, config, skips_unusable, cards, &count, err);
	free(choice.why);
	if (rc < 0) {
		free(cards);
		return rc;
	}
	*ret_cards = cards;
	*ret_count = count;
	return 0;
}
