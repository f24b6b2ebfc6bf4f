/*
 * readings.h - what NVML tells of a card: its readings, its health, and its errors.
 */
#ifndef LOADLINE_DRIVER_READINGS_H
#define LOADLINE_DRIVER_READINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/cards.h"

struct ll_xid_watch;

/* ---- readings ---- */

/*
 * What NVML says about a card, one function per reading.
 *
 * Every function returns 0, or -errno with err set. -ENODEV "card gone": the card fell off the bus, or the driver was
 * unloaded; no later call succeeds. -ENOSYS: this card or driver does not have the reading and never will. -EPERM.
 * -EIO: anything else; a later call may succeed. No function blocks for long; the durations given here are from an H200
 * (doc/facts.md). One thread at a time may read a card; different cards may be read by different threads.
 *
 * A MIG slice has readings of memory and processes. Other readings come from the whole card. Utilisation is -ENOSYS for
 * a slice, because NVML has none; use gpm.h.
 */

/* ---- utilisation: the share of time in which any kernel ran ---- */

struct ll_util_sample {
	uint64_t end_wall_ns; /* the window's end, on CLOCK_REALTIME as ll_wall_ns */
	uint64_t window_ns;   /* the window's length: from the sample before, 200 ms on an H200 */
	double percent;       /* mean over the window; NVML gives whole points */
};

/* Gives every sample of the card once, in order. It is in the caller's memory and needs no fini. */
struct ll_util_reader {
	const struct ll_card *card;
	uint64_t last_us; /* end of the newest sample given; NVML counts microseconds of CLOCK_REALTIME */
	bool has_last;    /* last_us is the end of a sample, not the time of init or of a jump of the clock */
	int64_t wall_minus_boot_ns;
};

/* Starts a reader. The first read gives only samples that end after this call. */
void ll_util_reader_init(struct ll_util_reader *reader, const struct ll_card *card);

/* Lets the first read also give the samples that ended at most this long before init. Call it right after init. */
void ll_util_reader_look_back(struct ll_util_reader *reader, uint64_t ago_ns);

/*
 * Copies the new samples, oldest first. If there are more than capacity, the oldest are dropped. *ret_count may be 0.
 * Takes 1.5 ms of CPU. NVML keeps about 70 samples (14 s); older ones are lost. If the wall clock was set, samples are
 * read from the new time on, and some may be missing.
 */
int ll_util_reader_next(struct ll_util_reader *reader, struct ll_util_sample *samples, size_t capacity,
			size_t *ret_count, struct ll_err *err);

/* Reads the newest figure in whole percent, without its time. Takes 2 us. */
int ll_read_util(const struct ll_card *card, double *ret_percent, struct ll_err *err);

/* ---- memory ---- */

struct ll_memory {
	uint64_t total_bytes;
	/* by processes; what the driver reserves for itself is left out where it tells them apart */
	uint64_t used_bytes;
	uint64_t free_bytes;
};

/* Reads the card's memory. */
int ll_read_memory(const struct ll_card *card, struct ll_memory *ret_memory, struct ll_err *err);

/* ---- processes ---- */

enum ll_process_kind {
	LL_PROCESS_COMPUTE = 1,
	LL_PROCESS_GRAPHICS = 2, /* Vulkan is counted here */
	LL_PROCESS_MPS_CLIENT = 4,
	LL_PROCESS_ALL = 7,
};

#define LL_MEMORY_UNKNOWN UINT64_MAX

struct ll_process {
	pid_t pid;
	unsigned kinds;        /* LL_PROCESS_* or-ed: a process may be in several of NVML's lists */
	uint64_t memory_bytes; /* LL_MEMORY_UNKNOWN where the driver does not say */
};

/* Zeroed before first use. It grows as needed and is reused, so a loop of readings allocates nothing. */
struct ll_process_list {
	struct ll_process *items;
	size_t count;
	size_t capacity;
	void *scratch;
	size_t scratch_size;
};

void ll_process_list_fini(struct ll_process_list *list);

/*
 * Reads the processes on the card, each pid once. kinds says which of NVML's lists to read: each takes 18 us, 300 at
 * worst. In a PID namespace the driver leaves out the processes outside of it, so an empty list does not prove an idle
 * card.
 */
int ll_read_processes(const struct ll_card *card, unsigned kinds, struct ll_process_list *list, struct ll_err *err);

/* ---- power and energy ---- */

struct ll_power {
	double watts;         /* the instant value if the driver has it, else the average */
	double average_watts; /* over NVML's own window (1 s on data-centre cards) */
	bool is_instant;      /* watts is the instant value */
};

/* Reads the power. */
int ll_read_power(const struct ll_card *card, struct ll_power *ret_power, struct ll_err *err);

/* Reads the power limit in force. */
int ll_read_power_limit(const struct ll_card *card, double *ret_watts, struct ll_err *err);

