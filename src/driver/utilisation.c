#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "driver/internal.h"
#include "driver/readings.h"

enum {
	SAMPLES_MAX = 256,   /* NVML keeps about 70 */
	JUMP_NS = 100000000, /* a clock that is slewed changes much less than this between two reads */
	REPEAT_US = 50000,   /* shorter than any refresh: a sample this close to the one before is the same sample */
	/* NVML's refresh on an H200 (doc/facts.md), if there is no earlier sample to derive it from */
	PERIOD_NS = 200000000,
};

static const uint64_t window_max_ns = 2 * LL_NS_PER_S; /* NVML's slowest refresh is 1 s */
static const char what[] = "utilisation";

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
		return ll_card_check(reader->card, status, err, what);
	if (raw_count > SAMPLES_MAX)
		raw_count = SAMPLES_MAX;
	*ret_count = take_samples(reader, type, raw, raw_count, samples, capacity);
	return 0;
}

int ll_read_util(const struct ll_card *card, double *ret_percent, struct ll_err *err)
{
	struct ll_nvml_utilization utilization;
	int rc =
	    ll_card_check(card, ll_card_nvml(card)->nvmlDeviceGetUtilizationRates(card->nvml, &utilization), err, what);
	if (rc)
		return rc;
	*ret_percent = utilization.gpu;
	return 0;
}
