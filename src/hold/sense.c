#include "hold/governor.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * Each call for samples takes 1.5 ms, 2.8 ms on a card with lowered clocks (doc/facts.md), and brings all samples since
 * the last call. So it is made once a second. It is made once a window (200 ms) if the readings show foreign work or
 * end a stop, and as soon as a window's sample is available if they set the level; while resting only when it can
 * change something.
 */
#define UTIL_EVERY_NS (1000 * LL_NS_PER_MS)
#define UTIL_EVERY_WINDOW_NS (200 * LL_NS_PER_MS)
#define SHOWN_WITHIN_NS (60 * LL_NS_PER_MS)     /* a window's sample is available 50 ms after the window's end */
#define UTIL_EVERY_FILL_NS (400 * LL_NS_PER_MS) /* at most; usually once a window, when its sample is available */
#define UTIL_AGAIN_NS (50 * LL_NS_PER_MS)       /* fill: the sample is later than expected */
#define BEFORE_START_NS (500 * LL_NS_PER_MS)    /* two windows */
#define PROCESS_EVERY_NS (200 * LL_NS_PER_MS)   /* 0.1 ms a reading, 55 ms at worst */
#define POWER_EVERY_NS (200 * LL_NS_PER_MS)
#define SLOW_EVERY_NS (1000 * LL_NS_PER_MS)   /* temperature, slowdown, Xid */
#define ENERGY_EVERY_NS (5000 * LL_NS_PER_MS) /* 4 ms a call */
#define GPM_WINDOW_NS (200 * LL_NS_PER_MS)
#define CONTEXT_SETTLE_NS (600 * LL_NS_PER_MS) /* NVML shows a new context's memory and process within this */

/* Resting. A load that does nothing must cost the host nearly nothing: few wake-ups, and all due readings in one. */
#define REST_AFTER_NS (2000 * LL_NS_PER_MS)
#define REST_NS (2000 * LL_NS_PER_MS)
#define REST_UTIL_NS (4000 * LL_NS_PER_MS)  /* the age limit of displayed values; NVML keeps 14 s */
#define REST_BRIEF_NS (2000 * LL_NS_PER_MS) /* a shorter resume_after_ns is waited for with the plain figure */
#define REST_ENERGY_NS (30000 * LL_NS_PER_MS)
#define REST_RETRY_NS (1000 * LL_NS_PER_MS) /* after failed readings and missing samples */
#define REST_SLACK_NS (500 * LL_NS_PER_MS)  /* readings that are due within this time are made in this wake-up */

int ll_sense_init(struct ll_sense *sense, const struct ll_sense_config *config, struct ll_err *err)
{
	memset(sense, 0, sizeof *sense);
	sense->config = *config;
	uint64_t now_ns = ll_now_ns();
	/* A load in fill mode starts from the other programs' load, so it reads the windows before its start. */
	uint64_t ago_ns = config->use == LL_SENSE_UTIL_CONTROLS ? BEFORE_START_NS : 0;
	ll_foreign_init(&sense->foreign, now_ns - 2 * ago_ns);
	ll_process_watch_init(&sense->watch, (uint32_t)getpid(), 0);
	ll_util_reader_init(&sense->reader, config->card);
	ll_util_reader_look_back(&sense->reader, ago_ns);
	sense->values = (struct ll_sense_values){
	    .util = NAN,
	    .own_util = NAN,
	    .sm = NAN,
	    .occupancy = NAN,
	    .tensor = NAN,
	    .dram = NAN,
	    .power_watts = NAN,
	    .temperature_c = NAN,
	    .energy_joules = NAN,
	};
	if (ll_metric_is_gpm(config->metric, NULL)) {
		int rc = ll_gpm_open(config->card, &sense->gpm, err);
		if (rc < 0)
			return rc;
		sense->gpm_start_ns = now_ns;
	}
	/* A card or container without fault events can be held: faults also show as a lost context. */
	if (ll_xid_open(ll_card_whole(config->card), &sense->xid, NULL) < 0)
		sense->xid = NULL;
	return 0;
}

void ll_sense_fini(struct ll_sense *sense)
{
	ll_gpm_close(sense->gpm);
	ll_xid_close(sense->xid);
	ll_process_list_fini(&sense->processes);
	sense->gpm = NULL;
	sense->xid = NULL;
}

