#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/common/env_sim.h"
#include "cli/options/wrap.h"
#include "cli/probe/output.h"
#include "probe/report.h"

#define ROW "%-11s%-10s%-6s%-10s%-5s%-12s%9s%10s%10s%8s%5s%6s\n"

/* A switch between processes takes a tenth of this time (doc/facts.md). */
#define LONG_EMPTY_NS 1500000

enum { FIELD = 24, NAME_COLUMN = 14 };

static void format_time(char text[FIELD], const struct ll_spread *spread)
{
	if (!spread->count)
		snprintf(text, FIELD, "-");
	else if (spread->median >= 1e6)
		snprintf(text, FIELD, "%.2f ms", spread->median / 1e6);
	else
		snprintf(text, FIELD, "%.1f us", spread->median / 1e3);
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

void ll_probe_text_heading(void)
{
	printf(ROW, "parallel", "under", "grid", "priority", "conn", "word", "overlap", "slice", "switch", "empty",
	       "SMs", "runs");
}

int ll_probe_text_cell(const struct ll_probe_result *result, struct ll_err *err)
{
	const struct ll_probe_cell *cell = &result->cell;
	char under[LL_PROBE_UNDER_SIZE], overlap[FIELD], slice[FIELD], switching[FIELD], lost[FIELD], sms[FIELD],
	    runs[FIELD], connections[FIELD];
	struct ll_spread none = {0};
	bool is_sliced = !result->is_skipped && result->word == LL_PROBE_TIME_SLICED;
	format_percent(overlap, &result->overlap);
	format_time(slice, is_sliced ? &result->slice_ns : &none);
	format_time(switching, is_sliced ? &result->switch_ns : &none);
	format_percent(lost, &result->lost);
	snprintf(connections, sizeof connections, "%u", cell->connections);
	snprintf(sms, sizeof sms, "%u", result->sm_count);
	snprintf(runs, sizeof runs, "%zu/%zu", result->agreeing, result->runs);
	printf(ROW, ll_probe_parallel_text(cell->parallel), ll_probe_under_text(cell->under, under),
	       cell->is_full ? "full" : "tiny", cell->has_priorities ? "different" : "equal", connections,
	       result->is_skipped ? "-" : ll_probe_word_text(result->word), overlap, slice, switching, lost,
	       result->sm_count ? sms : "-", result->runs ? runs : "-");
	if (result->why[0])
		printf("    %s: %s\n", result->is_skipped ? "not measured" : "refused", result->why);
	if (!result->is_skipped && result->idle_ns > LONG_EMPTY_NS)
		printf("    the card was empty for %.1f ms at a stretch: another program had it, or the host "
		       "was slow\n",
		       (double)result->idle_ns / 1e6);
	return fflush(stdout) == 0 ? 0 : ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
}

static void print_missing(const char *what, bool is_known, const char *why)
{
	if (!is_known)
		printf("%s: not measured: %s\n", what, why);
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
		ll_strbuf_addf(&out, "%*s", NAME_COLUMN + 2, "$ ");
		ll_sim_add_advice(&out, finding->command);
		ll_strbuf_addc(&out, '\n');
	}
	if (findings.count)
		printf("\nOn this card, with this driver:\n\n%s", out.buf);
	ll_probe_findings_fini(&findings);
}

void ll_probe_text_end(const struct ll_probe_report *report)
{
	uint64_t step_ns = ll_probe_report_step_ns(report);
	if (step_ns)
		printf("\nTimes are the card's own clock (%%globaltimer), whose smallest step seen was %" PRIu64
		       " ns.\n",
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
	printf("\nThe classic first kernel: %d numbers, all %d; %u blocks of %u threads each write their own index.\n"
	       "A '#' is four numbers that were written, a '.' four that were not:\n\n",
	       LL_FIRST_NUMBERS, LL_FIRST_UNTOUCHED, first->blocks, first->threads);
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
