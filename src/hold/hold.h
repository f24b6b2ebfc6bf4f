/*
 * hold.h - the synthetic load of 'loadline hold': what the user asks for, what happens on a card, and what other
 * programs are told.
 */
#ifndef LOADLINE_HOLD_HOLD_H
#define LOADLINE_HOLD_HOLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "driver/cards.h"
#include "driver/gpm.h"
#include "hold/payload.h"
#include "protocol/words.h"
#include "rules/hold/curve.h"
#include "rules/hold/hold_policy.h"
#include "rules/hold/summary.h"

struct ll_card;
struct ll_err;
struct ll_governed;
struct ll_hold;
struct ll_hold_socket;
struct ll_hold_sockets;
struct ll_process_list;

/* ---- config ---- */

/* What the user asked of `hold`. The command line fills it; one config serves all cards. */

enum ll_metric {
	LL_METRIC_UTIL,      /* NVML: share of time in which any kernel ran */
	LL_METRIC_SM,        /* GPM: share of SMs with a warp, over time */
	LL_METRIC_OCCUPANCY, /* GPM: share of warp slots in use, over SMs and time */
	LL_METRIC_TENSOR,    /* GPM: share of time in which the tensor pipes were active */
	LL_METRIC_DRAM,      /* GPM: share of the memory bandwidth in use */
	LL_METRIC_POWER,     /* NVML: watts */
};

struct ll_hold_config {
	enum ll_metric metric;
	enum ll_hold_mode mode;
	struct ll_curve curve; /* the target as a ratio; not for LL_METRIC_POWER. The caller owns its memory. */
	double target_watts;   /* for LL_METRIC_POWER */
	bool has_idle_target;
	double idle_target; /* ratio, or watts */
	uint64_t idle_after_ns;
	uint64_t resume_after_ns;
	uint64_t release_after_ns; /* 0: never */
	uint64_t max_memory_bytes; /* 0: no limit */
	uint64_t wait_ns;          /* how long to wait if the card has no memory for a context; 0: fail */
	double max_temperature_c;
	enum ll_payload_choice payload;
	bool as_mps_client;
	FILE *kernel_log; /* for measurements (governor.h); the caller owns it; NULL: none */
};

/* Returns "util", "sm", "occupancy", "tensor", "dram" or "power". */
const char *ll_metric_name(enum ll_metric metric);

/* Returns the factor from a level to its printed number: 100 for ratios, which are printed as percentages, 1 for power.
 */
double ll_metric_scale(enum ll_metric metric);

/* "%" or "W". */
const char *ll_metric_unit(enum ll_metric metric);

/* Whether GPM measures this metric. If so and ret_gpm is not NULL, *ret_gpm is the GPM reading. */
bool ll_metric_is_gpm(enum ll_metric metric, enum ll_gpm_metric *ret_gpm);

/* Whether only the CUDA payload has a kernel for this metric. */
bool ll_metric_needs_cuda(enum ll_metric metric);

/* ---- stranger ---- */

/*
 * Which program a hold yields to: the one that it names at its end.
 *
 * No reading tells which of several programs ran a kernel. A governed program that has work comes first, then any other
 * program with a context on the card. Processes that serve others and run no kernels themselves come last: MPS's server
 * and loadline's own.
 */

struct ll_hold_stranger {
	pid_t pid;       /* 0: no program is known, such as one in a PID namespace that NVML does not show */
	char name[64];   /* the tenant of a governed program, else the process's name */
	unsigned others; /* how many more programs are on the card, without processes that serve others */
};

/* Fills *stranger. If none is found it stays as it is. processes: those on the card; own_pid, the payload's process,
 * and the caller are no strangers. governed: the governed programs on the card (others.h). */
void ll_hold_stranger_find(const struct ll_process_list *processes, pid_t own_pid, const struct ll_governed *governed,
			   size_t governed_count, struct ll_hold_stranger *stranger);

/* ---- event ---- */

/*
 * What happened on a card, and the queue that takes it from the governors to the one reader.
 *
 * An event is a plain copy. If the reader is too slow, the queue drops samples. A quarter of its slots is kept for
 * everything else. All functions may be called from any thread.
 */

enum ll_event_kind {
	LL_EVENT_STATE, /* a change of state, such as an open context or the first kernel; text says which */
	LL_EVENT_SAMPLE,
	LL_EVENT_SETTLE, /* the level has settled; again only after LL_EVENT_LEAVE */
	LL_EVENT_LEAVE,  /* the level has left the band after it had settled; text says how far */
	LL_EVENT_YIELD,
	LL_EVENT_RESUME,
	LL_EVENT_RELEASE,
	LL_EVENT_FAULT,   /* something is wrong; text says what. The hold goes on if it can. */
	LL_EVENT_SUMMARY, /* the last event of a card */
};

