#include "mover/shares.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/packet.h"

struct handle {
	int fd;
	uint64_t bytes;
};

struct ll_mover_share {
	const struct ll_mover_program *program;
	uint64_t number, value; /* its key */
	uint64_t bytes;         /* of all handles */
	uint64_t came_bytes;    /* of those that have come */
	struct handle *handles;
	uint32_t count;
	struct ll_mover_share *next;
};

static struct ll_mover_share *find_share(const struct ll_mover_shares *shares, const struct ll_mover_message *message)
{
	struct ll_mover_share *share = shares->first;
	while (share && (share->number != message->number || share->value != message->value))
		share = share->next;
	return share;
}

static struct ll_mover_share *new_share(struct ll_mover_shares *shares, const struct ll_mover_program *program,
					const struct ll_mover_message *message)
{
	struct ll_mover_share *share = calloc(1, sizeof *share);
	if (!share)
		return NULL;
	*share = (struct ll_mover_share){.program = program,
					 .number = message->number,
					 .value = message->value,
					 .bytes = message->bytes,
					 .next = shares->first};
	shares->first = share;
	return share;
}

static bool add_handles(struct ll_mover_share *share, const struct ll_mover_message *message, const int *fds)
{
	struct handle *handles = realloc(share->handles, (share->count + message->count) * sizeof *handles);
	if (!handles)
		return false;
	share->handles = handles;
	for (uint32_t i = 0; i < message->count; i++) {
		handles[share->count++] = (struct handle){fds[i], message->handle_bytes[i]};
		share->came_bytes += message->handle_bytes[i];
	}
	return true;
}

void ll_mover_shares_add(struct ll_mover_shares *shares, const struct ll_mover_program *program,
			 const struct ll_mover_message *message, const int *fds, size_t fd_count)
{
	struct ll_mover_share *share = find_share(shares, message);
	bool is_good = message->count && message->count == fd_count && message->batch == (share ? share->count : 0);
	if (is_good && !share)
		share = new_share(shares, program, message);
	if (is_good && share && share->program == program && add_handles(share, message, fds))
		return;
	for (size_t i = 0; i < fd_count; i++)
		close(fds[i]);
}

static void free_share(struct ll_mover_shares *shares, struct ll_mover_share *share)
{
	struct ll_mover_share **link = &shares->first;
	while (*link != share)
		link = &(*link)->next;
	*link = share->next;
	for (uint32_t i = 0; i < share->count; i++)
		close(share->handles[i].fd);
	free(share->handles);
	free(share);
}

void ll_mover_shares_remove(struct ll_mover_shares *shares, const struct ll_mover_program *program,
			    const struct ll_mover_message *message)
{
	struct ll_mover_share *share = find_share(shares, message);
	if (share && share->program == program)
		free_share(shares, share);
}

void ll_mover_shares_end(struct ll_mover_shares *shares, const struct ll_mover_program *program)
{
	for (struct ll_mover_share *share = shares->first, *next; share; share = next) {
		next = share->next;
		if (!program || share->program == program)
			free_share(shares, share);
	}
}

int ll_mover_shares_answer(const struct ll_mover_shares *shares, const struct ll_mover_message *message, int fd)
{
	const struct ll_mover_share *share = find_share(shares, message);
	int fds[LL_MOVER_BATCH_HANDLES];
	if (!share || share->came_bytes != share->bytes)
		return -ENOENT;
	struct ll_mover_message answer = {.kind = LL_MOVER_ANSWER, .bytes = share->bytes};
	for (uint32_t i = message->batch; i < share->count && answer.count < LL_MOVER_BATCH_HANDLES; i++) {
		answer.handle_bytes[answer.count] = share->handles[i].bytes;
		fds[answer.count++] = share->handles[i].fd;
	}
	if (!answer.count)
		answer.value = EINVAL;
	return ll_packet_send(fd, &answer, sizeof answer, fds, answer.count);
}
