#include "probe/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Returns the memory under that manner; NULL: unknown. */
static const struct ll_probe_memory *find_memory(const struct ll_probe_report *report, struct ll_probe_under under)
{
	for (size_t i = 0; i < LL_PROBE_CHOICES; i++) {
		if (report->memories[i].is_known && ll_probe_under_same(report->memories[i].under, under))
			return &report->memories[i];
	}
	return NULL;
}

uint64_t ll_probe_report_step_ns(const struct ll_probe_report *report)
{
	uint64_t step_ns = 0;
	for (size_t i = 0; i < report->count; i++) {
		uint64_t seen_ns = report->results[i].step_ns;
		if (seen_ns && (!step_ns || seen_ns < step_ns))
			step_ns = seen_ns;
	}
	return step_ns;
}

/* ---- statements ---- */

#define MS(ns) ((ns) / 1e6)
#define US(ns) ((ns) / 1e3)
#define PERCENT(part) (100 * (part))

static const struct ll_probe_under plain = {.manner = LL_PROBE_DEFAULT}, mps = {.manner = LL_PROBE_MPS},
				   exclusive = {.manner = LL_PROBE_EXCLUSIVE};

struct making {
	const struct ll_probe_report *report;
	struct ll_probe_findings *findings;
};

static struct ll_strbuf *add_finding(const struct making *m, const char *name, const char *command)
{
	struct ll_probe_finding *finding = &m->findings->items[m->findings->count++];
	*finding = (struct ll_probe_finding){.name = name, .command = command, .text = LL_STRBUF_INIT};
	return &finding->text;
}

/* Returns the first measured cell of that kind; NULL: none. connections 0: any number of them. */
static const struct ll_probe_result *find_result(const struct making *m, enum ll_probe_parallel parallel,
						 struct ll_probe_under under, bool is_full, bool has_priorities,
						 unsigned connections)
{
	for (size_t i = 0; i < m->report->count; i++) {
		const struct ll_probe_result *result = &m->report->results[i];
		const struct ll_probe_cell *cell = &result->cell;
		if (!result->is_skipped && cell->parallel == parallel && ll_probe_under_same(cell->under, under) &&
		    cell->has_priorities == has_priorities && cell->is_full == is_full &&
		    (!connections || cell->connections == connections))
			return result;
	}
	return NULL;
}

/* "time-sliced, overlap 0.0 %, slice 2.09 ms, 140 us lost at each switch" */
static void add_cell(struct ll_strbuf *text, const struct ll_probe_result *result)
{
	ll_strbuf_adds(text, ll_probe_word_text(result->word));
	if (result->word == LL_PROBE_REFUSED) {
		ll_strbuf_addf(text, " (%s)", result->why);
		return;
	}
	ll_strbuf_addf(text, ", overlap %.1f %%", PERCENT(result->overlap.median));
	if (result->word != LL_PROBE_TIME_SLICED)
		return;
	if (result->slice_ns.count)
		ll_strbuf_addf(text, ", slice %.2f ms", MS(result->slice_ns.median));
	if (result->switch_ns.count)
		ll_strbuf_addf(text, ", %.0f us empty at each change", US(result->switch_ns.median));
}

/* ---- contexts and MPS ---- */

static void find_contexts(const struct making *m)
{
	const struct ll_probe_result *tiny = find_result(m, LL_PROBE_PROCESSES, plain, false, false, 0);
	if (!tiny || tiny->word == LL_PROBE_REFUSED)
		return;
	struct ll_strbuf *text =
	    add_finding(m, "contexts", "loadline probe --parallel processes --under default --priority equal");
	if (tiny->word == LL_PROBE_CONCURRENT_WORD)
		ll_strbuf_adds(text, "Without MPS, contexts of different processes have the card together: ");
	else
		ll_strbuf_addf(
		    text,
		    "One context at a time: without MPS, kernels of %u processes were never on the card together, "
		    "though each needs %u of %u SMs: ",
		    tiny->load.parties, tiny->sm_count, m->report->sm_count);
	add_cell(text, tiny);
	ll_strbuf_addc(text, '.');
}