/* Whether a reading is due, within slack_ns; then sets its next time. If the interval was longer before, the due time
 * moves forward. */
static bool is_due(uint64_t *due_ns, uint64_t now_ns, uint64_t every_ns, uint64_t slack_ns)
{
	if (*due_ns > now_ns + every_ns)
		*due_ns = now_ns + every_ns;
	if (now_ns + slack_ns < *due_ns)
		return false;
	*due_ns = now_ns + every_ns;
	return true;
}

static void see_foreign(struct ll_sense *sense, uint64_t when_ns, enum ll_hold_sensor sensor)
{
	if (when_ns <= sense->foreign_seen_ns)
		return;
	sense->foreign_seen_ns = when_ns;
	sense->foreign_sensor = sensor;
}

/* Notes whether a reading worked. -ENOSYS is no failure, because it does not change. */
static bool note_reading(struct ll_sense *sense, int rc, const struct ll_err *err, uint64_t now_ns)
{
	if (rc == -ENODEV) {
		if (sense->gone_since_ns == 0)
			sense->gone_since_ns = now_ns;
	} else {
		sense->gone_since_ns = 0;
	}
	if (rc == 0)
		return true;
	if (rc != -ENOSYS && rc != -EAGAIN)
		sense->last_err = *err;
	return false;
}

static void add_sample(struct ll_sense *sense, const struct ll_drive_sample *sample)
{
	if (sense->sample_count < LL_SENSE_SAMPLES)
		sense->samples[sense->sample_count++] = *sample;
}

static void log_kernel(struct ll_sense *sense, const struct ll_interval *kernel)
{
	if (sense->config.kernel_log)
		fprintf(sense->config.kernel_log, "%s,%" PRIu64 ",%" PRIu64 ",%u\n", sense->config.card->label,
			kernel->card_start_ns, kernel->card_end_ns, kernel->flags);
}

static void take_intervals(struct ll_sense *sense, struct ll_pacer *pacer, const struct ll_pacer_report *report)
{
	struct ll_interval batch[64];
	size_t n;
	while ((n = ll_pacer_take_intervals(pacer, batch, 64)) > 0) {
		for (size_t i = 0; i < n; i++) {
			ll_foreign_add_own(&sense->foreign, batch[i].start_ns, batch[i].end_ns);
			log_kernel(sense, &batch[i]);
		}
	}
	/* With kernels in flight, own work is known only up to the end of the last kernel that was read back. */
	ll_foreign_own_known_until(&sense->foreign, report->outstanding ? report->last_end_ns : report->taken_ns);
}

static void merge_pacer(struct ll_sense *sense, const struct ll_pacer_report *report)
{
	if (report->pid) /* the driver lists a worker for a while after its end */
		ll_process_watch_own(&sense->watch, (uint32_t)report->pid);
	if (report->foreign_seen_ns <= sense->pacer_seen_ns)
		return;
	sense->pacer_seen_ns = report->foreign_seen_ns;
	see_foreign(sense, report->foreign_seen_ns, report->foreign_sensor);
}

static void judge_window(struct ll_sense *sense, const struct ll_util_sample *sample, uint64_t wall_minus_now_ns,
			 uint64_t held_since_ns)
{
	uint64_t end_ns = sample->end_wall_ns - wall_minus_now_ns;
	uint64_t start_ns = end_ns - sample->window_ns;
	sense->known_until_ns = end_ns;
	sense->window_ns = sample->window_ns;
	struct ll_foreign_verdict verdict;
	ll_foreign_judge(&sense->foreign, start_ns, end_ns, (unsigned)lround(sample->percent), &verdict);
	sense->values.util = sample->percent / 100;
	sense->values.own_util = verdict.own_ratio;
	if (verdict.state == LL_FOREIGN_SEEN) {
		see_foreign(sense, end_ns, LL_SENSOR_UTIL);
		sense->foreign_window = verdict;
	}
	if (sense->config.metric != LL_METRIC_UTIL)
		return;
	struct ll_drive_sample out = {
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .level = sample->percent / 100,
	    .own_ratio = verdict.own_ratio,
	    .is_disturbed = verdict.state != LL_FOREIGN_QUIET || held_since_ns == 0 || start_ns < held_since_ns,
	};
	add_sample(sense, &out);
}

