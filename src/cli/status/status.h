/*
 * status.h - the state of one card at one moment, for `loadline status`, and its output as text and as JSON.
 */
#ifndef LOADLINE_CLI_STATUS_STATUS_H
#define LOADLINE_CLI_STATUS_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "advice/advice.h"
#include "base/strbuf.h"
#include "cli/common/daemon.h"
#include "driver/cards.h"
#include "driver/readings.h"
#include "hold/hold.h"
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

/* A process that uses the card under limits, or the card's synthetic load. Its number "0/17" is card 0, row.index 17.
 */
struct ll_status_claim {
	struct ll_message_claim_row row; /* of a synthetic load what its report has too; job_number is 0 */
	struct ll_message_job_row told;  /* number 0: a synthetic load, or loadlined does not tell */
	pid_t pid;
	bool is_pid_ours;          /* pid means the same here */
	bool is_stopped;           /* by a signal; false also if that is not known */
	enum ll_priority priority; /* of its job; LL_PRIORITY_HOLD: a synthetic load */
	uint64_t taken_ns;         /* ll_now_ns, within some ms */
	/* of a synthetic load. metric: what its target is about: "util", "power", … One of the targets is 0 */
	char payload[16], metric[16];
	unsigned target_permille, target_watts;
	uint64_t synthetic_busy_ns, energy_mj, yields;
};

/* A job on the card. */
struct ll_status_job {
	struct ll_message_card_row row;
	struct ll_message_job_row told; /* number 0: loadlined does not tell */
	enum ll_priority priority;
	uint64_t lost_since_ns; /* since when a process of it has no claim, and is not held to the limits; 0: none is
				   without */
	/* Lower classes are held for so much of the time in which a higher one has work. held_for: name of the tenant
	 * for which this one is held; NULL: it is held for nobody, and perhaps others for it. Both have the slowdown
	 * that the higher one aims at, and that which it has because of the lower ones (0: not known). */
	const char *held_for;
	unsigned held_permille, target_permille, seen_permille;
	uint64_t measured_wall_ns; /* when its speed by slices and by visits was measured (ll_wall_ns); 0: never */
	bool has_other_way; /* an earlier run of it beside the same others was by slices, and this is by space, or so */
	struct ll_other_way other_way;
};

/* As a job without these limits has them. number 0: 0. */
unsigned ll_status_weight(const struct ll_message_job_row *job);
unsigned ll_status_slowdown(const struct ll_message_job_row *job);

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

/* Writes the claim's state as the table has it: "running", "waits for 0/17", "mismatch", "holding 30 %". */
enum { LL_STATUS_STATE_SIZE = 128 };
void ll_status_write_state(const struct ll_status_card *status, const struct ll_status_claim *claim,
			   char ret_text[LL_STATUS_STATE_SIZE]);

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

/* The job's share of the card's time in percent: since the earlier reading, without one that which loadlined has seen
 * lately. False: it is not known. job may be NULL. */
bool ll_status_share(const struct ll_status_card *status, const struct ll_status_job *job, double *ret_percent);

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
void ll_status_add_why(struct ll_strbuf *text, const struct ll_status_job *job);

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

/* Returns what is known of a process of the card. Never NULL. */
const struct ll_status_process *ll_status_process_of(const struct ll_status_card *status, pid_t pid);

/* Reads the card's samples of utilisation, and goes on from what this user's earlier reading found, which it keeps in
 * the runtime folder for the next one. Without that folder it tells what NVML keeps. */
void ll_status_read_idle(struct ll_status_card *status);

/* If the earlier reading's span without work reaches into this one's, it becomes this one's beginning. */
void ll_status_idle_go_on(struct ll_status_idle *idle, const struct ll_status_idle *earlier);

/* When the program last had work on the card. */
struct ll_status_last ll_status_last_of_claim(const struct ll_status_card *status, const struct ll_status_claim *claim);
struct ll_status_last ll_status_last_of_stranger(const struct ll_status_card *status,
						 const struct ll_status_stranger *stranger);

