/*
 * status.h - the state of one card at one moment, for `loadline status`, and its output as text and as JSON.
 */
#ifndef LOADLINE_CLI_STATUS_STATUS_H
#define LOADLINE_CLI_STATUS_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "cli/common/daemon.h"
#include "cli/common/other_way.h"
#include "driver/readings.h"
#include "hold/hold_socket.h"
#include "protocol/accounts.h"
#include "protocol/words.h"

enum { LL_STATUS_COMMAND_SIZE = 512 };

#define LL_AGE_UNKNOWN UINT64_MAX

/* What /proc tells of a process; a text is empty if it does not tell. */
struct ll_status_process {
	pid_t pid;
	char user[64];
	/* Its words, perhaps cut; the program without its folder. Where they cannot be read now: the command that
	 * loadlined was told, or the kernel's name of the program, "[python3]". */
	char command[LL_STATUS_COMMAND_SIZE];
	uint64_t age_ns; /* LL_AGE_UNKNOWN */
	char tenant[64]; /* in which it was started, by its environment */
	bool is_older;   /* it has mapped a library of an older loadline, which governs it by a file */
	bool is_stopped; /* by a signal */
	bool is_stalled; /* its memory lock is held (cli/common/stalling.h): tenant and is_older are not known */
};

/* When a program last had work on its card: queued, or running. */
enum ll_last_kernel {
	LL_LAST_UNKNOWN,
	LL_LAST_RUNNING,  /* it has some now */
	LL_LAST_AGO,      /* ago_ns */
	LL_LAST_AT_LEAST, /* ago_ns or longer: the card had no work of anybody */
	LL_LAST_NEVER,
};

struct ll_status_last {
	enum ll_last_kernel kind;
	uint64_t ago_ns;
	bool is_card_busy; /* LL_LAST_UNKNOWN: somebody's work runs on the card */
};

/* A process on the card that has no claim. */
struct ll_status_stranger {
	pid_t pid;
	uint64_t memory_bytes;     /* LL_MEMORY_UNKNOWN */
	char name[32];             /* the process's name in the kernel; may be empty */
	bool is_mps_server;        /* MPS's server process, in which its clients' work runs */
	bool is_older;             /* it has mapped a library of an older loadline, which governs it by a file */
	enum ll_sense_last sensed; /* what loadlined's sensor tells; LL_SENSE_LAST_UNKNOWN: nothing */
	uint64_t sensed_ns;
	char sensed_tenant[64]; /* of the job to which it belongs, by loadlined; otherwise empty */
	char tenant[64]; /* the tenant in which it was started, if it dropped the preloaded library; otherwise empty */
	bool is_command_hidden; /* by the configuration (visibility: commands), also where /proc has it */
};

/* A process that uses the card under limits, or the card's synthetic load. */
struct ll_status_claim {
	unsigned index; /* "0/17" in status is card 0, index 17; 0 for a synthetic load */
	pid_t pid;
	bool is_pid_ours;          /* the number means the same here */
	bool is_stopped;           /* by a signal; false also if that is not known */
	enum ll_priority priority; /* of its job; LL_PRIORITY_HOLD: a synthetic load */
	enum ll_claim_state state;
	char tenant[64];                    /* its job's name */
	char project[64];                   /* of the accounts; empty: none, or hidden */
	char configured_tenant[64];         /* of the configuration; empty: none is in force */
	char told_command[LL_COMMAND_SIZE]; /* of the job's first process, as `run` said it; empty: it is another one */
	bool is_command_hidden;             /* by the configuration (visibility: commands), also where /proc has it */
	uint64_t idle_ns;                   /* since it had work; 0: it has some; UINT64_MAX: never, or not known */
	char payload[16];
	char metric[16];   /* what a hold's target is about: "util", "power", … */
	char note[64];     /* one phrase on the state, for people; may be empty */
	uint64_t taken_ns; /* ll_now_ns, within some ms */
	uint64_t memory_used_bytes, granted_bytes;
	enum ll_claim_residency residency;
	enum ll_claim_checkpoint checkpoint;
	uint64_t evictable_bytes, away_bytes, host_bytes;
	uint64_t neighbour_bytes;               /* of its memory that is on another card */
	char neighbour[LL_CARD_UUID_SIZE];      /* that card; empty: none */
	unsigned moves;                         /* of its memory, off the card or back on it */
	bool is_wanting;                        /* it has launches that wait or run */
	unsigned target_permille, target_watts; /* a hold's: one of them is 0 */
	uint64_t gpu_time_ns, synthetic_busy_ns, energy_mj, yields;
	struct ll_accounts accounts;
	uint64_t job_number;                               /* 0: a synthetic load */
	bool has_group;                                    /* its job has a control group of its own */
	uint64_t memory_limit_bytes, memory_request_bytes; /* of the job */
	unsigned compute_cap_permille, weight_permille, slowdown_permille;
};

