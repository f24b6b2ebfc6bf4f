#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "driver/internal.h"
#include "driver/readings.h"

/* ---- processes ---- */

static const char processes[] = "processes";

enum { FIRST_CAPACITY = 32, TRIES = 8 };

typedef ll_nvml_result (*query_fn)(struct ll_nvml_device *device, unsigned int *count,
				   struct ll_nvml_process *ret_processes);

static query_fn find_query(const struct ll_nvml *nvml, enum ll_process_kind kind)
{
	switch (kind) {
	case LL_PROCESS_COMPUTE:
		return nvml->nvmlDeviceGetComputeRunningProcesses ? nvml->nvmlDeviceGetComputeRunningProcesses
								  : nvml->nvmlDeviceGetComputeRunningProcesses_v2;
	case LL_PROCESS_GRAPHICS:
		return nvml->nvmlDeviceGetGraphicsRunningProcesses ? nvml->nvmlDeviceGetGraphicsRunningProcesses
								   : nvml->nvmlDeviceGetGraphicsRunningProcesses_v2;
	case LL_PROCESS_MPS_CLIENT:
		return nvml->nvmlDeviceGetMPSComputeRunningProcesses ? nvml->nvmlDeviceGetMPSComputeRunningProcesses
								     : nvml->nvmlDeviceGetMPSComputeRunningProcesses_v2;
	default:
		return NULL;
	}
}

static int grow_list(void **memory, size_t count, size_t size, struct ll_err *err)
{
	void *larger = reallocarray(*memory, count, size);
	if (!larger)
		return ll_err_set(err, -ENOMEM, "list of processes: %s", strerror(ENOMEM));
	*memory = larger;
	return 0;
}

/* Reads until the buffer is large enough, because processes may start meanwhile. */
static int fetch_processes(const struct ll_card *card, query_fn query, struct ll_process_list *list,
			   unsigned *ret_count, struct ll_err *err)
{
	ll_nvml_result status = LL_NVML_ERROR_INSUFFICIENT_SIZE;
	for (int i = 0; i < TRIES && status == LL_NVML_ERROR_INSUFFICIENT_SIZE; i++) {
		size_t wanted = list->scratch_size ? list->scratch_size * 2 : FIRST_CAPACITY;
		if (i || !list->scratch) {
			int rc = grow_list(&list->scratch, wanted, sizeof(struct ll_nvml_process), err);
			if (rc)
				return rc;
			list->scratch_size = wanted;
		}
		*ret_count = (unsigned)list->scratch_size;
		status = query(card->nvml, ret_count, list->scratch);
	}
	if (status == LL_NVML_SUCCESS && *ret_count > list->scratch_size)
		*ret_count = (unsigned)list->scratch_size;
	return ll_card_check(card, status, err, processes);
}

static struct ll_process *find_pid(struct ll_process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].pid == pid)
			return &list->items[i];
	}
	return NULL;
}

/* A process in two lists has the same memory in both, so the values are not added. */
static int merge_process(struct ll_process_list *list, enum ll_process_kind kind, const struct ll_nvml_process *raw,
			 struct ll_err *err)
{
	uint64_t bytes = raw->used_bytes == LL_NVML_VALUE_NOT_AVAILABLE ? LL_MEMORY_UNKNOWN : raw->used_bytes;
	struct ll_process *process = find_pid(list, (pid_t)raw->pid);
	if (process) {
		process->kinds |= kind;
		if (process->memory_bytes == LL_MEMORY_UNKNOWN ||
		    (bytes != LL_MEMORY_UNKNOWN && bytes > process->memory_bytes))
			process->memory_bytes = bytes;
		return 0;
	}
	if (list->count == list->capacity) {
		size_t wanted = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
		void *items = list->items;
		int rc = grow_list(&items, wanted, sizeof *list->items, err);
		if (rc)
			return rc;
		list->items = items;
		list->capacity = wanted;
	}
	list->items[list->count++] = (struct ll_process){(pid_t)raw->pid, kind, bytes};
	return 0;
}

static int read_kind(const struct ll_card *card, enum ll_process_kind kind, struct ll_process_list *list,
		     struct ll_err *err)
{
	unsigned count = 0;
	query_fn query = find_query(ll_card_nvml(card), kind);
	if (!query)
		return ll_card_lacks(card, err, processes);
	int rc = fetch_processes(card, query, list, &count, err);
	const struct ll_nvml_process *raw = list->scratch;
	for (unsigned i = 0; !rc && i < count; i++)
		rc = merge_process(list, kind, &raw[i], err);
	return rc;
}

int ll_read_processes(const struct ll_card *card, unsigned kinds, struct ll_process_list *list, struct ll_err *err)
{
	static const enum ll_process_kind all[] = {LL_PROCESS_COMPUTE, LL_PROCESS_GRAPHICS, LL_PROCESS_MPS_CLIENT};
	bool has_answer = false;
	int rc = 0;
	list->count = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(kinds & all[i]))
			continue;
		rc = read_kind(card, all[i], list, err);
		/* A card without graphics has no such list, and a driver may lack the list of MPS clients. */
		if (rc && rc != -ENOSYS)
			return rc;
		has_answer |= !rc;
	}
	return has_answer ? 0 : rc;
}

void ll_process_list_fini(struct ll_process_list *list)
{
	free(list->items);
	free(list->scratch);
	*list = (struct ll_process_list){0};
}

/* ---- utilisation ---- */

