#include <errno.h>
#include <string.h>

#include "base/advice.h"
#include "base/err.h"
#include "cli/common/json_line.h"
#include "cli/probe/output.h"
#include "probe/report.h"

enum { DECIMALS = 3, COMMAND_SIZE = 512 };

static json_t *number_us(double ns)
{
	return ll_json_real(ns / 1e3, DECIMALS);
}

static json_t *number_percent(double part)
{
	return ll_json_real(100 * part, DECIMALS);
}

/* Makes the object of a spread, null if nothing was measured. make: turns a value into JSON. */
static json_t *make_spread(const struct ll_spread *spread, json_t *(*make)(double value))
{
	if (!spread->count)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "median", make(spread->median), "p5", make(spread->low),
			 "p95", make(spread->high), "min", make(spread->min), "max", make(spread->max), "runs",
			 (json_int_t)spread->count);
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

int ll_probe_json_begin(const struct ll_probe_report *report, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:b, s:I}", "event", "card", "card",
				      (json_int_t)report->card_index, "label", report->card_label, "uuid",
				      report->card_uuid, "name", report->card_name, "driver_version",
				      report->driver_version, "simulated", report->is_simulated, "sm_count",
				      (json_int_t)report->sm_count),
			    err);
}

static json_t *cell_object(const char *event, const struct ll_probe_cell *cell)
{
	char under[LL_PROBE_UNDER_SIZE];
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "event", event, "parallel",
			 ll_probe_parallel_text(cell->parallel), "under", ll_probe_under_text(cell->under, under),
			 "priority", cell->has_priorities ? "different" : "equal", "grid",
			 cell->is_full ? "full" : "tiny", "connections", (json_int_t)cell->connections);
}

/* Times count from the first start of the run. */
static json_t *kernels_array(const struct ll_probe_result *result)
{
	json_t *array = json_array();
	uint64_t zero_ns = UINT64_MAX;
	for (size_t i = 0; i < result->kernel_count; i++)
		zero_ns = result->kernels[i].start_ns < zero_ns ? result->kernels[i].start_ns : zero_ns;
	for (size_t i = 0; i < result->kernel_count; i++) {
		const struct ll_probe_kernel *kernel = &result->kernels[i];
		json_t *gaps = json_array();
		for (uint32_t g = 0; g < ll_probe_listed(kernel); g++)
			json_array_append_new(gaps, json_pack("{s:I, s:I, s:b}", "at_ns",
							      (json_int_t)(kernel->holes[g].at_ns - zero_ns),
							      "length_ns", (json_int_t)kernel->holes[g].length_ns,
							      "interrupted", kernel->holes[g].is_cut));
		json_array_append_new(
		    array, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "party", (json_int_t)kernel->party,
				     "start_ns", (json_int_t)(kernel->start_ns - zero_ns), "end_ns",
				     (json_int_t)(kernel->end_ns - zero_ns), "blocks", (json_int_t)kernel->blocks,
				     "sms", (json_int_t)kernel->sm_count, "max_gap_ns", (json_int_t)kernel->max_gap_ns,
				     "gap_count", (json_int_t)kernel->hole_count, "gaps", gaps));
	}
	return array;
}

int ll_probe_json_cell(const struct ll_probe_result *result, struct ll_err *err)
{
	json_t *object = cell_object("cell", &result->cell);
	json_t *rest;
	if (!object)
		return ll_json_line(NULL, err);
	if (result->is_skipped)
		rest = json_pack("{s:n, s:s}", "word", "not_measured", result->why);
	else
		rest = json_pack(
		    "{s:s, s:I, s:I, s:o, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:o}",
		    "word", ll_probe_word_text(result->word), "runs", (json_int_t)result->runs, "agreeing",
		    (json_int_t)result->agreeing, "refusal", text_or_null(result->why), "count",
		    (json_int_t)result->load.parties, "each", (json_int_t)result->load.kernels, "kernel_us",
		    (double)result->load.length_ns / 1e3, "overlap_percent",
		    make_spread(&result->overlap, number_percent), "slice_us",
		    make_spread(&result->slice_ns, number_us), "switch_us", make_spread(&result->switch_ns, number_us),
		    "window_us", make_spread(&result->window_ns, number_us), "empty_percent",
		    make_spread(&result->lost, number_percent), "first_share_percent",
		    make_spread(&result->share, number_percent), "clock_step_ns", (json_int_t)result->step_ns, "sms",
		    (json_int_t)result->sm_count, "sms_together", (json_int_t)result->sms_together, "longest_empty_us",
		    (double)result->idle_ns / 1e3, "kernels", kernels_array(result));
	if (!rest || json_object_update_new(object, rest) < 0) {
		json_decref(object);
		return ll_json_line(NULL, err);
	}
	return ll_json_line(object, err);
}