/* How a job is shared, and why. */
struct ll_status_how {
	enum ll_shared shared;
	enum ll_sharing sharing; /* of the card */
	bool is_capped;          /* it would launch more, and its cap keeps it from that */
	bool is_beneath;         /* a job of a higher class is on the card */
	bool is_held;            /* another job has the turn */
	bool is_forced;          /* a command decided how the card is shared */
	unsigned cap_permille;
	/* Lower classes are held for so much of the time in which a higher one has work. held_for: name of the tenant
	 * for which this one is held; NULL: it is held for nobody, and perhaps others for it. Both have the slowdown
	 * that the higher one aims at, and that which it has because of the lower ones (0: not known). */
	const char *held_for;
	unsigned held_permille, target_permille, seen_permille;
	unsigned slice_us; /* of its contexts, as loadlined has ordered; 0: as the driver has it */
	/* Its part of the card's time lately, and how long that is; 0: not known. */
	unsigned share_permille;
	uint64_t share_ns;
	/* What was measured of it beside the jobs that are there: its speed by slices and by visits, of that while it
	 * is visited, and the time (ll_wall_ns). 0: not known. */
	unsigned slices_permille, visits_permille;
	uint64_t measured_wall_ns;
};

/* A job on the card. */
struct ll_status_job {
	uint64_t number, id;
	char name[64]; /* of its tenant */
	enum ll_priority priority;
	uint64_t memory_limit_bytes, memory_used_bytes, memory_request_bytes;
	uint64_t leaving_bytes; /* of those used: of processes that have ended, and whose memory the driver has still */
	unsigned compute_cap_permille, weight_permille, slowdown_permille, space_permille;
	uint64_t gpu_time_ns;
	struct ll_accounts accounts; /* of processes that have ended too */
	int64_t tokens_ns;
	uint64_t lost_since_ns; /* since when a process of it has no claim, and is not held to the limits; 0: none is
				   without */
	bool is_held;           /* it waits for the card, because another job has the turn */
	bool is_holder;         /* it has the turn */
	unsigned held_permille; /* of the time in which it has work lower classes are held for it */
	unsigned seen_slowdown_permille; /* because of them; 0: not known */
	struct ll_status_how how;
	unsigned claims;
	/* how long it has been beside those that want the card with it now, and what it completed; 0: not counted */
	uint64_t company_ns, company_launches;
	/* what it reports does not agree with the driver (daemon/machine/mismatch.h) */
	bool has_memory_mismatch, has_time_mismatch;
	uint64_t driver_bytes; /* of its processes, by the driver; 0: not known */
	uint64_t checked_ns, checked_gpu_ns, checked_busy_ns;
	bool has_other_way; /* an earlier run of it beside the same others was by slices, and this is by space, or so */
	struct ll_other_way other_way;
};