/* The more precise of what the sensor tells and what this reading sees. */
struct ll_status_last ll_status_last_sensed(const struct ll_status_stranger *stranger, struct ll_status_last seen_here);

/* Whether the job's report does not agree with the driver. job may be NULL. ll_status_add_mismatch adds the sentences
 * with their line ends. */
bool ll_status_has_mismatch(const struct ll_status_job *job);
void ll_status_add_mismatch(struct ll_strbuf *text, const struct ll_status_card *status,
			    const struct ll_status_job *job);
json_t *ll_status_mismatch_json(const struct ll_status_job *job);

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

/* Returns whether standard output is a terminal, and writes its columns and rows, 0 if it is none. */
bool ll_status_terminal(unsigned *ret_columns, unsigned *ret_rows);

/*
 * The jobs that loadlined knows, for `loadline status`.
 */

/* Adds a table of the jobs that have no claim on these cards, because they do not use CUDA yet; the others are in the
 * rows of the cards. Adds nothing if there is none. */
void ll_status_add_jobs(struct ll_strbuf *text, const struct ll_daemon_view *view, const struct ll_status_card *cards,
			size_t count, unsigned columns);

/* Returns the state of a job without claims, not translated: "running", "stopped". */
const char *ll_status_job_state(const struct ll_daemon_view *view, const struct ll_job_facts *job);

/* Adds a line if loadlined does not answer, or another user has its name: then jobs and claims are not known. Another
 * one if it is the system's. */
void ll_status_add_daemon(struct ll_strbuf *text, const struct ll_daemon_view *view);

/* Prints one object {"daemon":{...}} and one {"job":{...}} for each of these jobs; nothing if there is none. */
int ll_status_print_jobs_json(const struct ll_daemon_view *view, const struct ll_status_card *cards, size_t count,
			      struct ll_err *err);

/* Makes the object of a job's limits; null for those that there are not. */
json_t *ll_status_limits_json(const struct ll_limits *limits);

/* Whether a job borrows, or is recalled (LL_QUEUE_IS_LENT, LL_QUEUE_IS_RECALLED); null: neither. */
json_t *ll_status_lending_json(uint64_t lending);

/* Prints the object of the daemon if it does not answer, or another user has its name. */
int ll_status_print_daemon_json(const struct ll_daemon_view *view, struct ll_err *err);

/*
 * How loadlined decided lately that a card is shared, for `loadline status --decisions`.
 *
 * loadlined keeps the last decisions of each card on which a job is (daemon/arbiter/decisions.h). As text each is a
 * line for people. As JSON it has all numbers that went into it, so that the pure code replays it
 * (tests/unit/share_decisions.c, share_decisions_lever.c).
 */

/* What loadlined tells of one card. */
struct ll_decision_list {
	bool has_state; /* the card is known */
	struct ll_message_decisions_state state;
	struct ll_message_decision *decisions;
	struct ll_message_decision_job *jobs; /* those of the first decision, then those of the second, … */
	size_t decision_count, job_count;
};

/* Asks. The caller calls fini in each case. -EAGAIN: decisions came faster than they were read. */
int ll_decision_list_read(struct ll_decision_list *list, struct ll_client *client, const char *uuid,
			  struct ll_err *err);
void ll_decision_list_fini(struct ll_decision_list *list);

/* wall_ns: the time of the reading (ll_wall_ns), from which the ages count. card: as `-i` names it. */
void ll_decision_list_add_text(struct ll_strbuf *text, const struct ll_decision_list *list, const char *card,
			       uint64_t wall_ns);
int ll_decision_list_print_json(const struct ll_decision_list *list, const struct ll_card *card, uint64_t wall_ns,
				struct ll_err *err);

/* Prints those of the cards. */
int ll_status_decisions(const struct ll_driver *driver, const struct ll_card *const *cards, size_t count, bool is_json,
			struct ll_err *err);

#endif
