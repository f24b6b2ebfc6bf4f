#include "cli/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "driver/cards.h"
#include "protocol/run_settings.h"

enum { USER_SIZE = 64 };

static void add_job(struct ll_strbuf *text, const struct ll_queue_waits *waits)
{
	if (!waits->number) {
		ll_strbuf_adds(text, _("waits for another user's job"));
		return;
	}
	ll_strbuf_addf(text,
		       waits->kind == LL_QUEUE_WAITS_AFTER ? _("waits for the end of job %" PRIu64)
							   : _("waits for job %" PRIu64),
		       waits->number);
	if (waits->uid != UINT32_MAX) {
		char user[USER_SIZE];
		ll_user_name(waits->uid, user, sizeof user);
		ll_strbuf_addf(text, _(" of %s"), user);
	}
	if (!waits->until_s)
		return;
	ll_strbuf_adds(text, _(" (until "));
	ll_moment_add(text, waits->until_s);
	ll_strbuf_addc(text, ')');
}

/* ---- by which rule ---- */

static void add_amount(struct ll_strbuf *text, const struct ll_queue_why_told *why, uint64_t amount)
{
	unsigned count = amount < UINT32_MAX ? (unsigned)amount : UINT32_MAX;
	switch (why->what) {
	case LL_QUEUE_WHAT_MEMORY:
		ll_bytes_add(text, amount);
		break;
	case LL_QUEUE_WHAT_COMPUTE:
		ll_strbuf_addf(text, "%g %%", (double)amount / 10.0);
		break;
	case LL_QUEUE_WHAT_JOBS:
		ll_strbuf_addf(text, ll_translate_count("%u job", "%u jobs", count), count);
		break;
	default:
		ll_strbuf_addf(text, ll_translate_count("%u card", "%u cards", count), count);
		break;
	}
}

/* Adds an amount in the format, which has one %s. Cards and jobs are named once: *names_unit is then cleared. */
static void add_figure(struct ll_strbuf *text, const struct ll_queue_why_told *why, bool *names_unit,
		       const char *format, uint64_t amount)
{
	LL_SCOPE_STRBUF struct ll_strbuf figure = LL_STRBUF_INIT;
	bool is_count = why->what != LL_QUEUE_WHAT_MEMORY && why->what != LL_QUEUE_WHAT_COMPUTE;
	if (amount == LL_QUEUE_NOT_TOLD)
		return;
	if (is_count && !*names_unit)
		ll_strbuf_addf(&figure, "%" PRIu64, amount);
	else
		add_amount(&figure, why, amount);
	*names_unit = false;
	ll_strbuf_addf(text, format, figure.buf);
}

static void add_times(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	if (why->begin_s) {
		ll_strbuf_adds(text, _(" from "));
		ll_moment_add(text, why->begin_s);
	}
	if (why->end_s) {
		ll_strbuf_adds(text, _(" to "));
		ll_moment_add(text, why->end_s);
	}
}

static void add_limit(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	bool names_unit = true;
	if (why->rule == LL_QUEUE_WHY_USER_LIMIT)
		ll_strbuf_addf(text, _("limit of each user of %s"), why->of);
	else
		ll_strbuf_addf(text, _("limit of tenant %s on %s"), why->of, why->cards);
	add_figure(text, why, &names_unit, _(": %s"), why->most);
	add_figure(text, why, &names_unit, _(", %s in use"), why->used);
	add_figure(text, why, &names_unit, _(", %s wanted"), why->wanted);
}

static void add_guarantee(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	bool names_unit = true;
	if (why->of[0])
		ll_strbuf_addf(text, _("guarantee of %s on %s"), why->of, why->cards);
	else
		ll_strbuf_addf(text, _("guarantee of others on %s"), why->cards);
	add_figure(text, why, &names_unit, _(": %s kept"), why->used);
	add_figure(text, why, &names_unit, _(", %s left"), why->left);
	add_figure(text, why, &names_unit, _(", %s wanted"), why->wanted);
}

static void add_room(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	bool names_unit = true;
	ll_strbuf_addf(text,
		       why->what == LL_QUEUE_WHAT_MEMORY    ? _("no memory on the allowed cards of %s")
		       : why->what == LL_QUEUE_WHAT_COMPUTE ? _("no compute on the allowed cards of %s")
							    : _("too few free cards of %s"),
		       why->cards);
	add_figure(text, why, &names_unit, _(": %s wanted"), why->wanted);
	add_figure(text, why, &names_unit, _(", %s free"), why->left);
}

