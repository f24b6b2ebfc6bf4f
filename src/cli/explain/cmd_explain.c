#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/explain/parts.h"
#include "cli/options/command.h"

enum { USER_SIZE = 64, NUMBER_SIZE = 24 };

struct explain_args {
	char *cards;
	bool is_json;
};

/* What is asked for, and where it goes. */
struct output {
	const struct ll_explain_view *view;
	const char *word; /* a job; NULL: all */
	bool is_json, has_found;
	struct ll_strbuf text;
};

/* ---- what is known ---- */

static void read_queue(struct ll_explain_view *view)
{
	if (ll_place_is_system(&view->daemon.place) && ll_queue_read(&view->queue, NULL))
		ll_queue_free(&view->queue), view->queue = (struct ll_queue_rows){0};
}

static int init_view(struct ll_explain_view *view, const struct ll_driver *driver, const struct ll_card *const *cards,
		     size_t count, struct ll_err *err)
{
	int rc = 0;
	*view = (struct ll_explain_view){.cards = calloc(count + 1, sizeof *view->cards)};
	ll_daemon_view_init(&view->daemon, ll_driver_sim_folder(driver));
	if (!view->cards)
		return ll_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count && !rc; i++, view->card_count++)
		rc = ll_status_card_init(&view->cards[i], cards[i], &view->daemon, err);
	read_queue(view);
	return rc;
}

static void fini_view(struct ll_explain_view *view)
{
	for (size_t i = 0; i < view->card_count; i++)
		ll_status_card_fini(&view->cards[i]);
	free(view->cards);
	ll_queue_free(&view->queue);
	ll_daemon_view_fini(&view->daemon);
}

static void find_causes(struct ll_explain_job *job)
{
	const struct ll_status_card *card = job->card;
	struct ll_cause_facts facts = {.is_queued = job->queued};
	if (card) {
		facts.permille = job->job->row.minute_permille;
		facts.has_slowdown = card->has_slowdown && card->slowdown;
		if (card->has_clocks && card->clocks.max_sm_mhz)
			facts.clock_ratio = (double)card->clocks.sm_mhz / card->clocks.max_sm_mhz;
	}
	job->cause_count = card || job->queued ? ll_causes_find(&facts, job->causes) : 0;
}

/* Parts of the last minute of a card. */
static double work_of(const struct ll_status_job *job)
{
	return (job->row.minute_permille[LL_TIME_WORK] + job->row.minute_permille[LL_TIME_SPACE]) / 1000.0;
}

double ll_explain_work_of_card(const struct ll_status_card *card)
{
	double work = 0;
	for (size_t i = 0; i < card->job_count; i++)
		work += work_of(&card->jobs[i]);
	return fmin(work, 1);
}

static double seconds_of_card(const struct ll_status_card *card)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < card->job_count; i++)
		ns = card->jobs[i].row.minute_ns > ns ? card->jobs[i].row.minute_ns : ns;
	return (double)ns / (double)LL_NS_PER_S;
}

/* ---- whether a job is meant ---- */

static bool is_number(const char *word, uint64_t number)
{
	char text[NUMBER_SIZE];
	snprintf(text, sizeof text, "%" PRIu64, number);
	return strcmp(word, text) == 0;
}

/* By its number, its tenant or the configured one, its name in the queue, or the number of a claim ("0/17"). */
static bool is_meant(const struct output *out, const struct ll_explain_job *job)
{
	const struct ll_message_queue_row *queued = job->queued;
	const char *word = out->word;
	char number[LL_STATUS_NUMBER_SIZE];
	if (!word)
		return true;
	for (size_t i = 0; job->card && i < job->card->claim_count; i++) {
		const struct ll_status_claim *claim = &job->card->claims[i];
		if (claim->row.job_number == job->told->number &&
		    strcmp(ll_status_number(job->card, claim, number), word) == 0)
			return true;
	}
	if (job->told && (is_number(word, job->told->number) || strcmp(word, job->told->job.tenant) == 0 ||
			  strcmp(word, job->told->tenant) == 0))
		return true;
	return queued && (is_number(word, queued->number) || strcmp(word, queued->tenant) == 0 ||
			  (queued->name[0] && strcmp(word, queued->name) == 0));
}

