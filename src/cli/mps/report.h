/*
 * report.h - what `loadline mps status` says, gathered first and printed after, as text or as JSON lines.
 */
#ifndef LOADLINE_CLI_MPS_REPORT_H
#define LOADLINE_CLI_MPS_REPORT_H

#include "base/strbuf.h"
#include "cli/mps/words.h"
#include "mps/version.h"

struct ll_mps_report {
	struct ll_mps_daemon daemon; /* pid 0: it answers, but its process is not to be seen from here */
	struct ll_mps_version version;
	struct ll_strbuf partitions; /* lspart's own lines */
	struct ll_mps_list list;
	const struct ll_card **cards; /* that it shows */
	size_t card_count;
	bool is_exclusive; /* we put the cards into exclusive mode for it */
	double compute_percent;
	uint64_t memory_bytes;
	struct ll_strbuf warnings; /* a line each */
};

/* A daemon answers. fini is safe on what a failed read leaves. */
int ll_mps_report_read(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_mps_report *status,
		       struct ll_err *err);
void ll_mps_report_fini(struct ll_mps_report *status);

void ll_mps_report_print(const struct ll_mps_desk *desk, const struct ll_mps_report *status);
int ll_mps_report_print_json(const struct ll_mps_desk *desk, const struct ll_mps_report *status, struct ll_err *err);

/* A line for each client of the list: `mps clients`. */
void ll_mps_clients_print(const struct ll_mps_list *list);
int ll_mps_clients_print_json(const struct ll_mps_list *list, struct ll_err *err);

#endif
