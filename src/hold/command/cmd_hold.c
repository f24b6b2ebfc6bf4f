#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/options/command.h"
#include "cli/run/run.h"
#include "driver/readings.h"
#include "hold/command/internal.h"
#include "hold/command/words.h"
#include "hold/hold.h"
#include "mps/mps.h"

/* The longest time from the signal to the summary, also if the driver hangs. A card ends in 0.1 s, or gives up its
 * payload after LL_PACER_CLOSE_WITHIN_NS (hold/pacer.h). The rest is for a busy host. */
#define END_WITHIN_NS (8 * LL_NS_PER_S)
#define JOIN_HANGING_NS (50 * LL_NS_PER_MS) /* for the threads of the other cards, if one thread hangs */

/* The state of the command. */
struct hold_run {
	const struct ll_hold_args *args;
	struct ll_hold_config config;
	struct ll_driver *driver;
	const struct ll_card **cards;
	size_t count;
	struct ll_hold_output *output;
	struct ll_hold *hold;
	int signal_fd;
	size_t ended;      /* cards whose summary event has come */
	struct ll_err err; /* the error of the first card that ended with one */
};

/* ---- dry run ---- */

static void describe_target(const struct ll_hold_config *config, char *text, size_t size)
{
	const char *metric = ll_metric_name(config->metric);
	if (config->metric == LL_METRIC_POWER)
		snprintf(text, size, _("%s at %.0f W"), metric, config->target_watts);
	else if (config->curve.kind == LL_CURVE_CONSTANT)
		snprintf(text, size, _("%s at %g %%"), metric, config->curve.high * 100);
	else
		snprintf(text, size, _("%s along a %s between %g and %g %%"), metric,
			 ll_curve_kind_name(config->curve.kind), config->curve.low * 100, config->curve.high * 100);
}

static int dry_run(const struct hold_run *run, struct ll_err *err)
{
	static const char *const modes[] = {N_("yield to"), N_("fill up beside"), N_("ignore")};
	static const char *const payloads[] = {"auto", "vulkan", "cuda"};
	char target[96];
	describe_target(&run->config, target, sizeof target);
	for (size_t i = 0; i < run->count; i++) {
		const struct ll_card *card = run->cards[i];
		int rc = ll_hold_check(&run->config, card, err);
		if (rc < 0)
			return rc;
		if (run->args->json) {
			rc = ll_json_line(json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:b}", "event", "dry-run", "card",
						    (int)card->index, "uuid", card->uuid, "target", target, "mode",
						    modes[run->config.mode], "payload", payloads[run->config.payload],
						    "synthetic", 1),
					  err);
			if (rc < 0)
				return rc;
			continue;
		}
		printf(_("card %s %s: would hold %s with a synthetic load (payload %s), %s foreign work\n"),
		       card->label, card->name, target, payloads[run->config.payload], _(modes[run->config.mode]));
	}
	return 0;
}

/* ---- the run ---- */

static int block_signals(struct hold_run *run, struct ll_err *err)
{
	struct sigaction hangup;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigaction(SIGHUP, NULL, &hangup) < 0 || hangup.sa_handler != SIG_IGN) /* nohup ignores SIGHUP */
		sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 ? ll_err_set(err, -errno, "wait for signals: %s", strerror(errno)) : 0;
}

static void take_events(struct hold_run *run)
{
	struct ll_event event;
	while (ll_hold_take(run->hold, &event)) {
		if (event.kind == LL_EVENT_SUMMARY) {
			run->ended++;
			if (event.code && !run->err.code) {
				/* With several cards the log has the error's text. */
				ll_err_set(&run->err, event.code,
					   run->count > 1 ? N_("card %s: ended with an error") : "%s",
					   run->count > 1 ? event.card->label : event.text);
				ll_err_hint(&run->err, "%s", run->count > 1 ? _("the log says why") : event.hint);
			}
		}
		ll_hold_output_event(run->output, &event);
	}
}

