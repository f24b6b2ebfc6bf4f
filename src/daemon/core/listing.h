/*
 * listing.h - the replies that have many rows. Each is made at once, when it is asked for, and so is of one moment;
 * what the socket has no room for waits in the connection (connection.h). Every row goes through ll_connection_row,
 * which takes out what the receiver may not know.
 */
#ifndef LOADLINE_DAEMON_CORE_LISTING_H
#define LOADLINE_DAEMON_CORE_LISTING_H

#include <stdbool.h>
#include <stdint.h>

union ll_message;
struct ll_connection;
struct ll_job;

/* Sends the row, or keeps it. Returns false if the receiver may not know of it. */
bool ll_connection_row(struct ll_connection *connection, union ll_message *row);

/* The same for a row that may outlive its job: uid is whose the job was. */
bool ll_connection_row_of(struct ll_connection *connection, uint32_t uid, union ll_message *row);

/* The rows of the job's cards and claims, a part of the reply to LIST. */
void ll_list_cards(struct ll_connection *connection, const struct ll_job *job);

/* The replies to LIST, DECISIONS (of the card), POLICY, SENSED and QUEUE. */
void ll_list_books(struct ll_connection *connection);
void ll_list_decisions(struct ll_connection *connection, const char *uuid);
void ll_list_policy(struct ll_connection *connection);
void ll_list_machine(struct ll_connection *connection);
void ll_list_queue(struct ll_connection *connection);

/* The reply to METRICS (protocol/message_rows.h), or a refusal. The sums are about tenants, and are the same for
 * everybody. They are told to everybody if the configuration has serve.metrics or serve.page, since they are then
 * public; else to operators alone. */
void ll_list_metrics(struct ll_connection *connection);

/* The rows of the reply to POLICY before its end: what the user may have by the configuration, and has. of_all: of all
 * tenants, whoever asks. */
void ll_list_policy_rows(struct ll_connection *connection, uint32_t uid, bool of_all);

#endif
