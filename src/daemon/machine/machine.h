/*
 * machine.h - the cards of the machine and the processes on them, as the sensor reports them.
 *
 * loadlined opens no driver. The program loadline-sensor (src/sensor) reads NVML, and connects with the role
 * LL_ROLE_SENSOR. It reports in rounds: SENSE_CARD for each card, SENSE_PROCESS for each process on a card, SENSE_END.
 * A round takes effect as a whole at its end. A sensor that does not report does not stop loadlined: the last round
 * stays, and ll_machine_silent_ns says how old it is. Without a sensor there are no cards.
 */
#ifndef LOADLINE_DAEMON_MACHINE_MACHINE_H
#define LOADLINE_DAEMON_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "protocol/keeper.h"
#include "protocol/message.h"

struct json_t;
struct ll_connection;
struct ll_job;
struct ll_job_card;
struct ll_keeper_wait;
struct ll_notify_link;
struct ll_server;

enum {
	LL_MACHINE_NUMA_UNKNOWN = -1,
	LL_MACHINE_NO_SLICE = -1,
	LL_MACHINE_CARDS_MAX = 1024,
	LL_MACHINE_PROCESSES_MAX = 16384
};

/* A card, or a MIG slice of one. Cards are in PCI order, each followed by its slices. */
struct ll_machine_card {
	unsigned index; /* in PCI order, as `-i` names it; a slice has its card's */
	int slice;      /* the number of the slice; LL_MACHINE_NO_SLICE: the whole card */
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t memory_bytes, usable_bytes, used_bytes; /* 0: unknown. usable: without the driver's own part */
	int numa_node;                                   /* LL_MACHINE_NUMA_UNKNOWN */
	char bus_id[32];                                 /* "0000:65:00.0" */
	bool is_lost;                                    /* it does not answer; it keeps its index */
	bool has_slices;                                 /* in MIG mode: it runs nothing itself */
	uint64_t last_xid, xid_ns, xids; /* faults (Xid) since loadlined's start; xid_ns: ll_now_ns; xids 0: none */
};

/* Adds the card to a list of cards as users write them, after a comma: its index, a slice as "7:0"; the UUID if the
 * sensor does not report it. What has no room is left out. */
void ll_machine_add_label(const struct ll_server *server, const char *uuid, char *text, size_t size);

/* Makes an empty machine. -ENOMEM. */
int ll_machine_init(struct ll_server *server);
void ll_machine_fini(struct ll_server *server);

/* The number of cards, slices included; 0: no sensor has reported yet. */
size_t ll_machine_card_count(const struct ll_server *server);

/* Returns the card at this place of the list, from 0; NULL: there are fewer. The card belongs to the machine, and is
 * valid until the loop's next round. */
const struct ll_machine_card *ll_machine_card(const struct ll_server *server, size_t place);

/* Returns the card with this UUID; NULL: none. */
const struct ll_machine_card *ll_machine_card_find(const struct ll_server *server, const char *uuid);

/* Changes whenever cards appear, disappear, are lost or come back. 0: no sensor has reported yet. */
uint64_t ll_machine_card_changes(const struct ll_server *server);

/* Time since the sensor's last message; UINT64_MAX: no whole report has come. A sensor reports each 5 s. */
uint64_t ll_machine_silent_ns(const struct ll_server *server);

/* ---- between the files of this folder ---- */

/* Whether a process of this uid may be the sensor. */
bool ll_machine_accepts(const struct ll_server *server, uint32_t uid);

/* Whether another connection's sensor reports: the reports of two would mix. One that is silent for long is none. */
bool ll_machine_has_other(const struct ll_connection *connection);

/* Handles a message of the sensor. Returns false if it is not allowed; the connection is then closed. */
bool ll_machine_handle(struct ll_connection *connection, const union ll_message *message);

/* The connection has ended. */
void ll_machine_disconnect(struct ll_server *server, const struct ll_connection *connection);

/* The rows of the last round, as loadlined has completed them. They belong to the machine. */
const struct ll_message_sense_process *ll_machine_processes(const struct ll_server *server, size_t *ret_count);
const struct ll_message_sense_card *ll_machine_rows(const struct ll_server *server, size_t *ret_count);

/*
 * events.c: tells people what has happened, as `notify` of the configuration says.
 *
 *     ll_events_tell(server, LL_EVENT_STOPPED, &(struct ll_event_about){.job = job},
 *                    "job %llu was stopped: its time is over", number);
 *
 * Each event is a line of the journal, "stopped: job 12 was stopped: …". In the system's loadlined it also goes to the
 * terminals of the jobs that it is about (`to: tty`) and to commands (`command:`). A job's monitor writes to the
 * terminal of its job: loadlined has no right to. The program loadline-notify runs the commands (links.c).
 * Nothing here waits.
 */