/*
 * Since when the card has had no work: each of NVML's samples of utilisation says 0 %. A sample is of 200 ms on an H200
 * and counts whole percents, so kernels of less than 2 ms in that time are not seen. NVML keeps about 14 s. What was
 * seen before goes on from reading to reading (idle.c).
 */
struct ll_status_idle {
	bool is_known;
	uint64_t
	    since_ns;     /* ll_boot_ns; the end of the last sample with work is not before; 0: the card has work now */
	uint64_t seen_ns; /* ll_boot_ns; the end of the newest sample */
};

/* A value that the card does not tell is NaN, LL_MEMORY_UNKNOWN, or has a false has_… field. */
struct ll_status_card {
	bool is_drained;            /* it gets no jobs (queue drain) */
	char drained[LL_NAME_SIZE]; /* why: "Xid 79"; empty: an operator drained it */
	const struct ll_card *card;
	bool is_simulated;
	double util_percent;
	bool has_memory;
	struct ll_memory memory;
	double power_watts, power_limit_watts;
	double energy_joules;
	double celsius, slowdown_celsius;
	bool has_clocks;
	struct ll_clocks clocks;
	bool has_slowdown;
	unsigned slowdown;
	bool has_mode;
	enum ll_compute_mode mode;
	struct ll_process_list processes;
	bool has_processes;
	struct ll_status_claim *claims; /* in the order of their numbers; a synthetic load is the last */
	size_t claim_count;
	struct ll_status_job *jobs;
	size_t job_count;
	enum ll_sharing sharing;  /* by those jobs */
	unsigned visits_permille; /* as measured, their progress by visits of that by time slices; 0: not known */
	struct ll_earlier *earlier_runs; /* what earlier runs did; NULL: not read */
	struct ll_status_stranger *strangers;
	size_t stranger_count;
	size_t hidden_count;             /* ll_status_hide_others */
	struct ll_status_process *known; /* the processes of claims, and those without; NULL: no memory */
	size_t known_count;
	struct ll_status_idle idle;
	struct ll_hold_sitter sitter;
	uint64_t now_ns;                      /* time of this reading */
	const struct ll_status_card *earlier; /* the reading of the same card before this one; NULL: none */
};

/*
 * Reads the card, and takes from the view what loadlined knows of it. A value that the card does not tell stays
 * unknown. -ENOMEM: then there are no claims. The caller calls fini in each case.
 */
int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, const struct ll_daemon_view *view,
			struct ll_err *err);
void ll_status_card_fini(struct ll_status_card *status);

/* Takes claims and jobs from the view, and asks the card's synthetic load. ll_status_card_init calls it. */
int ll_status_read_claims(struct ll_status_card *status, const struct ll_daemon_view *view, struct ll_err *err);

/* Adds the card's synthetic load to the claims, which have room for it. ll_status_read_claims calls it. */
void ll_status_read_hold(struct ll_status_card *status);

/* Finds the card's processes without a claim. ll_status_card_init calls it after it has read the claims. */
void ll_status_find_strangers(struct ll_status_card *status);

/* Removes those of other users, and counts them: loadlined hides other users' jobs, and so it is not known which of
 * them are jobs. */
void ll_status_hide_others(struct ll_status_card *status);

/* Returns the bytes that the card itself counts for the claim's process (NVML). LL_MEMORY_UNKNOWN: the card does not
 * tell, or the process ids cannot be compared. */
uint64_t ll_status_card_bytes(const struct ll_status_card *status, const struct ll_status_claim *claim);

/* Where the memory of an evictable program is. Memory that is away stays charged. */
struct ll_status_residency {
	uint64_t resident_bytes;  /* on the card */
	uint64_t evictable_bytes; /* what can be moved, wherever it is */
	uint64_t pinned_bytes;    /* what cannot be moved: contexts, arrays, managed memory and their like */
	uint64_t host_bytes;      /* of the host's memory that the process has ready for a move */
	uint64_t neighbour_bytes; /* on another card */
	unsigned moves;           /* off the card or back on it */
};

