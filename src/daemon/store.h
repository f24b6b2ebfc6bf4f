/*
 * store.h - what the system's loadlined leaves with systemd, so that the next one has all jobs at once: also those
 * whose monitors are stopped, frozen or dead. For each job: its page, its orders, its lifeline, its first process, and
 * a file with what else is known of it (sd_notify's FDSTORE). systemd gives them back by LISTEN_FDS.
 *
 * Without systemd, or if it takes no more, all functions do nothing: then the monitors bring the jobs.
 */
#ifndef LOADLINE_DAEMON_STORE_H
#define LOADLINE_DAEMON_STORE_H

struct ll_server;
struct ll_job;

/* Leaves the descriptors of a new job there, and takes those of one that has ended away. */
void ll_store_add(const struct ll_server *server, const struct ll_job *job);
void ll_store_remove(const struct ll_server *server, const struct ll_job *job);

/* Takes the jobs of the daemon before. Their monitors may come later. */
void ll_store_restore(struct ll_server *server);

/* Tells systemd that this process serves. */
void ll_store_say_ready(const struct ll_server *server);

#endif
