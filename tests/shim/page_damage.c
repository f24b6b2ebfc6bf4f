/*
 * Any word of the page may be damaged while a program uses it: none stalls or ends it, and it is governed again when
 * the word is right again. What was damaged may be refused or charged wrongly until then.
 */
#include "launching.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID 7
#define OTHER_ID 8
#define MS UINT64_C(1000000)
/* Who asks loadlined for memory waits for 5 s; a launch that nothing lets through waits for 60. */
#define SOON_NS (10000 * MS)

enum { VALUES = 5 };

static const uint64_t values[VALUES] = {UINT64_MAX, UINT64_C(3) << 62, UINT64_C(1) << 63, UINT64_C(1) << 62, 0};

static struct ll_cu_function *work;
static struct ll_cu_stream *stream;
static unsigned stalls;

static bool is_governed(void)
{
	launch_timed(work, stream, 10000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	const struct ll_page_slot *slot = claim_of(ID);
	return slot && slot->pid == getpid();
}

static void use(void)
{
	ll_cu_deviceptr address;
	for (int i = 0; i < 2; i++) {
		launch_timed(work, stream, 10000, 1, 32);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	}
	if (cu.cuMemAlloc(&address, 4096) == 0)
		CHECK_EQUAL(cu.cuMemFree(address), 0);
}

static void damage(_Atomic uint64_t *word, uint64_t value, const char *where, size_t offset)
{
	launch_timed(work, stream, MS, 1, 32); /* it is at work */
	uint64_t right = *word, start_ns = ll_now_ns();
	*word = value;
	use();
	uint64_t took_ns = ll_now_ns() - start_ns;
	if (took_ns >= SOON_NS)
		print_error("%s, byte %zu: %#llx stalls for %llu ms\n", where, offset, (unsigned long long)value,
			    (unsigned long long)(took_ns / MS));
	stalls += took_ns >= SOON_NS;
	for (int half = 0; half < 2; half++) { /* some words are two */
		uint32_t wrong = (uint32_t)(value >> 32 * half);
		atomic_compare_exchange_strong((_Atomic uint32_t *)word + half, &wrong, (uint32_t)(right >> 32 * half));
	}
	WAIT_FOR(is_governed());
}

/* What is damaged is found anew for each word: a program that lost its claim has another. */
static void damage_words(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		struct ll_page *page = jobs_pages(ID)->page;
		struct ll_page_card *card = &page->cards[claim_of(ID)->card];
		/* Not what the job says that it had of the card: it owes that, if it has a cap. */
		for (size_t offset = offsetof(struct ll_page_card, lost_since_ns);
		     offset < offsetof(struct ll_page_card, busy); offset += 8)
			damage((_Atomic uint64_t *)((char *)card + offset), values[i], "card", offset);
		for (size_t offset = 0; offset < sizeof(struct ll_page_slot); offset += 8)
			damage((_Atomic uint64_t *)((char *)claim_of(ID) + offset), values[i], "slot", offset);
		for (size_t offset = 0; offset < sizeof card->busy; offset += 8)
			*(_Atomic uint64_t *)((char *)&card->busy + offset) = values[i];
		use();
	}
	CHECK_EQUAL(stalls, 0);
}

static void begin(uint64_t id, unsigned cap_permille)
{
	begin_program(id, cap_permille, &work, &stream);
}

TEST_IN_WORLD(NULL, no_word_of_the_page_stalls_a_program_that_is_alone)
{
	begin(ID, 0);
	damage_words();
}

TEST_IN_WORLD(NULL, no_word_of_the_page_stalls_a_capped_program)
{
	begin(ID, 500);
	damage_words();
}

/* Launches for as long as the test goes on. */
static void body_other(void)
{
	pid_t parent = getppid();
	begin(OTHER_ID, 0);
	ready();
	while (getppid() == parent) {
		launch_timed(work, stream, MS / 5, 1, 32);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	}
}

TEST_IN_WORLD(NULL, no_word_of_the_page_stalls_a_program_beside_another)
{
	pid_t other = spawn_ready(body_other);
	begin(ID, 0);
	damage_words();
	CHECK_EQUAL(kill(other, SIGKILL), 0);
	CHECK_EQUAL(waitpid(other, NULL, 0), other);
}
