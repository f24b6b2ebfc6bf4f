/*
 * jobs.h - a loadlined in the test's world, and jobs that are known to it, as `loadline run` would make them.
 *
 * A process registers its own job, as the job's monitor would, or joins the one of that id whose first process lives.
 * The job ends with its processes, and loadlined 2 s after the last job. Environment: LOADLINED and LOADLINE_JOB, the
 * programs.
 */
#ifndef LOADLINE_TESTS_SHIM_JOBS_H
#define LOADLINE_TESTS_SHIM_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/message.h"
#include "protocol/page.h"
#include "protocol/place.h"
#include "protocol/run_settings.h"

/* The place of this world; starts a loadlined there, if none is. */
void jobs_find_place(struct ll_place *ret_place);

/* What jobs that are registered from now on ask of their cards. Processes that are started later inherit it. */
extern enum ll_limit_sharing jobs_sharing;

/* Registers the job of the settings, and puts them into the environment. The place and the folder are filled in, and a
 * priority where there is none. */
void jobs_register(struct ll_run_settings settings);

/* The job of this process ends for loadlined, while its processes live: they have no claims from then on. It may be
 * registered again. */
void jobs_end(void);

/* The settings in the environment, with that place, and no job. */
void jobs_set_environment(struct ll_run_settings settings, const struct ll_place *place);

/* After loadlined's end: starts another one, and registers this process's job again as a monitor does, with its pages.
 */
void jobs_restart(void);

/* What a job shares with loadlined, by its id. This process maps it once. NULL: there is no such job. For one thread.
 */
struct jobs_pages {
	struct ll_page *page;
	const struct ll_orders *orders;
};
const struct jobs_pages *jobs_pages(uint64_t id);

/* The job's index of the card with that UUID; LL_PAGE_CARDS: none of its processes has used it. */
unsigned jobs_card(uint64_t id, const char *uuid);

/* The job's first slot on that card; NULL: none. */
struct ll_page_slot *jobs_slot(uint64_t id, const char *uuid);
unsigned jobs_count_slots(uint64_t id, const char *uuid);

/* What loadlined says of it. False: the job is not on the card. */
bool jobs_card_row(uint64_t id, const char *uuid, struct ll_message_card_row *ret_row);

/* As `loadline set` does it. */
void jobs_set(uint64_t id, enum ll_set_field field, const struct ll_limits *limits);

/* A new connection of this process to loadlined. */
int jobs_connect(void);

/* loadlined takes the claim of a process on the card away, as from a program that became another one. fd: a connection
 * that the process opened. Closes it. */
void jobs_lose_claim(int fd, pid_t pid, uint64_t id, const char *uuid);

/* The process that serves this world; 0: none. */
pid_t jobs_daemon(void);

#endif
