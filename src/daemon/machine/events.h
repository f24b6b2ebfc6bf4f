/*
 * events.h - tells people what has happened, as `notify` of the configuration says.
 *
 *     ll_events_tell(server, LL_EVENT_STOPPED, &(struct ll_event_about){.job = job},
 *                    "job %llu was stopped: its time is over", number);
 *
 * Each event is a line of the journal, "stopped: job 12 was stopped: …". In the system's loadlined it also goes to the
 * terminals of the jobs that it is about (`to: tty`) and to commands (`command:`). A job's monitor writes to the
 * terminal of its job: loadlined has no right to. The program loadline-notify runs the commands (notify_link.h).
 * Nothing here waits.
 */
#ifndef LOADLINE_DAEMON_MACHINE_EVENTS_H
#define LOADLINE_DAEMON_MACHINE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct ll_server;
struct ll_job;

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

#endif
