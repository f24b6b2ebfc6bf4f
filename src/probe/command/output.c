#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/advice.h"
#include "base/err.h"
#include "cli/common/env_sim.h"
#include "cli/common/table.h"
#include "cli/options/help_text.h"
#include "probe/command/internal.h"
#include "probe/probe.h"

/* ---- text ---- */

/* 78 columns, and times have at most 7. */
#define ROW "  %-6s%-10s%-5s%-12s%8s%8s%8s%8s%5s%6s\n"

/* A switch between processes takes a tenth of this time (doc/facts.md). */
#define LONG_EMPTY_NS 1500000

enum { FIELD = 24, NAME_COLUMN = 14, COMMAND_COLUMN = 2, NOTE_COLUMN = 4 };

static void format_time(char text[FIELD], const struct ll_spread *spread)
{
	if (!spread->count)
		snprintf(text, FIELD, "-");
	else if (spread->median >= 1e6)
		snprintf(text, FIELD, "%.*f ms", spread->median < 1e7 ? 2 : 1, spread->median / 1e6);
	else
		snprintf(text, FIELD, "%.*f us", spread->median < 1e5 ? 1 : 0, spread->median / 1e3);
}

static void format_percent(char text[FIELD], const struct ll_spread *spread)
{
	if (!spread->count)
		snprintf(text, FIELD, "-");
	else
		snprintf(text, FIELD, "%.1f %%", 100 * spread->median);
}

void ll_probe_text_begin(const struct ll_probe_report *report)
{
	printf("card %s %s%s, driver %s\n", report->card_label, report->card_name,
	       report->is_simulated ? " (simulated)" : "", report->driver_version);
}

static void __attribute__((format(printf, 2, 3))) print_wrapped(size_t column, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	ll_strbuf_addf(&out, "%*s", (int)column, "");
	ll_wrap(&out, text, column, column);
	fputs(out.buf, stdout);
}

/* What the rows below have in common is above them. */
static void print_group(const struct ll_probe_cell *cell, const struct ll_probe_cell *previous)
{
	char under[LL_PROBE_UNDER_SIZE];
	bool is_same = previous && previous->parallel == cell->parallel &&
		       previous->under.manner == cell->under.manner && previous->under.percent == cell->under.percent;
	if (is_same)
		return;
	printf("\n%s under %s:\n", ll_probe_parallel_text(cell->parallel), ll_probe_under_text(cell->under, under));
	if (!previous)
		printf(ROW, "grid", "priority", "conn", "word", "overlap", "slice", "switch", "empty", "SMs", "runs");
}

int ll_probe_text_cell(const struct ll_probe_result *result, const struct ll_probe_cell *previous, struct ll_err *err)
{
	const struct ll_probe_cell *cell = &result->cell;
	char overlap[FIELD], slice[FIELD], switching[FIELD], lost[FIELD], sms[FIELD], runs[FIELD], connections[FIELD];
	struct ll_spread none = {0};
	bool is_sliced = !result->is_skipped && result->word == LL_PROBE_TIME_SLICED;
	format_percent(overlap, &result->overlap);
	format_time(slice, is_sliced ? &result->slice_ns : &none);
	format_time(switching, is_sliced ? &result->switch_ns : &none);
	format_percent(lost, &result->lost);
	snprintf(connections, sizeof connections, "%u", cell->connections);
	snprintf(sms, sizeof sms, "%u", result->sm_count);
	snprintf(runs, sizeof runs, "%zu/%zu", result->agreeing, result->runs);
	print_group(cell, previous);
	printf(ROW, cell->is_full ? "full" : "tiny", cell->has_priorities ? "different" : "equal", connections,
	       result->is_skipped ? "-" : ll_probe_word_text(result->word), overlap, slice, switching, lost,
	       result->sm_count ? sms : "-", result->runs ? runs : "-");
	if (result->why[0])
		print_wrapped(NOTE_COLUMN, "%s: %s", result->is_skipped ? "not measured" : "refused", result->why);
	if (!result->is_skipped && result->idle_ns > LONG_EMPTY_NS)
		print_wrapped(
		    NOTE_COLUMN,
		    "the card was empty for %.1f ms at a stretch: another program had it, or the host was slow",
		    (double)result->idle_ns / 1e6);
	return fflush(stdout) == 0 ? 0 : ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
}

