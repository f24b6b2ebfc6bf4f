#include "rules/hold/foreign.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"

/* ---- contention ---- */

struct ll_contention ll_contention_judge(const struct ll_kernel_trace *trace, const struct ll_clock_fit *fit,
					 const struct ll_contention_limits *limits)
{
	struct ll_contention seen = {.gap_ns = trace->gap_ns};
	if (fit->has_fit) {
		uint64_t due_ns = ll_clock_fit_to_card_latest(fit, trace->submitted_ns);
		if (trace->previous_end_ns > due_ns)
			due_ns = trace->previous_end_ns;
		seen.late_ns = trace->start_ns > due_ns ? trace->start_ns - due_ns : 0;
	}
	uint64_t late_limit_ns = trace->is_first ? limits->first_late_ns : limits->late_ns;
	seen.is_foreign = seen.gap_ns > limits->gap_ns || seen.late_ns > late_limit_ns;
	return seen;
}

/* ---- foreign ---- */

/* A window may lie this much earlier or later than NVML says. */
#define PLACEMENT_NS (10 * LL_NS_PER_MS)
/* While own work is in the window. */
#define THRESHOLD_RATIO 0.04
/* NVML's whole percent may be rounded or truncated. */
#define READING_ERROR 0.01
/* A window must be this many times as long as its place is uncertain. Shorter ones are not judged. */
#define SHORTEST_IN_PLACEMENTS 3

void ll_foreign_init(struct ll_foreign *foreign, uint64_t start_ns)
{
	foreign->known_until_ns = start_ns;
	foreign->first_bin = start_ns / LL_FOREIGN_BIN_NS;
	if (start_ns % LL_FOREIGN_BIN_NS != 0)
		foreign->first_bin++;
	foreign->next_bin = foreign->first_bin;
	memset(foreign->busy_ns, 0, sizeof foreign->busy_ns);
}

static uint32_t *bin_at(struct ll_foreign *foreign, uint64_t number)
{
	return &foreign->busy_ns[number % LL_FOREIGN_BINS];
}

/* Makes the bins up to this number exist. */
static void add_bins_to(struct ll_foreign *foreign, uint64_t number)
{
	if (number < foreign->next_bin)
		return;
	uint64_t next = number + 1;
	uint64_t clear = next - foreign->next_bin;
	if (clear > LL_FOREIGN_BINS)
		clear = LL_FOREIGN_BINS;
	for (uint64_t i = next - clear; i < next; i++)
		*bin_at(foreign, i) = 0;
	foreign->next_bin = next;
	if (next > LL_FOREIGN_BINS && foreign->first_bin < next - LL_FOREIGN_BINS)
		foreign->first_bin = next - LL_FOREIGN_BINS;
}

static uint64_t bin_start(uint64_t number)
{
	return number * LL_FOREIGN_BIN_NS;
}

/* Returns how much of the bin lies in start..end. */
static uint64_t overlap_ns(uint64_t number, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from = bin_start(number) > start_ns ? bin_start(number) : start_ns;
	uint64_t to = bin_start(number + 1) < end_ns ? bin_start(number + 1) : end_ns;
	return to > from ? to - from : 0;
}

static void add_to_bins(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, bool is_unknown)
{
	if (end_ns <= start_ns)
		return;
	uint64_t last = (end_ns - 1) / LL_FOREIGN_BIN_NS;
	add_bins_to(foreign, last);
	uint64_t first = start_ns / LL_FOREIGN_BIN_NS;
	if (first < foreign->first_bin)
		first = foreign->first_bin;
	for (uint64_t i = first; i <= last; i++) {
		uint32_t *bin = bin_at(foreign, i);
		if (*bin == UINT32_MAX)
			continue;
		uint64_t busy = *bin + overlap_ns(i, start_ns, end_ns);
		if (busy > LL_FOREIGN_BIN_NS)
			busy = LL_FOREIGN_BIN_NS;
		*bin = is_unknown ? UINT32_MAX : (uint32_t)busy;
	}
}

