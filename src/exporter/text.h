/*
 * text.h - what loadline-exporter knows of the machine: loadlined's replies, read over its socket as `loadline
 * status` reads them.
 *
 * The exporter is an ordinary user to loadlined, which leaves out what `visibility` hides from users. If the exporter
 * runs as an admin, it leaves out the same itself.
 */
#ifndef LOADLINE_EXPORTER_TEXT_H
#define LOADLINE_EXPORTER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "protocol/client.h"

struct ll_err;

/* The last decisions of a card. */
struct ll_figures_decisions {
	struct ll_message_decision *rows;
	size_t count;
};

struct ll_figures {
	bool is_up; /* loadlined has replied; else all below is empty */
	struct ll_message_welcome welcome;
	struct ll_list list;
	struct ll_sensed sensed;
	struct ll_metrics_sums sums;
	uint64_t asked_ns; /* how long the replies took */
	/* for the page alone */
	struct ll_message_queue_row *queued;
	struct ll_message_queue_window *windows;
	size_t queued_count, window_count;
	struct ll_figures_decisions *decisions; /* of each card of `sensed`; NULL: none were read */
};

/* Reads all; what is for the page alone only if for_page. Waits for at most 4 s. An error leaves is_up false, and is
 * told by err. Call fini after success and after failure. */
int ll_figures_read(struct ll_figures *figures, const struct ll_place *place, bool for_page, struct ll_err *err);
void ll_figures_fini(struct ll_figures *figures);

/*
 * Makes the text of /metrics from the figures. It uses neither a clock nor a connection.
 *
 * Names: those of dcgm-exporter for what it has too (DCGM_FI_DEV_…), with its labels gpu, UUID, pci_bus_id, modelName
 * and, for a MIG slice, GPU_I_ID; loadline_… for all else, with gpu, UUID and GPU_I_ID. A value that is not known has
 * no sample. If loadlined does not reply, only loadline_up, which is then 0, and what the exporter says of itself are
 * there.
 *
 * Counters only grow while loadlined (those of tenants), its sensor (those of cards) or a job (those of jobs) lives;
 * after that they begin at 0, as counters of Prometheus do.
 *
 * The number of series is bounded: by the cards, by the configured tenants and groups of cards, and by
 * LL_EXPORTER_JOBS for jobs. Users are numbers of the machine, names of commands are in no label.
 */

/* Jobs with series of their own: those with the lowest numbers, which are the oldest. A job on several cards counts
 * once for each. The others are added up in loadline_jobs_omitted and loadline_jobs_omitted_memory_used_bytes. */
enum { LL_EXPORTER_JOBS = 256 };

/* Of a card. Its utilisation is computed from two reports of the sensor: loadlined tells the last one alone. */
struct ll_exporter_reading {
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t watched_ns, busy_ns; /* as in SENSE_CARD of the newest report */
	double util;                  /* from the one before to the newest, 0 to 1; NAN: not known yet */
};

/* Zeroed, it is empty. */
struct ll_exporter_history {
	struct ll_exporter_reading *readings;
	size_t count;
};

/* Adds the cards' readings to the history. -ENOMEM. */
int ll_exporter_history_add(struct ll_exporter_history *history, const struct ll_sensed *sensed);
void ll_exporter_history_fini(struct ll_exporter_history *history);

/* The utilisation of a card or a slice, 0 to 1; NAN: it is not known. */
double ll_exporter_util(const struct ll_exporter_history *history, const struct ll_message_sense_card *card);

/* What the exporter says of itself. */
struct ll_exporter_self {
	uint64_t scrapes;  /* texts that were made */
	uint64_t failures; /* of these: without a reply of loadlined */
};

void ll_exporter_text(struct ll_strbuf *text, const struct ll_figures *figures,
		      const struct ll_exporter_history *history, const struct ll_exporter_self *self);

/* ---- between the files of this folder; each adds its families ---- */

void ll_exporter_add_cards(struct ll_strbuf *text, const struct ll_figures *figures,
			   const struct ll_exporter_history *history);
void ll_exporter_add_tenants(struct ll_strbuf *text, const struct ll_figures *figures);
void ll_exporter_add_jobs(struct ll_strbuf *text, const struct ll_figures *figures);

/* Adds a family of one sample without labels. */
void ll_exporter_add_one(struct ll_strbuf *text, const char *name, const char *type, const char *help, double value);

#endif
