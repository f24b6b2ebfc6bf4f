#include "cli/evict/evict.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/options/limit_words.h"

/* The exit status of a program that a signal ended is this and the signal's number. */
enum { SIGNALLED = 128 };

static const char *const done_words[] = {N_("evicted"), N_("suspended"), N_("resumed")};
static const char *const doing_words[] = {N_("evicting"), N_("suspending"), N_("resuming")};
static const char *const already_words[] = {N_("was already evicted"), N_("was already suspended"),
					    N_("was neither evicted nor suspended")};

#define OPTION_REASON                                                                                                  \
	{                                                                                                              \
		.name = "reason", .placeholder = "TEXT", LL_OPTION_TEXT(struct ll_evict_args, reason),                 \
		.help = LL_REASON_HELP                                                                                 \
	}
#define OPTION_PID                                                                                                     \
	{                                                                                                              \
		.name = "pid", .placeholder = "PID", LL_OPTION_UINT(struct ll_evict_args, pid), .min = 1,              \
		.help =                                                                                                \
		    N_("Any CUDA process of this user, instead of CLAIM: by the driver's checkpoint (driver 570 or "   \
		       "newer), which takes all of its memory off all its cards. Slower than a program under "         \
		       "`loadline run --evictable`.")                                                                  \
	}

const struct ll_option ll_evict_options[] = {
    {.name = "timeout",
     .alias = "wait",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct ll_evict_args, wait_ns),
     .min = 1,
     .help =
	 N_("How long the program may take to become quiet: its threads return from the driver, and its kernels end. "
	    "The default is 10s. After that it goes on, and the command fails. Several programs are asked to stop "
	    "together, "
	    "up to ten times before that, because they may wait for each other; these attempts take at most as long.")},
    LL_OPTION_JSON(struct ll_evict_args, json),
    OPTION_PID,
    OPTION_REASON,
    LL_OPTION_END,
};

const struct ll_option ll_resume_options[] = {
    {.name = "timeout",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct ll_evict_args, wait_ns),
     .min = 1,
     .help = N_("How long to wait for room on the card. After that the command fails, and the program returns as soon "
		"as there is room. Without it the command has no end.")},
    LL_OPTION_JSON(struct ll_evict_args, json),
    OPTION_PID,
    OPTION_REASON,
    LL_OPTION_END,
};

static int print_done(const struct ll_evict_args *args, const struct ll_evict_subject *subject, enum ll_evict_kind kind,
		      struct ll_err *err)
{
	const struct ll_evictor_moved *moved = &subject->moved;
	const char *by = subject->evictor->name, *done = done_words[kind];
	double seconds = (double)moved->took_ns / (double)LL_NS_PER_S;
	if (!args->json && moved->is_already) {
		int printed = printf("%s: %s\n", subject->name, _(already_words[kind]));
		return printed < 0 ? ll_err_set(err, -EIO, "standard output: %s", strerror(EIO)) : 0;
	}
	if (!args->json) {
		bool is_large = moved->bytes >> 30;
		int printed =
		    printf(_("%s %s: %.*f %s in %.3f s%s\n"), _(done), subject->name, is_large ? 1 : 0,
			   (double)moved->bytes / (is_large ? 1 << 30 : 1 << 20), is_large ? "GiB" : "MiB", seconds,
			   subject->evictor == &ll_evictor_program ? "" : _(", by the driver's checkpoint"));
		return printed < 0 ? ll_err_set(err, -EIO, "standard output: %s", strerror(EIO)) : 0;
	}
	char id[64];
	if (!subject->has_claim)
		return ll_json_line(json_pack("{s:s, s:I, s:s, s:I, s:f, s:b}", "event", done, "pid",
					      (json_int_t)subject->target.pid, "by", by, "bytes",
					      (json_int_t)moved->bytes, "seconds", seconds, "already",
					      moved->is_already),
				    err);
	snprintf(id, sizeof id, "%s/%u", subject->target.card->label, subject->claim.index);
	return ll_json_line(json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:b}", "event", done, "claim", id, "tenant",
				      subject->tenant, "by", by, "bytes", (json_int_t)moved->bytes, "seconds", seconds,
				      "already", moved->is_already),
			    err);
}