/* In the order of ll_config_events, which has the names. */
enum ll_event_kind {
	LL_EVENT_RECLAIM,
	LL_EVENT_EVICTED,
	LL_EVENT_RESUMED,
	LL_EVENT_STOPPED,
	LL_EVENT_TIME_ENDING,
	LL_EVENT_IDLE_HOLDER,
	LL_EVENT_BUDGET,
	LL_EVENT_LOW_USE,
	LL_EVENT_UNGOVERNED,
	LL_EVENT_UNHEALTHY,
	LL_EVENT_DRAINED,
	LL_EVENT_DATABASE,
	LL_EVENT_CONFIG,
	LL_EVENT_ENDLESS_KERNEL,
};

/*
 * What the event is about. A job's tenant, user and command need not be given. The terminals that are told: with a job
 * that of the job; else with a tenant or a user those of all of their jobs; else with a card those of the jobs on it;
 * else none.
 */
struct ll_event_about {
	const struct ll_job *job; /* NULL: none */
	const char *tenant;       /* the configured tenant; NULL: none */
	const char *card;         /* UUID; NULL: none */
	const char *command;      /* of a process outside of jobs; NULL: none */
	bool has_uid;
	uint32_t uid;
};

/* Tells. about may be NULL. The text is one sentence without a full stop. */
void ll_events_tell(const struct ll_server *server, enum ll_event_kind kind, const struct ll_event_about *about,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));

enum { LL_EVENT_DURATION_SIZE = 24 };

/* Writes a length of time for a sentence: "45 s", "12 min", "3.5 h", "2.0 d". */
void ll_event_duration(uint64_t ns, char ret_text[LL_EVENT_DURATION_SIZE]);

/*
 * links.c, first: the connection of the system's loadlined to loadline-keeper (protocol/keeper.h).
 *
 * A request never blocks the loop: its reply calls a function later. The link connects when a request is made and there
 * is no connection; systemd starts the keeper then. A user's loadlined has no keeper.
 */

struct ll_keeper_link {
	struct ll_server *server;
	uv_loop_t *loop;
	struct ll_place place;
	uv_poll_t *poll; /* NULL: no connection */
	int fd;
	uint32_t serial;
	uv_timer_t timer; /* of the first deadline */
	struct ll_keeper_wait *waits;
	enum ll_keeper_state state;
	struct ll_groups groups;        /* kind LL_GROUPS_NONE: the keeper has not answered yet */
	bool has_told_no_device_memory; /* the kernel has no such limits (job_group.c), and the log has it */
	uint64_t retry_ms;              /* before this time of the loop's clock no connection is tried */
};

/* system: the place of the system's loadlined; NULL: this is a user's. */
int ll_keeper_link_init(struct ll_keeper_link *link, struct ll_server *server, uv_loop_t *loop,
			const struct ll_place *system);
void ll_keeper_link_fini(struct ll_keeper_link *link);

/* code: of the reply, or -ETIMEDOUT: the keeper did not answer within 2 s; -ECONNRESET: it has ended. reason: of a
 * refusal. data: as passed. */
typedef void ll_keeper_on_reply(struct ll_server *server, int code, const char *reason, uint64_t data);

/* Sends a request; version and serial are filled in. pidfd: -1: none; the caller keeps it. Returns false if there is no
 * keeper, or it refuses all: on_reply is not called then, otherwise once, never before the function returns. */
bool ll_keeper_link_send(struct ll_keeper_link *link, const struct ll_keeper_request *request, int pidfd,
			 ll_keeper_on_reply *on_reply, uint64_t data);

/* Connects, to learn where jobs have their groups. Does nothing if that is known. */
void ll_keeper_link_greet(struct ll_keeper_link *link);

/*
 * links.c, then: the connection of the system's loadlined to loadline-notify, which runs the commands of `notify`.
 *
 * loadlined may start no program of another user, so loadline-notify is a service of its own (notify/main.c). Events
 * wait in a queue of 128, of them at most 32 about one user, until it reads them. If there is no room, further events
 * are dropped: the journal says so at the first one, and the next event that is told has their number.
 */

enum { LL_NOTIFY_QUEUE = 128, LL_NOTIFY_OF_USER = 32 };

/* system: as above; a user's loadlined has no link: *ret_link is NULL. -ENOMEM. */
int ll_notify_link_new(uv_loop_t *loop, const struct ll_place *system, struct ll_notify_link **ret_link);

