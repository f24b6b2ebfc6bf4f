#include "hold/drive.h"

#include <math.h>

enum {
	WARP_THREADS = 32,
	BLOCK_THREADS = 1024,
	BLOCKS_PER_SM = 2, /* 2 x 1024 threads fill the warp slots of an SM from Pascal on */
	FALLBACK_SM_COUNT = 132,
};

#define READING_INTERVAL_S 0.2

static bool has_loop(const struct ll_drive *drive)
{
	return drive->metric != LL_METRIC_UTIL || drive->mode == LL_HOLD_MODE_FILL;
}

static struct ll_level_loop_config loop_config(enum ll_metric metric)
{
	if (metric == LL_METRIC_POWER)
		return ll_level_loop_power_config(LL_DRIVE_FLOOR_WATTS, LL_DRIVE_CEILING_WATTS, READING_INTERVAL_S);
	return ll_level_loop_gpm_config(1.0, READING_INTERVAL_S);
}

void ll_drive_init(struct ll_drive *drive, const struct ll_hold_config *config, uint32_t sm_count)
{
	uint32_t sms = sm_count ? sm_count : FALLBACK_SM_COUNT;
	*drive =
	    (struct ll_drive){.metric = config->metric, .mode = config->mode, .kernel = LL_KERNEL_SPIN, .target = NAN};
	switch (config->metric) {
	case LL_METRIC_UTIL:
		drive->blocks = 1;
		drive->threads = WARP_THREADS;
		break;
	case LL_METRIC_SM:
		drive->blocks = sms;
		drive->threads = WARP_THREADS;
		break;
	case LL_METRIC_POWER:
		drive->kernel = LL_KERNEL_FMA;
		drive->blocks = sms * BLOCKS_PER_SM;
		drive->threads = BLOCK_THREADS;
		break;
	case LL_METRIC_OCCUPANCY:
		drive->blocks = sms * BLOCKS_PER_SM;
		drive->threads = BLOCK_THREADS;
		break;
	}
	ll_util_trim_init(&drive->trim);
	struct ll_level_loop_config loop = loop_config(config->metric);
	ll_level_loop_init(&drive->loop, &loop, 0);
}

static double loop_command(struct ll_drive *drive, uint64_t now_ns, double target)
{
	if (!drive->is_running)
		ll_level_loop_resume(&drive->loop, now_ns);
	if (!(target == drive->target))
		ll_level_loop_set_target(&drive->loop, target);
	drive->target = target;
	return drive->loop.duty;
}

double ll_drive_command(struct ll_drive *drive, uint64_t now_ns, double target)
{
	double duty =
	    has_loop(drive) ? loop_command(drive, now_ns, target) : ll_util_trim_command(&drive->trim, now_ns, target);
	drive->is_running = true;
	return duty;
}

void ll_drive_pause(struct ll_drive *drive, uint64_t now_ns)
{
	if (drive->is_running && !has_loop(drive))
		ll_util_trim_pause(&drive->trim, now_ns);
	drive->is_running = false;
}

void ll_drive_sample(struct ll_drive *drive, const struct ll_drive_sample *sample)
{
	if (!drive->is_running)
		return;
	if (has_loop(drive)) {
		ll_level_loop_update(&drive->loop, sample->end_ns, sample->level);
		return;
	}
	struct ll_util_trim_window window = {
	    .start_ns = sample->start_ns,
	    .end_ns = sample->end_ns,
	    .percent = (unsigned)lround(sample->level * 100),
	    .own_busy_ratio = sample->own_ratio,
	    .is_disturbed = sample->is_disturbed,
	};
	ll_util_trim_add(&drive->trim, &window);
}

enum ll_level_state ll_drive_state(const struct ll_drive *drive, double *ret_reach)
{
	if (!has_loop(drive) || drive->mode == LL_HOLD_MODE_FILL)
		return LL_LEVEL_TRACKING;
	return ll_level_loop_state(&drive->loop, ret_reach);
}