/* Returns poll's timeout in ms, -1 for no limit. It is rounded up, so that poll does not return before until_ns. */
static int until_ms(uint64_t until_ns)
{
	uint64_t now_ns = ll_now_ns();
	if (until_ns <= now_ns)
		return 0;
	uint64_t ms = (until_ns - now_ns) / LL_NS_PER_MS + 1;
	return until_ns == UINT64_MAX ? -1 : ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Waits for an event, a signal, the output's next task or until_ns. Returns whether a signal came. */
static bool wait_and_take(struct hold_run *run, uint64_t until_ns)
{
	struct pollfd fds[] = {
	    {.fd = ll_hold_fd(run->hold), .events = POLLIN},
	    {.fd = run->signal_fd, .events = POLLIN},
	};
	uint64_t output_ns = ll_hold_output_tick(run->output, ll_now_ns());
	poll(fds, 2, until_ms(output_ns < until_ns ? output_ns : until_ns));
	take_events(run);
	struct signalfd_siginfo info;
	return read(run->signal_fd, &info, sizeof info) == (ssize_t)sizeof info;
}

static void run_until_ended(struct hold_run *run)
{
	uint64_t start_ns = ll_now_ns();
	uint64_t end_ns = run->args->for_ns ? start_ns + run->args->for_ns : UINT64_MAX;
	while (run->ended < run->count && ll_now_ns() < end_ns) {
		if (wait_and_take(run, end_ns))
			break;
	}
	uint64_t deadline_ns = ll_now_ns() + END_WITHIN_NS;
	ll_hold_end(run->hold);
	while (run->ended < run->count && ll_now_ns() < deadline_ns)
		wait_and_take(run, deadline_ns);
	if (run->ended < run->count && !run->err.code)
		ll_err_set(&run->err, -EIO, "the driver hangs: not every card could be released cleanly");
}

/* Names who has a name of a card's holds and proves nothing. He hinders nobody. */
static void warn_of_sitters(const struct hold_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		struct ll_hold_owner owner;
		struct ll_hold_sitter sitter;
		ll_hold_query(run->cards[i], ll_driver_sim_folder(run->driver), &owner, &sitter, NULL);
		ll_hold_add_sitter(&text, run->cards[i], &sitter);
		if (text.length)
			ll_warn("%s", text.buf);
	}
}

static int hold_cards(struct hold_run *run, struct ll_err *err)
{
	struct ll_hold_output_config output = {
	    .is_json = run->args->json,
	    .is_live = !run->args->json && isatty(STDOUT_FILENO),
	    .log_every_ns = run->args->log_every_ns,
	    .record_path = run->args->record,
	    .metrics_listen = run->args->metrics_listen,
	    .hold = &run->config,
	    .cards = run->cards,
	    .count = run->count,
	};
	warn_of_sitters(run);
	int rc = ll_hold_output_new(&output, &run->output, err);
	if (rc == 0 && run->args->metrics_listen)
		ll_info("metrics on port %u", ll_hold_output_port(run->output));
	if (rc == 0)
		rc = ll_hold_new(&run->config, run->cards, run->count, &run->hold, err);
	if (rc == 0) {
		run_until_ended(run);
		ll_hold_output_finish(run->output, run->err.code ? NULL : &run->err);
	}
	ll_hold_output_free(run->output);
	if (rc < 0)
		return rc;
	bool has_ended = run->ended == run->count;
	if (!ll_hold_free(run->hold, ll_now_ns() + (has_ended ? END_WITHIN_NS : JOIN_HANGING_NS))) {
		if (!run->err.code)
			ll_err_set(&run->err, -EIO, "the driver hangs: a thread of a card does not end");
		/* Such a thread cannot be joined. The operating system frees everything when the process ends. */
		fprintf(stderr, "loadline: %s\n", run->err.text);
		fflush(NULL);
		_exit(LL_EXIT_FAILED);
	}
	if (run->err.code)
		*err = run->err;
	return run->err.code;
}

/* Finds the daemon before the driver does. Without a daemon at the pipe directory, the driver silently makes a plain
 * context of 262 MiB, which locks all other programs out of a card in exclusive mode. The payload's process inherits
 * the two variables. */
static int join_mps(struct hold_run *run, struct ll_err *err)
{
	struct ll_run_args wish = {.cards = run->args->cards};
	struct ll_run_settings settings = {0};
	struct ll_run_space space;
	size_t shown = run->count;
	if (!run->args->mps)
		return 0;
	int rc = ll_run_space_choose(run->driver, &wish, &settings, run->cards, &shown, &space, err);
	if (rc)
		return ll_err_wrap(err, "--mps");
	if (shown < run->count)
		return ll_err_set(err, -ENODEV, "--mps: the MPS daemon at %s does not show all of these cards",
				  space.pipe);
	bool is_set = !setenv(LL_MPS_PIPE_VARIABLE, space.pipe, 1) && !setenv(LL_MPS_LOG_VARIABLE, space.log, 1);
	return is_set ? 0 : ll_err_set(err, -ENOMEM, "--mps: %s", strerror(ENOMEM));
}