/* ---- a job ---- */

static void add_percent(struct ll_strbuf *text, double part)
{
	ll_strbuf_addf(text, "%3.0f %%  ", part * 100);
}

static void add_job_text(struct output *out, const struct ll_explain_job *job, const char *user)
{
	struct ll_strbuf *text = &out->text;
	uint64_t number = job->told ? job->told->number : job->queued->number;
	ll_strbuf_addf(text, _("  job %llu of %s, tenant %s"), (unsigned long long)number, user,
		       job->told ? job->told->job.tenant : job->queued->tenant);
	if (job->job && job->job->row.minute_ns)
		ll_strbuf_addf(text, _(": the card works for it %.0f %% of the last %.0f s"), 100 * work_of(job->job),
			       (double)job->job->row.minute_ns / (double)LL_NS_PER_S);
	else if (job->job)
		ll_strbuf_adds(text, _(": it has come just now"));
	else if (!job->queued)
		ll_strbuf_adds(text, _(": it uses no card"));
	ll_strbuf_addc(text, '\n');
	for (size_t i = 0; i < job->cause_count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf advice = LL_STRBUF_INIT;
		ll_strbuf_adds(text, "    ");
		add_percent(text, job->causes[i].part);
		ll_explain_add_cause(text, job, &job->causes[i]);
		ll_explain_add_advice(&advice, job, &job->causes[i]);
		if (advice.length)
			ll_strbuf_addf(text, "\n           %s", advice.buf);
		text->failed |= advice.failed;
		ll_strbuf_addc(text, '\n');
	}
}

static json_t *cause_json(const struct ll_explain_job *job, const struct ll_cause_part *cause)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf advice = LL_STRBUF_INIT;
	bool has_other = cause->cause == LL_CAUSE_SHARED || cause->cause == LL_CAUSE_CLASS ||
			 cause->cause == LL_CAUSE_SPACE || cause->cause == LL_CAUSE_MEMORY;
	const struct ll_status_job *other = has_other ? ll_explain_other(job, cause->cause) : NULL;
	ll_explain_add_cause(&text, job, cause);
	ll_explain_add_advice(&advice, job, cause);
	if (text.failed || advice.failed)
		return NULL;
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o}", "cause", ll_cause_name(cause->cause), "percent",
			 ll_json_real(cause->part * 100, 1), "text", text.buf, "for",
			 ll_json_known(other, other ? other->told.job.tenant : ""), "advice",
			 ll_json_known(advice.length, advice.length ? advice.buf : ""), "times_at_most",
			 cause->gain > 1 ? ll_json_real(cause->gain, 2) : json_null());
}

static int print_job_json(const struct ll_explain_job *job, const char *user, struct ll_err *err)
{
	json_t *causes = json_array();
	for (size_t i = 0; causes && i < job->cause_count; i++) {
		if (json_array_append_new(causes, cause_json(job, &job->causes[i]))) {
			json_decref(causes);
			causes = NULL;
		}
	}
	if (!causes)
		return ll_err_set(err, -ENOMEM, "out of memory");
	uint64_t number = job->told ? job->told->number : job->queued->number;
	bool is_known = job->job && job->job->row.minute_ns;
	return ll_json_line(
	    json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:o}", "job", (json_int_t)number, "user", user, "tenant",
		      job->told ? job->told->job.tenant : job->queued->tenant, "uuid",
		      ll_json_known(job->card, job->card ? job->card->card->uuid : ""), "known_seconds",
		      is_known ? ll_json_real((double)job->job->row.minute_ns / (double)LL_NS_PER_S, 1) : json_null(),
		      "work_percent", is_known ? ll_json_real(100 * work_of(job->job), 1) : json_null(), "causes",
		      causes),
	    err);
}