static void read_util(struct ll_sense *sense, uint64_t now_ns, uint64_t held_since_ns)
{
	struct ll_util_sample samples[LL_SENSE_SAMPLES];
	size_t count = 0;
	struct ll_err err = {0};
	int rc = ll_util_reader_next(&sense->reader, samples, LL_SENSE_SAMPLES, &count, &err);
	if (!note_reading(sense, rc, &err, now_ns)) {
		if (rc != -ENOSYS && sense->failing_since_ns == 0)
			sense->failing_since_ns = now_ns;
		return;
	}
	sense->failing_since_ns = 0;
	sense->readings_seen_ns = now_ns;
	uint64_t wall_minus_now_ns = ll_wall_ns() - ll_now_ns();
	for (size_t i = 0; i < count; i++)
		judge_window(sense, &samples[i], wall_minus_now_ns, held_since_ns);
}

/*
 * While no own kernel runs, all utilisation is foreign. Then the plain figure is enough, which costs a two hundredth of
 * the samples. Its window may have ended 0.2 s ago, which does not matter for a stop that lasts. False: it shows none.
 */
static bool is_plainly_foreign(struct ll_sense *sense, uint64_t now_ns)
{
	double percent;
	if (ll_read_util(sense->config.card, &percent, NULL) < 0 || percent <= 0.0)
		return false;
	sense->failing_since_ns = 0;
	sense->readings_seen_ns = now_ns;
	sense->values.util = percent / 100;
	sense->values.own_util = 0.0;
	sense->foreign_window =
	    (struct ll_foreign_verdict){.state = LL_FOREIGN_SEEN, .foreign_ratio = percent / 100, .is_own_idle = true};
	see_foreign(sense, now_ns, LL_SENSOR_UTIL);
	return true;
}

static void keep_gpm(struct ll_sense *sense, uint64_t now_ns, const struct ll_gpm_reading *reading)
{
	struct ll_sense_values *values = &sense->values;
	values->sm = reading->percent[LL_GPM_SM] / 100;
	values->occupancy = reading->percent[LL_GPM_OCCUPANCY] / 100;
	values->tensor = reading->percent[LL_GPM_TENSOR] / 100;
	values->dram = reading->percent[LL_GPM_DRAM] / 100;
	if (sense->config.card->is_mig) { /* NVML has no utilisation for a slice */
		sense->readings_seen_ns = now_ns;
		values->util = reading->percent[LL_GPM_GRAPHICS] / 100;
	}
}

static void read_gpm(struct ll_sense *sense, uint64_t now_ns, uint64_t held_since_ns)
{
	struct ll_gpm_reading reading;
	enum ll_gpm_metric metric = LL_GPM_SM;
	struct ll_err err = {0};
	uint64_t window_ns = ll_sense_is_resting(sense, now_ns) ? REST_NS : GPM_WINDOW_NS;
	if (!sense->gpm || now_ns - sense->gpm_start_ns < window_ns)
		return;
	sense->gpm_start_ns = now_ns;
	if (!note_reading(sense, ll_gpm_read(sense->gpm, &reading, &err), &err, now_ns)) {
		if (!sense->unread_since_ns)
			sense->unread_since_ns = now_ns;
		return;
	}
	sense->unread_since_ns = 0;
	sense->gpm_start_ns = reading.end_ns;
	keep_gpm(sense, now_ns, &reading);
	ll_metric_is_gpm(sense->config.metric, &metric);
	if (isnan(reading.percent[metric])) {
		if (!sense->missing_since_ns)
			sense->missing_since_ns = now_ns;
		return;
	}
	sense->missing_since_ns = 0;
	uint64_t start_ns = reading.end_ns - reading.window_ns;
	struct ll_drive_sample out = {
	    .start_ns = start_ns,
	    .end_ns = reading.end_ns,
	    .level = reading.percent[metric] / 100,
	    .own_ratio = ll_foreign_own_ratio(&sense->foreign, start_ns, reading.end_ns),
	    .is_disturbed = held_since_ns == 0 || start_ns < held_since_ns,
	};
	add_sample(sense, &out);
}