void ll_foreign_add_own(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns)
{
	add_to_bins(foreign, start_ns, end_ns, false);
}

void ll_foreign_add_unknown(struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns)
{
	add_to_bins(foreign, start_ns, end_ns, true);
}

void ll_foreign_own_known_until(struct ll_foreign *foreign, uint64_t until_ns)
{
	if (until_ns <= foreign->known_until_ns)
		return;
	foreign->known_until_ns = until_ns;
	add_bins_to(foreign, until_ns / LL_FOREIGN_BIN_NS);
}

double ll_foreign_own_ratio(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns || start_ns < bin_start(foreign->first_bin) || end_ns > foreign->known_until_ns)
		return NAN;
	double busy = 0.0;
	for (uint64_t i = start_ns / LL_FOREIGN_BIN_NS; i <= (end_ns - 1) / LL_FOREIGN_BIN_NS; i++) {
		uint32_t bin = foreign->busy_ns[i % LL_FOREIGN_BINS];
		if (bin == UINT32_MAX)
			return NAN;
		busy += (double)bin * (double)overlap_ns(i, start_ns, end_ns) / (double)LL_FOREIGN_BIN_NS;
	}
	return busy / (double)(end_ns - start_ns);
}

void ll_foreign_judge(const struct ll_foreign *foreign, uint64_t start_ns, uint64_t end_ns, unsigned total_percent,
		      struct ll_foreign_verdict *ret_verdict)
{
	const uint64_t shift = PLACEMENT_NS;
	double own = ll_foreign_own_ratio(foreign, start_ns, end_ns);
	double earlier = start_ns >= shift ? ll_foreign_own_ratio(foreign, start_ns - shift, end_ns - shift) : NAN;
	uint64_t ahead = foreign->known_until_ns > end_ns ? foreign->known_until_ns - end_ns : 0;
	uint64_t late = ahead < shift ? ahead : shift;
	double later = ll_foreign_own_ratio(foreign, start_ns + late, end_ns + late);
	*ret_verdict = (struct ll_foreign_verdict){
	    .state = LL_FOREIGN_UNKNOWN, .own_ratio = own, .foreign_ratio = NAN, .uncertainty_ratio = NAN};
	bool is_too_short = end_ns - start_ns < SHORTEST_IN_PLACEMENTS * shift;
	if (isnan(own) || isnan(earlier) || isnan(later) || is_too_short)
		return;
	double total = total_percent / 100.0;
	double own_max = fmax(own, fmax(earlier, later));
	double own_min = fmin(own, fmin(earlier, later));
	ret_verdict->foreign_ratio = fmin(fmax(total - own, 0.0), 1.0);
	ret_verdict->uncertainty_ratio = READING_ERROR + fmax(own_max - own, own - own_min);
	ret_verdict->is_own_idle = own_max <= 0.0;
	/* The threshold is whole points as a rule, and so is the reading: equal must not become over by the last bit.
	 */
	bool is_foreign = ret_verdict->is_own_idle ? total_percent > 0 : total - own_max > THRESHOLD_RATIO + 1e-9;
	ret_verdict->state = is_foreign ? LL_FOREIGN_SEEN : LL_FOREIGN_QUIET;
}

/* ---- process watch ---- */

#define DEFAULT_STEP_BYTES (UINT64_C(8) << 20)

struct crowd {
	size_t count;
	size_t unlisted_count;
	struct ll_card_process members[LL_PROCESS_WATCH_MAX];
};

void ll_process_watch_init(struct ll_process_watch *watch, uint32_t own_pid, uint64_t step_bytes)
{
	memset(watch, 0, sizeof *watch);
	watch->own_pid = own_pid;
	watch->step_bytes = step_bytes > 0 ? step_bytes : DEFAULT_STEP_BYTES;
}

void ll_process_watch_own(struct ll_process_watch *watch, uint32_t own_pid)
{
	watch->own_pid = own_pid;
}

void ll_process_watch_reset(struct ll_process_watch *watch)
{
	ll_process_watch_init(watch, watch->own_pid, watch->step_bytes);
}

