/*
 * company.h - records in a job's orders (page.h) how fast the job ran beside other programs. There is one row for each
 * card, each way to share it (--by) and each set of other programs. A row has the time in which all of them wanted the
 * card, and the number of launches of the job that the card completed in that time. loadlined counts. The job's monitor
 * keeps the rows for later runs (advice/advice.h).
 */
#ifndef LOADLINE_PROTOCOL_COMPANY_H
#define LOADLINE_PROTOCOL_COMPANY_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/page.h"

struct ll_company {
	unsigned card;            /* index of the card in the orders */
	enum ll_way way;          /* how all of these programs share the card */
	uint64_t program, others; /* made by ll_program_under and ll_programs_key */
	uint64_t ns, launches;
	char names[LL_COMPANY_NAMES_SIZE]; /* of the other programs, such as "infer.py, train.py"; may be cut */
};

/* Returns false if the row is empty, or if a daemon was killed while it wrote the row. */
bool ll_company_read(const struct ll_orders_company *row, struct ll_company *ret_company);

/* Only the daemon calls this. */
void ll_company_write(struct ll_orders_company *row, const struct ll_company *company);

/* The name of the job's program, as the monitor sent it. It is printable. */
void ll_company_read_name(const struct ll_orders *orders, char ret_name[LL_PROGRAM_NAME_SIZE]);
void ll_company_write_program(struct ll_orders *orders, uint64_t program, const char name[LL_PROGRAM_NAME_SIZE]);

#endif
