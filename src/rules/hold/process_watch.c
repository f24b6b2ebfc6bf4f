#include "rules/hold/process_watch.h"

#include <string.h>

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

size_t ll_process_watch_count(const struct ll_process_watch *watch)
{
	return watch->count + watch->unlisted_count;
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
			   bool is_blind, struct ll_arrival *ret_arrival)
{
	struct crowd crowd;
	struct ll_arrival arrival;
	gather_others(watch, processes, count, &crowd);
	bool has_arrival =
	    watch->has_list && (find_newcomer(watch, &crowd, &arrival) || find_growth(watch, &crowd, &arrival));
	watch->has_list = true;
	watch->is_blind = is_blind;
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
