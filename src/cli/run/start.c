#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/runtime_folder.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/env_sim.h"
#include "cli/options/limit_words.h"
#include "protocol/inherited.h"

/* Inside a governed program the command gets that program's settings, also if its environment lost them. */
static int make_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 bool *ret_is_nested, struct ll_err *err)
{
	int rc = ll_run_settings_find(ret_settings);
	*ret_is_nested = rc == 0;
	if (rc == -ENOENT)
		return ll_run_args_settings(args, command, ret_settings, err);
	if (rc < 0) {
		ll_err_set(err, -EINVAL, "%s: garbled", LL_RUN_VARIABLE);
		return ll_err_hint(err, "only `loadline run` sets it: unset it");
	}
	return ll_run_args_check_nested(args, ret_settings, err);
}

/*
 * Checks that limits can be put in force in the command, and reach what it starts. shim becomes empty if the program
 * has another C library. What cannot be governed is run with --allow-ungoverned. A command that has its work started by
 * somebody else is run unless the tenant is strict. Each is said in a line.
 */
static int check_command(const struct ll_run_args *args, char *const *words, bool is_strict, const char *path,
			 char shim[PATH_MAX], struct ll_err *err)
{
	struct ll_err why = {0}, elsewhere = {0};
	int rc = ll_run_check_program(path, shim, &why);
	if (why.status) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		ll_err_wrap(&why, "limits cannot be put in force");
	if ((rc == -EPERM || rc == -ELIBBAD) && !why.hint[0])
		ll_err_hint(&why, "--allow-ungoverned runs it nevertheless, without limits");
	if (rc == -ELIBBAD) {
		shim[0] = '\0';
		ll_sim_leave_kernel();
	}
	bool is_elsewhere = ll_launchers_check(words, &elsewhere) < 0;
	bool is_refused = (rc || (is_elsewhere && is_strict)) && !args->allow_ungoverned;
	if (is_refused) {
		if (err)
			*err = is_elsewhere ? elsewhere : why;
		return is_elsewhere ? elsewhere.code : rc;
	}
	if (is_elsewhere)
		ll_log(LL_LOG_WARN, "%s; %s", elsewhere.text, elsewhere.hint);
	else if (rc)
		ll_log(LL_LOG_WARN, "%s", why.text);
	return 0;
}

/* Finds the program and the library, and checks them. */
static int find_program(const struct ll_run_args *args, char *const *words, bool is_strict, char path[PATH_MAX],
			char shim[PATH_MAX], struct ll_err *err)
{
	int rc = ll_run_find(words[0], path, err);
	if (!rc)
		rc = ll_run_find_shim(shim, err);
	return rc ? rc : check_command(args, words, is_strict, path, shim, err);
}

/* Returns why `--by auto` shares by slices, as far as the options decide it. NULL: the daemon decides. */
static const char *why_by_slices(const struct ll_run_settings *settings)
{
	if (settings->compute_cap_permille)
		return _("--compute is a share of the time");
	if (settings->kills_at_max_kernel)
		return _("a client of MPS must not be killed while its kernel runs");
	return NULL;
}

/* What the command gets. */
struct start {
	const struct ll_run_args *args;
	const char *command;
	char *const *words;  /* it with its arguments */
	char path[PATH_MAX]; /* of its executable, without links */
	struct ll_driver *driver;
	struct ll_run_settings settings;
	struct ll_run_space space;
	const char *wanted_cards; /* as in -i: the user's, or those of the place in the queue; NULL: all */
	const struct ll_card **cards;
	size_t count;
	const char *order;  /* the program's CUDA_DEVICE_ORDER; NULL: as it is */
	bool is_nested;     /* what a governed program starts belongs to that program's job */
	bool is_ungoverned; /* loadlined cannot be had, and no limits were asked for */
};

/* Says what earlier runs of the program measured beside those that are on the card now. False: nothing that counts. */
static bool find_measured(const struct start *start, enum ll_way *ret_way, struct ll_strbuf *text)
{
	const char *sim_folder = ll_driver_sim_folder(start->driver);
	LL_SCOPE_FREE struct ll_earlier *earlier = start->count == 1 ? ll_other_way_read(sim_folder) : NULL;
	struct ll_run_measured measured;
	struct ll_daemon_view view;
	struct ll_limits limits;
	if (!earlier || !earlier->count)
		return false;
	ll_run_job_limits(&start->settings, &limits);
	uint64_t program = ll_program_under(ll_program_key(start->path, start->words), &limits);
	ll_daemon_view_init(&view, sim_folder);
	bool is_found = ll_run_measured_find(earlier, &view.list, start->cards[0]->uuid, program, geteuid(), &measured);
	if (is_found) {
		*ret_way = measured.record->way;
		ll_run_measured_add(text, &measured);
	}
	ll_daemon_view_fini(&view);
	return is_found;
}

