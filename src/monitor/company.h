/*
 * company.h - keeps for later runs how the job got on beside others (protocol/company.h, earlier/file.h).
 */
#ifndef LOADLINE_MONITOR_COMPANY_H
#define LOADLINE_MONITOR_COMPANY_H

#include <stdint.h>

/* All 0 at first. */
struct ll_monitor_company {
	uint64_t noted_ns;   /* when it was last looked */
	uint64_t counted_ns; /* the time in all companies together, as it was kept */
};

/* Keeps what has changed since the last call. orders_fd: of the job's orders; -1: no daemon made them. What cannot be
 * kept is lost: nobody waits for it. */
void ll_monitor_note_company(struct ll_monitor_company *company, int orders_fd);

#endif