static void add_order(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	char user[USER_SIZE];
	if (!why->number) {
		ll_strbuf_adds(text, _("fair order: another user's job goes first"));
		return;
	}
	ll_user_name(why->uid, user, sizeof user);
	ll_strbuf_addf(text, _("fair order: job %" PRIu64 " of %s goes first"), why->number, user);
	if (!why->begin_s)
		return;
	ll_strbuf_adds(text, _(", about "));
	ll_moment_add(text, why->begin_s);
}

static void add_why(struct ll_strbuf *text, const struct ll_queue_why_told *why)
{
	switch (why->rule) {
	case LL_QUEUE_WHY_USER_LIMIT:
	case LL_QUEUE_WHY_TENANT_LIMIT:
		add_limit(text, why);
		break;
	case LL_QUEUE_WHY_GUARANTEE:
		add_guarantee(text, why);
		break;
	case LL_QUEUE_WHY_ROOM:
		add_room(text, why);
		break;
	case LL_QUEUE_WHY_RESERVED:
		ll_strbuf_addf(text, _("cards of %s are reserved for tenant %s"), why->cards, why->of);
		add_times(text, why);
		break;
	case LL_QUEUE_WHY_OUT_OF_USE:
		ll_strbuf_addf(text, _("cards of %s are drained or in maintenance"), why->cards);
		if (why->of[0])
			ll_strbuf_addf(text, " (%s)", why->of);
		add_times(text, why);
		break;
	case LL_QUEUE_WHY_ORDER:
		add_order(text, why);
		break;
	default:
		ll_strbuf_addf(text, _("class high is for the guarantee of %s, which its other jobs have"), why->of);
		break;
	}
}

static bool is_known(const struct ll_queue_why_told *why)
{
	return why->rule && why->rule <= LL_QUEUE_WHY_HIGH;
}

static void add_waits(struct ll_strbuf *text, const struct ll_queue_waits *waits)
{
	switch (waits->kind) {
	case LL_QUEUE_WAITS_FOR_JOB:
	case LL_QUEUE_WAITS_AFTER:
		add_job(text, waits);
		break;
	case LL_QUEUE_WAITS_FOR_OPERATOR:
		ll_strbuf_adds(text, _("paused by an operator"));
		break;
	case LL_QUEUE_WAITS_FOR_OWNER:
		ll_strbuf_adds(text, _("paused by its user"));
		break;
	case LL_QUEUE_WAITS_FOR_UNUSED:
		ll_strbuf_adds(text, _("waits, because a place of this user was not used"));
		break;
	default:
		ll_strbuf_adds(text, _("waits for cards that are drained, reserved or guaranteed to others"));
		break;
	}
}

void ll_run_waiting_add_why(struct ll_strbuf *text, const struct ll_queue_waits *waits,
			    const struct ll_queue_why_told *why)
{
	if (is_known(why))
		add_why(text, why);
	else
		add_waits(text, waits);
}

void ll_run_waiting_add(struct ll_strbuf *text, const struct ll_queue_waits *waits, const struct ll_queue_why_told *why)
{
	if (is_known(why) && waits->kind == LL_QUEUE_WAITS_FOR_JOB) {
		add_job(text, waits);
		ll_strbuf_adds(text, ": ");
	}
	ll_run_waiting_add_why(text, waits, why);
}

void ll_run_waiting_add_start(struct ll_strbuf *text, uint64_t start_s, uint32_t untimed)
{
	if (!start_s) {
		ll_strbuf_adds(text, _("start unknown"));
	} else {
		ll_strbuf_adds(text, _("starts about "));
		ll_moment_add(text, start_s);
	}
	if (untimed)
		ll_strbuf_addf(
		    text,
		    ll_translate_count(" (%u job ahead has no --time)", " (%u jobs ahead have no --time)", untimed),
		    untimed);
}

static void print_line(struct ll_run_waiting *waiting, const char *line)
{
	bool is_terminal = isatty(STDERR_FILENO);
	fprintf(stderr, is_terminal ? "\r\033[Kloadline: %s" : "loadline: %s\n", line);
	fflush(stderr);
	waiting->is_unended = is_terminal;
	waiting->is_shown = true;
}

