#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/common/json_line.h"
#include "cli/limits/limits.h"
#include "cli/status/jobs.h"

enum { ID_SIZE = 24 };

static const char *id_of(const struct ll_limits_job *job, char ret_id[ID_SIZE])
{
	snprintf(ret_id, ID_SIZE, "%" PRIx64, job->row->job.token[0]);
	return ret_id;
}

static json_t *bytes_or_null(uint64_t bytes)
{
	return bytes != LL_MEMORY_UNKNOWN ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *user_object(const struct ll_limits_view *view)
{
	char id[ID_SIZE];
	return json_pack("{s:o, s:i, s:n, s:o}", "user", ll_json_text(view->user), "uid", (int)view->uid, "user_limits",
			 "inside_job", view->is_inside ? json_string(id_of(&view->jobs[0], id)) : json_null());
}

static json_t *job_object(const struct ll_limits_job *job)
{
	char id[ID_SIZE];
	const struct ll_job_facts *facts = &job->row->job;
	return json_pack("{s:s, s:o, s:o, s:b, s:o}", "job", id_of(job, id), "tenant", ll_json_text(facts->tenant),
			 "command", facts->command[0] ? ll_json_text(facts->command) : json_null(), "as_it_began",
			 job->is_as_begun, "limits", ll_status_limits_json(&facts->limits));
}

static json_t *use_object(const struct ll_limits_view *view, const struct ll_status_card *card,
			  const struct ll_limits_job *job, const struct ll_status_job *use)
{
	char id[ID_SIZE];
	return json_pack("{s:s, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:i}", "use", id_of(job, id), "on_card",
			 card->card->label, "uuid", card->card->uuid, "tenant", ll_json_text(use->name), "memory_bytes",
			 (json_int_t)use->memory_used_bytes, "memory_limit_bytes",
			 bytes_or_null(use->memory_limit_bytes ? use->memory_limit_bytes : LL_MEMORY_UNKNOWN),
			 "memory_left_bytes", bytes_or_null(ll_limits_left_bytes(view, card, use)), "share_percent",
			 use->how.share_ns ? ll_json_real(use->how.share_permille / 10.0, 1) : json_null(),
			 "gpu_seconds", ll_json_real((double)use->gpu_time_ns / (double)LL_NS_PER_S, 6), "claims",
			 (int)use->claims);
}

static json_t *card_object(const struct ll_limits_view *view, const struct ll_status_card *card)
{
	uint64_t promised = ll_limits_promised_bytes(view, card);
	return json_pack("{s:i, s:o, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "card", (int)card->card->index, "slice",
			 card->card->is_mig ? json_integer(card->card->slice) : json_null(), "uuid", card->card->uuid,
			 "name", card->card->name[0] ? ll_json_text(card->card->name) : json_null(), "simulated",
			 card->is_simulated, "util_percent", ll_json_real(card->util_percent, 1), "memory_free_bytes",
			 bytes_or_null(ll_limits_free_bytes(view, card)), "memory_promised_bytes",
			 bytes_or_null(promised), "memory_promisable_bytes",
			 bytes_or_null(ll_limits_promisable_bytes(view, card)), "jobs",
			 promised == LL_MEMORY_UNKNOWN ? json_null() : json_integer((json_int_t)card->job_count));
}

static int print_card(const struct ll_limits_view *view, const struct ll_status_card *card, struct ll_err *err)
{
	int rc = ll_json_line(card_object(view, card), err);
	for (size_t i = 0; !rc && i < view->job_count; i++) {
		const struct ll_status_job *use = ll_limits_use(card, &view->jobs[i]);
		if (use)
			rc = ll_json_line(use_object(view, card, &view->jobs[i], use), err);
	}
	return rc;
}

int ll_limits_print_json(const struct ll_limits_view *view, struct ll_err *err)
{
	int rc = ll_json_line(user_object(view), err);
	for (size_t i = 0; !rc && i < view->job_count; i++)
		rc = ll_json_line(job_object(&view->jobs[i]), err);
	for (size_t i = 0; !rc && i < view->card_count; i++)
		rc = print_card(view, &view->cards[i], err);
	return rc ? rc : ll_status_print_daemon_json(&view->daemon, err);
}