static void read_processes(struct ll_sense *sense, uint64_t now_ns)
{
	struct ll_arrival arrival = {0};
	struct ll_err err = {0};
	bool is_ours = now_ns < sense->process_change_ns;
	struct ll_memory memory;
	if (note_reading(sense, ll_read_memory(sense->config.card, &memory, &err), &err, now_ns)) {
		if (ll_process_watch_memory(&sense->watch, memory.used_bytes, sense->values.own_memory_bytes, !is_ours,
					    &arrival) &&
		    sense->config.watches_arrivals)
			see_foreign(sense, now_ns, LL_SENSOR_MEMORY);
	}
	if (!note_reading(sense, ll_read_processes(sense->config.card, LL_PROCESS_ALL, &sense->processes, &err), &err,
			  now_ns))
		return;
	struct ll_card_process list[LL_PROCESS_WATCH_MAX];
	size_t n = 0;
	for (size_t i = 0; i < sense->processes.count && n < LL_PROCESS_WATCH_MAX; i++) {
		uint64_t bytes = sense->processes.items[i].memory_bytes;
		list[n++] = (struct ll_card_process){.pid = (uint32_t)sense->processes.items[i].pid,
						     .memory_bytes = bytes == LL_MEMORY_UNKNOWN ? 0 : bytes};
	}
	if (is_ours) /* our context may have started an MPS server, which is not foreign */
		ll_process_watch_reset(&sense->watch);
	if (ll_process_watch_list(&sense->watch, list, n, &arrival) && sense->config.watches_arrivals)
		see_foreign(sense, now_ns, LL_SENSOR_PROCESS);
}

static void read_power(struct ll_sense *sense, uint64_t now_ns, uint64_t held_since_ns)
{
	struct ll_power power;
	struct ll_err err = {0};
	if (!note_reading(sense, ll_read_power(sense->config.card, &power, &err), &err, now_ns)) {
		sense->values.power_watts = NAN;
		return;
	}
	sense->values.power_watts = power.average_watts;
	if (sense->config.metric != LL_METRIC_POWER)
		return;
	struct ll_drive_sample out = {
	    .start_ns = now_ns - POWER_EVERY_NS,
	    .end_ns = now_ns,
	    .level = power.average_watts,
	    .own_ratio = NAN,
	    .is_disturbed = held_since_ns == 0,
	};
	add_sample(sense, &out);
}

static void read_health(struct ll_sense *sense, uint64_t now_ns)
{
	const struct ll_card *whole = ll_card_whole(sense->config.card);
	struct ll_err err = {0};
	double celsius;
	sense->values.temperature_c = NAN;
	if (note_reading(sense, ll_read_celsius(whole, &celsius, &err), &err, now_ns))
		sense->values.temperature_c = celsius;
	unsigned slowdown = 0;
	if (note_reading(sense, ll_read_slowdown(whole, &slowdown, &err), &err, now_ns))
		ll_slowdown_text(slowdown & LL_SLOWDOWN_HARM, sense->values.slowdown_text,
				 sizeof sense->values.slowdown_text);
	sense->values.is_slowdown = (slowdown & LL_SLOWDOWN_HARM) != 0;
}

static void read_faults(struct ll_sense *sense)
{
	uint64_t xid = 0;
	if (sense->xid && ll_xid_poll(sense->xid, &xid, NULL) == 1)
		sense->fault_xid = xid;
}

void ll_sense_read_energy(struct ll_sense *sense)
{
	struct ll_err err = {0};
	uint64_t energy_mj = 0;
	if (note_reading(sense, ll_read_energy(ll_card_whole(sense->config.card), &energy_mj, &err), &err, ll_now_ns()))
		sense->values.energy_joules = (double)energy_mj / 1000;
}

/* Own memory is what the used memory has grown by since just before our context was made. */
static void measure_own_memory(struct ll_sense *sense, uint64_t now_ns)
{
	if (sense->memory_settle_ns == 0 || now_ns < sense->memory_settle_ns)
		return;
	struct ll_memory memory;
	if (ll_read_memory(sense->config.card, &memory, NULL) == 0 && memory.used_bytes > sense->memory_before_bytes)
		sense->values.own_memory_bytes = memory.used_bytes - sense->memory_before_bytes;
	sense->memory_settle_ns = 0;
	ll_process_watch_reset(&sense->watch);
}