static bool says_new(const struct ll_run_waiting *waiting, const struct ll_message_queued *queued)
{
	const struct ll_message_queued *last = &waiting->last;
	return last->position != queued->position || last->waits.number != queued->waits.number ||
	       last->waits.kind != queued->waits.kind || last->why.rule != queued->why.rule ||
	       last->start_s / 60 != queued->start_s / 60;
}

void ll_run_waiting_show(struct ll_run_waiting *waiting, const struct ll_message_queued *queued)
{
	LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
	ll_still_end(&waiting->still);
	if (waiting->is_shown && !says_new(waiting, queued) && !isatty(STDERR_FILENO))
		return;
	if (!queued->position) {
		ll_strbuf_addf(&line, "job %" PRIu64 " has its place, and starts when borrowers have left it",
			       queued->number);
	} else {
		ll_strbuf_addf(&line, _("job %" PRIu64 " is number %" PRIu32 " in the queue; "), queued->number,
			       queued->position);
		ll_run_waiting_add(&line, &queued->waits, &queued->why);
		ll_strbuf_adds(&line, "; ");
		ll_run_waiting_add_start(&line, queued->start_s, queued->untimed);
	}
	if (!line.failed)
		print_line(waiting, line.buf);
	waiting->last = *queued;
}

void ll_run_waiting_clear(struct ll_run_waiting *waiting)
{
	if (waiting->is_unended)
		fputs("\r\033[K", stderr);
	waiting->is_unended = false;
}

void ll_run_waiting_end(struct ll_run_waiting *waiting, const struct ll_message_admitted *admitted)
{
	LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
	bool has_waited = waiting->is_shown;
	ll_run_waiting_clear(waiting);
	if (!has_waited)
		return;
	ll_strbuf_addf(&line, _("job %" PRIu64 " starts"), admitted->number);
	if (admitted->end_s) {
		ll_strbuf_adds(&line, _("; its time ends "));
		ll_moment_add(&line, admitted->end_s);
	}
	if (!line.failed)
		fprintf(stderr, "loadline: %s\n", line.buf);
}

/* loadlined tells something each 10 s. */
#define SILENCE_NS (30 * LL_NS_PER_S)
#define PAUSE_NS (LL_NS_PER_S / 2)

enum { MASK_CARDS = 64 };

static bool is_automatic(const struct ll_run_args *args)
{
	return args->cards && strcmp(args->cards, "auto") == 0;
}

/* The option that a queue alone can serve; NULL: none was given. */
static const char *option_of_queue(const struct ll_run_args *args)
{
	return args->time_ns        ? "--time"
	       : args->signal       ? "--signal"
	       : args->wait_ns      ? "--timeout"
	       : args->no_wait      ? "--no-wait"
	       : args->after        ? "--after"
	       : args->after_ok     ? "--after-ok"
	       : args->card_count   ? "--cards"
	       : is_automatic(args) ? "-i auto"
				    : NULL;
}

/* There is no queue. */
static int refuse_options(const struct ll_run_args *args, struct ll_err *err)
{
	const char *option = option_of_queue(args);
	if (!option)
		return 0;
	ll_err_set(err, -EINVAL, "%s: this machine has no queue for its cards", option);
	return ll_err_hint(err, "the system's loadlined has one if its configuration names groups of cards");
}

/* There should be a queue, and there is none for that reason. Other limits of the configuration are in force. A
 * submitted job, at which nobody looks, does not go past the queue. */
static int start_without_place(const struct ll_run_args *args, const struct ll_err *why, struct ll_err *err)
{
	const char *option = option_of_queue(args);
	if (args->watch) {
		ll_err_set(err, -EAGAIN, "no job is submitted past the queue: %s", why->text);
		return ll_err_hint(err, "`loadline doctor` tells more");
	}
	if (option) {
		ll_err_set(err, -EINVAL, "%s: %s", option, why->text);
		return ll_err_hint(err, "`loadline doctor` tells more");
	}
	ll_log(LL_LOG_WARN, "the job starts without a place: %s", why->text);
	return 0;
}