/* Returns false if the program is not evictable. */
bool ll_status_residency_of(const struct ll_status_claim *claim, struct ll_status_residency *ret_residency);

/* Returns the claim's state in words: "running", "stopped", "evicted"; "evicted (checkpoint)" and "suspended" if the
 * driver's checkpoint did it. A program that it stopped neither waits for a turn nor has one. */
const char *ll_status_state(const struct ll_status_claim *claim);

/* Returns the claim's job. NULL: it is a synthetic load. */
const struct ll_status_job *ll_status_job_of(const struct ll_status_card *status, const struct ll_status_claim *claim);

/* How the output looks. */
struct ll_status_style {
	bool is_json, is_long;
};

/* The share of the card's time that a job or a synthetic load had since the earlier reading. The functions return
 * false if there is no earlier reading, or the job or load is not in it. */
struct ll_status_recent {
	double percent, seconds;
};
bool ll_status_recent_job(const struct ll_status_card *status, const struct ll_status_job *job,
			  struct ll_status_recent *ret_recent);
bool ll_status_recent_hold(const struct ll_status_card *status, const struct ll_status_claim *hold,
			   struct ll_status_recent *ret_recent);

/* *ret_seconds: for how long a process of the job has had no claim, and was not held to the limits (doc/run.md).
 * Returns false if all of its processes have claims. */
bool ll_status_lost(const struct ll_status_card *status, const struct ll_status_job *job, double *ret_seconds);

/* A claim that has the turn, if this one has work and another job has the turn; else NULL. */
const struct ll_status_claim *ll_status_waits_for(const struct ll_status_card *status,
						  const struct ll_status_claim *claim);

/* Writes the number, "0/17", and returns it. A synthetic load is "0/hold". */
enum { LL_STATUS_NUMBER_SIZE = 48 };
const char *ll_status_number(const struct ll_status_card *status, const struct ll_status_claim *claim,
			     char ret_number[LL_STATUS_NUMBER_SIZE]);

/* Whether its job has the turn. */
bool ll_status_has_turn(const struct ll_status_card *status, const struct ll_status_claim *claim);

/* Whether the claim's job has used up its share of time. */
bool ll_status_is_over_cap(const struct ll_status_card *status, const struct ll_status_claim *claim);

/* Prints one object for the card, then one for each claim, each job without claims, and each process without a
 * claim. */
int ll_status_print_json(const struct ll_status_card *status, struct ll_err *err);

/* Returns "alone", "slices", "visits", "space" or "windows"; NULL: not known. */
const char *ll_status_shared_name(enum ll_shared shared);

/* Adds a sentence without an end: "gates open: visits were measured not to pay; measured at 12:01". */
void ll_status_add_why(struct ll_strbuf *text, const struct ll_status_how *how);

/* Adds long lines: one for each claim, each job without claims, and each process without a claim. */
void ll_status_add_claims(struct ll_strbuf *text, const struct ll_status_card *status);

/*
 * Adds a table with a row for each card, and one with a short row for each claim, each job without claims and each
 * process without a claim. columns: width of the terminal (table.h). Names and commands are cut to fit it, numbers and
 * "simulated" never. 0: nothing is cut. is_long: the long lines of a card stand below its row instead.
 */
void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns,
			bool is_long);

/* Adds a line if a process says that it holds the card, and is not believed. */
void ll_status_add_sitter(struct ll_strbuf *text, const struct ll_status_card *status);

/* Adds the second of these tables. */
void ll_status_add_rows(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns);

/*
 * Reads what /proc tells of these processes, all at once. A process whose memory lock is held has is_stalled, and is
 * waited for 250 ms at most (cli/common/stalling.h). Returns an array that the caller frees; NULL: no memory.
 */
struct ll_status_process *ll_status_processes_read(const pid_t *pids, size_t count);

