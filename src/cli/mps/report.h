/*
 * report.h - the report of `loadline mps status`: read first, then printed as text or as JSON lines.
 */
#ifndef LOADLINE_CLI_MPS_REPORT_H
#define LOADLINE_CLI_MPS_REPORT_H

#include "base/strbuf.h"
#include "cli/mps/words.h"
#include "mps/version.h"
#include "protocol/message.h"

struct ll_mps_report {
	struct ll_mps_daemon daemon; /* pid 0: the daemon answers, but its process is not visible from here */
	char cgroup[LL_CGROUP_SIZE]; /* the group whose end would end it; empty: not known */
	struct ll_mps_version version;
	struct ll_strbuf partitions; /* the lines of MPS's command lspart */
	struct ll_mps_list list;
	const struct ll_card **cards; /* the cards that the daemon shows to its clients */
	size_t card_count;
	bool is_exclusive; /* loadline put the cards into exclusive mode for this daemon */
	double compute_percent;
	uint64_t memory_bytes;
	struct ll_strbuf warnings; /* one warning a line */
};

/* Reads the state of a daemon that answers. After a failure too, the caller calls fini. */
int ll_mps_report_read(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_mps_report *status,
		       struct ll_err *err);
void ll_mps_report_fini(struct ll_mps_report *status);

void ll_mps_report_print(const struct ll_mps_desk *desk, const struct ll_mps_report *status);
int ll_mps_report_print_json(const struct ll_mps_desk *desk, const struct ll_mps_report *status, struct ll_err *err);

/* Prints one line for each client of the list, for `mps clients`. */
void ll_mps_clients_print(const struct ll_mps_list *list);
int ll_mps_clients_print_json(const struct ll_mps_list *list, struct ll_err *err);

#endif