static void print_missing(const char *what, bool is_known, const char *why)
{
	if (!is_known)
		print_wrapped(0, "%s: not measured: %s", what, why);
}

/* Returns the length of an option with its value, or of a word. */
static size_t option_length(const char *word)
{
	size_t length = strcspn(word, " ");
	bool has_value = *word == '-' && word[length] && word[length + 1] != '-';
	return has_value ? length + 1 + strcspn(word + length + 1, " ") : length;
}

/* Adds a command that a shell takes, with a backslash where a line ends. */
static void add_command(struct ll_strbuf *out, const char *command)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	size_t at = COMMAND_COLUMN + strlen("$");
	ll_sim_add_advice(&text, command);
	ll_strbuf_addf(out, "%*s$", COMMAND_COLUMN, "");
	for (const char *word = text.buf; *word;) {
		size_t length = option_length(word);
		if (at + 1 + length + strlen(" \\") > LL_WRAP_WIDTH) {
			ll_strbuf_addf(out, " \\\n%*s", COMMAND_COLUMN + 3, "");
			at = COMMAND_COLUMN + 3;
		}
		ll_strbuf_addc(out, ' ');
		ll_strbuf_add(out, word, length);
		at += 1 + length;
		word += length + (word[length] == ' ');
	}
	ll_strbuf_addc(out, '\n');
}

static void print_findings(const struct ll_probe_report *report)
{
	struct ll_probe_findings findings;
	if (ll_probe_findings_make(report, &findings) < 0)
		return;
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	for (size_t i = 0; i < findings.count; i++) {
		const struct ll_probe_finding *finding = &findings.items[i];
		ll_strbuf_addf(&out, "%-*s", NAME_COLUMN, finding->name);
		ll_wrap(&out, finding->text.buf, NAME_COLUMN, NAME_COLUMN);
		add_command(&out, finding->command);
	}
	if (findings.count)
		printf("\nOn this card, with this driver:\n\n%s", out.buf);
	ll_probe_findings_fini(&findings);
}

void ll_probe_text_end(const struct ll_probe_report *report)
{
	uint64_t step_ns = ll_probe_report_step_ns(report);
	if (step_ns)
		putchar('\n');
	if (step_ns)
		print_wrapped(0,
			      "Times are the card's own (%%globaltimer), whose smallest step seen was %" PRIu64 " ns.",
			      step_ns);
	if (report->measured & LL_PROBE_SLICE)
		print_missing("slice", report->slicing.is_known, report->slicing.why);
	if (report->measured & LL_PROBE_PREEMPTION)
		print_missing("preemption", report->arrival.is_known, report->arrival.why);
	if (report->measured & LL_PROBE_IDLE)
		print_missing("idle", report->idling.is_known, report->idling.why);
	print_findings(report);
}

void ll_probe_text_list(const struct ll_probe_cell *cells, size_t count)
{
	printf("%-11s%-10s%-6s%-10s%s\n", "parallel", "under", "grid", "priority", "connections");
	for (size_t i = 0; i < count; i++) {
		char under[LL_PROBE_UNDER_SIZE];
		printf("%-11s%-10s%-6s%-10s%u\n", ll_probe_parallel_text(cells[i].parallel),
		       ll_probe_under_text(cells[i].under, under), cells[i].is_full ? "full" : "tiny",
		       cells[i].has_priorities ? "different" : "equal", cells[i].connections);
	}
	printf("%zu cells\n", count);
}