static void find_mps(const struct making *m)
{
	const struct ll_probe_result *tiny = find_result(m, LL_PROBE_PROCESSES, mps, false, false, 0);
	if (!tiny)
		return;
	struct ll_strbuf *text =
	    add_finding(m, "mps", "loadline probe --parallel processes --under mps --priority equal");
	if (tiny->word == LL_PROBE_CONCURRENT_WORD)
		ll_strbuf_adds(text,
			       "MPS is the funnel that runs processes together: as its clients the same small kernels "
			       "are ");
	else
		ll_strbuf_adds(text, "As clients of MPS, small kernels of several processes are ");
	add_cell(text, tiny);
	const struct ll_probe_result *full = find_result(m, LL_PROBE_PROCESSES, mps, true, false, 0);
	if (full) {
		ll_strbuf_adds(text, "; kernels that fill the card are ");
		add_cell(text, full);
	}
	ll_strbuf_addc(text, '.');
}

static void find_mps_part(const struct making *m)
{
	for (size_t i = 0; i < m->report->count; i++) {
		const struct ll_probe_result *result = &m->report->results[i];
		const struct ll_probe_cell *cell = &result->cell;
		if (result->is_skipped || result->word == LL_PROBE_REFUSED || !cell->under.percent ||
		    cell->parallel != LL_PROBE_PROCESSES || !cell->is_full || cell->has_priorities)
			continue;
		struct ll_strbuf *text =
		    add_finding(m, "mps-part", "loadline probe --parallel processes --under mps:50% --grid full");
		ll_strbuf_addf(text,
			       "With %u %% of the threads each, a kernel that fills what its process may use was on at "
			       "most %u of %u SMs, those of all processes together on %u; they are ",
			       cell->under.percent, result->sm_count, m->report->sm_count, result->sms_together);
		add_cell(text, result);
		ll_strbuf_addc(text, '.');
		return;
	}
}

static void find_exclusive(const struct making *m)
{
	const struct ll_probe_result *tiny = find_result(m, LL_PROBE_PROCESSES, exclusive, false, false, 0);
	if (!tiny)
		return;
	struct ll_strbuf *text = add_finding(m, "exclusive", "loadline probe --parallel processes --under exclusive");
	ll_strbuf_adds(text, "In exclusive-process mode, without MPS, a second process is ");
	add_cell(text, tiny);
	ll_strbuf_addc(text, '.');
}

/* ---- one process ---- */

static void find_streams(const struct making *m)
{
	const struct ll_probe_result *tiny = find_result(m, LL_PROBE_STREAMS, plain, false, false, 8);
	const struct ll_probe_result *full = find_result(m, LL_PROBE_STREAMS, plain, true, false, 8);
	if (!tiny || !full)
		return;
	struct ll_strbuf *text = add_finding(
	    m, "streams", "loadline probe --parallel streams --under default --priority equal --connections 8");
	ll_strbuf_adds(text, "Within a process, streams share the card by room: small kernels are ");
	add_cell(text, tiny);
	ll_strbuf_adds(text, "; kernels that fill it are ");
	add_cell(text, full);
	ll_strbuf_addc(text, '.');
}

static void find_connections(const struct making *m)
{
	static const unsigned counts[] = {1, 8, 32};
	size_t found = 0;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		found += find_result(m, LL_PROBE_STREAMS, plain, false, false, counts[i]) != NULL;
	if (found < 2)
		return;
	struct ll_strbuf *text = add_finding(
	    m, "connections", "loadline probe --parallel streams --under default --priority equal --grid tiny");
	ll_strbuf_adds(text, "CUDA_DEVICE_MAX_CONNECTIONS, streams of one thread with small kernels:");
	for (size_t i = 0, told = 0; i < sizeof counts / sizeof *counts; i++) {
		const struct ll_probe_result *result = find_result(m, LL_PROBE_STREAMS, plain, false, false, counts[i]);
		if (!result)
			continue;
		ll_strbuf_addf(text, "%s %u: ", told++ ? ";" : "", counts[i]);
		add_cell(text, result);
	}
	ll_strbuf_addc(text, '.');
}