/* Prints what was done. Returns the first failure. */
static int print_all(const struct ll_evict_args *args, const struct ll_evict_subject *subjects, size_t count,
		     enum ll_evict_kind kind, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < count; i++) {
		struct ll_err why = subjects[i].why;
		int code = subjects[i].rc ? subjects[i].rc : print_done(args, &subjects[i], kind, &why);
		if (code && !rc)
			*err = why;
		rc = rc ? rc : code;
	}
	return rc;
}

/* ---- asking ---- */

/* What is asked of whom, and how it went. */
struct asking {
	const struct ll_evict_args *args;
	enum ll_evict_kind kind;
	struct ll_evict_subjects *subjects;
	const struct ll_evict_subjects *shown; /* a copy, which the work does not change */
	struct ll_evict_watch watch;
	bool has_stopped_none; /* they could not be stopped together: nothing else was tried */
	bool has_put_back;
	int rc; /* of either */
};

/* Several evictable programs stop together before anything leaves. If they cannot, nothing else is tried. */
static void ask_all(struct asking *asking)
{
	struct ll_evict_subject *items = asking->subjects->items;
	size_t count = asking->subjects->count, together = ll_evict_run_batch(items, count);
	ll_evict_ask(items, together, asking->kind);
	if (together > 1 && asking->kind != LL_RESUME)
		asking->rc = ll_evict_find_failure(items, together);
	asking->has_stopped_none = asking->rc;
	if (!asking->rc)
		ll_evict_ask(items + together, count - together, asking->kind);
}

/* In the thread that takes signals. */
static void on_first_signal(void *data)
{
	const struct asking *asking = data;
	if (asking->kind != LL_RESUME)
		ll_evict_send_put_back(asking->shown->items, asking->shown->count);
}

static void do_asking(void *data)
{
	struct asking *asking = data;
	ask_all(asking);
	asking->has_put_back = atomic_load(&asking->watch.interrupt.is_set) && asking->kind != LL_RESUME;
	if (asking->has_put_back)
		asking->rc = ll_evict_put_back(asking->subjects->items, asking->subjects->count);
}

static void add_progress(struct ll_strbuf *text, const struct ll_evict_progress *progress, bool is_back)
{
	uint64_t all_bytes = progress->evictable_bytes;
	uint64_t done_bytes = is_back ? all_bytes - progress->away_bytes : progress->away_bytes;
	bool is_large = all_bytes >> 30;
	double unit = is_large ? 1 << 30 : 1 << 20;
	int decimals = is_large ? 1 : 0;
	ll_strbuf_addf(text, _(": %.*f of %.*f %s %s"), decimals, (double)done_bytes / unit, decimals,
		       (double)all_bytes / unit, is_large ? "GiB" : "MiB",
		       is_back ? _("on the card") : _("off the card"));
}

/* Evictable programs say in their claims what has been moved; the checkpoint says nothing. */
static void describe_asking(void *data, struct ll_strbuf *text)
{
	struct asking *asking = data;
	char waits_for[LL_EVICT_WAITS_SIZE];
	bool is_back = asking->kind == LL_RESUME || atomic_load(&asking->watch.interrupt.is_set);
	char name[LL_SUBJECT_NAME_SIZE];
	struct ll_evict_progress progress;
	ll_evict_subjects_name(asking->shown, name);
	ll_evict_subjects_progress(asking->shown, &progress);
	ll_strbuf_addf(text, "%s %s",
		       is_back && asking->kind != LL_RESUME ? _("putting back") : _(doing_words[asking->kind]), name);
	if (progress.evictable_bytes && asking->kind != LL_SUSPEND)
		add_progress(text, &progress, is_back);
	pthread_mutex_lock(&asking->watch.interrupt.lock);
	memcpy(waits_for, asking->watch.interrupt.waits_for, sizeof waits_for);
	pthread_mutex_unlock(&asking->watch.interrupt.lock);
	if (*waits_for)
		ll_strbuf_addf(text, ": %s", waits_for);
}

/* ---- after an interruption ---- */

