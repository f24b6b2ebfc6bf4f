/*
 * store.h - what the system's loadlined stores with systemd, so that the next daemon has all jobs at once. That
 * includes jobs whose monitors are stopped, frozen or dead. For each job it stores the page, the orders, the lifeline,
 * the first process, and a file with the other facts (sd_notify's FDSTORE). systemd returns the descriptors by
 * LISTEN_FDS.
 *
 * Without systemd, or if its store is full, all functions do nothing: the monitors then register the jobs again.
 */
#ifndef LOADLINE_DAEMON_CORE_STORE_H
#define LOADLINE_DAEMON_CORE_STORE_H

struct ll_server;
struct ll_job;

/* Store the descriptors of a new job, and remove those of an ended one. */
void ll_store_add(const struct ll_server *server, const struct ll_job *job);
void ll_store_remove(const struct ll_server *server, const struct ll_job *job);

/* Takes over the jobs of the former daemon. Their monitors may connect later. */
void ll_store_restore(struct ll_server *server);

/* Tells systemd that this process serves. */
void ll_store_say_ready(const struct ll_server *server);

#endif
