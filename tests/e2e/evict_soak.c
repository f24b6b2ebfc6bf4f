/*
 * evict_soak.c - evicts programs at random, all of them at once: evict_soak EVICTIONS SEED.
 *
 * For each evictable claim that loadlined knows it has a connection, by which it asks for a random move as soon as the
 * last one is done. When there were so many evictions in all it resumes every program. One JSON line; the exit status
 * is 1 if a move was refused:
 *
 *     {"event":"soak","evictions":300,"others":412,"refused":0}
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "protocol/client.h"
#include "protocol/words.h"

enum { PROGRAMS = 16, WAIT_MS = 120000 };

struct program {
	struct ll_client client;
	uint64_t job;
	const struct ll_message_claim_row *claim;
	enum ll_message_kind asked;
	bool is_done;
};

static struct program programs[PROGRAMS];
static struct pollfd polls[PROGRAMS];
static nfds_t count;
static uint64_t evictions, others, refused, wanted;
static struct ll_list list;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "evict_soak: %s: %s\n", what, why);
	exit(1);
}

static void open_client(struct ll_client *client)
{
	struct ll_place place;
	struct ll_err err = {0};
	if (ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, &err) ||
	    ll_client_open(client, &place, LL_CLIENT_COMMAND("0.1.0"), ll_now_ns() + LL_CLIENT_REPLY_NS, &err))
		fail("connect", err.text);
}

static void ask(struct program *program)
{
	static const enum ll_message_kind kinds[] = {LL_MESSAGE_EVICT, LL_MESSAGE_EVICT, LL_MESSAGE_RESUME,
						     LL_MESSAGE_RESUME, LL_MESSAGE_SUSPEND};
	union ll_message message;
	struct ll_err err = {0};
	bool is_last = evictions >= wanted;
	program->asked = is_last ? LL_MESSAGE_RESUME : kinds[(size_t)(drand48() * 5)];
	program->is_done = is_last;
	ll_message_init(&message, program->asked);
	message.move.job = program->job;
	message.move.index = program->claim->index;
	message.move.value = UINT64_C(60000000000);
	memcpy(message.move.uuid, program->claim->uuid, sizeof message.move.uuid);
	if (ll_client_send(&program->client, &message, ll_now_ns() + LL_CLIENT_REPLY_NS, &err))
		fail("ask", err.text);
}

/* False: it goes on. */
static bool hear(struct program *program)
{
	union ll_message answer;
	struct ll_err err = {0};
	int rc = ll_client_receive(&program->client, &answer, ll_now_ns() + LL_CLIENT_REPLY_NS, &err);
	if (!rc && answer.header.kind == LL_MESSAGE_PROGRESS)
		return false;
	if (rc) {
		fprintf(stderr, "evict_soak: claim %u: %s\n", program->claim->index, err.text);
		refused++;
	}
	if (program->asked == LL_MESSAGE_EVICT)
		evictions++;
	else
		others++;
	return true;
}

static void find_programs(void)
{
	static struct ll_client client;
	struct ll_err err = {0};
	open_client(&client);
	if (ll_client_list(&client, &list, ll_now_ns() + LL_CLIENT_REPLY_NS, &err))
		fail("list", err.text);
	for (size_t i = 0; i < list.claim_count && count < PROGRAMS; i++) {
		struct program *program = &programs[count];
		const struct ll_message_job_row *job = ll_list_job(&list, list.claims[i].job_number);
		if (list.claims[i].residency == LL_CLAIM_FIXED || !job)
			continue;
		*program = (struct program){.claim = &list.claims[i], .job = job->job.token[0]};
		open_client(&program->client);
		polls[count++] = (struct pollfd){.fd = program->client.fd, .events = POLLIN};
		ask(program);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	wanted = strtoull(argv[1], NULL, 10);
	srand48((long)strtoull(argv[2], NULL, 10));
	find_programs();
	for (nfds_t busy = count; busy;) {
		if (poll(polls, count, WAIT_MS) <= 0)
			fail("no answer", "for two minutes");
		for (nfds_t i = 0; i < count; i++) {
			if (!polls[i].revents || !hear(&programs[i]))
				continue;
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
	ll_list_fini(&list);
	return refused || !count ? 1 : 0;
}