void ll_sense_context_changes(struct ll_sense *sense, bool will_open)
{
	uint64_t now_ns = ll_now_ns();
	sense->process_change_ns = UINT64_MAX;
	sense->change_begin_ns = now_ns;
	struct ll_memory memory;
	if (will_open && ll_read_memory(sense->config.card, &memory, NULL) == 0)
		sense->memory_before_bytes = memory.used_bytes;
}

void ll_sense_context_changed(struct ll_sense *sense, bool is_open)
{
	uint64_t now_ns = ll_now_ns();
	sense->process_change_ns = now_ns + CONTEXT_SETTLE_NS;
	ll_foreign_add_unknown(&sense->foreign, sense->change_begin_ns, now_ns);
	sense->memory_settle_ns = is_open ? now_ns + CONTEXT_SETTLE_NS / 2 : 0;
	if (!is_open)
		sense->values.own_memory_bytes = 0;
}

/* ---- how often ---- */

bool ll_sense_is_resting(const struct ll_sense *sense, uint64_t now_ns)
{
	return now_ns - sense->stopped_since_ns > REST_AFTER_NS;
}

/* Whether the newest window had foreign work. Other readings then change nothing. */
static bool is_beside_work(const struct ll_sense *sense)
{
	return sense->known_until_ns != 0 && sense->foreign_seen_ns >= sense->known_until_ns;
}

uint64_t ll_sense_looked_until_ns(const struct ll_sense *sense, uint64_t now_ns, bool is_held)
{
	bool is_told = !is_held && sense->foreign_seen_ns && sense->known_until_ns && !sense->failing_since_ns;
	return is_told ? sense->known_until_ns : now_ns;
}

/*
 * A resume waits for quiet windows. Before the last of them is available a reading only changes what is displayed. So
 * the next reading is made when that window has just become available; its samples cover the time in between.
 */
static uint64_t next_look_ns(const struct ll_sense *sense, uint64_t now_ns)
{
	uint64_t latest_ns = now_ns + REST_UTIL_NS;
	if (sense->failing_since_ns)
		return now_ns + REST_RETRY_NS;
	if (!sense->known_until_ns || sense->config.resume_after_ns > latest_ns - sense->foreign_seen_ns)
		return latest_ns;
	uint64_t windows = (sense->config.resume_after_ns + UTIL_EVERY_WINDOW_NS - 1) / UTIL_EVERY_WINDOW_NS;
	uint64_t quiet_ns = sense->foreign_seen_ns + windows * UTIL_EVERY_WINDOW_NS + SHOWN_WITHIN_NS;
	if (quiet_ns > now_ns)
		return quiet_ns < latest_ns ? quiet_ns : latest_ns;
	if (sense->known_until_ns >= sense->foreign_seen_ns + sense->config.resume_after_ns)
		return latest_ns; /* the hold is stopped for another reason */
	bool is_fresh = now_ns - sense->known_until_ns < 2 * UTIL_EVERY_WINDOW_NS;
	return now_ns + (is_fresh ? UTIL_EVERY_WINDOW_NS : REST_RETRY_NS);
}

static uint64_t util_every_ns(const struct ll_sense *sense, uint64_t held_since_ns)
{
	if (!held_since_ns)
		return UTIL_EVERY_WINDOW_NS;
	switch (sense->config.use) {
	case LL_SENSE_UTIL_WATCHES:
		return UTIL_EVERY_WINDOW_NS;
	case LL_SENSE_UTIL_CONTROLS:
		return UTIL_EVERY_FILL_NS;
	case LL_SENSE_UTIL_TRIMS:
		break;
	}
	return UTIL_EVERY_NS;
}

/* The level follows the newest window, so the next reading is made when the next window's sample is available. */
static void expect_window(struct ll_sense *sense, uint64_t now_ns)
{
	uint64_t shown_ns = sense->known_until_ns + sense->window_ns + SHOWN_WITHIN_NS;
	if (sense->known_until_ns && shown_ns < sense->util_due_ns)
		sense->util_due_ns = shown_ns > now_ns ? shown_ns : now_ns + UTIL_AGAIN_NS;
}