/* What is known of the card now; NAN: unknown. */
struct ll_hold_status {
	enum ll_hold_state state;
	enum ll_hold_reason reason;
	enum ll_hold_sensor sensor;
	bool is_idle_target;
	bool is_foreign;
	double level;         /* the metric's last reading: ratio or watts */
	double target;        /* of now: ratio or watts */
	double command;       /* the ordered duty, 0..1 */
	double util;          /* from NVML, ratio */
	double own_util;      /* the share of the same window in which own kernels ran */
	double sm, occupancy; /* from GPM, ratio */
	double tensor, dram;  /* from GPM, ratio */
	double power_watts;
	double temperature_c;
	uint64_t memory_bytes; /* GPU memory that the hold takes */
	uint64_t synthetic_busy_ns;
	double synthetic_joules;
	double energy_joules;
	uint64_t yields;
	double yielded_seconds;
	char payload[16]; /* "vulkan", "cuda"; empty before the context */
};

struct ll_event {
	enum ll_event_kind kind;
	const struct ll_card *card;
	double time_s;    /* since the start of the hold */
	uint64_t wall_ns; /* ll_wall_ns() */
	struct ll_hold_status status;
	double settle_s;                  /* LL_EVENT_SETTLE */
	struct ll_summary_result summary; /* LL_EVENT_SUMMARY */
	struct ll_hold_stranger stranger; /* LL_EVENT_SUMMARY: the program that the hold last yielded to */
	int code;                         /* LL_EVENT_SUMMARY: 0, or the -errno that ended the card */
	char text[400];
	char hint[320];
};

enum { LL_EVENT_SLOTS = 512 };

struct ll_event_queue {
	pthread_mutex_t lock;
	int fd; /* an eventfd, readable while events wait */
	size_t head, tail;
	struct ll_event slots[LL_EVENT_SLOTS];
};

/* Fails with the errno of eventfd(2). */
int ll_event_queue_init(struct ll_event_queue *queue, struct ll_err *err);
void ll_event_queue_fini(struct ll_event_queue *queue);
/* Copies the event into the queue and wakes the reader. */
void ll_event_put(struct ll_event_queue *queue, const struct ll_event *event);

/* The two halves of ll_event_put, so that many events cost one wake-up: add them all, then wake the reader. */
void ll_event_add(struct ll_event_queue *queue, const struct ll_event *event);
void ll_event_wake(struct ll_event_queue *queue);

/* Takes the oldest event. False: none waits. */
bool ll_event_take(struct ll_event_queue *queue, struct ll_event *ret_event);

/* Returns "state", "sample", "settle" and so on: the name in JSON lines. */
const char *ll_event_name(enum ll_event_kind kind);

/* ---- hold socket ---- */

/*
 * The socket by which a hold reports on itself, and by which another finds that the card is held.
 *
 * A hold listens on an abstract Unix socket of its own for each card: its name is made of the card, the simulated
 * world, and a random number (protocol/place.h). So nobody can take a hold's name from it. The kernel frees the name
 * when the process ends. Who looks for a card's hold finds all such names in /proc/net/unix, and asks those that may be
 * holds. Abstract names belong to the network namespace: holds in different network namespaces do not know each other.
 *
 * Any user may bind such a name, and answer as a hold does. So a process is believed only if it is root's or the
 * asker's own, or NVML lists it, or a child of it, on the card. Where NVML cannot tell, its answer must do. Who is not
 * believed hinders nobody, and is named: he has a name and proves nothing. So a hold of another user that has no
 * context yet, or has given it back, keeps no other from the card; it sees the other's kernels and waits.
 *
 * A hold first listens, then notes the time, then looks. Of two that start at once, the later one so sees the earlier
 * one, whose time is earlier, and gives up.
 *
 * A process that connects gets one packet, the report of the hold. It can change nothing. A thread of the hold sends
 * the packets. This thread waits for nobody and calls no driver, so a hold whose driver call hangs still sends them.
 */

/* What a hold says of itself. Part of a packet: new fields go to the end, and no field changes. */
struct ll_hold_report {
	uint32_t state;                         /* enum ll_claim_state */
	uint32_t target_permille, target_watts; /* one of them is 0 */
	uint32_t unused;
	char metric[16];  /* of the target: "util", "power", ... */
	char payload[16]; /* empty before the first context */
	char note[64];    /* one phrase on the state, for people; may be empty */
	uint64_t memory_bytes;
	uint64_t gpu_time_ns, synthetic_busy_ns, energy_mj, yields;
	uint64_t taken_age_ns; /* since the hold took the card */
	uint64_t beat_age_ns;  /* since the last beat of its governor; it beats each second */
	uint64_t taken_ns;     /* ll_now_ns */
};