static const struct ll_evict_subject *find_interrupted(const struct ll_evict_subjects *subjects)
{
	for (size_t i = 0; i < subjects->count; i++) {
		if (subjects->items[i].rc == -EINTR)
			return &subjects->items[i];
	}
	return NULL;
}

/* loadlined goes on with what it was asked for. The others were not asked. */
static int end_resume(const struct asking *asking, const struct ll_evict_subject *subject, struct ll_err *err)
{
	for (size_t i = 0; i < asking->subjects->count; i++) {
		if (!asking->subjects->items[i].rc)
			print_done(asking->args, &asking->subjects->items[i], LL_RESUME, NULL);
	}
	if (subject->evictor == &ll_evictor_program)
		return ll_err_set(err, -EINTR, "interrupted: %s: returns as soon as the card has room for it",
				  subject->name);
	return ll_err_set(err, -EINTR, "interrupted: %s: stays as it was", subject->name);
}

static int end_put_back(const struct asking *asking, struct ll_err *err)
{
	const struct ll_evict_subjects *subjects = asking->subjects;
	char name[LL_SUBJECT_NAME_SIZE];
	ll_evict_subjects_name(subjects, name);
	for (size_t i = 0; asking->rc && i < subjects->count; i++) {
		if (subjects->items[i].rc != asking->rc)
			continue;
		ll_err_set(err, -EINTR, "interrupted, and not put back: %s", subjects->items[i].why.text);
		return ll_err_hint(err, "`loadline status` shows who is evicted, `loadline resume` lets it go on");
	}
	return ll_err_set(err, -EINTR, "interrupted: %s: as before", name);
}

/* Returns 0 if a signal came too late to interrupt anything. */
static int end_interrupted(const struct asking *asking, int signal_number, struct ll_err *err)
{
	const struct ll_evict_subject *subject = find_interrupted(asking->subjects);
	if (asking->has_put_back)
		end_put_back(asking, err);
	else if (asking->kind == LL_RESUME && subject)
		end_resume(asking, subject, err);
	else
		return 0;
	return ll_err_exit_with(err, SIGNALLED + signal_number);
}

static int ask_and_print(const struct ll_evict_args *args, struct ll_evict_subjects *subjects, enum ll_evict_kind kind,
			 struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_evict_subject *items = malloc(subjects->count * sizeof *items);
	if (!items)
		return ll_err_set(err, -ENOMEM, "a list of programs: %s", strerror(ENOMEM));
	memcpy(items, subjects->items, subjects->count * sizeof *items);
	const struct ll_evict_subjects shown = {.items = items, .count = subjects->count};
	struct asking asking = {
	    .args = args,
	    .kind = kind,
	    .subjects = subjects,
	    .shown = &shown,
	    .watch = {.work = do_asking,
		      .describe = describe_asking,
		      .on_first_signal = on_first_signal,
		      .on_signal = kind == LL_RESUME ? _("interrupted: once more ends it at once")
						     : _("interrupted: putting back; once more ends it at once"),
		      .is_shown = !args->json && isatty(STDERR_FILENO)},
	};
	asking.watch.data = &asking;
	ll_evict_watch_init(&asking.watch);
	for (size_t i = 0; i < subjects->count; i++)
		subjects->items[i].target.interrupt = &asking.watch.interrupt;
	int signal_number = ll_evict_watch_run(&asking.watch);
	ll_evict_watch_fini(&asking.watch);
	int rc = signal_number ? end_interrupted(&asking, signal_number, err) : 0;
	if (rc)
		return rc;
	for (size_t i = 0; asking.has_stopped_none && i < subjects->count; i++) {
		if (subjects->items[i].rc == asking.rc) {
			*err = subjects->items[i].why;
			return asking.rc;
		}
	}
	return print_all(args, subjects->items, subjects->count, kind, err);
}

/* A process that has left by itself is resumed by its claims. */
static int find_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args, struct ll_driver *driver,
		    enum ll_evict_kind kind, struct ll_err *err)
{
	int rc = kind == LL_RESUME ? ll_evict_subjects_find_pid(subjects, args, driver, err) : 0;
	return rc || subjects->count ? rc : ll_evict_subjects_set_pid(subjects, args, driver, err);
}