/* Before the loop's last turn, which frees it. NULL is fine. */
void ll_notify_link_free(struct ll_notify_link *link);

/* Sends an event (a message LL_MESSAGE_EVENT) with the path of the command. Never waits. link NULL: does nothing. */
void ll_notify_link_send(struct ll_notify_link *link, const union ll_message *message, const char *hook);

/* Returns how many events wait because loadline-notify does not listen. link NULL: 0. */
uint32_t ll_notify_link_waiting(const struct ll_notify_link *link);

/*
 * machine.c: faults of cards: `health` of the configuration.
 *
 * The sensor reports Xids and conditions. A card with an Xid of `drain-xid` or a condition of `drain` is
 * drained, as by `loadline queue drain`, with the reason, and the event `drained`. A condition of `warn` is the event
 * `unhealthy`. What has been told of a card is known: it drains or warns again only if it happens again, that is, if a
 * count rises, or a state that had ended begins, also after a restart of loadlined. So an operator may put a card back
 * into use at any time. NVLink errors count from the sensor's first report on; they warn once in an hour at most.
 */

/* Returns what has been told of each card, for the state that outlives loadlined (queue/pack.c). The caller owns
 * it. NULL: no memory. */
struct json_t *ll_health_pack(const struct ll_server *server);

/* Takes over what ll_health_pack() returned in a former loadlined. */
void ll_health_unpack(struct ll_server *server, const struct json_t *list);

void ll_health_fini(struct ll_server *server);

/*
 * ungoverned.c, first: whether what a job reports agrees with what the driver says.
 *
 * Memory: the driver counts the memory of each process on a card. That of a job's processes must not be above what the
 * job's page says, with a tolerance of 1 GiB for each process and 2 %: the library estimates contexts, or leaves them
 * out (--count-context=no), and does not charge the code of kernels (doc/run.md). On one H100 the driver counted 84 MiB
 * more for a product of matrices in PyTorch. A process of the job without the library has no memory in the page, so it
 * is found here. One reading may be of another moment than the page; so two rounds in a row must say so.
 *
 * A process of a job that is on a card and has no claim there is beyond the job's limits, whatever the sums say.
 *
 * With `mismatch: {action: stop}` of the configuration a job whose memory does not agree is stopped (job_upkeep.c), and
 * one with a process that has no claim. A job that has neither a place in the queue nor a control group is reported
 * alone.
 *
 * Time: a job's GPU time in a period must not be above the time in which the card had work of anybody. The period is 20
 * s or more, and the tolerance 20 % of it, since NVML counts in samples. The opposite cannot be told: the driver's
 * utilisation is of the whole card, and reads too high beside other contexts (doc/facts.md).
 */

/* Of a job on a card. Zeroed when the job joins the card. */
struct ll_mismatch {
	uint64_t driver_bytes;  /* of the last round; 0: unknown */
	unsigned memory_rounds; /* rounds in a row in which the memory did not agree */
	bool is_time_wrong;
	uint64_t begin_ns, gpu_ns, busy_ns; /* at the beginning of the present period; begin_ns 0: there is none */
	uint64_t checked_ns, checked_gpu_ns, checked_busy_ns; /* the last period: its length, and the two differences */
};

/* A round of the sensor has arrived: checks all jobs, and logs what has begun not to agree. */
void ll_mismatch_look(struct ll_server *server);

/* Whether the job's memory or time on the card does not agree. */
bool ll_mismatch_has_memory(const struct ll_job_card *card);
bool ll_mismatch_has_time(const struct ll_job_card *card);

/*
 * ungoverned.c, then: processes on a card that belong to no job, and `ungoverned` of the configuration. Also processes
 * of a job that have no claim, which its limits do not reach.
 *
 * The sensor reports them. A program whose path is on the list of the configuration (ungoverned.allow) is
 * left alone, if the file is root's and nobody else may write to it. Each other one is logged when it is first seen.
 * With the action stop or kill it gets SIGTERM or SIGKILL from the keeper when it has been seen for `after`, and again
 * each 30 s while it is there; with stop SIGKILL after the grace of `reclaim: stop`. Processes of root and of
 * loadlined's user are reported alone. In the first 10 s of loadlined nothing is ended, because the jobs of a former
 * daemon are registered anew then. The server of MPS is left alone; its clients are not.
 */

/* Sets the flags of the rows of a round, logs those that are new, and requests the signals that are due. job_number is
 * set. */
void ll_ungoverned_look(struct ll_server *server, struct ll_message_sense_process *rows, size_t count);

void ll_ungoverned_fini(struct ll_server *server);

#endif
