/*
 * move_requests.h - the requests of commands about memory (EVICT, SUSPEND, RESUME), and the replies. Private to the
 * files of residency.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_MOVE_REQUESTS_H
#define LOADLINE_DAEMON_RESIDENCY_MOVE_REQUESTS_H

#include "daemon/residency/residency.h"

/* Ends all requests that wait for the process. code 0: success. */
void ll_move_requests_end(struct ll_residency_books *books, const struct ll_evictable *evictable, int code,
			  const char *why);

/* Tries the requests again whose process was not known yet. */
void ll_move_requests_retry(struct ll_server *server, uint64_t now_ns);

/* Sends PROGRESS, once a second. */
void ll_move_requests_tell(struct ll_residency_books *books, uint64_t now_ns);

/* The connection has ended: drops its requests; NULL: drops all. */
void ll_move_requests_drop(struct ll_residency_books *books, const struct ll_connection *connection);

/* ---- in residency.c ---- */

/* Returns NULL if the claim's process has not connected. */
struct ll_evictable *ll_residency_find(const struct ll_residency_books *books, const struct ll_job_claim *claim);

/* Something has changed on the card: decides again. */
void ll_residency_look(struct ll_server *server, const char *uuid);

/* Memory of the card has become free: decides again after the card is measured again. */
void ll_residency_look_anew(struct ll_server *server, const char *uuid);

/* The same for all cards. */
void ll_residency_look_everywhere(struct ll_server *server, uint64_t now_ns);

void ll_residency_set_timer(struct ll_server *server, uint64_t now_ns);

#endif