/* The process that holds a card. */
struct ll_hold_owner {
	pid_t pid;                    /* in the caller's PID namespace; 0: not seen from there */
	uid_t uid;                    /* in the caller's user namespace */
	bool has_report;              /* false: it sends no report, because it is stopped */
	struct ll_hold_report report; /* zeros without one */
};

/* A process that has a name of the card's holds, and is not believed. */
struct ll_hold_sitter {
	enum ll_hold_sitter_kind {
		LL_HOLD_NO_SITTER,
		LL_HOLD_ACCEPTS_NOBODY,
		LL_HOLD_HAS_NO_CONTEXT,
		LL_HOLD_DOES_NOT_ANSWER,
	} kind;
	pid_t pid; /* of the last two */
	uid_t uid;
};

/* ---- for other programs ---- */

/*
 * Finds the process that holds the card, of several the first one, and reads its report. sim_folder: the folder of the
 * simulated world; NULL: the real cards. Waits at most 0.5 s for the report. ret_sitter may be NULL; it is filled also
 * with -ENOENT, which says that nobody holds the card. Other errors: the question has no answer.
 */
int ll_hold_query(const struct ll_card *card, const char *sim_folder, struct ll_hold_owner *ret_owner,
		  struct ll_hold_sitter *ret_sitter, struct ll_err *err);

/* The tenant, as rows name it. */
#define LL_HOLD_TENANT "loadline-hold (synthetic load)"

/* ---- the hold ---- */

/*
 * Takes some cards, and starts the thread that answers. -EBUSY: another process holds one ("card 0: pid 123 already
 * holds it"); then none is taken. The state is LL_CLAIM_STARTING.
 */
int ll_hold_sockets_bind(const struct ll_card *const *cards, size_t count, const char *sim_folder,
			 struct ll_hold_sockets **ret_sockets, struct ll_err *err);

/* Closes all sockets and ends the thread. sockets may be NULL. */
void ll_hold_sockets_free(struct ll_hold_sockets *sockets);

/* Returns the socket of one of the cards. */
struct ll_hold_socket *ll_hold_sockets_at(struct ll_hold_sockets *sockets, size_t index);

/*
 * Change the report of the socket. Any thread may call them. They wait only while another thread copies a report.
 * set_target: one of the two is 0; metric is cut at 15 bytes, a note at 63.
 */
void ll_hold_socket_set_state(struct ll_hold_socket *hold_socket, enum ll_claim_state state, const char *note);
void ll_hold_socket_set_target(struct ll_hold_socket *hold_socket, const char *metric, unsigned permille,
			       unsigned watts);
void ll_hold_socket_set_payload(struct ll_hold_socket *hold_socket, const char *name);
void ll_hold_socket_add_yield(struct ll_hold_socket *hold_socket);

/* Adds the use since the last call to the report, sets its memory, and counts as a beat of the governor. */
void ll_hold_socket_account(struct ll_hold_socket *hold_socket, uint64_t busy_ns, uint64_t energy_mj,
			    uint64_t memory_bytes);

/* ---- hold ---- */

/*
 * Holds one or several cards at a chosen level: sockets, governors, events.
 *
 *     ll_hold_new(...);
 *     while (poll(ll_hold_fd(hold)) ...) while (ll_hold_take(hold, &event)) ...
 *     ll_hold_end(hold);        the summaries come as the last events
 *     ll_hold_free(hold, ...);
 *
 * Each card has a thread, the governor (governor.h), which decides. While a card has a context it also has a process,
 * the worker (pacer.h), which launches. Two or more cards that may run Vulkan share one worker. The caller's thread
 * only reads events.
 */

/*
 * Whether this card can be held as configured; the card is not touched. -EBUSY: exclusive-process mode, where our
 * context would lock every other program out, or prohibited mode. -ENOSYS: the card does not have the metric; err names
 * those that it has. -ENODEV: the card is in MIG mode, so its slices must be named. -EINVAL: the target is over the
 * card's power limit.
 */
int ll_hold_check(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err);

/*
 * Checks every card and binds its hold socket, then starts to hold them. If one card fails, none is held. -EBUSY: a
 * card is held already; err names the holder. config and cards must outlive the hold. Free with ll_hold_free.
 */
int ll_hold_new(const struct ll_hold_config *config, const struct ll_card *const *cards, size_t count,
		struct ll_hold **ret_hold, struct ll_err *err);

/* Returns a descriptor that is readable while events wait. It is the hold's. */
int ll_hold_fd(const struct ll_hold *hold);

/* Takes the oldest event. False: none waits. */
bool ll_hold_take(struct ll_hold *hold, struct ll_event *ret_event);

/* Asks every card to end. Returns at once. */
void ll_hold_end(struct ll_hold *hold);

/* Joins all threads and frees. NULL is fine. False: a driver call did not return by deadline_ns. Nothing is freed then;
 * the caller should end the process. */
bool ll_hold_free(struct ll_hold *hold, uint64_t deadline_ns);

#endif
