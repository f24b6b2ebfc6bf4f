/*
 * limits.h - what a user, or a job, may have, has, and finds left on the cards, for `loadline limits`.
 */
#ifndef LOADLINE_CLI_LIMITS_LIMITS_H
#define LOADLINE_CLI_LIMITS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/common/daemon.h"
#include "cli/status/status.h"

struct ll_err;

/* One of the jobs that are told. */
struct ll_limits_job {
	const struct ll_message_job_row *row;
	/* loadlined does not know it, or does not answer: these are the limits with which it began */
	bool is_as_begun;
};

struct ll_limits_view {
	uid_t uid;
	char user[64];
	bool is_inside;   /* this process is in a job: then that is the only one */
	bool has_library; /* ll_limits_has_library: the cards' memory is not that of the cards */
	struct ll_limits_job *jobs;
	size_t job_count;
	struct ll_daemon_view daemon;
	struct ll_status_card *cards; /* all; inside a job those that it uses, if that is known */
	size_t card_count;
	struct ll_message_job_row begun; /* of a job that is told as it began */
};

/* Reads all of it. The caller calls fini in each case. */
int ll_limits_view_init(struct ll_limits_view *view, const struct ll_driver *driver, struct ll_err *err);
void ll_limits_view_fini(struct ll_limits_view *view);

/* Returns the job's use of the card; NULL: it has nothing there. */
const struct ll_status_job *ll_limits_use(const struct ll_status_card *card, const struct ll_limits_job *job);

/* Returns how much more memory the job could have on the card now: the rest of its limit, if the card has so much.
 * LL_MEMORY_UNKNOWN: the card does not tell. */
uint64_t ll_limits_left_bytes(const struct ll_limits_view *view, const struct ll_status_card *card,
			      const struct ll_status_job *use);

/* Returns what is free on the card. LL_MEMORY_UNKNOWN: the card does not tell. */
uint64_t ll_limits_free_bytes(const struct ll_limits_view *view, const struct ll_status_card *card);

/* Returns the bytes that all jobs on the card are promised (--mem-request). LL_MEMORY_UNKNOWN: loadlined does not tell.
 */
uint64_t ll_limits_promised_bytes(const struct ll_limits_view *view, const struct ll_status_card *card);

/* Returns what can be promised yet. LL_MEMORY_UNKNOWN: loadlined, or the card, does not tell. */
uint64_t ll_limits_promisable_bytes(const struct ll_limits_view *view, const struct ll_status_card *card);

void ll_limits_add_text(struct ll_strbuf *text, const struct ll_limits_view *view, unsigned columns);
int ll_limits_print_json(const struct ll_limits_view *view, struct ll_err *err);

/*
 * The preloaded library in this program itself. It tells a program under a memory limit that its card is as
 * large as the limit; what is left on the card is read without it. This program launches nothing on a card.
 */

/* If LD_PRELOAD names the library, executes this program again without it, and does not return. Returns if it does not,
 * or that cannot be done. */
void ll_limits_leave_library(void);

/* Whether the library is in this process: /etc/ld.so.preload may name it too. */
bool ll_limits_has_library(void);

#endif
