#include "card/defaults.h"

#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/clock.h"

#define MIB (UINT64_C(1) << 20)

/* doc/facts.md has the measurements of a real H200. */
static const struct sim_card h200 = {
    .parent = SIM_NONE,
    .name = "NVIDIA H200",
    .sm_count = 132,
    .capability_major = 9,
    .capability_minor = 0,
    .memory_bytes = 143155 * MIB,
    .reserved_bytes = 616 * MIB,
    .slice_ns = SIM_SLICE_LASTS * LL_NS_PER_US,
    .switch_ns = 140 * LL_NS_PER_US,
    .save_ns = 30 * LL_NS_PER_US,
    .launch_ns = 5 * LL_NS_PER_US,
    .kernel_gap_ns = 1 * LL_NS_PER_US,
    .clock_step_ns = 352,
    .drift_ppm = -3.33,
    .context_ns = 120 * LL_NS_PER_MS,
    .context_work_ns = 300 * LL_NS_PER_US,
    .copy_bytes_per_ns = 55,
    .memory_bytes_per_ns = 3000,
    .idle_watts = 77,
    .open_watts = 121,
    .spin_watts = 188, /* in addition, when every SM spins with 1024 threads */
    .fma_watts = 387,
    .limit_watts = 700,
    .ambient_celsius = 28.7,
    .celsius_per_watt = 0.044,
    .thermal_s = 12,
    .idle_mhz = 345,
    .open_mhz = 1980,
    .slow_mhz = 1200,
    .memory_mhz = 3201,
    .slowdown_celsius = 92,
    .shutdown_celsius = 95,
    .max_celsius = 87,
    .has_gpm = 1,
    .has_gpm_tensor = 1,
    .has_gpm_dram = 1,
    .tensor_reach_percent = 94.2,
    .dram_reach_percent = 94.5,
    .compute_mode = LL_NVML_COMPUTEMODE_DEFAULT,
    .turn = {.tenant = SIM_NONE, .resident = SIM_NONE, .stay = SIM_NONE},
};

void sim_card_init(struct sim_world *w, uint32_t index)
{
	struct sim_card *card = SIM_EDIT(w, &w->cards[index]);
	*card = h200;
	snprintf(card->uuid, sizeof card->uuid, "GPU-10ad11fe-0200-4200-8200-%012x", index + 1);
	card->pci_bus = 0x18 + index * 0x10;
	/* Windows of two cards end at different times. */
	card->meter.window_start_ns = w->now_ns - (index * 37 % 200) * LL_NS_PER_MS;
	card->meter.bucket_start_ns = card->meter.window_start_ns;
	while (card->meter.bucket_start_ns + 100 * LL_NS_PER_MS <= w->now_ns)
		card->meter.bucket_start_ns += 100 * LL_NS_PER_MS;
	card->meter.celsius = card->ambient_celsius + card->celsius_per_watt * card->idle_watts;
	for (size_t i = 0; i < sizeof card->meter.power_ring_watts / sizeof card->meter.power_ring_watts[0]; i++)
		card->meter.power_ring_watts[i] = card->idle_watts;
}

void sim_world_init(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns)
{
	w->born_ns = now_ns;
	w->now_ns = now_ns;
	w->wall_offset_ns = wall_offset_ns;
	w->card_epoch_ns = wall_offset_ns;
	w->next_op_id = 1;
	w->next_done_sequence = 1;
	w->next_xid = 1;
	w->init_ns = 100 * LL_NS_PER_MS;
	w->card_count = 1;
	w->slot_count = 1;
	w->cuda_version = 13000;
	snprintf(w->driver_version, sizeof w->driver_version, "580.159.03");
	for (uint32_t i = 0; i < SIM_CARDS; i++)
		w->cuda_order[i] = i;
	sim_card_init(w, 0);
	sim_commit(w);
}

uint64_t sim_context_bytes(const struct sim_card *card, uint64_t stack_bytes)
{
	const uint64_t without_stack = 272157901; /* 262.8 MiB together with SIM_PROCESS_BYTES */
	return without_stack + stack_bytes * 2048 * card->sm_count;
}
