/*
 * evict_soak.c - evicts programs at random, all of them at once: evict_soak FOLDER UUID EVICTIONS SEED CLAIM...
 *
 * For each claim it has a connection to the mover, by which it asks for a random move as soon as the last one is done.
 * When there were so many evictions in all it resumes every program. One JSON line; the exit status is 1 if the mover
 * refused a move:
 *
 *     {"event":"soak","evictions":300,"others":412,"refused":0}
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/packet.h"
#include "mover/protocol.h"

enum { PROGRAMS = 16, WAIT_MS = 120000 };

struct program {
	int fd;
	uint64_t claim;
	enum ll_mover_kind asked;
	bool is_done;
};

static struct program programs[PROGRAMS];
static struct pollfd polls[PROGRAMS];
static nfds_t count;
static uint64_t evictions, others, refused, wanted;

static void fail(const char *what, int rc)
{
	fprintf(stderr, "evict_soak: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void ask(struct program *program)
{
	static const enum ll_mover_kind kinds[] = {LL_MOVER_EVICT, LL_MOVER_EVICT, LL_MOVER_RESUME, LL_MOVER_RESUME,
						   LL_MOVER_SUSPEND};
	bool is_last = evictions >= wanted;
	program->asked = is_last ? LL_MOVER_RESUME : kinds[(size_t)(drand48() * 5)];
	program->is_done = is_last;
	struct ll_mover_message message = {
	    .kind = program->asked, .number = program->claim, .value = UINT64_C(60000000000)};
	int rc = ll_packet_send(program->fd, &message, sizeof message, NULL, 0);
	if (rc)
		fail("ask", rc);
}

static void hear(struct program *program)
{
	struct ll_mover_message answer;
	size_t fd_count;
	int rc = ll_packet_receive(program->fd, true, &answer, sizeof answer, NULL, 0, &fd_count);
	if (rc)
		fail("hear", rc);
	if (answer.value) {
		fprintf(stderr, "evict_soak: claim %" PRIu64 ": %s\n", program->claim, answer.text);
		refused++;
	}
	if (program->asked == LL_MOVER_EVICT)
		evictions++;
	else
		others++;
}

int main(int argc, char **argv)
{
	char name[256];
	if (argc < 6 || argc > 5 + PROGRAMS)
		return 2;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, argv[2]);
	wanted = strtoull(argv[3], NULL, 10);
	srand48((long)strtoull(argv[4], NULL, 10));
	for (int i = 5; i < argc; i++) {
		struct program *program = &programs[count];
		program->claim = strtoull(argv[i], NULL, 10);
		int rc = ll_packet_connect(argv[1], name, &program->fd);
		if (rc)
			fail("connect", rc);
		polls[count++] = (struct pollfd){.fd = program->fd, .events = POLLIN};
		ask(program);
	}
	for (nfds_t busy = count; busy;) {
		if (poll(polls, count, WAIT_MS) <= 0)
			fail("no answer", -ETIMEDOUT);
		for (nfds_t i = 0; i < count; i++) {
			if (!polls[i].revents)
				continue;
			hear(&programs[i]);
			if (!programs[i].is_done) {
				ask(&programs[i]);
			} else {
				polls[i].fd = -1;
				busy--;
			}
		}
	}
	printf("{\"event\":\"soak\",\"evictions\":%" PRIu64 ",\"others\":%" PRIu64 ",\"refused\":%" PRIu64 "}\n",
	       evictions, others, refused);
	return refused ? 1 : 0;
}
