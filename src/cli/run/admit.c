#include "cli/run/admit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/run/cards.h"
#include "cli/run/job.h"
#include "cli/run/waiting.h"
#include "driver/cards.h"
#include "protocol/run_settings.h"

/* loadlined tells something each 10 s. */
#define SILENCE_NS (30 * LL_NS_PER_S)
#define PAUSE_NS (LL_NS_PER_S / 2)
/* A loadlined that was there is back by then. */
#define RESTART_NS (10 * LL_NS_PER_S)

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
		       (args->watch ? LL_ADMIT_TELLS_STATUS : 0U) | (args->project ? LL_ADMIT_HAS_PROJECT : 0U);
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

/* Reads replies until the job has its place. */
static int wait_for_place(const struct ll_run_admit *wish, struct ll_client *client, struct ll_run_waiting *waiting,
			  struct ll_strbuf *cards, struct ll_err *err)
{
	for (;;) {
		union ll_message reply;
		struct ll_err why = {0};
		int rc = ll_client_receive(client, &reply, ll_now_ns() + SILENCE_NS, &why);
		if (rc == -ETIMEDOUT) { /* it may be stopped for a while: the place in the queue stays */
			ll_run_waiting_clear(waiting);
			ll_log(LL_LOG_WARN, "%s", why.text);
			continue;
		}
		if (rc) {
			*err = why;
			return rc;
		}
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

static int ask_once(const struct ll_run_admit *wish, const struct ll_place *place, union ll_message *request,
		    struct ll_run_waiting *waiting, struct ll_client *client, struct ll_strbuf *cards,
		    struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_client_open(client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	if (!rc)
		rc = ll_client_send(client, request, deadline_ns, err);
	if (!rc)
		rc = wait_for_place(wish, client, waiting, cards, err);
	if (rc)
		ll_client_close(client);
	return rc;
}

/* While loadlined is started anew, and while it does not know the cards or the user's groups yet (some seconds), the
 * job asks again. A job that has been told its position has time. *lost_ns: when loadlined was lost first; 0: never. */
static bool must_ask_again(int rc, const struct ll_run_waiting *waiting, uint64_t *lost_ns)
{
	bool is_lost = ll_client_is_lost(rc);
	if (rc == -EBUSY || rc == -EINPROGRESS)
		return true;
	if (!is_lost && rc != -ECONNREFUSED)
		return false;
	if (is_lost && !*lost_ns)
		*lost_ns = ll_now_ns();
	return waiting->is_shown || (*lost_ns && ll_now_ns() < *lost_ns + RESTART_NS);
}

static int ask_until_answered(const struct ll_run_admit *wish, const struct ll_place *place, union ll_message *request,
			      struct ll_run_waiting *waiting, struct ll_client *client, struct ll_strbuf *cards,
			      struct ll_err *err)
{
	bool is_told = false;
	for (uint64_t lost_ns = 0;; ll_sleep_until_ns(ll_now_ns() + PAUSE_NS)) {
		struct ll_err why = {0};
		int rc = ask_once(wish, place, request, waiting, client, cards, &why);
		if (rc == -EINPROGRESS && !is_told)
			ll_log(LL_LOG_WARN, "the job waits: %s", why.text);
		is_told |= rc == -EINPROGRESS;
		if (must_ask_again(rc, waiting, &lost_ns))
			continue;
		if (rc && err)
			*err = why;
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

/* Whether this machine has a system's loadlined, which may be away: its socket is there. */
static bool has_system_socket(const char *sim_folder)
{
	struct ll_place place;
	return !ll_place_of_system(sim_folder, &place) && access(place.name, F_OK) == 0;
}

static int refuse_past_queue(struct ll_err *err)
{
	ll_err_set(err, -EAGAIN, "the system's loadlined does not serve, and no job is submitted past its queue");
	return ll_err_hint(err, "submit it when `loadline doctor` says that it serves");
}

/* A submitted job waits for a system's loadlined that is started just now. At `run` somebody looks: it goes on with the
 * user's own, as running jobs do (doc/loadlined.md), and says so. */
static int find_place(const struct ll_run_admit *wish, struct ll_place *place, struct ll_err *err)
{
	const char *sim_folder = ll_driver_sim_folder(wish->driver);
	uint64_t begun_ns = ll_now_ns();
	bool is_told = false;
	for (;;) {
		int rc = ll_place_find(sim_folder, place, err);
		if (rc || ll_place_is_system(place) || !has_system_socket(sim_folder))
			return rc;
		if (!wish->args->watch) {
			ll_log(LL_LOG_WARN,
			       "the system's loadlined does not serve: the job runs past its queue, under one of this "
			       "user alone, which knows of no programs of others");
			return 0;
		}
		if (ll_now_ns() >= begun_ns + RESTART_NS)
			return refuse_past_queue(err);
		if (!is_told)
			ll_log(LL_LOG_WARN,
			       "the system's loadlined does not serve; the job waits for it, 10 s at most");
		is_told = true;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
}

int ll_run_admit(const struct ll_run_admit *wish, struct ll_client *ret_client, struct ll_strbuf *cards,
		 struct ll_err *err)
{
	struct ll_place place;
	union ll_message request;
	struct ll_err why = {0};
	struct ll_run_waiting waiting = {0};
	ret_client->fd = -1;
	int rc = find_place(wish, &place, err);
	if (rc || !ll_place_is_system(&place))
		return rc ? rc : refuse_options(wish->args, err);
	rc = check_cards(wish, err);
	if (!rc)
		rc = make_request(wish, &request, err);
	if (rc)
		return rc;
	ll_still_begin(&waiting.still, N_("waits for a place in the queue, which loadlined does not give yet"));
	rc = ask_until_answered(wish, &place, &request, &waiting, ret_client, cards, &why);
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
