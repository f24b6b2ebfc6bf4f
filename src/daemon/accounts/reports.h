/*
 * reports.h - reads sums of the accounts for a command, in a thread, and sends them.
 *
 * A connection has at most one report at a time, and so has a user other than root, until it has read it. The daemon
 * reads at most LL_REPORTS_MAX, so that the thread that writes the accounts always finds a place. What a user may see:
 * root, admins and operators, the use of all; others, the use of their own jobs, or
 * with `visibility: {others: all}` that of all.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_REPORTS_H
#define LOADLINE_DAEMON_ACCOUNTS_REPORTS_H

#include <stdbool.h>

#include "protocol/message.h"

enum { LL_REPORTS_MAX = 3 };

struct ll_connection;

/* Handles REPORT and HISTORY: starts to read. Returns false if the message is not allowed here. */
bool ll_report_handle(struct ll_connection *connection, const union ll_message *message);

/* Makes the next message. Returns false if there is none yet, or no more. */
bool ll_report_next(struct ll_connection *connection, union ll_message *ret_message);

/* The connection ends. */
void ll_report_disconnect(struct ll_connection *connection);

#endif
