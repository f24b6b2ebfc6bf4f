#include "hold/governor.h"

#include <math.h>

enum {
	WARP_THREADS = 32,
	BLOCK_THREADS = 1024,
	BLOCKS_PER_SM = 2, /* 2 x 1024 threads fill the warp slots of an SM from Pascal on; for spin and fma */
	FALLBACK_SM_COUNT = 132,
};

#define READING_INTERVAL_S 0.2
#define POWER_DUTY 0.6       /* planned for a power target */
#define POWER_DUTY_LEAST 0.5 /* below two fifths the card lowers its clocks after some seconds (doc/facts.md) */
#define POWER_REPLANS 2
#define POWER_SHARE_MIN 0.02 /* of the SMs */

static bool is_filling(const struct ll_drive *drive)
{
	return drive->metric == LL_METRIC_UTIL && drive->mode == LL_HOLD_MODE_FILL;
}

/*
 * At a few percent of duty a card lowers its clocks between two kernels and draws less than with an idle context. So a
 * low power comes from few SMs that run most of the time, not from all SMs that run seldom (doc/facts.md).
 */
static struct ll_level_loop_config plan_power(struct ll_drive *drive, double target_watts)
{
	double range_watts = LL_DRIVE_CEILING_WATTS - LL_DRIVE_FLOOR_WATTS;
	double share = (target_watts - LL_DRIVE_FLOOR_WATTS) / range_watts / POWER_DUTY;
	share = share < POWER_SHARE_MIN ? POWER_SHARE_MIN : share > 1 ? 1 : share;
	drive->blocks = (uint32_t)lround(share * drive->sm_count * BLOCKS_PER_SM);
	drive->replans_left = POWER_REPLANS;
	return ll_level_loop_power_config(LL_DRIVE_FLOOR_WATTS, LL_DRIVE_FLOOR_WATTS + share * range_watts,
					  READING_INTERVAL_S);
}

/* Each of a few SMs draws more than each of all SMs, so the planned number of SMs gives too small a duty. */
static void replan_power(struct ll_drive *drive, uint64_t now_ns)
{
	struct ll_level_loop *loop = &drive->loop;
	double duty = (drive->target - loop->config.floor) / loop->gain;
	uint32_t blocks = (uint32_t)fmax(1, round(drive->blocks * duty / POWER_DUTY));
	if (!loop->has_learned || !drive->replans_left || duty >= POWER_DUTY_LEAST || blocks >= drive->blocks)
		return;
	drive->replans_left--;
	ll_level_loop_rescale(loop, now_ns, (double)blocks / drive->blocks);
	drive->blocks = blocks;
}

static void set_loop_target(struct ll_drive *drive, double target)
{
	bool is_first = isnan(drive->target);
	drive->target = target;
	if (!is_first && drive->metric != LL_METRIC_POWER) {
		ll_level_loop_set_target(&drive->loop, target);
		return;
	}
	struct ll_level_loop_config config = drive->metric == LL_METRIC_POWER
						 ? plan_power(drive, target)
						 : ll_level_loop_gpm_config(1.0, READING_INTERVAL_S);
	ll_level_loop_init(&drive->loop, &config, target);
	drive->is_running = false; /* so that the next command resumes the loop */
}

/* Chooses the kernel, and the number of SMs that it uses. */
static void choose_kernel(struct ll_drive *drive)
{
	drive->kernel = LL_KERNEL_SPIN;
	drive->threads = BLOCK_THREADS;
	drive->blocks = drive->sm_count;
	switch (drive->metric) {
	case LL_METRIC_UTIL:
		drive->threads = WARP_THREADS;
		drive->blocks = 1;
		break;
	case LL_METRIC_SM:
		drive->threads = WARP_THREADS;
		break;
	case LL_METRIC_OCCUPANCY:
		drive->blocks = drive->sm_count * BLOCKS_PER_SM;
		break;
	case LL_METRIC_TENSOR: /* one block on each SM: its registers leave no room for two */
		drive->kernel = LL_KERNEL_TENSOR;
		break;
	case LL_METRIC_DRAM:
		drive->kernel = LL_KERNEL_DRAM;
		break;
	case LL_METRIC_POWER: /* blocks: plan_power */
		drive->kernel = LL_KERNEL_FMA;
		drive->blocks = 1;
		break;
	}
}

void ll_drive_init(struct ll_drive *drive, const struct ll_hold_config *config, uint32_t sm_count)
{
	*drive = (struct ll_drive){
	    .metric = config->metric,
	    .mode = config->mode,
	    .sm_count = sm_count ? sm_count : FALLBACK_SM_COUNT,
	    .target = NAN,
	};
	choose_kernel(drive);
}

void ll_drive_restart(struct ll_drive *drive, const struct ll_hold_config *config, uint32_t sm_count)
{
	struct ll_fill_level fill = drive->fill;
	ll_drive_init(drive, config, sm_count);
	drive->fill = fill;
}

static double loop_command(struct ll_drive *drive, uint64_t now_ns, double target)
{
	if (!(target == drive->target))
		set_loop_target(drive, target);
	if (!drive->is_running)
		ll_level_loop_resume(&drive->loop, now_ns);
	return drive->loop.duty;
}

double ll_drive_command(struct ll_drive *drive, uint64_t now_ns, double target)
{
	double duty = is_filling(drive)                 ? ll_fill_level_command(&drive->fill, now_ns, target)
		      : drive->metric == LL_METRIC_UTIL ? ll_util_trim_command(&drive->trim, now_ns, target)
							: loop_command(drive, now_ns, target);
	drive->is_running = true;
	return duty;
}

void ll_drive_pause(struct ll_drive *drive, uint64_t now_ns)
{
	if (drive->is_running && is_filling(drive))
		ll_fill_level_pause(&drive->fill, now_ns);
	else if (drive->is_running && drive->metric == LL_METRIC_UTIL)
		ll_util_trim_pause(&drive->trim, now_ns);
	drive->is_running = false;
}

static void fill_sample(struct ll_drive *drive, const struct ll_drive_sample *sample)
{
	struct ll_fill_level_window window = {
	    .start_ns = sample->start_ns,
	    .end_ns = sample->end_ns,
	    .level = sample->level,
	    .own_ratio = sample->own_ratio,
	};
	ll_fill_level_add(&drive->fill, &window);
}

static void trim_sample(struct ll_drive *drive, const struct ll_drive_sample *sample)
{
	struct ll_util_trim_window window = {
	    .start_ns = sample->start_ns,
	    .end_ns = sample->end_ns,
	    .percent = (unsigned)lround(sample->level * 100),
	    .own_busy_ratio = sample->own_ratio,
	    .is_disturbed = sample->is_disturbed,
	};
	ll_util_trim_add(&drive->trim, &window);
}

void ll_drive_add_sample(struct ll_drive *drive, const struct ll_drive_sample *sample)
{
	if (is_filling(drive)) {
		fill_sample(drive, sample);
		return;
	}
	if (!drive->is_running)
		return;
	if (drive->metric == LL_METRIC_UTIL) {
		trim_sample(drive, sample);
		return;
	}
	ll_level_loop_update(&drive->loop, sample->end_ns, sample->level);
	if (drive->metric == LL_METRIC_POWER)
		replan_power(drive, sample->end_ns);
}

enum ll_level_state ll_drive_state(const struct ll_drive *drive, double *ret_reach)
{
	if (drive->metric == LL_METRIC_UTIL || drive->mode == LL_HOLD_MODE_FILL)
		return LL_LEVEL_TRACKING;
	return ll_level_loop_state(&drive->loop, ret_reach);
}
