#include "cli/limits/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/user.h"
#include "cli/options/command.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

/* ---- which jobs ---- */

static uint32_t class_of(enum ll_priority priority)
{
	return priority == LL_PRIORITY_HIGH  ? LL_LIMIT_CLASS_HIGH
	       : priority == LL_PRIORITY_LOW ? LL_LIMIT_CLASS_LOW
					     : LL_LIMIT_CLASS_NORMAL;
}

static void fill_begun(const struct ll_run_settings *settings, uid_t uid, struct ll_message_job_row *ret_row)
{
	*ret_row = (struct ll_message_job_row){.job.uid = uid, .job.state = LL_JOB_RUNNING};
	ret_row->job.token[0] = settings->id;
	ret_row->job.limits = (struct ll_limits){
	    .memory_bytes = settings->memory_limit_bytes,
	    .request_bytes = settings->memory_request_bytes,
	    .max_kernel_ns = settings->max_kernel_ns,
	    .compute_permille = settings->compute_cap_permille,
	    .space_permille = settings->space_permille,
	    .weight_permille = settings->weight_permille,
	    .priority = class_of(settings->priority),
	    .flags = (settings->is_evictable ? LL_LIMIT_EVICTABLE : 0U) | (settings->is_strict ? LL_LIMIT_STRICT : 0U),
	    .slowdown_permille = (uint16_t)settings->slowdown_permille,
	};
	ll_message_text_set(ret_row->job.tenant, sizeof ret_row->job.tenant, settings->tenant);
}

/* The job in which this process is. */
static void find_own(struct ll_limits_view *view, const struct ll_run_settings *settings)
{
	const struct ll_list *list = &view->daemon.list;
	view->is_inside = true;
	view->job_count = 1;
	for (size_t i = 0; i < list->job_count; i++) {
		if (list->jobs[i].job.token[0] == settings->id)
			view->jobs[0].row = &list->jobs[i];
	}
	if (view->jobs[0].row)
		return;
	fill_begun(settings, view->uid, &view->begun);
	view->jobs[0] = (struct ll_limits_job){.row = &view->begun, .is_as_begun = true};
}

static int find_jobs(struct ll_limits_view *view, struct ll_err *err)
{
	struct ll_run_settings settings;
	const struct ll_list *list = &view->daemon.list;
	view->jobs = calloc(list->job_count + 1, sizeof *view->jobs);
	if (!view->jobs)
		return ll_err_set(err, -ENOMEM, "limits: %s", strerror(ENOMEM));
	int rc = ll_run_settings_find(&settings);
	if (rc == 0)
		find_own(view, &settings);
	else if (rc != -ENOENT)
		return ll_err_set(err, rc, "%s: garbled", LL_RUN_VARIABLE);
	for (size_t i = 0; !view->is_inside && i < list->job_count; i++) {
		if (list->jobs[i].job.uid == view->uid)
			view->jobs[view->job_count++].row = &list->jobs[i];
	}
	return 0;
}

/* ---- which cards ---- */

const struct ll_status_job *ll_limits_use(const struct ll_status_card *card, const struct ll_limits_job *job)
{
	for (size_t i = 0; !job->is_as_begun && i < card->job_count; i++) {
		if (card->jobs[i].row.job_number == job->row->number)
			return &card->jobs[i];
	}
	return NULL;
}

/* A job has cards of its own: the others are not for it. */
static void leave_out_others(struct ll_limits_view *view)
{
	size_t kept = 0;
	for (size_t i = 0; i < view->card_count; i++)
		kept += ll_limits_use(&view->cards[i], &view->jobs[0]) != NULL;
	if (!kept)
		return;
	kept = 0;
	for (size_t i = 0; i < view->card_count; i++) {
		if (ll_limits_use(&view->cards[i], &view->jobs[0]))
			view->cards[kept++] = view->cards[i];
		else
			ll_status_card_fini(&view->cards[i]);
	}
	view->card_count = kept;
}

static int read_cards(struct ll_limits_view *view, const struct ll_driver *driver, struct ll_err *err)
{
	const struct ll_card *cards;
	int rc = 0;
	size_t count = ll_driver_cards(driver, &cards);
	view->cards = calloc(count + 1, sizeof *view->cards);
	if (!view->cards)
		return ll_err_set(err, -ENOMEM, "limits: %s", strerror(ENOMEM));
	for (size_t i = 0; !rc && i < count; i++)
		rc = ll_status_card_init(&view->cards[view->card_count++], &cards[i], &view->daemon, err);
	return rc;
}