static int put_job(struct output *out, struct ll_explain_job *job, struct ll_err *err)
{
	char user[USER_SIZE];
	job->view = out->view;
	if (!is_meant(out, job))
		return 0;
	out->has_found = true;
	find_causes(job);
	ll_user_name(job->told ? job->told->job.uid : job->queued->uid, user, sizeof user);
	if (out->is_json)
		return print_job_json(job, user, err);
	add_job_text(out, job, user);
	return 0;
}

/* ---- a card ---- */

static int put_card(struct output *out, const struct ll_status_card *card, struct ll_err *err)
{
	bool is_known = seconds_of_card(card) > 0;
	double work = ll_explain_work_of_card(card);
	if (out->is_json)
		return ll_json_line(json_pack("{s:i, s:o, s:s, s:o, s:o, s:b, s:i}", "card", (int)card->card->index,
					      "slice",
					      card->card->is_mig ? json_integer(card->card->slice) : json_null(),
					      "uuid", card->card->uuid, "known_seconds",
					      is_known ? ll_json_real(seconds_of_card(card), 1) : json_null(),
					      "work_percent", is_known ? ll_json_real(100 * work, 1) : json_null(),
					      "drained", card->is_drained, "jobs", (int)card->job_count),
				    err);
	ll_strbuf_addf(&out->text, _("card %s"), card->card->label);
	if (card->is_drained)
		ll_strbuf_adds(&out->text, _(", gets no jobs"));
	if (is_known)
		ll_strbuf_addf(&out->text, _(": works for jobs %.0f %% of the last %.0f s\n"), 100 * work,
			       seconds_of_card(card));
	else if (card->stranger_count || card->hidden_count)
		ll_strbuf_adds(&out->text, _(": no job is on it, but processes that loadline does not govern\n"));
	else if (card->claim_count > 0)
		ll_strbuf_adds(&out->text, _(": jobs have come just now, or it is held by synthetic load\n"));
	else
		ll_strbuf_adds(&out->text, _(": no job is on it\n"));
	return 0;
}

static int put_cards(struct output *out, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < out->view->card_count && !rc; i++) {
		const struct ll_status_card *card = &out->view->cards[i];
		if (!out->word)
			rc = put_card(out, card, err);
		for (size_t j = 0; j < card->job_count && !rc; j++) {
			struct ll_explain_job job = {.card = card, .job = &card->jobs[j], .told = &card->jobs[j].told};
			if (job.told->number)
				rc = put_job(out, &job, err);
		}
	}
	return rc;
}

/* ---- jobs without a card ---- */

static bool has_card(const struct ll_list *list, uint64_t number)
{
	for (size_t i = 0; i < list->card_count; i++) {
		if (list->cards[i].job_number == number)
			return true;
	}
	return false;
}

static int put_others(struct output *out, struct ll_err *err)
{
	const struct ll_list *list = &out->view->daemon.list;
	const struct ll_queue_rows *queue = &out->view->queue;
	int rc = 0;
	for (size_t i = 0; i < list->job_count && !rc; i++) {
		struct ll_explain_job job = {.told = &list->jobs[i]};
		if (!has_card(list, job.told->number))
			rc = put_job(out, &job, err);
	}
	for (size_t i = 0; i < queue->job_count && !rc; i++) {
		struct ll_explain_job job = {.queued = &queue->jobs[i]};
		if (!(job.queued->flags & (LL_QUEUE_IS_RUNNING | LL_QUEUE_IS_ADMITTED)))
			rc = put_job(out, &job, err);
	}
	return rc;
}

/* ---- the command ---- */

static const struct ll_option explain_options[] = {
    LL_OPTION_CARDS(struct explain_args, cards),
    LL_OPTION_JSON(struct explain_args, is_json),
    LL_OPTION_END,
};

