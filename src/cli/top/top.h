/*
 * top.h - `loadline top`: what it shows (model.c), how that is laid out (frame.c), what its keys change (act.c), and
 * the terminal (screen.c). The program loadline-top has them, because it alone needs ncursesw (cli/options/program.h).
 */
#ifndef LOADLINE_CLI_TOP_TOP_H
#define LOADLINE_CLI_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "cli/status/status.h"

/* ---- a history: one value for each reading, the oldest first; NAN: unknown ---- */

enum { LL_TOP_HISTORY = 128 };

struct ll_top_history {
	double values[LL_TOP_HISTORY];
	size_t count;
};

/* Adds the newest value; the oldest one goes if there are too many. */
void ll_top_history_add(struct ll_top_history *history, double value);

/* Adds the newest percents as blocks of eight heights, at the right of so many columns. One above 0 is seen, an unknown
 * one is blank. */
void ll_top_add_history(struct ll_strbuf *out, const struct ll_top_history *history, size_t columns);

/* ---- what is shown ---- */

struct ll_top_card {
	const struct ll_status_card *status; /* the newest reading */
	struct ll_top_history util;          /* percent */
	struct ll_util_reader reader;
};

struct ll_top_tenant {
	char name[LL_NAME_SIZE];
	bool is_synthetic;
	unsigned running, waiting; /* jobs */
	double share_percent;      /* of all cards shown */
	uint64_t used_bytes;
	char guaranteed[32];         /* "2 cards"; empty: nothing */
	bool is_seen;                /* in the newest reading */
	struct ll_top_history share; /* percent */
};

enum ll_top_kind { LL_TOP_JOB, LL_TOP_PROCESS, LL_TOP_HOLD, LL_TOP_STRANGER, LL_TOP_WAITING };

struct ll_top_row {
	enum ll_top_kind kind;
	size_t root;       /* index of the job's row, if it is a process of several; else of this row */
	bool is_last;      /* of the processes of its job */
	uint64_t number;   /* of the job; 0: none */
	bool is_queued;    /* the queue knows it */
	unsigned position; /* in the queue; 0: it has its place */
	bool is_paused;    /* in the queue, or suspended */
	bool is_evicted;
	char claim[LL_STATUS_NUMBER_SIZE]; /* "0/17"; empty: none, or several */
	pid_t pid;                         /* as it is here; 0: not known */
	uint64_t start_ticks;              /* of pid */
	size_t processes;                  /* on cards */
	char user[64], tenant[LL_NAME_SIZE], command[LL_STATUS_COMMAND_SIZE];
	char state[LL_STATUS_STATE_SIZE];
	bool is_alarm;                    /* it needs attention: not held to its limits, or ungoverned */
	uint64_t age_ns;                  /* LL_AGE_UNKNOWN */
	uint64_t used_bytes, limit_bytes; /* LL_MEMORY_UNKNOWN; 0: no limit */
	double share_percent;             /* of the cards that it is on, together; NAN: unknown */
	uint64_t moment_s;                /* when it ends, or of a waiting one begins; 0: unknown */
	char why[256];                    /* why it waits */
};

struct ll_top {
	const struct ll_card *const *chosen;
	size_t card_count;
	bool has_all; /* all cards: jobs on no card are shown too */
	const char *sim_folder;
	uint64_t every_ns;
	struct ll_top_card *cards;
	struct ll_top_tenant *tenants;
	struct ll_top_row *rows;
	size_t tenant_count, row_count;
	struct ll_strbuf notes; /* lines about loadlined */
	/* the newest reading, and the one before */
	struct ll_status_card *now, *earlier;
	bool has_earlier;
	struct ll_daemon_view view;
};

/* chosen: of an open driver. The caller calls fini in each case. -ENOMEM. */
int ll_top_init(struct ll_top *top, const struct ll_card *const *chosen, size_t count, struct ll_err *err);
void ll_top_fini(struct ll_top *top);

/* Reads all again. -ENOMEM. */
int ll_top_read(struct ll_top *top, struct ll_err *err);