/* The cards of -i as a mask of their indices. */
static int read_cards(const struct ll_run_admit *wish, struct ll_message_admit *admit, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	if (!wish->args->cards || is_automatic(wish->args))
		return 0;
	int rc = ll_cards_select(wish->driver, wish->args->cards, &cards, &count, err);
	for (size_t i = 0; i < count && !rc; i++) {
		if (cards[i]->index >= MASK_CARDS)
			return ll_err_set(err, -EINVAL, "card %s: the queue knows the first %d cards", cards[i]->label,
					  MASK_CARDS);
		admit->card_mask |= UINT64_C(1) << cards[i]->index;
		if (cards[i]->is_mig)
			admit->slice = (int32_t)cards[i]->slice;
	}
	admit->flags |= LL_ADMIT_HAS_CARDS;
	return rc;
}

static int make_request(const struct ll_run_admit *wish, union ll_message *ret_message, struct ll_err *err)
{
	const struct ll_run_args *args = wish->args;
	ll_message_init(ret_message, LL_MESSAGE_ADMIT);
	struct ll_message_admit *admit = &ret_message->admit;
	admit->job = wish->settings->id;
	ll_run_job_limits(wish->settings, &admit->limits);
	admit->said = wish->said;
	admit->time_ns = args->time_ns;
	admit->wait_ns = args->wait_ns;
	admit->after = args->after_ok ? args->after_ok : args->after;
	admit->flags = (args->no_wait ? LL_ADMIT_NO_WAIT : 0U) | (args->after_ok ? LL_ADMIT_AFTER_OK : 0U) |
		       (args->watch ? LL_ADMIT_TELLS_STATUS | LL_ADMIT_CAN_RESTART : 0U) |
		       (args->project ? LL_ADMIT_HAS_PROJECT : 0U);
	admit->again = args->again;
	admit->card_count = (uint32_t)args->card_count;
	admit->slice = -1;
	if (args->tenant)
		ll_message_text_set(admit->tenant, sizeof admit->tenant, args->tenant);
	if (args->name)
		ll_message_text_set(admit->name, sizeof admit->name, args->name);
	if (args->signal) {
		int rc = ll_run_args_signal(args, &admit->signal, &admit->signal_before_s, err);
		if (rc)
			return rc;
	}
	const char *slash = strrchr(wish->command, '/');
	ll_message_text_set(admit->command, sizeof admit->command, slash && slash[1] ? slash + 1 : wish->command);
	return read_cards(wish, admit, err);
}

static void add_cards(const struct ll_message_admitted *admitted, struct ll_strbuf *cards)
{
	for (uint32_t i = 0; i < admitted->card_count; i++)
		ll_strbuf_addf(cards, "%s%s", i ? "," : "", admitted->uuids[i]);
}

static void tell_number(const struct ll_run_admit *wish, uint64_t number)
{
	const struct ll_run_watch *watch = wish->args->watch;
	if (watch)
		watch->on_number(watch->data, number, wish->settings->id);
}

/* Reads replies until the job has its place. loadlined answers soon, if with no more than WELCOME; then the job waits.
 */
static int wait_for_place(const struct ll_run_admit *wish, const struct ll_run_talk *talk,
			  struct ll_run_waiting *waiting, struct ll_strbuf *cards, struct ll_err *err)
{
	for (uint64_t patience_ns = waiting->is_answered ? SILENCE_NS : LL_CLIENT_REPLY_NS;; patience_ns = SILENCE_NS) {
		union ll_message reply;
		int rc = ll_run_talk_receive(talk, &reply, ll_now_ns() + patience_ns, err);
		if (rc == -ETIMEDOUT && waiting->is_answered) {
			/* it may be stopped for a while: the place in the queue stays */
			ll_run_waiting_clear(waiting);
			ll_log(LL_LOG_WARN, "%s", err->text);
			continue;
		}
		if (rc)
			return rc;
		waiting->is_answered = true;
		if (reply.header.kind == LL_MESSAGE_QUEUED) {
			ll_run_waiting_show(waiting, &reply.queued);
			tell_number(wish, reply.queued.number);
		}
		if (reply.header.kind != LL_MESSAGE_ADMITTED)
			continue;
		tell_number(wish, reply.admitted.number);
		ll_run_waiting_end(waiting, &reply.admitted);
		add_cards(&reply.admitted, cards);
		return 0;
	}
}

/* While loadlined is started anew, and while it does not know the cards or the user's groups yet (some seconds), the
 * job asks again. A job that has been told its position has time. */