/* Reads the energy used since the driver was loaded, in millijoules. */
int ll_read_energy(const struct ll_card *card, uint64_t *ret_energy_mj, struct ll_err *err);

/* ---- heat, clocks, slowdown ---- */

struct ll_temperature {
	double celsius;
	double slowdown_celsius; /* where the card slows down; NaN when unknown */
	double shutdown_celsius; /* NaN when unknown */
};

/* Reads the temperature and its two thresholds, by three calls. */
int ll_read_temperature(const struct ll_card *card, struct ll_temperature *ret_temperature, struct ll_err *err);

/* Reads the temperature alone. Takes 0.55 ms. */
int ll_read_celsius(const struct ll_card *card, double *ret_celsius, struct ll_err *err);

struct ll_clocks {
	unsigned sm_mhz, memory_mhz;
	unsigned max_sm_mhz; /* 0 when unknown */
};

/* Reads the clocks. */
int ll_read_clocks(const struct ll_card *card, struct ll_clocks *ret_clocks, struct ll_err *err);

/* Why the clocks are lower than asked for. LL_SLOWDOWN_HARM has the three reasons for which a synthetic load must stop.
 */
enum ll_slowdown {
	LL_SLOWDOWN_THERMAL = 1,     /* software or hardware, for heat */
	LL_SLOWDOWN_POWER_BRAKE = 2, /* an outside signal: the supply is in trouble */
	LL_SLOWDOWN_HARDWARE = 4,    /* hardware slowdown of either kind */
	LL_SLOWDOWN_POWER_CAP = 8,   /* at its power limit: normal under load */
	LL_SLOWDOWN_HARM = 7,
};

/* Reads why the clocks are low. *ret_slowdown: LL_SLOWDOWN_* or-ed. */
int ll_read_slowdown(const struct ll_card *card, unsigned *ret_slowdown, struct ll_err *err);

/* Writes "thermal, power brake" or "none" to text, and returns text. */
const char *ll_slowdown_text(unsigned slowdown, char *text, size_t size);

/* ---- modes ---- */

enum ll_compute_mode {
	LL_MODE_DEFAULT,
	LL_MODE_EXCLUSIVE_THREAD, /* obsolete; like EXCLUSIVE_PROCESS */
	LL_MODE_PROHIBITED,
	LL_MODE_EXCLUSIVE_PROCESS, /* one process only has contexts; all others are locked out */
};

/* Reads the compute mode. */
int ll_read_compute_mode(const struct ll_card *card, enum ll_compute_mode *ret_mode, struct ll_err *err);
const char *ll_compute_mode_text(enum ll_compute_mode mode); /* "default", "exclusive-process", … */

/* Sets the compute mode of the whole card, for all its users, until it is changed again or the driver is unloaded.
 * -EPERM: the caller is not root. */
int ll_set_compute_mode(const struct ll_card *card, enum ll_compute_mode mode, struct ll_err *err);

/* Reads whether persistence mode is on. */
int ll_read_persistence(const struct ll_card *card, bool *ret_is_on, struct ll_err *err);

/* ---- health ---- */

/* What NVML tells of a card's faults besides Xids. */

#define LL_HEALTH_UNKNOWN UINT64_MAX

/* Each is LL_HEALTH_UNKNOWN if the card or the driver does not tell. */
struct ll_card_health {
	uint64_t row_remap_failure; /* 1: a row of memory could not be replaced */
	uint64_t row_remap_pending; /* 1: rows of memory will be replaced at the next reset of the card */
	uint64_t ecc_uncorrected;   /* uncorrected errors of memory since the driver was loaded */
	uint64_t thermal_slowdown;  /* 1: its clocks are low for heat, now */
	uint64_t nvlink_errors;     /* replays, recoveries and CRC errors of all its links since these were reset */
};

/* Reads a whole card. Takes one call of NVML for each link and kind of error besides four others. */
void ll_read_health(const struct ll_card *card, struct ll_card_health *ret_health);

/* ---- xid ---- */

/*
 * The driver's fault reports (Xid) of one card, without waiting for them.
 *
 * A watch sees all faults from its opening on, also those of other users' programs on the card. One thread at a time.
 */

/* Opens a watch. -ENOSYS: the driver has no events, so no faults can be seen. -EPERM. */
int ll_xid_open(const struct ll_card *card, struct ll_xid_watch **ret_watch, struct ll_err *err);
void ll_xid_close(struct ll_xid_watch *watch); /* NULL is fine */

/* Takes the next fault, and returns at once. Returns 1 and the fault's number, 0 if there is none, or -errno. -ENODEV:
 * the card is gone. */
int ll_xid_poll(struct ll_xid_watch *watch, uint64_t *ret_xid, struct ll_err *err);

/* "GPU has fallen off the bus" for 79; "see NVIDIA's Xid catalogue" for those not known here. */
const char *ll_xid_text(uint64_t xid);

#endif