static int show(const struct ll_explain_view *view, const char *word, bool is_json, struct ll_err *err)
{
	struct output out = {.view = view, .word = word, .is_json = is_json, .text = LL_STRBUF_INIT};
	int rc = put_cards(&out, err);
	if (!rc)
		rc = put_others(&out, err);
	if (!rc)
		rc = ll_explain_put_groups(view, word, is_json ? NULL : &out.text, &out.has_found, err);
	if (!rc && word && !out.has_found) {
		rc = ll_err_set(err, -ENOENT, "no job, tenant, claim or group of cards '%.60s'", word);
		ll_err_hint(err, "`loadline status` shows those that there are");
	}
	if (!rc && !is_json)
		rc = ll_print_text(&out.text, err);
	ll_strbuf_fini(&out.text);
	if (!rc && view->daemon.answer == LL_DAEMON_SILENT) {
		ll_err_set(err, -ETIMEDOUT, "loadlined, pid %d, does not answer", (int)view->daemon.pid);
		return ll_err_hint(err, "`loadline doctor` tells more");
	}
	return rc;
}

static int run_explain(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	const struct explain_args *args = words;
	struct ll_driver *driver = NULL;
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	struct ll_explain_view view = {0};
	size_t count = 0;
	if (operands->count > 1)
		return ll_err_set(err, -EINVAL, "explain: one job, not '%.60s' too", operands->words[1]);
	int rc = ll_cards_open(-EACCES, &driver, err); /* behind the fence: what the sensor tells */
	if (!rc)
		rc = ll_cards_list(driver, args->cards, &chosen, &count, err);
	if (!rc) {
		rc = init_view(&view, driver, chosen, count, err);
		if (!rc)
			rc = show(&view, operands->count ? operands->words[0] : NULL, args->is_json, err);
		fini_view(&view);
	}
	ll_driver_close(driver);
	return rc;
}

static const struct ll_example explain_examples[] = {
    {"loadline explain", N_("Why each job is slow or idle, card by card.")},
    {"loadline explain train", N_("Why the jobs of tenant train are.")},
    {"loadline explain --json | jq 'select(.causes[0].cause == \"no-work\")'",
     N_("The jobs that hold a card for nothing, for a script.")},
    {NULL, NULL},
};

const struct ll_command ll_command_explain = {
    .name = "explain",
    .summary = N_("tell why a card or a job is slow or idle"),
    .operands = "[JOB]",
    .description = N_(
	"Tells for each job where its last minute on each card went: how much of it the card worked for the job, and "
	"the causes for the rest, the largest first, with what helps and how much it may give at most. JOB is the "
	"number of a job, a tenant, a claim such as 0/17, or a group of cards. Without it, all cards and jobs are "
	"told; and for each tenant and group of cards of a configuration what of its cards stood idle, and in whose "
	"hands. Users are told of the groups in which their tenant has a guarantee or a limit, operators of all.\n\n"
	"The causes: the job waits in the queue (queue); it was suspended or evicted by a command (evicted); it waits "
	"for memory, or for room in which its memory comes back (memory), for its cap (cap), for a higher class "
	"(class), or for others with which it shares the card's time (shared); other clients of MPS slow it down "
	"(mps); the card's clocks are held down (clocks); one of its processes waits, and the others with it "
	"(process); data moves between host and card (copies); the program computes on the host, or waits for data "
	"(host); it launches nothing for two seconds or longer, and its host is idle (no-work). A part of less "
	"than two percent is left out.\n\n"
	"loadlined looks at the jobs twice a second. A job that came less than a minute ago is told of from then on. "
	"The clocks are those of now. An asynchronous copy counts as long as its bytes take at 50 GB/s.\n\n"
	"With --json there is one object for each card ({\"card\":0,…}), each job on a card or without one "
	"({\"job\":3,…,\"causes\":[…]}), each tenant of the configuration ({\"group\":\"vision\",…}) and each group of "
	"cards ({\"card_group\":\"shared\",…}). "
	"times_at_most is how many times the work the job could do in a minute without this cause; null: not known. "
	"explain does not start loadlined."),
    .examples = explain_examples,
    .options = explain_options,
    .args_size = sizeof(struct explain_args),
    .complete = LL_COMPLETE_CLAIM,
    .run = run_explain,
};