/* ---- how it is laid out ---- */

/* A byte of a frame that says how what follows looks, up to the next one or the line's end. */
enum ll_top_look {
	LL_TOP_PLAIN = 1,
	LL_TOP_DIM,
	LL_TOP_BOLD,
	LL_TOP_GOOD, /* a bar */
	LL_TOP_WARN,
	LL_TOP_ALARM,
	LL_TOP_SELECTED,
};

enum ll_top_order { LL_TOP_BY_SHARE, LL_TOP_BY_MEMORY, LL_TOP_BY_AGE, LL_TOP_BY_USER, LL_TOP_BY_TENANT, LL_TOP_BY_JOB };
enum { LL_TOP_ORDERS = LL_TOP_BY_JOB + 1 };
extern const char *const ll_top_orders[]; /* their words, NULL-ended */

struct ll_top_view {
	char filter[64]; /* rows with this text in user, tenant, command or number; empty: all */
	enum ll_top_order order;
	bool is_flat; /* processes of a job are not shown */
	bool is_help;
	bool is_still; /* one frame for a file: no row is chosen, and no keys are told */
	size_t first;  /* line of the first row of jobs in sight */
	/* The chosen row. It stays chosen while others come and go. */
	uint64_t number;
	char claim[LL_STATUS_NUMBER_SIZE];
	pid_t pid;
	char message[512]; /* in place of the keys; empty: the keys */
};

/* Writes the rows in the order of the view, those of its filter alone. ret_rows has room for row_count. */
size_t ll_top_arrange(const struct ll_top *top, const struct ll_top_view *view, const struct ll_top_row **ret_rows);

/* Moves the choice by so many rows, within the rows in sight, and returns the row. The first one is chosen if there is
 * no other. NULL: there are no rows. */
const struct ll_top_row *ll_top_choose(const struct ll_top *top, struct ll_top_view *view, long by);

/* Adds at most `lines` lines, each of at most so many columns. */
void ll_top_add_frame(struct ll_strbuf *out, const struct ll_top *top, struct ll_top_view *view, size_t columns,
		      size_t lines);

/* Adds the two lines at the bottom of the terminal: details of the chosen row, and the keys. A message stands in place
 * of the keys; one that is longer than a line in place of both. */
void ll_top_add_bottom(struct ll_strbuf *out, const struct ll_top *top, struct ll_top_view *view, size_t columns);

/* A column of a table: as wide as there is room for, from least to most. The one of the highest rank goes first where
 * there is no room; rank 0 never goes. */
struct ll_top_column {
	const char *heading;
	unsigned least, most, rank;
	bool is_number; /* at the right of its cells */
};

/* Writes the widths, 0 for columns that go. A blank stands between columns. */
void ll_top_fit(const struct ll_top_column *columns, size_t count, size_t width, size_t *ret_widths);

/* ---- what keys change ---- */

enum ll_top_act { LL_TOP_SET, LL_TOP_EVICT, LL_TOP_PAUSE, LL_TOP_KILL };

/* Writes what is asked before: "evict job 12 of train?". words: the options of SET. False: it says why it cannot be. */
bool ll_top_question(const struct ll_top_row *row, enum ll_top_act act, const char *words, char *ret_text, size_t size);

/* Does it as the commands set, evict, suspend, resume and queue do, and waits until it is done. Writes what they say,
 * or the error, in one line. */
void ll_top_do(const struct ll_top_row *row, enum ll_top_act act, const char *words, char *ret_text, size_t size);

/* ---- the terminal ---- */

/* Shows frames, and does what keys say, until the user ends it. Returns 0, or the exit status after a signal. -ENOTTY:
 * this is no terminal that can be used; err says why. */
int ll_top_screen(struct ll_top *top, struct ll_top_view *view, struct ll_err *err);

struct ll_top_args {
	char *cards;
	uint64_t every_ns;
	int order;
	const char *filter;
	bool is_plain;
};

#endif
