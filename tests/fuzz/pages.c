/*
 * A fuzz target for a job's page, as a process may leave it: any bytes in the slots of three processes and beside them.
 * What the daemon makes of it must be good messages, grants within the limit, and an end of its work.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/core/connection.h"
#include "daemon/jobs/jobs.h"
#include "daemon/residency/residency.h"
#include "rules/residency/grants.h"
#include "target.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
enum { PROCESSES = 3, LIMIT = 1000 };

static struct ll_server server;
static struct ll_job *job;
static struct ll_user users[PROCESSES];
static struct ll_job_claim *claims[PROCESSES];

static void begin(void)
{
	struct ll_job_facts facts = {.token = {4711, 1}, .state = LL_JOB_RUNNING, .tenant = "fuzz"};
	struct ll_job_card *card;
	facts.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	expect(uv_loop_init(&server.loop) == 0, "a loop");
	expect(ll_cards_init(&server.cards, &server.loop) == 0, "cards");
	expect(ll_memory_init(&server) == 0, "a timer");
	expect(ll_books_add(&server.books, &facts, 0, &job) == 0, "a job");
	expect(ll_pages_make(&job->pages, &facts) == 0, "its pages");
	expect(ll_claims_adopt(&server, job) == 0, "its claims");
	expect(ll_job_card_get(&server, job, CARD, "", &card) == 0, "its card");
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct ll_claim_identity identity = {.pid = (int32_t)i + 1};
		users[i] = (struct ll_user){.server = &server, .job = job, .claims = 1, .pid = i + 1};
		expect(ll_claims_grant(&server, card, &users[i], &identity, &claims[i]) == 0, "a slot");
	}
}

/* job_upkeep.c has no part here: the row of the job is not there. The rows stay in the connection, whose socket has no
 * room. */
static void check_list(void)
{
	struct ll_visitor visitor = {0};
	struct ll_connection connection = {
	    .server = &server, .visitor = &visitor, .has_pending = true, .rows = LL_STRBUF_INIT};
	union ll_message row, again;
	unsigned rows = 0;
	ll_list_cards(&connection, job);
	for (size_t at = 0; at < connection.rows.length; at += row.header.size) {
		memcpy(&row.header, connection.rows.buf + at, sizeof row.header);
		memcpy(&row, connection.rows.buf + at, row.header.size);
		expect(ll_message_decode(&row, row.header.size, &again) == 0, "each row is a good message");
		rows += row.header.kind == LL_MESSAGE_CARD_ROW || row.header.kind == LL_MESSAGE_CLAIM_ROW;
	}
	expect(rows == PROCESSES + 1, "there is a row of the card, and of each claim");
	ll_strbuf_fini(&connection.rows);
}

static void check_grants(void)
{
	uint64_t granted = 0, used = 0;
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct ll_page_slot *slot = ll_claim_slot(claims[i]);
		expect(slot->token == claims[i]->token, "a slot keeps its token");
		expect(LL_MEMORY_GRANTED(slot->memory) == claims[i]->granted, "the word is what was granted");
		granted += claims[i]->granted;
		used += LL_MEMORY_USED(slot->memory);
	}
	expect(granted <= LIMIT || granted <= used, "grants are within the limit, but for what is used already");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	if (!job)
		begin();
	char *slots = (char *)job->pages.page->slots, *cards = (char *)job->pages.page->cards;
	size_t slot_bytes = PROCESSES * sizeof *job->pages.page->slots;
	memcpy(slots, bytes, length < slot_bytes ? length : slot_bytes);
	if (length > slot_bytes) {
		size_t rest = length - slot_bytes;
		memcpy(cards, bytes + slot_bytes,
		       rest < sizeof *job->pages.page->cards ? rest : sizeof *job->pages.page->cards);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		ll_claims_wake(&server, claims[i]);
	ll_memory_settle(&server, claims[0]->card);
	ll_cards_settle(&server.cards, ll_now_ns());
	check_grants();
	check_list();
	return 0;
}

#ifndef LL_LIBFUZZER
enum { ROUNDS = 20000, BYTES = 2048 };

/* Words of which many are small, or what the page has there already. */
int main(void)
{
	static uint64_t words[BYTES / 8];
	srand(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < BYTES / 8; i++) {
			uint64_t any = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ (uint64_t)rand();
			switch (rand() % 4) {
			case 0:
				words[i] = any;
				break;
			case 1:
				words[i] = any % 3 << 32 | any % 2000;
				break;
			case 2:
				words[i] = any % 9;
				break;
			default:
				break;
			}
		}
		LLVMFuzzerTestOneInput((const uint8_t *)words, 8 + (size_t)rand() % (BYTES - 8));
	}
	printf("%d pages\n", ROUNDS);
	return 0;
}
#endif