static int ask_until_answered(const struct ll_run_admit *wish, struct ll_run_talk *talk, union ll_message *request,
			      struct ll_run_waiting *waiting, struct ll_strbuf *cards, struct ll_err *err)
{
	bool is_told = false;
	uint64_t lost_ns = 0; /* when loadlined was lost first; 0: never */
	for (;; ll_sleep_until_ns(ll_now_ns() + PAUSE_NS)) {
		int rc = ll_client_send(&talk->client, request, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
		if (!rc)
			rc = wait_for_place(wish, talk, waiting, cards, err);
		if (rc == -EINPROGRESS && !is_told)
			ll_log(LL_LOG_WARN, "the job waits: %s", err->text);
		is_told |= rc == -EINPROGRESS;
		if (rc == -ECONNREFUSED && !lost_ns)
			lost_ns = ll_now_ns();
		bool may_return =
		    rc == -ECONNREFUSED && (waiting->is_shown || ll_now_ns() < lost_ns + LL_CLIENT_RETURN_NS);
		if (!may_return && rc != -EBUSY && rc != -EINPROGRESS)
			return rc;
	}
}

/* What no card can serve is told before the wait. If the cards cannot be read now, it is told after it. By space the
 * limits of a card are others. */
static int check_cards(const struct ll_run_admit *wish, struct ll_err *err)
{
	const char *text = is_automatic(wish->args) ? NULL : wish->args->cards;
	const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = 0;
	if (wish->args->by != LL_RUN_BY_SLICES || ll_run_cards_choose(wish->driver, text, &cards, &count, NULL))
		return 0;
	for (size_t i = 0; i < count; i++) {
		rc = ll_run_args_check_card(wish->settings, cards[i], err);
		if (!rc)
			break;
	}
	free(cards);
	return rc;
}

static int refuse_past_queue(struct ll_err *err)
{
	ll_err_set(err, -EAGAIN, "the system's loadlined does not serve, and no job is submitted past its queue");
	return ll_err_hint(err, "submit it when `loadline doctor` says that it serves");
}

/* A submitted job waits for a system's loadlined that is away, of which the socket is there: it may be started just
 * now. At `run` somebody looks: it goes on with the user's own, as running jobs do (doc/loadlined.md), and says so. */
static int find_place(const struct ll_run_admit *wish, struct ll_place *place, struct ll_err *err)
{
	const char *sim_folder = ll_driver_sim_folder(wish->driver);
	struct ll_place system;
	int rc = ll_place_find(sim_folder, place, err);
	if (rc || ll_place_is_system(place) || ll_place_of_system(sim_folder, &system) || access(system.name, F_OK))
		return rc;
	if (wish->args->watch) {
		*place = system;
		ll_log(LL_LOG_WARN, "the system's loadlined does not serve; the job waits for it, 10 s at most");
	} else {
		ll_log(LL_LOG_WARN,
		       "the system's loadlined does not serve: the job runs past its queue, under one of this "
		       "user alone, which knows of no programs of others");
	}
	return 0;
}

int ll_run_admit(const struct ll_run_admit *wish, struct ll_run_talk *talk, struct ll_strbuf *cards, struct ll_err *err)
{
	union ll_message request;
	struct ll_err why = {0};
	struct ll_run_waiting waiting = {0};
	int rc = wish->has_place ? 0 : find_place(wish, &talk->place, err);
	if (rc || !ll_place_is_system(&talk->place))
		return rc ? rc : refuse_options(wish->args, err);
	rc = check_cards(wish, err);
	if (!rc)
		rc = make_request(wish, &request, err);
	if (!rc)
		rc = ll_run_talk_start(talk, err);
	if (rc)
		return rc;
	ll_still_begin(&waiting.still, N_("waits for a place in the queue, which loadlined does not give yet"));
	rc = ask_until_answered(wish, talk, &request, &waiting, cards, &why);
	ll_still_end(&waiting.still);
	ll_run_waiting_clear(&waiting);
	if (rc == -ECONNREFUSED && wish->args->watch)
		return refuse_past_queue(err);
	if (rc == -ENOENT || rc == -ENOTSUP || rc == -ECONNREFUSED)
		return refuse_options(wish->args, err);
	if (rc == -ENODEV)
		return start_without_place(wish->args, &why, err);
	if (rc == -EACCES)
		ll_err_hint(&why, "`loadline limits` tells what you may have");
	if (rc && err)
		*err = why;
	return rc;
}

void ll_run_admit_again(void)
{
	ll_log(LL_LOG_WARN, "the job has lost its place on the cards, and asks for another one");
}
