/*
 * daemon.h - loadlined as commands see it: where its program is, and what it tells. Nothing here starts it.
 */
#ifndef LOADLINE_CLI_COMMON_DAEMON_H
#define LOADLINE_CLI_COMMON_DAEMON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol/client.h"
#include "protocol/message.h"
#include "protocol/place.h"
#include "protocol/start.h"

struct ll_err;

struct ll_daemon_paths {
	struct ll_programs programs; /* point to the texts below */
	char daemon[PATH_MAX], monitor[PATH_MAX];
};

/* Finds the programs that were built or installed with this one. -ENOENT. */
int ll_daemon_paths_find(struct ll_daemon_paths *ret_paths, struct ll_err *err);

enum ll_daemon_answer {
	LL_DAEMON_NONE,    /* nobody serves this place */
	LL_DAEMON_SERVES,  /* it has told what it knows */
	LL_DAEMON_SILENT,  /* it has not answered within a second: it is stopped, or frozen with its control group */
	LL_DAEMON_FOREIGN, /* another user has the name */
	LL_DAEMON_BROKEN,  /* it could not be asked, or its answers cannot be read */
};

struct ll_daemon_view {
	struct ll_place place;
	enum ll_daemon_answer answer;
	int code;          /* LL_DAEMON_BROKEN: negative errno */
	uid_t foreign_uid; /* LL_DAEMON_FOREIGN */
	pid_t pid;         /* of who serves, as seen from here; 0: not seen */
	struct ll_message_welcome welcome;
	struct ll_list list; /* empty unless LL_DAEMON_SERVES */
};

/* Asks loadlined, and waits at most a second. sim_folder: of the simulated world; NULL: the real cards. The caller
 * calls fini in each case. */
void ll_daemon_view_init(struct ll_daemon_view *view, const char *sim_folder);

/* The same for a place that is known. */
void ll_daemon_view_init_at(struct ll_daemon_view *view, const struct ll_place *place);

/* Whether numbers of processes, which are the daemon's, mean the same here: it is in this PID namespace. */
bool ll_daemon_view_pids_are_ours(const struct ll_daemon_view *view);

void ll_daemon_view_fini(struct ll_daemon_view *view);

/*
 * For requests: connects, and reads the list. If nobody serves the list is empty, and client->fd is -1. The caller
 * closes the client and calls ll_list_fini in each case. -ETIMEDOUT, -EPERM: as ll_client_open.
 */
int ll_daemon_ask_list(const char *sim_folder, struct ll_client *client, struct ll_list *ret_list, struct ll_err *err);

#endif