/* Prints one sign for each group of numbers, so that 512 numbers fit on four lines. */
static void print_numbers(const int32_t numbers[LL_FIRST_NUMBERS])
{
	enum { PER_SIGN = 4, PER_LINE = 64 };
	for (int i = 0; i < LL_FIRST_NUMBERS; i += PER_SIGN) {
		if (i % (PER_SIGN * PER_LINE) == 0)
			printf("%s%5d ", i ? "\n" : "", i);
		int written = 0;
		for (int k = 0; k < PER_SIGN; k++)
			written += numbers[i + k] != LL_FIRST_UNTOUCHED;
		putchar(written == PER_SIGN ? '#' : written ? '+' : '.');
	}
	putchar('\n');
}

void ll_probe_text_first(const struct ll_probe_first *first)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	size_t written = ll_probe_first_written(first->numbers);
	putchar('\n');
	print_wrapped(
	    0,
	    "The classic first kernel: %d numbers, all %d; %u blocks of %u threads each write their own index. "
	    "A '#' is four numbers that were written, a '.' four that were not:",
	    LL_FIRST_NUMBERS, LL_FIRST_UNTOUCHED, first->blocks, first->threads);
	putchar('\n');
	print_numbers(first->numbers);
	ll_strbuf_addf(&out,
		       "%zu of %d were written%s. The grid decides how much a kernel does, not the size of its data: "
		       "thread t of block b computes the index b * %u + t, so %u blocks of %u threads are %u threads "
		       "and reach the indexes 0 to %u. No thread writes the other %zu. CUDA reports no error, because "
		       "nothing went wrong.",
		       written, LL_FIRST_NUMBERS, ll_probe_first_is_in_order(first->numbers) ? ", the first ones" : "",
		       first->threads, first->blocks, first->threads, first->blocks * first->threads,
		       first->blocks * first->threads - 1, LL_FIRST_NUMBERS - written);
	ll_strbuf_addf(&out, "\n\nWith %u blocks, %d / %u, all %zu are written:", first->enough_blocks,
		       LL_FIRST_NUMBERS, first->threads, ll_probe_first_written(first->enough));
	LL_SCOPE_STRBUF struct ll_strbuf wrapped = LL_STRBUF_INIT;
	ll_wrap(&wrapped, out.buf, 0, 0);
	printf("\n%s\n", wrapped.buf);
	print_numbers(first->enough);
}

/* ---- json ---- */

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
		    (json_int_t)result->agreeing, "refusal", ll_json_known(*result->why, result->why), "count",
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
				      ll_json_known(*slicing->why, slicing->why), "runs", (json_int_t)slicing->runs,
				      "slice_us", make_spread(&slicing->slice_ns, number_us), "switch_us",
				      make_spread(&slicing->switch_ns, number_us), "empty_percent",
				      make_spread(&slicing->lost, number_percent)),
			    err);
}

static int print_arrival(const struct ll_probe_arrival *arrival, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "event", "preemption", "not_measured",
				      ll_json_known(*arrival->why, arrival->why), "runs", (json_int_t)arrival->runs,
				      "high_wait_us", make_spread(&arrival->high_wait_ns, number_us), "equal_wait_us",
				      make_spread(&arrival->equal_wait_ns, number_us), "blocks_left_us",
				      make_spread(&arrival->round_ns, number_us)),
			    err);
}

static int print_idling(const struct ll_probe_idling *idling, struct ll_err *err)
{
	return ll_json_line(
	    json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "event", "idle", "not_measured",
		      ll_json_known(*idling->why, idling->why), "runs", (json_int_t)idling->runs, "alone_us",
		      make_spread(&idling->alone_ns, number_us), "beside_us",
		      make_spread(&idling->beside_ns, number_us), "memory_bytes",
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

static int print_json_findings(const struct ll_probe_report *report, struct ll_err *err)
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
	return rc ? rc : print_json_findings(report, err);
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
