#include "card/meter.h"

#include <math.h>

#include "abi/nvml.h"
#include "base/clock.h"
#include "card/defaults.h"
#include "card/memory.h"

#define WINDOW_NS (200 * LL_NS_PER_MS)
#define BUCKET_NS (100 * LL_NS_PER_MS)
enum { BUCKETS = 10 };

static double load_watts(const struct sim_card *card, const struct sim_load *load)
{
	double watts = card->context_count ? card->open_watts : card->idle_watts;
	watts += (load->sm - load->fma) * card->spin_watts + load->fma * card->fma_watts;
	return watts < card->limit_watts ? watts : card->limit_watts;
}

/* Whether no context before this one on the card is of the same process. */
static bool is_first_of_process(const struct sim_world *w, const struct sim_card *card, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++) {
		if (w->contexts[card->contexts[j]].proc == w->contexts[card->contexts[i]].proc)
			return false;
	}
	return true;
}

/* Memory of the processes that have contexts, as NVML lists it: contexts, allocations, and what each process takes. */
static double process_bytes(const struct sim_world *w, const struct sim_card *card)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < card->context_count; i++) {
		bytes += sim_context_used_bytes(&w->contexts[card->contexts[i]]);
		bytes += is_first_of_process(w, card, i) ? SIM_PROCESS_BYTES : 0;
	}
	return (double)bytes;
}

void sim_meter_add(struct sim_world *w, uint32_t index, uint64_t length_ns, const struct sim_load *load)
{
	struct sim_card *card = &w->cards[index];
	struct sim_meter *meter = SIM_EDIT(w, &card->meter);
	double s = (double)length_ns * 1e-9;
	double joules = load_watts(card, load) * s;
	if (load->is_busy) {
		meter->window_busy_ns += length_ns;
		meter->busy_s += s;
	}
	meter->sm_s += load->sm * s;
	meter->occupancy_s += load->occupancy * s;
	meter->fp32_s += load->fma * s;
	meter->tensor_s += load->tensor * s;
	meter->dram_s += load->dram * s;
	if (load->is_copying[0])
		meter->bytes_to_card += card->copy_bytes_per_ns * (double)length_ns;
	if (load->is_copying[1])
		meter->bytes_from_card += card->copy_bytes_per_ns * (double)length_ns;
	meter->memory_byte_s += process_bytes(w, card) * s;
	meter->bucket_joules += joules;
	meter->joules += joules;
}

uint64_t sim_meter_edge_ns(const struct sim_card *card)
{
	uint64_t window = card->meter.window_start_ns + WINDOW_NS;
	uint64_t bucket = card->meter.bucket_start_ns + BUCKET_NS;
	return window < bucket ? window : bucket;
}

static double relaxed_celsius(const struct sim_card *card, double watts, double s)
{
	double target = card->ambient_celsius + card->celsius_per_watt * watts;
	return target + (card->meter.celsius - target) * exp(-s / card->thermal_s);
}

static void close_bucket(struct sim_world *w, struct sim_card *card)
{
	struct sim_meter *meter = &card->meter;
	double s = (double)BUCKET_NS * 1e-9;
	double watts = meter->bucket_joules / s;
	meter->power_ring_watts[meter->power_ring_next] = watts;
	meter->power_ring_next = (meter->power_ring_next + 1) % BUCKETS;
	meter->celsius = card->is_heated ? sim_card_celsius(w, card) : relaxed_celsius(card, watts, s);
	meter->bucket_joules = 0;
	meter->bucket_start_ns += BUCKET_NS;
}

static void close_window(struct sim_world *w, struct sim_card *card)
{
	struct sim_meter *meter = &card->meter;
	struct sim_sample *sample = SIM_EDIT(w, &card->samples[meter->sample_count % SIM_SAMPLES]);
	*sample = (struct sim_sample){
	    .wall_us = (w->now_ns + w->wall_offset_ns) / 1000,
	    .util_percent = (uint32_t)(meter->window_busy_ns * 100 / WINDOW_NS), /* truncated, as on the real card */
	    .power_mw = (uint32_t)lround(sim_card_watts(card) * 1000),
	    .sm_mhz = sim_card_sm_mhz(w, card),
	    .memory_mhz = card->memory_mhz,
	};
	meter->sample_count++;
	meter->window_busy_ns = 0;
	meter->window_start_ns += WINDOW_NS;
}

void sim_meter_close(struct sim_world *w, uint32_t index)
{
	struct sim_card *card = &w->cards[index];
	SIM_EDIT(w, &card->meter);
	if (card->meter.bucket_start_ns + BUCKET_NS <= w->now_ns)
		close_bucket(w, card);
	if (card->meter.window_start_ns + WINDOW_NS <= w->now_ns)
		close_window(w, card);
}

void sim_meter_skip(struct sim_world *w, uint32_t index, uint64_t length_ns)
{
	struct sim_card *card = &w->cards[index];
	struct sim_meter *meter = SIM_EDIT(w, &card->meter);
	static const struct sim_load nothing;
	double watts = load_watts(card, &nothing), s = (double)length_ns * 1e-9;
	meter->joules += watts * s;
	meter->memory_byte_s += process_bytes(w, card) * s;
	meter->celsius = relaxed_celsius(card, watts, s);
	meter->window_start_ns += length_ns;
	meter->bucket_start_ns += length_ns;
}

double sim_card_watts(const struct sim_card *card)
{
	double sum = 0;
	for (int i = 0; i < BUCKETS; i++)
		sum += card->meter.power_ring_watts[i];
	return sum / BUCKETS;
}

double sim_card_instant_watts(const struct sim_card *card)
{
	return card->meter.power_ring_watts[(card->meter.power_ring_next + BUCKETS - 1) % BUCKETS];
}

double sim_card_celsius(const struct sim_world *w, const struct sim_card *card)
{
	if (!card->is_heated)
		return card->meter.celsius;
	if (w->now_ns >= card->heat_end_ns)
		return card->heat_to_celsius;
	double share = (double)(w->now_ns - card->heat_start_ns) / (double)(card->heat_end_ns - card->heat_start_ns);
	return card->heat_from_celsius + share * (card->heat_to_celsius - card->heat_from_celsius);
}

static bool is_too_hot(const struct sim_world *w, const struct sim_card *card)
{
	return sim_card_celsius(w, card) >= card->slowdown_celsius;
}

uint32_t sim_card_sm_mhz(const struct sim_world *w, const struct sim_card *card)
{
	if (!card->context_count)
		return card->idle_mhz;
	return card->is_slowed || is_too_hot(w, card) ? card->slow_mhz : card->open_mhz;
}

uint64_t sim_card_clock_reasons(const struct sim_world *w, const struct sim_card *card)
{
	uint64_t reasons = 0;
	if (!card->context_count)
		reasons |= LL_NVML_CLOCKS_GPU_IDLE;
	if (card->is_slowed || is_too_hot(w, card))
		reasons |= LL_NVML_CLOCKS_HW_SLOWDOWN | LL_NVML_CLOCKS_HW_THERMAL_SLOWDOWN;
	if (sim_card_instant_watts(card) >= card->limit_watts)
		reasons |= LL_NVML_CLOCKS_SW_POWER_CAP;
	return reasons;
}