/* Returns what is known of a process of the card. Never NULL. */
const struct ll_status_process *ll_status_process_of(const struct ll_status_card *status, pid_t pid);

/* Reads it for the processes of claims and of those without. ll_status_card_init calls it after it has found these. */
void ll_status_know_processes(struct ll_status_card *status);

/* Reads the card's samples of utilisation, and goes on from what this user's earlier reading found, which it keeps in
 * the runtime folder for the next one. Without that folder it tells what NVML keeps. */
void ll_status_read_idle(struct ll_status_card *status);

/* If the earlier reading's span without work reaches into this one's, it becomes this one's beginning. */
void ll_status_idle_go_on(struct ll_status_idle *idle, const struct ll_status_idle *earlier);

/* When the program last had work on the card. */
struct ll_status_last ll_status_last_of_claim(const struct ll_status_card *status, const struct ll_status_claim *claim);
struct ll_status_last ll_status_last_of_stranger(const struct ll_status_card *status,
						 const struct ll_status_stranger *stranger);

/* Takes from the view what the sensor tells of the card's processes without a claim. ll_status_card_init calls it. */
void ll_status_take_sensed(struct ll_status_card *status, const struct ll_daemon_view *view);

/* The more precise of what the sensor tells and what this reading sees. */
struct ll_status_last ll_status_last_sensed(const struct ll_status_stranger *stranger, struct ll_status_last seen_here);

/* Whether the job's report does not agree with the driver. job may be NULL. ll_status_add_mismatch adds the sentences
 * with their line ends. */
bool ll_status_has_mismatch(const struct ll_status_job *job);
void ll_status_add_mismatch(struct ll_strbuf *text, const struct ll_status_card *status,
			    const struct ll_status_job *job);
json_t *ll_status_mismatch_json(const struct ll_status_job *job);

/* Takes from the view whether the card is drained. ll_status_card_init calls it. */
void ll_status_card_drained(struct ll_status_card *status, const struct ll_daemon_view *view);

/* Takes memory and processes of a card that cannot be opened from the view. Returns false if the sensor does not tell
 * of it. ll_status_card_init calls it. */
bool ll_status_card_by_sensor(struct ll_status_card *status, const struct ll_daemon_view *view);

/* Adds a line if loadlined's sensor is silent, or sees no card. */
void ll_status_add_sensor(struct ll_strbuf *text, const struct ll_daemon_view *view);

/* Returns its word in --json: "running", "ago", "at_least", "never", "unknown". */
const char *ll_status_last_name(const struct ll_status_last *last);

/* Adds "now", "12 s", "≥ 3 h", "never", "unknown: card busy" or "unknown". */
void ll_status_add_last(struct ll_strbuf *text, const struct ll_status_last *last);

/* Adds a time in one unit, rounded down: "0 s", "90 s", "45 min", "3 h", "12 d". Nothing for LL_AGE_UNKNOWN. */
void ll_status_add_age(struct ll_strbuf *text, uint64_t age_ns);

/* The age of the claim's process; where that is not seen, of the claim. */
uint64_t ll_status_age(const struct ll_status_card *status, const struct ll_status_claim *claim);

/* Reads the beginning of /proc/PID/NAME, and ends it by a NUL. Returns its length; -1: it cannot be read. */
ssize_t ll_status_read_proc(pid_t pid, const char *name, char *text, size_t size);

/* Returns whether standard output is a terminal, and writes its columns and rows, 0 if it is none. */
bool ll_status_terminal(unsigned *ret_columns, unsigned *ret_rows);

/*
 * Prints a reading each every_ns until SIGINT or SIGTERM, and then returns 0. On a terminal each reading replaces the
 * one before. Otherwise an empty line separates them.
 */
int ll_status_watch(const struct ll_card *const *cards, size_t count, uint64_t every_ns,
		    const struct ll_status_style *style, struct ll_err *err);

#endif
