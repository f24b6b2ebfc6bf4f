/* What loadlined's sensor tells of programs without a claim, and where a job's report does not agree with the driver.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/translate.h"
#include "cli/common/json_line.h"
#include "cli/hold/words.h"
#include "cli/status/status.h"

void ll_status_take_sensed(struct ll_status_card *status, const struct ll_daemon_view *view)
{
	for (size_t i = 0; ll_daemon_view_pids_are_ours(view) && i < status->stranger_count; i++) {
		struct ll_status_stranger *stranger = &status->strangers[i];
		const struct ll_message_sense_process *row =
		    ll_sensed_find(&view->sensed, status->card->uuid, (uint32_t)stranger->pid);
		if (!row)
			continue;
		stranger->sensed = (enum ll_sense_last)row->last;
		stranger->sensed_ns = row->last_ns + view->sensed.end.silent_ns;
		stranger->is_command_hidden = !row->command[0];
		const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
		if (job)
			snprintf(stranger->sensed_tenant, sizeof stranger->sensed_tenant, "%s", job->job.tenant);
	}
}

struct ll_status_last ll_status_last_sensed(const struct ll_status_stranger *stranger, struct ll_status_last seen_here)
{
	bool is_longer_here = seen_here.kind == LL_LAST_AT_LEAST && seen_here.ago_ns > stranger->sensed_ns;
	/* The sensor's report may be older than this reading, which sees work now. */
	if (seen_here.is_card_busy && stranger->sensed != LL_SENSE_LAST_NOW)
		return seen_here;
	switch (stranger->sensed) {
	case LL_SENSE_LAST_UNKNOWN:
		return seen_here;
	case LL_SENSE_LAST_BUSY:
		return seen_here.kind == LL_LAST_UNKNOWN
			   ? (struct ll_status_last){.kind = LL_LAST_UNKNOWN, .is_card_busy = true}
			   : seen_here;
	case LL_SENSE_LAST_NOW:
		return (struct ll_status_last){.kind = LL_LAST_RUNNING};
	case LL_SENSE_LAST_AGO:
		return (struct ll_status_last){.kind = LL_LAST_AGO, .ago_ns = stranger->sensed_ns};
	case LL_SENSE_LAST_AT_LEAST:
		break;
	}
	return is_longer_here ? seen_here
			      : (struct ll_status_last){.kind = LL_LAST_AT_LEAST, .ago_ns = stranger->sensed_ns};
}

/* ---- what does not agree ---- */

bool ll_status_has_mismatch(const struct ll_status_job *job)
{
	return job && (job->has_memory_mismatch || job->has_time_mismatch);
}

static double to_seconds(uint64_t ns)
{
	return (double)ns / (double)LL_NS_PER_S;
}

void ll_status_add_mismatch(struct ll_strbuf *text, const struct ll_status_card *status,
			    const struct ll_status_job *job)
{
	if (job->has_memory_mismatch) {
		ll_strbuf_addf(text, _("tenant %s: MISMATCH on card %s: its processes report "), job->name,
			       status->card->label);
		ll_hold_add_bytes(text, job->memory_used_bytes);
		ll_strbuf_adds(text, _(" of memory, and the driver counts "));
		ll_hold_add_bytes(text, job->driver_bytes);
		ll_strbuf_adds(text, _(": a process is without the library, or reports too little\n"));
	}
	if (job->has_time_mismatch)
		ll_strbuf_addf(text,
			       _("tenant %s: MISMATCH on card %s: it reports %.1f s of GPU time in %.1f s, and the "
				 "card had work for %.1f s\n"),
			       job->name, status->card->label, to_seconds(job->checked_gpu_ns),
			       to_seconds(job->checked_ns), to_seconds(job->checked_busy_ns));
}

json_t *ll_status_mismatch_json(const struct ll_status_job *job)
{
	const char *word = !ll_status_has_mismatch(job) ? NULL
			   : !job->has_time_mismatch    ? "memory"
			   : !job->has_memory_mismatch  ? "time"
							: "memory and time";
	return json_pack("{s:o, s:o}", "mismatch", word ? json_string(word) : json_null(), "driver_memory_bytes",
			 job && job->driver_bytes ? json_integer((json_int_t)job->driver_bytes) : json_null());
}

/* ---- the sensor ---- */

void ll_status_add_sensor(struct ll_strbuf *text, const struct ll_daemon_view *view)
{
	const struct ll_message_sense_end *end = &view->sensed.end;
	if (end->silent_ns == UINT64_MAX || view->answer != LL_DAEMON_SERVES)
		return;
	if (end->silent_ns >= LL_SENSED_FRESH_NS)
		ll_strbuf_addf(text, _("loadlined: its sensor has said nothing for %.0f s\n"),
			       to_seconds(end->silent_ns));
	else if (end->reason[0])
		ll_strbuf_addf(text, _("loadlined: its sensor sees no card: %s\n"), end->reason);
}
