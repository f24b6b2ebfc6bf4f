/*
 * company.h - stores, for later runs, how fast the job ran beside other programs (protocol/company.h, earlier/file.h).
 */
#ifndef LOADLINE_MONITOR_COMPANY_H
#define LOADLINE_MONITOR_COMPANY_H

#include <stdint.h>

/* All 0 at first. */
struct ll_monitor_company {
	uint64_t noted_ns;   /* time of the last look */
	uint64_t counted_ns; /* the total time beside others, as last stored */
};

/* Stores what has changed since the last call. orders_fd: of the job's orders; -1: no daemon made them. An error is
 * ignored, and the data are lost. */
void ll_monitor_note_company(struct ll_monitor_company *company, int orders_fd);

#endif