/* If the resume waits for a short quiet time only, the plain figure is read often, because it is cheap. */
static void look_resting(struct ll_sense *sense, uint64_t now_ns)
{
	uint64_t brief_ns = sense->config.resume_after_ns;
	if (brief_ns < REST_BRIEF_NS && now_ns < sense->samples_due_ns && is_plainly_foreign(sense, now_ns)) {
		bool is_least = brief_ns / 3 < UTIL_EVERY_WINDOW_NS;
		sense->util_due_ns = now_ns + (is_least ? UTIL_EVERY_WINDOW_NS : brief_ns / 3);
		return;
	}
	read_util(sense, now_ns, 0);
	sense->samples_due_ns = now_ns + REST_UTIL_NS;
	sense->util_due_ns = next_look_ns(sense, now_ns);
}

static void tick_resting(struct ll_sense *sense, uint64_t now_ns)
{
	if (now_ns >= sense->util_due_ns)
		look_resting(sense, now_ns);
	uint64_t every_ns = is_beside_work(sense) ? 2 * REST_NS : REST_NS;
	read_gpm(sense, now_ns, 0);
	if (is_due(&sense->process_due_ns, now_ns, every_ns, REST_SLACK_NS)) {
		read_processes(sense, now_ns);
		read_faults(sense);
	}
	if (is_due(&sense->power_due_ns, now_ns, every_ns, REST_SLACK_NS))
		read_power(sense, now_ns, 0);
	if (is_due(&sense->slow_due_ns, now_ns, 2 * every_ns, REST_SLACK_NS))
		read_health(sense, now_ns);
	if (is_due(&sense->energy_due_ns, now_ns, REST_ENERGY_NS, REST_SLACK_NS))
		ll_sense_read_energy(sense);
}

static void tick_awake(struct ll_sense *sense, uint64_t now_ns, uint64_t held_since_ns)
{
	if (is_due(&sense->util_due_ns, now_ns, util_every_ns(sense, held_since_ns), 0)) {
		read_util(sense, now_ns, held_since_ns);
		if (sense->config.use == LL_SENSE_UTIL_CONTROLS)
			expect_window(sense, now_ns);
	}
	read_gpm(sense, now_ns, held_since_ns);
	if (is_due(&sense->process_due_ns, now_ns, PROCESS_EVERY_NS, 0))
		read_processes(sense, now_ns);
	if (is_due(&sense->power_due_ns, now_ns, POWER_EVERY_NS, 0))
		read_power(sense, now_ns, held_since_ns);
	if (is_due(&sense->slow_due_ns, now_ns, SLOW_EVERY_NS, 0)) {
		read_health(sense, now_ns);
		read_faults(sense);
	}
	if (is_due(&sense->energy_due_ns, now_ns, ENERGY_EVERY_NS, 0))
		ll_sense_read_energy(sense);
}

void ll_sense_tick(struct ll_sense *sense, struct ll_pacer *pacer, const struct ll_pacer_report *report,
		   uint64_t held_since_ns)
{
	uint64_t now_ns = ll_now_ns();
	sense->sample_count = 0;
	take_intervals(sense, pacer, report);
	merge_pacer(sense, report);
	if (held_since_ns || !sense->stopped_since_ns)
		sense->stopped_since_ns = now_ns;
	measure_own_memory(sense, now_ns);
	if (ll_sense_is_resting(sense, now_ns))
		tick_resting(sense, now_ns);
	else
		tick_awake(sense, now_ns, held_since_ns);
}

uint64_t ll_sense_next_ns(const struct ll_sense *sense)
{
	const uint64_t due_ns[] = {
	    sense->util_due_ns,
	    sense->process_due_ns,
	    sense->power_due_ns,
	    sense->slow_due_ns,
	    sense->energy_due_ns,
	    sense->gpm ? sense->gpm_start_ns + REST_NS : UINT64_MAX,
	    sense->memory_settle_ns ? sense->memory_settle_ns : UINT64_MAX,
	};
	uint64_t next_ns = due_ns[0];
	for (size_t i = 1; i < sizeof due_ns / sizeof *due_ns; i++)
		next_ns = due_ns[i] < next_ns ? due_ns[i] : next_ns;
	return next_ns;
}
