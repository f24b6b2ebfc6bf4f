/*
 * serve.h - the keeper's socket: it serves one client, loadlined, and root.
 */
#ifndef LOADLINE_KEEPER_SERVE_H
#define LOADLINE_KEEPER_SERVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "keeper/requests.h"

/* Whether a peer of that uid may send requests. */
bool ll_keeper_serves(uid_t peer, uid_t client);

/*
 * Serves connections at the listening socket until SIGTERM or SIGINT. client: the uid of loadlined. Logs each request
 * that changed something, and each refusal. Returns -errno if the socket cannot be used.
 */
int ll_keeper_serve(struct ll_keeper *keeper, int listen_fd, uid_t client);

#endif
