/*
 * world.h - jobs and a loadlined for a test, at a place of their own. The programs are those of the build.
 *
 * A job is what `run` makes: a process of the test, with a lifeline and a monitor. It ends when the test says so, or is
 * killed.
 */
#ifndef LOADLINE_TESTS_DAEMON_WORLD_H
#define LOADLINE_TESTS_DAEMON_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/common/daemon.h"
#include "protocol/message.h"
#include "protocol/place.h"
#include "protocol/start.h"

struct world {
	struct ll_place place;
	struct ll_programs programs;
	struct ll_limits limits; /* of the jobs that start from here on */
};

struct job {
	pid_t pid; /* the first process; a child of the test */
	uint64_t id;
	int stop_fd;   /* it ends when this is closed; the test has it alone */
	int report_fd; /* of job_launch: on which the monitor tells how it went; -1: told */
};

/* What the first process does before it waits for its end. id: for LOADLINE_RUN. */
typedef void job_body(int lifeline_fd, uint64_t id);

/* A new place. Programs: LOADLINED and LOADLINE_JOB of the environment. */
void world_init(struct world *world);

/* Kills what is left of the world's daemon. Jobs are ended before. */
void world_fini(struct world *world);

/* Starts a job, and waits until it is known. name: of the tenant; NULL: one of its own. body: NULL: nothing. Fails the
 * test if it cannot. */
void job_start(struct job *job, const struct world *world, const char *name, job_body *body);

/* The same, and does not wait. */
void job_launch(struct job *job, const struct world *world, const char *name, job_body *body);

/* The first process ends, and is waited for. */
void job_stop(struct job *job);

/* So many jobs are known, each with a monitor that has a connection. */
bool world_has_jobs(const struct world *world, size_t count);

/* Returns the number of the daemon; 0: nobody serves, or one is being started. */
pid_t world_daemon(const struct world *world);

/* Returns the number of the job's monitor; 0: the job is not known, or has none. */
pid_t job_monitor(const struct world *world, const struct job *job);

/* Kills a process. The test fails if pid is not above 1. */
void kill_process(pid_t pid, int signal);

/* Connects and says HELLO as a monitor or a command; returns the socket, which blocks. The answer has not been read. */
int world_connect(const struct world *world, uint32_t role);

/* Waits for the next message, at most 30 s. Returns its kind; 0: the connection has ended. */
unsigned next_message(int fd, union ll_message *ret_message);
unsigned next_message_with_fds(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_count);

#endif