int ll_evict_request(const struct ll_evict_args *args, const struct ll_operands *operands, enum ll_evict_kind kind,
		     struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	struct ll_evict_subjects subjects = {0};
	if (operands->count != (args->pid ? 0 : 1) || args->pid > INT_MAX)
		return ll_err_set(err, -EINVAL, "name one claim, such as 0/17, or one tenant, or give --pid");
	int rc = args->pid ? ll_driver_open(&driver, err) : ll_cards_open(0, &driver, err);
	if (!rc)
		rc = args->pid ? find_pid(&subjects, args, driver, kind, err)
			       : ll_evict_subjects_find(&subjects, args, driver, operands->words[0], err);
	if (!rc)
		rc = ask_and_print(args, &subjects, kind, err);
	ll_evict_subjects_fini(&subjects);
	ll_driver_close(driver);
	return rc;
}

static int run_evict(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_evict_request(data, operands, LL_EVICT, err);
}

static const struct ll_example evict_examples[] = {
    {"loadline evict 0/17", N_("Take the memory of that program off the card.")},
    {"loadline evict --pid 4711", N_("Take all memory of that process off its cards, by the driver's checkpoint.")},
    {NULL, NULL},
};

const struct ll_command ll_command_evict = {
    .name = "evict",
    .summary = N_("take a program's memory off the card"),
    .operands = "[CLAIM]",
    .description =
	N_("Takes the memory of a program off its card, into the host's memory. The program waits until "
	   "`loadline resume`. Its addresses and its data stay as they are. CLAIM is the number of a job (12), "
	   "or of a claim in `loadline status` (0/17) for one process, or the name of a tenant, for all of its "
	   "programs.\n\n"
	   "If the program was started with `loadline run --evictable`, it does it itself. Otherwise "
	   "the driver's checkpoint does, if the driver is 570 or newer; --pid names such a process that has no "
	   "claim. If the driver refuses, the error says so, and the program goes on.\n\n"
	   "If the command is interrupted, it puts the program back.\n\n"
	   "Memory of such a program that cannot be moved stays on the card: contexts, arrays, managed memory, memory "
	   "of graphs, and "
	   "memory that other processes share."),
    .examples = evict_examples,
    .options = ll_evict_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct ll_evict_args),
    .run = run_evict,
};

static int run_suspend(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_evict_request(data, operands, LL_SUSPEND, err);
}

static const struct ll_example suspend_examples[] = {
    {"loadline suspend 0/17", N_("Stop that program's use of the card.")},
    {NULL, NULL},
};

const struct ll_command ll_command_suspend = {
    .name = "suspend",
    .summary = N_("stop a program's use of the card"),
    .operands = "[CLAIM]",
    .description =
	N_("Stops a program's use of the card, at once and in the midst of a kernel where the card can take programs "
	   "off. Elsewhere it stops the program before its next call that uses the card, and waits until its work has "
	   "ended. Its memory stays on the card. The program goes on after `loadline resume`. CLAIM is the "
	   "number of a job (12), or of a claim in `loadline status` "
	   "(0/17) for one process, or the name of a tenant, for all of its programs."),
    .examples = suspend_examples,
    .options = ll_evict_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct ll_evict_args),
    .run = run_suspend,
};

static int run_resume(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	return ll_evict_request(data, operands, LL_RESUME, err);
}

static const struct ll_example resume_examples[] = {
    {"loadline resume 0/17", N_("Let that program go on.")},
    {NULL, NULL},
};

const struct ll_command ll_command_resume = {
    .name = "resume",
    .summary = N_("let an evicted or suspended program go on"),
    .operands = "[CLAIM]",
    .description =
	N_("Brings the memory of an evicted program back to the card, as soon as the card has room for it, and "
	   "lets it go on. What has evicted it, it itself or the driver's checkpoint, does it. A suspended program "
	   "goes on at once. CLAIM is the number of a job (12), or of a claim in `loadline "
	   "status` (0/17) for one process, or the name of a tenant, for all of its programs."),
    .examples = resume_examples,
    .options = ll_resume_options,
    .complete = LL_COMPLETE_CLAIM,
    .args_size = sizeof(struct ll_evict_args),
    .run = run_resume,
};