/* ---- what comes after the matrix ---- */

static int print_slicing(const struct ll_probe_slicing *slicing, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "event", "slice", "not_measured",
				      text_or_null(slicing->why), "runs", (json_int_t)slicing->runs, "slice_us",
				      make_spread(&slicing->slice_ns, number_us), "switch_us",
				      make_spread(&slicing->switch_ns, number_us), "empty_percent",
				      make_spread(&slicing->lost, number_percent)),
			    err);
}

static int print_arrival(const struct ll_probe_arrival *arrival, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "event", "preemption", "not_measured",
				      text_or_null(arrival->why), "runs", (json_int_t)arrival->runs, "high_wait_us",
				      make_spread(&arrival->high_wait_ns, number_us), "equal_wait_us",
				      make_spread(&arrival->equal_wait_ns, number_us), "blocks_left_us",
				      make_spread(&arrival->round_ns, number_us)),
			    err);
}

static int print_idling(const struct ll_probe_idling *idling, struct ll_err *err)
{
	return ll_json_line(
	    json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "event", "idle", "not_measured", text_or_null(idling->why),
		      "runs", (json_int_t)idling->runs, "alone_us", make_spread(&idling->alone_ns, number_us),
		      "beside_us", make_spread(&idling->beside_ns, number_us), "memory_bytes",
		      idling->memory_bytes ? json_integer((json_int_t)idling->memory_bytes) : json_null()),
	    err);
}

static int print_memory(const struct ll_probe_memory *memory, struct ll_err *err)
{
	char under[LL_PROBE_UNDER_SIZE];
	return ll_json_line(json_pack("{s:s, s:s, s:I, s:I}", "event", "memory", "under",
				      ll_probe_under_text(memory->under, under), "first_bytes",
				      (json_int_t)memory->first_bytes, "each_bytes", (json_int_t)memory->each_bytes),
			    err);
}

static int print_findings(const struct ll_probe_report *report, struct ll_err *err)
{
	struct ll_probe_findings findings;
	int rc = ll_probe_findings_make(report, &findings);
	if (rc < 0)
		return ll_err_set(err, rc, "statements: %s", strerror(-rc));
	for (size_t i = 0; rc == 0 && i < findings.count; i++) {
		const struct ll_probe_finding *finding = &findings.items[i];
		char command[COMMAND_SIZE];
		ll_advice_copy(command, sizeof command, finding->command);
		rc = ll_json_line(json_pack("{s:s, s:s, s:s, s:s}", "event", "statement", "about", finding->name,
					    "text", finding->text.buf, "command", command),
				  err);
	}
	ll_probe_findings_fini(&findings);
	return rc;
}

int ll_probe_json_end(const struct ll_probe_report *report, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < LL_PROBE_CHOICES; i++) {
		if (report->memories[i].is_known)
			rc = print_memory(&report->memories[i], err);
	}
	if (rc == 0 && report->measured & LL_PROBE_SLICE)
		rc = print_slicing(&report->slicing, err);
	if (rc == 0 && report->measured & LL_PROBE_PREEMPTION)
		rc = print_arrival(&report->arrival, err);
	if (rc == 0 && report->measured & LL_PROBE_IDLE)
		rc = print_idling(&report->idling, err);
	return rc ? rc : print_findings(report, err);
}

int ll_probe_json_first(const struct ll_probe_first *first, struct ll_err *err)
{
	json_t *numbers = json_array();
	for (int i = 0; i < LL_FIRST_NUMBERS; i++)
		json_array_append_new(numbers, json_integer(first->numbers[i]));
	return ll_json_line(json_pack("{s:s, s:I, s:I, s:I, s:b, s:I, s:I, s:o}", "event", "first", "blocks",
				      (json_int_t)first->blocks, "threads", (json_int_t)first->threads, "written",
				      (json_int_t)ll_probe_first_written(first->numbers), "in_order",
				      ll_probe_first_is_in_order(first->numbers), "enough_blocks",
				      (json_int_t)first->enough_blocks, "enough_written",
				      (json_int_t)ll_probe_first_written(first->enough), "numbers", numbers),
			    err);
}

int ll_probe_json_list(const struct ll_probe_cell *cells, size_t count, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = ll_json_line(cell_object("list", &cells[i]), err);
	return rc;
}