static void find_priority(const struct making *m)
{
	const struct ll_probe_result *equal = find_result(m, LL_PROBE_STREAMS, plain, true, false, 8);
	const struct ll_probe_result *different = find_result(m, LL_PROBE_STREAMS, plain, true, true, 8);
	const struct ll_probe_result *others = find_result(m, LL_PROBE_PROCESSES, plain, true, true, 8);
	if (!equal || !different)
		return;
	struct ll_strbuf *text = add_finding(
	    m, "priority", "loadline probe --parallel streams,processes --under default --grid full --connections 8");
	ll_strbuf_addf(
	    text,
	    "A stream's priority: while all streams of a process had kernels that fill the card, the first one "
	    "had %.0f %% of the time with equal priorities, %.0f %% with the highest",
	    PERCENT(equal->share.median), PERCENT(different->share.median));
	if (others && others->word != LL_PROBE_REFUSED)
		ll_strbuf_addf(text, "; between processes without MPS the highest got %.0f %%",
			       PERCENT(others->share.median));
	ll_strbuf_addc(text, '.');
}

/* ---- times ---- */

static void add_spread(struct ll_strbuf *text, const struct ll_spread *spread)
{
	if (spread->median >= 1e6)
		ll_strbuf_addf(text, "%.3f ms (5 to 95 %%: %.3f to %.3f)", MS(spread->median), MS(spread->low),
			       MS(spread->high));
	else
		ll_strbuf_addf(text, "%.1f us (5 to 95 %%: %.1f to %.1f)", US(spread->median), US(spread->low),
			       US(spread->high));
}

static void find_slice(const struct making *m)
{
	const struct ll_probe_slicing *slicing = &m->report->slicing;
	if (!slicing->is_known)
		return;
	struct ll_strbuf *text = add_finding(m, "slice", "loadline probe --experiment slice");
	if (!slicing->slice_ns.count) {
		ll_strbuf_addf(text, "Long kernels of two processes were not cut into slices in %zu runs.",
			       slicing->runs);
		return;
	}
	ll_strbuf_addf(
	    text,
	    "The time slice between processes is %.3f ms (5 to 95 %%: %.3f to %.3f, %zu runs); the change from "
	    "one context to the other takes ",
	    MS(slicing->slice_ns.median), MS(slicing->slice_ns.low), MS(slicing->slice_ns.high),
	    slicing->slice_ns.count);
	add_spread(text, &slicing->switch_ns);
	ll_strbuf_addf(text, ", and %.1f %% of the time is lost to it.", PERCENT(slicing->lost.median));
}

static void find_preemption(const struct making *m)
{
	const struct ll_probe_arrival *arrival = &m->report->arrival;
	if (!arrival->is_known || !arrival->high_wait_ns.count)
		return;
	struct ll_strbuf *text = add_finding(m, "preemption", "loadline probe --experiment preemption");
	double high_ns = arrival->high_wait_ns.median, round_ns = arrival->round_ns.median;
	ll_strbuf_adds(text,
		       "A kernel of the highest priority that arrives while one of the lowest fills the card starts "
		       "after ");
	add_spread(text, &arrival->high_wait_ns);
	if (high_ns < round_ns / 2)
		ll_strbuf_addf(text, ": running blocks, which had %.0f us to go, were preempted", US(round_ns));
	else if (high_ns < round_ns * 1.5)
		ll_strbuf_addf(text,
			       ": it waits for running blocks, which had %.0f us to go, and passes those that wait",
			       US(round_ns));
	else
		ll_strbuf_addf(
		    text, ": it waits for the whole kernel, not only for its running blocks, which had %.0f us to go",
		    US(round_ns));
	ll_strbuf_adds(text, "; one of equal priority starts after ");
	add_spread(text, &arrival->equal_wait_ns);
	ll_strbuf_addc(text, '.');
}