/* By space if the daemon gives all that the user asked for, on all these cards. Returns why not; NULL: it does. */
static const char *try_space(struct start *start, struct ll_run_settings *by_space, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **shown = malloc(start->count * sizeof *shown);
	size_t shown_count = start->count;
	if (!shown)
		return _("no memory");
	memcpy(shown, start->cards, start->count * sizeof *shown);
	if (ll_run_space_choose(start->driver, start->args, by_space, shown, &shown_count, &start->space, err) < 0)
		return err->text;
	return shown_count < start->count ? _("the MPS daemon does not show all of the cards to clients") : NULL;
}

/* Decides for --by auto: by what was measured, else by space if it can be. */
static void choose_way(struct start *start)
{
	LL_SCOPE_STRBUF struct ll_strbuf measured = LL_STRBUF_INIT;
	struct ll_err err = {0};
	struct ll_run_settings by_space = start->settings;
	enum ll_way way = LL_WAY_NONE;
	const char *why = why_by_slices(&start->settings);
	if (!why && find_measured(start, &way, &measured) && way == LL_WAY_SLICES)
		why = measured.buf;
	else if (!why)
		why = try_space(start, &by_space, &err);
	if (why) {
		start->space = (struct ll_run_space){.is_client = false};
		ll_log(LL_LOG_INFO, "shares the card by slices: %s", why);
	} else {
		start->settings = by_space;
		ll_log(LL_LOG_INFO, "shares the card by space, as a client of the MPS daemon at %s%s%s",
		       start->space.pipe, measured.length ? ": " : "", measured.buf);
	}
}

/* Without the folder nothing can be evicted, which is told then, and each process is charged for shared memory. */
static void make_folder(const char *path)
{
	struct ll_err why = {0};
	LL_SCOPE_CLOSE int fd = -1;
	if (ll_runtime_folder_open(path, &fd, &why))
		ll_debug("%s", why.text);
}

/* What was asked for and is not in force between clients of MPS. */
static void say_weight(const struct start *start)
{
	if (start->space.is_client && start->args->weight)
		ll_log(LL_LOG_WARN, "%s", LL_LIMIT_WEIGHT_BY_SPACE);
}

/* The limits that the options gave. The configuration of the machine may have others for the rest. */
static uint64_t find_said(const struct ll_run_args *args)
{
	return (args->mem ? LL_SET_MEMORY : 0U) | (args->mem_request ? LL_SET_REQUEST : 0U) |
	       (args->compute ? LL_SET_COMPUTE : 0U) | (args->weight ? LL_SET_WEIGHT : 0U) |
	       (args->class ? LL_SET_PRIORITY : 0U) | (args->slowdown ? LL_SET_SLOWDOWN : 0U) |
	       (args->evictable ? LL_SAID_EVICTABLE : 0U);
}

/* Waits for a place in the queue of the machine. place: gets its cards. Without a queue, and in a job, the cards are
 * those of -i. */
static int wait_for_place(struct start *start, struct ll_run_talk *talk, struct ll_strbuf *place, struct ll_err *err)
{
	const struct ll_run_admit wish = {.args = start->args,
					  .settings = &start->settings,
					  .driver = start->driver,
					  .command = start->command,
					  .said = find_said(start->args)};
	start->wanted_cards = start->args->cards;
	int rc = start->is_nested ? 0 : ll_run_admit(&wish, talk, place, err);
	if (!rc && place->failed)
		rc = ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	if (!rc && place->length)
		start->wanted_cards = place->buf;
	return rc;
}

static int check_cards(const struct start *start, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < start->count; i++)
		rc = ll_run_args_check_card(&start->settings, start->cards[i], err);
	return rc;
}

