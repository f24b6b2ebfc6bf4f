#include <stdlib.h>

#include "cli/trace/sums.h"

/* The sets of one card's events that its idle time is split by. */
struct sets {
	struct ll_spans kernels, communication, computation, copies, gate;
};

static void add_event(struct sets *sets, const struct ll_trace_event *event, struct ll_trace_card_sum *sum)
{
	const struct ll_trace_record *record = event->record;
	uint64_t start_ns = record->start_ns, end_ns = record->end_ns;
	if (record->head.kind == LL_TRACE_GATE)
		ll_spans_add(&sets->gate, start_ns, end_ns);
	if (ll_trace_is_host_copy(record))
		ll_spans_add(&sets->copies, start_ns, end_ns);
	if (!ll_trace_is_busy(record))
		return;
	bool communicates =
	    record->head.kind == LL_TRACE_KERNEL && ll_trace_is_communication(ll_trace_event_name(event));
	ll_spans_add(&sets->kernels, start_ns, end_ns);
	ll_spans_add(communicates ? &sets->communication : &sets->computation, start_ns, end_ns);
	sum->kernel_sum_ns += end_ns - start_ns;
}

static void for_all_sets(struct sets *sets, void (*fn)(struct ll_spans *spans))
{
	fn(&sets->kernels);
	fn(&sets->communication);
	fn(&sets->computation);
	fn(&sets->copies);
	fn(&sets->gate);
}

/* How long work of two processes at least was under way. */
static bool find_overlap(const struct ll_trace_run *run, unsigned card, struct ll_trace_card_sum *sum)
{
	bool failed = true;
	struct ll_spans *busy = calloc(run->process_count + 1, sizeof *busy);
	const struct ll_spans **sets = calloc(run->process_count + 1, sizeof *sets);
	for (size_t i = 0; busy && sets && i < run->process_count; i++) {
		const struct ll_trace_process *process = &run->processes[i];
		for (size_t j = 0; j < process->count; j++) {
			const struct ll_trace_record *record = process->events[j].record;
			if (process->events[j].card == card && ll_trace_is_busy(record))
				ll_spans_add(&busy[i], record->start_ns, record->end_ns);
		}
		ll_spans_settle(&busy[i]);
		sets[i] = &busy[i];
		sum->processes += busy[i].count > 0;
	}
	if (busy && sets)
		sum->overlap_ns = ll_spans_shared_ns(sets, run->process_count, &failed);
	for (size_t i = 0; busy && i < run->process_count; i++)
		ll_spans_fini(&busy[i]);
	free(busy);
	free(sets);
	return !failed;
}

bool ll_trace_sum_card(const struct ll_trace_run *run, unsigned card, struct ll_trace_card_sum *ret_sum)
{
	struct ll_trace_card_sum sum = {.uuid = run->cards[card]};
	struct sets sets = {0};
	for (size_t i = 0; i < run->process_count; i++) {
		const struct ll_trace_process *process = &run->processes[i];
		for (size_t j = 0; j < process->count; j++) {
			if (process->events[j].card == card)
				add_event(&sets, &process->events[j], &sum);
		}
	}
	for_all_sets(&sets, ll_spans_settle);
	struct ll_idle_view view = {
	    .start_ns = run->start_ns,
	    .end_ns = run->end_ns,
	    .kernels = &sets.kernels,
	    .communication = &sets.communication,
	    .computation = &sets.computation,
	    .copies = &sets.copies,
	    .gate = &sets.gate,
	    .host = &run->host,
	    .io = &run->io,
	};
	bool is_whole = ll_idle_make_split(&view, &sum.split) && find_overlap(run, card, &sum);
	for_all_sets(&sets, ll_spans_fini);
	if (is_whole)
		*ret_sum = sum;
	return is_whole;
}
