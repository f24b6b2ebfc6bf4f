/*
 * company.h - how a job got on beside others, in its orders (page.h): for each card, each way to share it (--by) and
 * each set of other programs, for how long they wanted the card together, and how many launches of the job the card
 * completed in that time. loadlined counts; the job's monitor keeps it for later runs (earlier/records.h).
 */
#ifndef LOADLINE_PROTOCOL_COMPANY_H
#define LOADLINE_PROTOCOL_COMPANY_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/page.h"

struct ll_company {
	unsigned card;            /* its index in the orders */
	enum ll_way way;          /* of all of them */
	uint64_t program, others; /* ll_program_under, ll_programs_key */
	uint64_t ns, launches;
	char names[LL_COMPANY_NAMES_SIZE]; /* of the others, such as "infer.py, train.py"; perhaps cut */
};

/* False: the row is empty, or a daemon that was killed left it half written. */
bool ll_company_read(const struct ll_orders_company *row, struct ll_company *ret_company);

/* For the daemon alone. */
void ll_company_write(struct ll_orders_company *row, const struct ll_company *company);

/* The program, as the monitor said it. Printable. */
void ll_company_read_name(const struct ll_orders *orders, char ret_name[LL_PROGRAM_NAME_SIZE]);
void ll_company_write_program(struct ll_orders *orders, uint64_t program, const char name[LL_PROGRAM_NAME_SIZE]);

#endif