/* Chooses the cards, and completes the settings. What was asked of the queue is checked for its cards already. */
static int choose_cards(struct start *start, struct ll_err *err)
{
	const struct ll_run_args *args = start->args;
	struct ll_run_settings *settings = &start->settings;
	int rc = ll_run_cards_choose(start->driver, start->wanted_cards, &start->cards, &start->count, err);
	/* Inside a governed program the variables of MPS are set already. */
	if (!rc && args->by == LL_RUN_BY_SPACE && !start->is_nested)
		rc =
		    ll_run_space_choose(start->driver, args, settings, start->cards, &start->count, &start->space, err);
	if (!rc && args->by == LL_RUN_BY_AUTO && !start->is_nested)
		choose_way(start);
	if (!rc)
		say_weight(start);
	if (!rc && !settings->folder[0])
		rc = ll_runtime_folder(ll_driver_sim_folder(start->driver), settings->folder, err);
	if (!rc && !start->is_nested)
		make_folder(settings->folder);
	if (!rc && start->count > 1 && !settings->first_card[0])
		snprintf(settings->first_card, sizeof settings->first_card, "%s", start->cards[0]->uuid);
	return !rc && start->wanted_cards == args->cards ? check_cards(start, err) : rc;
}

/* Makes the command a job. */
static int start_job(struct start *start, struct ll_run_talk *talk, struct ll_err *err)
{
	struct ll_run_job job = {.settings = &start->settings,
				 .command = start->command,
				 .path = start->path,
				 .words = start->words,
				 .is_named = start->args->tenant,
				 .project = start->args->project,
				 .name = start->args->name,
				 .said = find_said(start->args)};
	struct ll_message_accepted accepted;
	int rc = ll_run_job_start(&job, talk, &accepted, err);
	if (rc)
		return rc;
	memcpy(start->settings.place, talk->place.name, sizeof start->settings.place);
	ll_run_job_take_limits(&start->settings, &accepted);
	return 0;
}

static int bind_cards(struct start *start, struct ll_run_talk *talk, struct ll_err *err)
{
	const struct ll_card *card = NULL;
	const struct ll_run_binding binding = {.settings = &start->settings,
					       .cards = start->cards,
					       .count = start->count,
					       .may_overcommit = start->args->overcommit};
	int rc = ll_run_bind(talk, &binding, &card, err);
	if (rc && card)
		ll_err_wrap(err, rc == -EDQUOT ? N_("--mem-request: card %s") : N_("card %s"), card->label);
	return rc;
}

static bool needs_governing(const struct start *start)
{
	const struct ll_run_settings *settings = &start->settings;
	return !start->args->allow_ungoverned &&
	       (ll_run_settings_ask_limits(settings) || settings->memory_request_bytes || settings->is_evictable);
}

/* A nested command without a place is in a job that could not be governed. One that has another uid than its job's
 * daemon (gosu, su) is of the job by its token, which is all that its library needs. */
static int join_job(struct start *start, struct ll_run_talk *talk, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = start->is_nested ? 0 : start_job(start, talk, &why);
	if (!rc)
		rc = bind_cards(start, talk, &why);
	if (rc == -EPERM && start->is_nested)
		return 0;
	if (rc == -EDQUOT) {
		ll_err_hint(&why, "--overcommit starts it nevertheless, and then no request on the card is certain");
		ll_err_exit_with(&why, LL_EXIT_REFUSED);
	} else if (rc == -EACCES) {
		ll_err_hint(&why, "`loadline limits` tells what you may have");
	} else if (rc == -ESTALE) {
		ll_err_hint(&why, "`loadline doctor` tells more");
	} else if (rc && needs_governing(start)) {
		ll_err_wrap(&why, "limits cannot be put in force");
		ll_err_hint(&why, "--allow-ungoverned runs it nevertheless, without limits");
	} else if (rc) {
		start->is_ungoverned = true;
		start->settings.place[0] = '\0';
		ll_log(LL_LOG_WARN, "%s; the command runs ungoverned", why.text);
		return 0;
	}
	if (rc && err)
		*err = why;
	return rc;
}

/* Chooses the cards, and makes the command a job that may use them. visible becomes the new value of
 * CUDA_VISIBLE_DEVICES, or stays empty if that stays as it is. */
