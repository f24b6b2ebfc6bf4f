/*
 * move_requests.h - what commands ask of loadlined about memory (EVICT, SUSPEND, RESUME), and their answers. Between
 * the files of residency.
 */
#ifndef LOADLINE_DAEMON_MOVE_REQUESTS_H
#define LOADLINE_DAEMON_MOVE_REQUESTS_H

#include "daemon/residency.h"

/* All requests that wait for the process have come to their end. code 0: well. */
void ll_move_requests_end(struct ll_residency_books *books, const struct ll_evictable *evictable, int code,
			  const char *why);

/* Those whose process was not known yet. */
void ll_move_requests_retry(struct ll_server *server, uint64_t now_ns);

/* Says how far it is, once a second. */
void ll_move_requests_tell(struct ll_residency_books *books, uint64_t now_ns);

/* The connection has ended; NULL: all. */
void ll_move_requests_drop(struct ll_residency_books *books, const struct ll_connection *connection);

/* ---- of residency.c ---- */

/* NULL: the claim's process has not connected. */
struct ll_evictable *ll_residency_find(const struct ll_residency_books *books, const struct ll_job_claim *claim);

/* Something has happened on the card: decides anew. */
void ll_residency_look(struct ll_server *server, const char *uuid);

/* Memory of the card has become free: the same, after the card was measured again. */
void ll_residency_look_anew(struct ll_server *server, const char *uuid);

/* The same for all cards. */
void ll_residency_look_everywhere(struct ll_server *server, uint64_t now_ns);

void ll_residency_set_timer(struct ll_server *server, uint64_t now_ns);

#endif