int ll_limits_view_init(struct ll_limits_view *view, const struct ll_driver *driver, struct ll_err *err)
{
	*view = (struct ll_limits_view){.uid = getuid(), .has_library = ll_limits_has_library()};
	ll_user_name(view->uid, view->user, sizeof view->user);
	ll_daemon_view_init(&view->daemon, ll_driver_sim_folder(driver));
	int rc = find_jobs(view, err);
	if (!rc)
		rc = read_cards(view, driver, err);
	if (!rc && view->is_inside)
		leave_out_others(view);
	return rc;
}

void ll_limits_view_fini(struct ll_limits_view *view)
{
	for (size_t i = 0; i < view->card_count; i++)
		ll_status_card_fini(&view->cards[i]);
	free(view->cards);
	free(view->jobs);
	ll_daemon_view_fini(&view->daemon);
}

/* ---- what is left ---- */

uint64_t ll_limits_free_bytes(const struct ll_limits_view *view, const struct ll_status_card *card)
{
	return card->has_memory && !view->has_library ? card->memory.free_bytes : LL_MEMORY_UNKNOWN;
}

uint64_t ll_limits_left_bytes(const struct ll_limits_view *view, const struct ll_status_card *card,
			      const struct ll_status_job *use)
{
	uint64_t free_bytes = ll_limits_free_bytes(view, card);
	uint64_t limit = use->told.job.limits.memory_bytes, used = use->row.used_bytes;
	uint64_t rest = !limit ? UINT64_MAX : limit > used ? limit - used : 0;
	return rest < free_bytes && free_bytes != LL_MEMORY_UNKNOWN ? rest : free_bytes;
}

static bool is_told(const struct ll_limits_view *view)
{
	return view->daemon.answer == LL_DAEMON_SERVES || view->daemon.answer == LL_DAEMON_NONE;
}

uint64_t ll_limits_promised_bytes(const struct ll_limits_view *view, const struct ll_status_card *card)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < card->job_count; i++)
		bytes += card->jobs[i].told.job.limits.request_bytes;
	return is_told(view) ? bytes : LL_MEMORY_UNKNOWN;
}

uint64_t ll_limits_promisable_bytes(const struct ll_limits_view *view, const struct ll_status_card *card)
{
	uint64_t promised = ll_limits_promised_bytes(view, card), usable = card->card->usable_bytes;
	if (promised == LL_MEMORY_UNKNOWN || view->has_library || !usable)
		return LL_MEMORY_UNKNOWN;
	return usable > promised ? usable - promised : 0;
}

enum { WORDS_SIZE = 65536, WORDS = 256 };

static const char library_name[] = "libloadline-cuda.so";

static bool is_library(const char *path, size_t length)
{
	size_t name = sizeof library_name - 1;
	return length >= name && memcmp(path + length - name, library_name, name) == 0;
}

/* The list without the library. Returns whether it was in it. */
static bool leave_out(const char *list, struct ll_strbuf *ret_rest)
{
	bool was_there = false;
	while (*list) {
		size_t length = strcspn(list, ": ");
		if (is_library(list, length))
			was_there = true;
		else if (length)
			ll_strbuf_addf(ret_rest, "%s%.*s", ret_rest->length ? ":" : "", (int)length, list);
		list += length + (list[length] != '\0');
	}
	return was_there;
}

/* This program's words, from what the kernel keeps. Returns false if they are too many. */
static bool read_words(char text[WORDS_SIZE], char *words[WORDS])
{
	LL_SCOPE_CLOSE int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t used = 0, count = 0;
	ssize_t n = 0;
	while (fd >= 0 && used < WORDS_SIZE && (n = read(fd, text + used, WORDS_SIZE - used)) > 0)
		used += (size_t)n;
	if (!used || used == WORDS_SIZE || text[used - 1])
		return false;
	for (size_t at = 0; at < used && count < WORDS - 1; at += strlen(text + at) + 1)
		words[count++] = text + at;
	words[count] = NULL;
	return count && count < WORDS - 1;
}