static int take_cards(struct start *start, struct ll_strbuf *visible, struct ll_err *err)
{
	const struct ll_run_settings settings = start->settings;
	LL_SCOPE_STRBUF struct ll_strbuf place = LL_STRBUF_INIT;
	struct ll_run_talk talk = LL_RUN_TALK_NONE;
	int rc = -ESTALE;
	for (unsigned asked = 0; rc == -ESTALE && asked < LL_RUN_ASKS; asked++) {
		if (asked) {
			ll_run_admit_again();
			start->settings = settings;
			ll_strbuf_reset(&place);
			free(start->cards);
			start->cards = NULL;
		}
		rc = wait_for_place(start, &talk, &place, err);
		if (!rc)
			rc = choose_cards(start, err);
		if (!rc)
			rc = join_job(start, &talk, err);
	}
	if (!rc) /* with the limits that the configuration of the machine gave */
		rc = check_cards(start, err);
	ll_run_talk_end(&talk);
	if (!rc)
		start->order = ll_run_cards_show(start->driver, start->wanted_cards, start->cards, start->count,
						 start->space.is_client, visible);
	start->wanted_cards = NULL;
	return rc;
}

static int exec_program(const char *path, char **words, const struct ll_run_environment *wish,
			const struct ll_run_watch *watch, struct ll_err *err)
{
	char **environment;
	int rc = ll_run_environment_make(wish, &environment, err);
	if (rc < 0)
		return rc;
	ll_run_bequeath(wish->settings);
	if (watch)
		watch->on_start(watch->data, wish->settings->id);
	execvpe(path, words, environment);
	int code = errno;
	ll_run_environment_free(environment);
	ll_err_set(err, -code, "%.200s: %s", path, strerror(code));
	if (err)
		err->status = code == ENOENT ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

static int exec_started(const struct start *start, const char *path, const char *shim, const char *visible,
			char **words, struct ll_err *err)
{
	struct ll_run_environment wish = {.settings = &start->settings,
					  .shim = *shim && !start->is_ungoverned ? shim : NULL,
					  .visible = visible,
					  .order = start->order};
	if (start->space.is_client) {
		wish.mps_pipe = start->space.pipe;
		wish.mps_log = start->space.log;
		wish.mps_percent = *start->space.percent ? start->space.percent : NULL;
	}
	return exec_program(path, words, &wish, start->args->watch, err);
}

/* NVIDIA's library has threads, and a process of several waits some 30 ms for room for a high descriptor: the kernel
 * lets all processors pass a point first. So the room is made before. */
static void make_room_for_descriptors(void)
{
	LL_SCOPE_CLOSE int fd = open("/", O_PATH | O_CLOEXEC);
	LL_SCOPE_CLOSE int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LL_RUN_FIRST_FD);
	(void)high;
}

/* MPS's state is read from the cards, and CUDA_VISIBLE_DEVICES by CUDA; else the list of loadlined's sensor is enough.
 * Behind the fence there is no other: the cards open inside a job only, and the command's job is made first. */
static int open_driver(const struct ll_run_args *args, struct ll_driver **ret_driver, struct ll_err *err)
{
	if (args->by != LL_RUN_BY_SLICES)
		return ll_driver_open(ret_driver, err);
	return getenv("CUDA_VISIBLE_DEVICES") ? ll_cards_open(0, ret_driver, err)
					      : ll_cards_open_listed(ret_driver, err);
}

int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err)
{
	struct start start = {.args = args};
	LL_SCOPE_STRBUF struct ll_strbuf visible = LL_STRBUF_INIT;
	char path[PATH_MAX];
	char shim[PATH_MAX] = "";
	if (!operands->count)
		return ll_err_set(err, -EINVAL, "run: no command to run");
	start.command = operands->words[0];
	int rc = make_settings(args, start.command, &start.settings, &start.is_nested, err);
	if (!rc)
		rc = find_program(args, operands->words, start.settings.is_strict, path, shim, err);
	make_room_for_descriptors();
	if (!rc && !realpath(path, start.path))
		memcpy(start.path, path, sizeof start.path);
	start.words = operands->words;
	if (!rc)
		rc = open_driver(args, &start.driver, err);
	if (!rc)
		rc = take_cards(&start, &visible, err);
	if (!rc && args->cpus == LL_RUN_CPUS_NEAR)
		ll_run_near_bind(start.cards, start.count);
	free(start.cards);
	ll_driver_close(start.driver);
	if (!rc && visible.failed)
		rc = ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	return rc ? rc : exec_started(&start, path, shim, visible.length ? visible.buf : NULL, operands->words, err);
}
