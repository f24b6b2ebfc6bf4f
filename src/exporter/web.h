/*
 * web.h - the page for people: index.html, its parts, and data.js, which loadline-exporter writes anew each 10 s into
 * the folder of serve.page. The browser does the rest: it opens no connection but for these files.
 *
 * Why the exporter writes, and not loadlined: a folder of a network's file system may hang, and then only the page
 * stands still, not the machine's sharing. And the page is for everybody who can read the folder, so it may have only
 * what loadlined tells any user. The exporter is such a user; without one it writes nothing.
 *
 * Each file is written under another name, and renamed. No symbolic link is followed in the folder, nor as the folder.
 */
#ifndef LOADLINE_EXPORTER_WEB_H
#define LOADLINE_EXPORTER_WEB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "exporter/text.h"

struct ll_err;

#define LL_WEB_EVERY_NS UINT64_C(10000000000)

/* ---- a day's history (web_history.c) ---- */

/* Percents of each minute of a day, of whole cards: the first 16. */
enum { LL_WEB_MINUTES = 1440, LL_WEB_CARDS = 16, LL_WEB_UNKNOWN = 255 };
enum ll_web_series { LL_WEB_UTIL, LL_WEB_SYNTHETIC, LL_WEB_MEMORY, LL_WEB_SERIES };

struct ll_web_day {
	char uuid[LL_CARD_UUID_SIZE];
	uint8_t percent[LL_WEB_SERIES][LL_WEB_MINUTES]; /* at the minute, modulo a day */
	double sums[LL_WEB_SERIES];                     /* of the minute that is not over */
	unsigned counts[LL_WEB_SERIES];
};

/* Zeroed, it is empty. */
struct ll_web_history {
	int64_t minute; /* the one that is not over, since 1970 */
	size_t count;
	struct ll_web_day days[LL_WEB_CARDS];
};

/* Adds a reading of a card at that moment, in percent; NAN: not known. */
void ll_web_history_add(struct ll_web_history *history, int64_t at_s, const char *uuid,
			const double percent[LL_WEB_SERIES]);

/* {"end": seconds since 1970, "step": 60, "cards": {UUID: {"util": [...], ...}}}: null is not known, the last value is
 * of the minute before `end`. NULL: out of memory. */
json_t *ll_web_history_json(const struct ll_web_history *history);

/* Takes over what an earlier exporter had written. What does not fit is left out. */
void ll_web_history_read(struct ll_web_history *history, const json_t *json, int64_t now_s);

/* ---- the data (web_data.c) ---- */

/* Makes the data's object, and adds the cards' readings to the history. readings: as for metrics. why: the error, if
 * figures are not up. NULL: out of memory. */
json_t *ll_web_data(const struct ll_figures *figures, const struct ll_exporter_history *readings,
		    struct ll_web_history *history, const char *why, int64_t now_s);

/* ---- the folder (web.c) ---- */

struct ll_web {
	char *folder; /* NULL: no page is written */
	bool has_parts;
	bool has_said; /* the present error was logged */
	struct ll_exporter_history readings;
	struct ll_web_history history;
};

/* Writes into another folder from now on; NULL: into none. -ENOMEM: as before. */
int ll_web_move(struct ll_web *web, const char *folder);

/* Asks loadlined, and writes. An error is logged once, until it has gone. */
void ll_web_write(struct ll_web *web, const struct ll_place *place);
void ll_web_fini(struct ll_web *web);

/* Puts a file into the folder, with mode 0644. -errno. */
int ll_web_put(int folder_fd, const char *name, const void *data, size_t length, struct ll_err *err);

#endif
