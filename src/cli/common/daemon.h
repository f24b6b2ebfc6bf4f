/*
 * daemon.h - loadlined as commands see it: where its program is, and what it tells.
 *
 * One that was started just now knows the jobs only when their monitors have come to it, which takes some ms. Nothing
 * here takes what such a one does not know for what is not there.
 */
#ifndef LOADLINE_CLI_COMMON_DAEMON_H
#define LOADLINE_CLI_COMMON_DAEMON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/cards.h"
#include "protocol/client.h"
#include "protocol/message.h"
#include "protocol/place.h"
#include "protocol/start.h"

struct ll_err;
struct ll_strbuf;

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
	struct ll_policy policy; /* what this user may have by the configuration; empty: none is in force */
	struct ll_list list;     /* empty unless LL_DAEMON_SERVES */
	struct ll_sensed sensed; /* of the system's; empty unless it serves and has a sensor */
};

/* Asks loadlined, and waits at most a second for its answer. Does not start it. sim_folder: of the simulated world;
 * NULL: the real cards. The caller calls fini in each case. */
void ll_daemon_view_init(struct ll_daemon_view *view, const char *sim_folder);

/* The same for a place that is known. */
void ll_daemon_view_init_at(struct ll_daemon_view *view, const struct ll_place *place);

/* Whether numbers of processes, which are the daemon's, mean the same here: it is in this PID namespace. */
bool ll_daemon_view_pids_are_ours(const struct ll_daemon_view *view);

void ll_daemon_view_fini(struct ll_daemon_view *view);

/* The same of a connection. */
bool ll_daemon_pids_are_ours(const struct ll_client *client);

/* Uses the list, and asks more by the client. client NULL: nobody serves, and the list is empty. */
typedef int (*ll_daemon_look_fn)(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err);

/*
 * For requests: calls look with what loadlined tells, and returns what it returns. If that is -ENOENT, or the
 * connection was lost, it does so again as long as jobs may yet come to loadlined, for at most a second. starts: starts
 * loadlined if nobody serves. -ETIMEDOUT, -EPERM: as ll_client_open.
 */
int ll_daemon_look(const char *sim_folder, bool starts, ll_daemon_look_fn look, void *data, struct ll_err *err);

/* Connects, and starts loadlined if nobody serves. The caller closes the client in each case. */
int ll_daemon_open(const char *sim_folder, struct ll_client *client, struct ll_err *err);

/*
 * The cards as loadlined's sensor lists them, for a user who may not open them, as behind the fence.
 */

/*
 * Asks by the connection, and makes a driver of these cards (ll_driver_of_list), from which nothing can be read. fault:
 * of each card that is not lost; 0: they can be chosen as others can. sim_folder: of the simulated world, or NULL.
 * -ENOENT: there is no sensor, or it reports no cards.
 */
int ll_sensed_cards_ask(struct ll_client *client, int fault, const char *sim_folder, struct ll_driver **ret_driver);

/* Opens the driver; if that fails, the sensor's list of the cards. Errors are the driver's. */
int ll_cards_open(int fault, struct ll_driver **ret_driver, struct ll_err *err);

/* The sensor's list, if this process can open each card of it: to open the driver takes 24 ms of a processor (H200).
 * Otherwise as ll_cards_open with 0. */
int ll_cards_open_listed(struct ll_driver **ret_driver, struct ll_err *err);

/* As ll_cards_select; but without a text all cards, also those that do not answer. */
int ll_cards_list(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
		  size_t *ret_count, struct ll_err *err);

/*
 * The configuration that loadlined has in force, as commands tell it.
 */

enum { LL_MOMENT_SIZE = 32 };

/* The time of day in the machine's time zone, "2026-12-03 14:00:05". */
void ll_policy_moment(uint64_t seconds, char ret_text[LL_MOMENT_SIZE]);

/* Adds a line if the files on the disk are not what is in force. */
void ll_policy_add_state(struct ll_strbuf *text, const struct ll_message_welcome *welcome);

/* Adds a line for each tenant of the user, or of all users for an admin, that has jobs: its part of the guarantee, and
 * what its jobs asked for. One more line for each in which the user has more than each user may have. */
void ll_policy_add_tenants(struct ll_strbuf *text, const struct ll_policy *policy);

/* Adds an amount as people read it: "16 GiB", "25 %", "2". kind: 'm' bytes, 'c' permille of a card, 'n' a number. */
void ll_policy_add_amount(struct ll_strbuf *text, char kind, uint64_t amount);

/* What a row of a tenant says of one kind of amount. limit UINT64_MAX: none. */
struct ll_policy_amount {
	const char *name; /* not translated */
	char kind;        /* as in ll_policy_add_amount */
	uint64_t limit, used;
};

enum { LL_POLICY_AMOUNTS = 4 };

/* What is left of the limit; UINT64_MAX: there is no limit. */
uint64_t ll_policy_left(const struct ll_policy_amount *amount);

/* The limits of each user of the tenant, and what this user has. */
void ll_policy_user_amounts(const struct ll_message_policy_tenant *row, struct ll_policy_amount ret[LL_POLICY_AMOUNTS]);

#endif