void ll_limits_leave_library(void)
{
	const char *list = getenv("LD_PRELOAD");
	LL_SCOPE_STRBUF struct ll_strbuf rest = LL_STRBUF_INIT;
	LL_SCOPE_FREE char *text = malloc(WORDS_SIZE);
	char *words[WORDS];
	if (!list || !leave_out(list, &rest) || rest.failed || !text || !read_words(text, words))
		return;
	if (rest.length ? setenv("LD_PRELOAD", rest.buf, 1) : unsetenv("LD_PRELOAD"))
		return;
	execv("/proc/self/exe", words);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(bool *)data |= is_library(info->dlpi_name, strlen(info->dlpi_name));
	return 0;
}

bool ll_limits_has_library(void)
{
	bool has_library = false;
	dl_iterate_phdr(look_at, &has_library);
	return has_library;
}

struct limits_args {
	bool is_json;
};

static const struct ll_option limits_options[] = {
    LL_OPTION_JSON(struct limits_args, is_json),
    LL_OPTION_END,
};

static int print_text(const struct ll_limits_view *view, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	unsigned columns, rows;
	ll_status_terminal(&columns, &rows);
	ll_limits_add_text(&text, view, columns);
	if (text.failed)
		return ll_err_set(err, -ENOMEM, "limits: %s", strerror(ENOMEM));
	fwrite(text.buf, 1, text.length, stdout);
	return 0;
}

/* Shows what the cards tell also if loadlined does not answer, and then fails, as status does. */
static int show(const struct ll_driver *driver, bool is_json, struct ll_err *err)
{
	struct ll_limits_view view;
	int rc = ll_limits_view_init(&view, driver, err);
	if (!rc)
		rc = is_json ? ll_limits_print_json(&view, err) : print_text(&view, err);
	if (!rc && view.daemon.answer == LL_DAEMON_SILENT) {
		rc = ll_err_set(err, -ETIMEDOUT, "loadlined, pid %d, does not answer", (int)view.daemon.pid);
		ll_err_hint(err, "`loadline doctor` tells more");
	}
	ll_limits_view_fini(&view);
	return rc;
}

static int run_limits(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	const struct limits_args *args = words;
	struct ll_driver *driver = NULL;
	(void)operands;
	ll_limits_leave_library();
	int rc = ll_cards_open(-EACCES, &driver, err);
	if (!rc)
		rc = show(driver, args->is_json, err);
	ll_driver_close(driver);
	return rc;
}

static const struct ll_example limits_examples[] = {
    {"loadline limits", N_("What this user's jobs may have and have, and what is left on each card.")},
    {"loadline run --mem 8G -- loadline limits", N_("The limits of the job in which it runs.")},
    {NULL, NULL},
};

const struct ll_command ll_command_limits = {
    .name = "limits",
    .summary = N_("tell what I may have, have, and find left"),
    .description = N_(
	"Prints the limits of this user's jobs as they are in force now, what each job has on each card, and what is "
	"left "
	"there: the memory that is free, and the memory that --mem-request can promise yet. Inside a job, such as "
	"in a script under `loadline run`, it tells that job's limits and its cards alone.\n\n"
	"A job has the limits of its `loadline run`, and those of `loadline set` since. On a machine with a "
	"configuration the user's tenants are told too: what each user may have there and this user has, the classes, "
	"and what the tenant is guaranteed in each group of cards; admins and operators get all tenants. If the "
	"configuration lends what stands idle, it is told how much a job of one card could borrow now in each group, "
	"and what this user borrows. Without one "
	"there are no limits of users: that is said, and user_limits is null.\n\n"
	"\"left\" of a job is the rest of its limit, or what the card has free if that is less. Another program may "
	"take "
	"it first, unless it was promised. In a container whose /etc/ld.so.preload names the library, NVML tells the "
	"job's limit in place of the card's memory; there what is left is unknown.\n\n"
	"With --json there is one object for the user ({\"user\":\"ann\",…}), each job ({\"job\":…}), each card "
	"({\"card\":0,…}), and each job's use of that card ({\"use\":…}), which follows the card. A value that is not "
	"known, and a limit that there is not, is null. as_it_began says that loadlined did not tell the limits of "
	"this "
	"job, which are then those with which it began."),
    .examples = limits_examples,
    .options = limits_options,
    .args_size = sizeof(struct limits_args),
    .run = run_limits,
};
