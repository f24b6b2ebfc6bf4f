/*
 * hosts.h - `loadline status --host a,b`: asks several machines by ssh, all at once, and shows their answers together.
 *
 * Each machine runs `loadline status --json`. Its answer is somebody else's text: it is checked, and cleaned before it
 * is shown. A machine that does not answer in time, that ssh does not reach, that has no loadline, or that answers
 * anything else is shown with the reason.
 */
#ifndef LOADLINE_CLI_STATUS_HOSTS_H
#define LOADLINE_CLI_STATUS_HOSTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct ll_err;

/* Names the program in place of ssh: a path, or a name that is looked for in PATH. */
#define LL_STATUS_SSH_VARIABLE "LOADLINE_SSH"

enum { LL_STATUS_REASON_SIZE = 256 };

struct ll_status_host {
	char *name;
	struct ll_strbuf out, err;          /* what its ssh wrote */
	bool is_late;                       /* it has not ended in time */
	int wait_status;                    /* of its ssh; without meaning if is_late */
	json_t *lines;                      /* array of its objects; NULL: there are none that can be shown */
	bool is_older;                      /* an older loadline, which does not tell all */
	char reason[LL_STATUS_REASON_SIZE]; /* why it has failed; empty: it has not */
};

/* Splits the list, and checks the names. The caller calls fini in each case. -EINVAL: a name that ssh or a shell could
 * take for something else: only letters, digits and ._-@:[]% are in names, and no '-' begins one. */
int ll_status_hosts_init(const char *list, struct ll_status_host **ret_hosts, size_t *ret_count, struct ll_err *err);
void ll_status_hosts_fini(struct ll_status_host *hosts, size_t count);

/* Starts ssh for each, and collects what they write until all have ended, or the time has passed. Then none is left
 * running. -ENOENT: there is no ssh. */
int ll_status_hosts_ask(struct ll_status_host *hosts, size_t count, uint64_t within_ns, struct ll_err *err);

/* Reads the answer, and fills in lines and reason. */
void ll_status_host_read(struct ll_status_host *host, uint64_t within_ns);

/* Adds a table of the cards, one of the claims, and a line for each machine that has failed. */
void ll_status_hosts_add_text(struct ll_strbuf *text, const struct ll_status_host *hosts, size_t count,
			      unsigned columns);

/* Prints for each machine {"host":…,"failed":…,"older":…}, and then its objects with the member "host". */
int ll_status_hosts_print_json(const struct ll_status_host *hosts, size_t count, struct ll_err *err);

/* All of it. Returns 0; 1: a machine has failed; or a negative errno. */
int ll_status_hosts(const char *list, uint64_t within_ns, bool is_json, struct ll_err *err);

#endif
