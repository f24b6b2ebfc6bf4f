#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/common/env_sim.h"
#include "cli/options/wrap.h"
#include "cli/probe/output.h"
#include "probe/report.h"

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