static struct ll_card_process *find_process(struct ll_card_process *processes, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (processes[i].pid == pid)
			return &processes[i];
	}
	return NULL;
}

/* Copies all processes but our own, each pid once. */
static void gather_others(const struct ll_process_watch *watch, const struct ll_card_process *processes, size_t count,
			  struct crowd *crowd)
{
	crowd->count = 0;
	crowd->unlisted_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (processes[i].pid == watch->own_pid)
			continue;
		struct ll_card_process *twin = find_process(crowd->members, crowd->count, processes[i].pid);
		if (twin && processes[i].memory_bytes > twin->memory_bytes)
			twin->memory_bytes = processes[i].memory_bytes;
		else if (!twin && crowd->count < LL_PROCESS_WATCH_MAX)
			crowd->members[crowd->count++] = processes[i];
		else if (!twin)
			crowd->unlisted_count++;
	}
}

static bool find_newcomer(struct ll_process_watch *watch, const struct crowd *crowd, struct ll_arrival *arrival)
{
	/* If the last list had more processes than are remembered, a new one shows only by the number. */
	if (watch->unlisted_count > 0 || crowd->unlisted_count > 0) {
		*arrival = (struct ll_arrival){.kind = LL_ARRIVAL_PROCESS};
		return crowd->count + crowd->unlisted_count > watch->count + watch->unlisted_count;
	}
	for (size_t i = 0; i < crowd->count; i++) {
		const struct ll_card_process *process = &crowd->members[i];
		if (find_process(watch->known, watch->count, process->pid))
			continue;
		*arrival = (struct ll_arrival){
		    .kind = LL_ARRIVAL_PROCESS, .pid = process->pid, .bytes = process->memory_bytes};
		return true;
	}
	return false;
}

static bool find_growth(struct ll_process_watch *watch, const struct crowd *crowd, struct ll_arrival *arrival)
{
	for (size_t i = 0; i < crowd->count; i++) {
		const struct ll_card_process *now = &crowd->members[i];
		const struct ll_card_process *before = find_process(watch->known, watch->count, now->pid);
		if (!before || before->memory_bytes == 0 || now->memory_bytes <= before->memory_bytes)
			continue;
		uint64_t bytes = now->memory_bytes - before->memory_bytes;
		if (bytes <= watch->step_bytes)
			continue;
		*arrival = (struct ll_arrival){.kind = LL_ARRIVAL_GROWTH, .pid = now->pid, .bytes = bytes};
		return true;
	}
	return false;
}

bool ll_process_watch_list(struct ll_process_watch *watch, const struct ll_card_process *processes, size_t count,
			   struct ll_arrival *ret_arrival)
{
	struct crowd crowd;
	struct ll_arrival arrival;
	gather_others(watch, processes, count, &crowd);
	bool has_arrival =
	    watch->has_list && (find_newcomer(watch, &crowd, &arrival) || find_growth(watch, &crowd, &arrival));
	watch->has_list = true;
	watch->count = crowd.count;
	watch->unlisted_count = crowd.unlisted_count;
	memcpy(watch->known, crowd.members, crowd.count * sizeof *crowd.members);
	if (has_arrival)
		*ret_arrival = arrival;
	return has_arrival;
}

bool ll_process_watch_memory(struct ll_process_watch *watch, uint64_t used_bytes, uint64_t own_bytes,
			     bool is_own_steady, struct ll_arrival *ret_arrival)
{
	uint64_t foreign = used_bytes > own_bytes ? used_bytes - own_bytes : 0;
	uint64_t before = watch->foreign_bytes;
	bool has_before = watch->has_memory;
	watch->foreign_bytes = foreign;
	watch->has_memory = is_own_steady;
	if (!has_before || !is_own_steady || foreign <= before || foreign - before <= watch->step_bytes)
		return false;
	*ret_arrival = (struct ll_arrival){.kind = LL_ARRIVAL_MEMORY, .bytes = foreign - before};
	return true;
}
