#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/common/user.h"
#include "cli/limits/library.h"
#include "cli/limits/limits.h"
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
		if (card->jobs[i].number == job->row->number)
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
	uint64_t limit = use->memory_limit_bytes, used = use->memory_used_bytes;
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
		bytes += card->jobs[i].memory_request_bytes;
	return is_told(view) ? bytes : LL_MEMORY_UNKNOWN;
}

uint64_t ll_limits_promisable_bytes(const struct ll_limits_view *view, const struct ll_status_card *card)
{
	uint64_t promised = ll_limits_promised_bytes(view, card), usable = card->card->usable_bytes;
	if (promised == LL_MEMORY_UNKNOWN || view->has_library || !usable)
		return LL_MEMORY_UNKNOWN;
	return usable > promised ? usable - promised : 0;
}
