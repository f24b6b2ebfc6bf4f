/*
 * rows.h - the private fields of the rows that loadlined sends, as rows.def describes them. Who may know them is
 * decided by one function of loadlined (daemon/policy/rights.h), through which each row goes.
 */
#ifndef LOADLINE_PROTOCOL_ROWS_H
#define LOADLINE_PROTOCOL_ROWS_H

union ll_message;

enum ll_row_privacy { LL_ROW_OWNER = 1, LL_ROW_PROGRAM = 2, LL_ROW_NAME = 4, LL_ROW_COMPANY = 8 };

/* Clears the row's fields of these sorts. name: what a field of the sort LL_ROW_NAME becomes. */
void ll_row_hide(union ll_message *row, unsigned sorts, const char *name);

#endif