static void find_idle(const struct making *m)
{
	const struct ll_probe_idling *idling = &m->report->idling;
	if (!idling->is_known || !idling->alone_ns.count || !idling->beside_ns.count)
		return;
	struct ll_strbuf *text = add_finding(m, "idle-context", "loadline probe --experiment idle");
	double change = idling->beside_ns.median / idling->alone_ns.median - 1;
	double scatter = (idling->alone_ns.high - idling->alone_ns.low) / idling->alone_ns.median;
	bool costs_time = change > 0.01 && change > scatter;
	ll_strbuf_addf(text,
		       "An idle context of another process costs %s: the same kernels took %.3f ms alone and %.3f ms "
		       "beside it (%+.2f %%)",
		       costs_time ? "time" : "no time", MS(idling->alone_ns.median), MS(idling->beside_ns.median),
		       PERCENT(change));
	if (idling->memory_bytes)
		ll_strbuf_addf(text, "; of memory it takes %.0f MiB", (double)idling->memory_bytes / (1 << 20));
	ll_strbuf_addc(text, '.');
}

static void find_price(const struct making *m)
{
	const struct ll_probe_result *without = find_result(m, LL_PROBE_PROCESSES, plain, false, false, 8);
	const struct ll_probe_result *with = find_result(m, LL_PROBE_PROCESSES, mps, false, false, 8);
	const struct ll_probe_memory *memory_without = find_memory(m->report, plain);
	const struct ll_probe_memory *memory_with = find_memory(m->report, mps);
	if (!without || !with || !without->runs || !with->runs || with->word == LL_PROBE_REFUSED)
		return;
	struct ll_strbuf *text =
	    add_finding(m, "mps-price", "loadline probe --parallel processes --under default,mps --grid tiny");
	ll_strbuf_addf(
	    text,
	    "MPS against none: the same work of %u processes took %.2f ms instead of %.2f; without MPS %.1f %% of "
	    "the time was lost to switching, with it %.1f %%",
	    with->load.parties, MS(with->window_ns.median), MS(without->window_ns.median),
	    PERCENT(without->lost.median), PERCENT(with->lost.median));
	if (memory_without && memory_with)
		ll_strbuf_addf(
		    text,
		    "; a further process takes %.0f MiB of the card's memory with MPS and %.0f without (the first "
		    "one, with what it brings along, %.0f and %.0f)",
		    (double)memory_with->each_bytes / (1 << 20), (double)memory_without->each_bytes / (1 << 20),
		    (double)memory_with->first_bytes / (1 << 20), (double)memory_without->first_bytes / (1 << 20));
	ll_strbuf_addc(text, '.');
}

int ll_probe_findings_make(const struct ll_probe_report *report, struct ll_probe_findings *ret_findings)
{
	static void (*const finders[])(const struct making *m) = {
	    find_contexts, find_slice,       find_mps,      find_mps_part,   find_price, find_exclusive,
	    find_streams,  find_connections, find_priority, find_preemption, find_idle,
	};
	struct ll_probe_findings findings = {.count = 0};
	struct making m = {.report = report, .findings = &findings};
	_Static_assert(sizeof finders / sizeof *finders <= LL_PROBE_FINDINGS, "there is room for all");
	for (size_t i = 0; i < sizeof finders / sizeof *finders; i++)
		finders[i](&m);
	for (size_t i = 0; i < findings.count; i++) {
		if (findings.items[i].text.failed) {
			ll_probe_findings_fini(&findings);
			return -ENOMEM;
		}
	}
	*ret_findings = findings;
	return 0;
}

void ll_probe_findings_fini(struct ll_probe_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		ll_strbuf_fini(&findings->items[i].text);
	findings->count = 0;
}
