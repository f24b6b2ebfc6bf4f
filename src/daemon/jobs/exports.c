#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/core/connection.h"

struct handle {
	int fd;
	uint64_t bytes;
};

struct ll_share {
	struct ll_share *next;
	const struct ll_connection *connection;
	uint64_t key[2];
	uint64_t bytes;      /* of all handles */
	uint64_t came_bytes; /* of the handles that have arrived */
	struct handle *handles;
	uint32_t count;
};

static struct ll_share *find_share(const struct ll_shares *shares, const uint64_t key[2])
{
	struct ll_share *share = shares->first;
	while (share && (share->key[0] != key[0] || share->key[1] != key[1]))
		share = share->next;
	return share;
}

void ll_shares_count(const struct ll_shares *shares, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data)
{
	for (const struct ll_share *share = shares->first; share; share = share->next)
		count(data, share->connection->uid, share->count);
}

void ll_shares_add(struct ll_shares *shares, const struct ll_connection *connection,
		   const struct ll_message_share *message, int *fds, size_t count)
{
	struct ll_share *share = find_share(shares, message->key);
	bool is_good = message->count && message->count == count && message->first == (share ? share->count : 0);
	if (!is_good || (share && share->connection != connection))
		return;
	if (!share) {
		share = calloc(1, sizeof *share);
		if (!share)
			return;
		*share = (struct ll_share){.next = shares->first,
					   .connection = connection,
					   .key = {message->key[0], message->key[1]},
					   .bytes = message->bytes};
		shares->first = share;
	}
	struct handle *handles = realloc(share->handles, (share->count + message->count) * sizeof *handles);
	if (!handles)
		return;
	share->handles = handles;
	for (uint32_t i = 0; i < message->count; i++) {
		handles[share->count++] = (struct handle){fds[i], message->handle_bytes[i]};
		share->came_bytes += message->handle_bytes[i];
		fds[i] = -1;
	}
}

static void free_share(struct ll_shares *shares, struct ll_share *share)
{
	struct ll_share **at = &shares->first;
	while (*at != share)
		at = &(*at)->next;
	*at = share->next;
	for (uint32_t i = 0; i < share->count; i++)
		close(share->handles[i].fd);
	free(share->handles);
	free(share);
}

void ll_shares_remove(struct ll_shares *shares, const struct ll_connection *connection,
		      const struct ll_message_share *message)
{
	struct ll_share *share = find_share(shares, message->key);
	if (share && share->connection == connection)
		free_share(shares, share);
}

void ll_shares_end(struct ll_shares *shares, const struct ll_connection *connection)
{
	for (struct ll_share *share = shares->first, *next; share; share = next) {
		next = share->next;
		if (share->connection == connection)
			free_share(shares, share);
	}
}

void ll_shares_open(const struct ll_shares *shares, struct ll_connection *connection,
		    const struct ll_message_share *message)
{
	const struct ll_share *share = find_share(shares, message->key);
	union ll_message reply;
	int fds[LL_MESSAGE_FDS];
	if (!share || share->came_bytes != share->bytes || message->first >= share->count) {
		ll_connection_refuse(connection, -ENOENT, "nobody shares it");
		return;
	}
	ll_message_init(&reply, LL_MESSAGE_OPENED);
	reply.share.key[0] = share->key[0];
	reply.share.key[1] = share->key[1];
	reply.share.bytes = share->bytes;
	reply.share.first = message->first;
	for (uint32_t i = message->first; i < share->count && reply.share.count < LL_MESSAGE_FDS; i++) {
		reply.share.handle_bytes[reply.share.count] = share->handles[i].bytes;
		fds[reply.share.count++] = share->handles[i].fd;
	}
	ll_connection_reply(connection, &reply, fds, reply.share.count);
}

void ll_shares_fini(struct ll_shares *shares)
{
	while (shares->first)
		free_share(shares, shares->first);
}