enum {
	SAMPLES_MAX = 256,   /* NVML keeps about 70 */
	JUMP_NS = 100000000, /* a clock that is slewed changes much less than this between two reads */
	REPEAT_US = 50000,   /* shorter than any refresh: a sample this close to the one before is the same sample */
	/* NVML's refresh on an H200 (doc/facts.md), if there is no earlier sample to derive it from */
	PERIOD_NS = 200000000,
};

static const uint64_t window_max_ns = 2 * LL_NS_PER_S; /* NVML's slowest refresh is 1 s */
static const char utilisation[] = "utilisation";

static int64_t wall_minus_boot_ns(void)
{
	return (int64_t)(ll_wall_ns() - ll_boot_ns());
}

static void start_now(struct ll_util_reader *reader)
{
	reader->last_us = ll_wall_ns() / LL_NS_PER_US;
	reader->has_last = false;
	reader->wall_minus_boot_ns = wall_minus_boot_ns();
}

void ll_util_reader_init(struct ll_util_reader *reader, const struct ll_card *card)
{
	*reader = (struct ll_util_reader){.card = card};
	start_now(reader);
}

void ll_util_reader_look_back(struct ll_util_reader *reader, uint64_t ago_ns)
{
	reader->last_us -= ago_ns / LL_NS_PER_US;
}

/* NVML stamps samples with the wall clock. After that was set back, all new samples would look old. */
static void follow_clock(struct ll_util_reader *reader)
{
	int64_t offset_ns = wall_minus_boot_ns();
	int64_t change_ns = offset_ns - reader->wall_minus_boot_ns;
	if (change_ns > JUMP_NS || change_ns < -JUMP_NS)
		start_now(reader);
	reader->wall_minus_boot_ns = offset_ns;
}

static double to_percent(enum ll_nvml_value_type type, union ll_nvml_value value)
{
	switch (type) {
	case LL_NVML_VALUE_TYPE_DOUBLE:
		return value.as_double;
	case LL_NVML_VALUE_TYPE_UNSIGNED_LONG:
		return (double)value.as_ulong;
	case LL_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
		return (double)value.as_ullong;
	case LL_NVML_VALUE_TYPE_SIGNED_LONG_LONG:
		return (double)value.as_llong;
	default:
		return value.as_uint;
	}
}

static struct ll_util_sample take_sample(struct ll_util_reader *reader, enum ll_nvml_value_type type,
					 const struct ll_nvml_sample *sample)
{
	uint64_t since_last_ns = (sample->time_us - reader->last_us) * LL_NS_PER_US;
	bool is_next = reader->has_last && since_last_ns <= window_max_ns;
	reader->last_us = sample->time_us;
	reader->has_last = true;
	return (struct ll_util_sample){
	    .end_wall_ns = sample->time_us * LL_NS_PER_US,
	    .window_ns = is_next ? since_last_ns : PERIOD_NS,
	    .percent = to_percent(type, sample->value),
	};
}

/*
 * Some drivers return samples that are not newer than requested, and the same value again some tenths of a millisecond
 * later. A sample with a future time was stamped before the clock was set back. If it counted as the last one, all
 * later samples would look old.
 */
static bool is_new(const struct ll_util_reader *reader, const struct ll_nvml_sample *sample, uint64_t now_us)
{
	uint64_t after_us = reader->has_last ? reader->last_us + REPEAT_US - 1 : reader->last_us;
	return sample->time_us > after_us && sample->time_us <= now_us + JUMP_NS / LL_NS_PER_US;
}

static size_t take_samples(struct ll_util_reader *reader, enum ll_nvml_value_type type,
			   const struct ll_nvml_sample *raw, size_t raw_count, struct ll_util_sample *samples,
			   size_t capacity)
{
	size_t count = 0;
	uint64_t now_us = ll_wall_ns() / LL_NS_PER_US;
	for (size_t i = 0; i < raw_count; i++) {
		if (!is_new(reader, &raw[i], now_us))
			continue;
		struct ll_util_sample sample = take_sample(reader, type, &raw[i]);
		if (count == capacity && count) {
			memmove(samples, samples + 1, (count - 1) * sizeof *samples);
			count--;
		}
		if (count < capacity)
			samples[count++] = sample;
	}
	return count;
}

int ll_util_reader_next(struct ll_util_reader *reader, struct ll_util_sample *samples, size_t capacity,
			size_t *ret_count, struct ll_err *err)
{
	struct ll_nvml_sample raw[SAMPLES_MAX];
	unsigned raw_count = SAMPLES_MAX;
	enum ll_nvml_value_type type = LL_NVML_VALUE_TYPE_UNSIGNED_INT;
	follow_clock(reader);
	ll_nvml_result status = ll_card_nvml(reader->card)
				    ->nvmlDeviceGetSamples(reader->card->nvml, LL_NVML_GPU_UTILIZATION_SAMPLES,
							   reader->last_us, &type, &raw_count, raw);
	if (status == LL_NVML_ERROR_NOT_FOUND || status == LL_NVML_ERROR_NO_DATA) {
		*ret_count = 0;
		return 0;
	}
	if (status != LL_NVML_SUCCESS)
		return ll_card_check(reader->card, status, err, utilisation);
	if (raw_count > SAMPLES_MAX)
		raw_count = SAMPLES_MAX;
	*ret_count = take_samples(reader, type, raw, raw_count, samples, capacity);
	return 0;
}

int ll_read_util(const struct ll_card *card, double *ret_percent, struct ll_err *err)
{
	struct ll_nvml_utilization utilization;
	int rc = ll_card_check(card, ll_card_nvml(card)->nvmlDeviceGetUtilizationRates(card->nvml, &utilization), err,
			       utilisation);
	if (rc)
		return rc;
	*ret_percent = utilization.gpu;
	return 0;
}