static int open_kernel_log(struct hold_run *run, struct ll_err *err)
{
	if (!run->args->kernel_log)
		return 0;
	run->config.kernel_log = fopen(run->args->kernel_log, "we");
	if (run->config.kernel_log)
		return 0;
	ll_err_set(err, -errno, "--kernel-log: %s: %s", run->args->kernel_log, strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

/* The cards' threads write the rows, and the errno of a failed write is lost. Another write fails for the same reason,
 * and gives its errno. */
static int close_kernel_log(struct hold_run *run, struct ll_err *err)
{
	FILE *file = run->config.kernel_log;
	int code = 0;
	if (!file)
		return 0;
	if (ferror(file))
		code = fputc('\n', file) == EOF || fflush(file) != 0 ? errno : EIO;
	if (fclose(file) != 0 && !code)
		code = errno;
	if (!code)
		return 0;
	ll_err_set(err, -code, "--kernel-log: %s: %s", run->args->kernel_log, strerror(code));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

static int run_hold(void *args, const struct ll_operands *operands, struct ll_err *err)
{
	(void)operands;
	struct hold_run run = {.args = args, .signal_fd = -1};
	/* ps, top and nvidia-smi show this name beside the pid. */
	prctl(PR_SET_NAME, "loadline-hold");
	int rc = ll_hold_args_config(args, &run.config, err);
	if (rc < 0)
		return rc;
	/* Signals are blocked before the driver is opened, because the driver's libraries start threads, and a thread
	 * that does not block a signal would receive it.
	 */
	if (!run.args->dry_run)
		rc = block_signals(&run, err);
	if (rc == 0)
		rc = ll_driver_open(&run.driver, err);
	if (rc == 0)
		rc = ll_hold_cards_choose(run.driver, run.args->cards ? run.args->cards : "0", &run.config,
					  run.args->skip_unusable, &run.cards, &run.count, err);
	if (rc == 0)
		rc = join_mps(&run, err);
	if (rc == 0)
		rc = open_kernel_log(&run, err);
	if (rc == 0)
		rc = run.args->dry_run ? dry_run(&run, err) : hold_cards(&run, err);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	int closed = close_kernel_log(&run, rc ? NULL : err);
	free(run.cards);
	ll_driver_close(run.driver);
	ll_curve_fini(&run.config.curve);
	return rc ? rc : closed;
}

static const struct ll_example examples[] = {
    {"loadline hold", N_("Hold card 0 at 50 %, 60 % after ten minutes without other work.")},
    /* xgettext:no-c-format */
    {"loadline hold -i all --target 30% --for 1h", N_("Hold every card at 30 % for an hour.")},
    {"loadline hold --metric power --target 200W", N_("Hold card 0 at 200 watts.")},
    {"loadline hold --curve sine:20-80@60s --record run.csv", N_("Follow a sine and write every sample to a file.")},
    {NULL, NULL},
};

const struct ll_command ll_command_hold = {
    .name = "hold",
    .summary = N_("keep a card at a chosen utilisation with a synthetic load"),
    .description =
	N_("Keeps the chosen cards at a level with a synthetic load that takes almost no GPU memory (except "
	   "with --metric dram) and stops within milliseconds when other programs begin to work on the card.\n\n"
	   "The load is labelled as synthetic wherever it appears: log, metrics, status, process name. It is "
	   "for burn-in, for steady clocks and cooling, and for tests of schedulers and monitoring. It is not "
	   "for pretending to a policy that an idle card is in use.\n\n"
	   "SIGINT, SIGTERM and SIGHUP end it at once, with a summary. A terminal that closes sends SIGHUP. If "
	   "the driver hangs, the hold ends 8 s later. To outlive its terminal, start it with nohup, in a "
	   "terminal of its own (tmux) or without one (setsid, a service)."),
    .examples = examples,
    .options = ll_hold_options,
    .args_size = sizeof(struct ll_hold_args),
    .run = run_hold,
};
