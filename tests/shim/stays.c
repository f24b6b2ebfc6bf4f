/* When a process was on the card, by the records of the driver's trace. The test stands in for the trace, and for the
 * claim that is told. */
#include "shim/slices/stays.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "test.h"

enum { OWN = 7, OTHER = 9, MOST = 200 };
#define MS LL_NS_PER_MS

static struct ll_stays stays;
static struct ll_rm_switch_record records[MOST];
static size_t record_count, given;
static bool is_refused, has_lost, is_broken;
static unsigned opened, closed;
static uint64_t card_ahead_ns; /* the card's clock minus the host's */

/* what the claim was told */
static uint64_t away_ns, last_end_ns, traced_ns;

int ll_trace_open(ll_ioctl_fn next, const char *uuid, struct ll_trace **ret_trace)
{
	(void)next;
	(void)uuid;
	static char trace;
	opened++;
	*ret_trace = (struct ll_trace *)&trace;
	return is_refused ? -EPERM : 0;
}

int ll_trace_read(struct ll_trace *trace, struct ll_rm_switch_record *ret_records, size_t most, bool *ret_lost)
{
	(void)trace;
	size_t count = record_count - given < most ? record_count - given : most;
	memcpy(ret_records, &records[given], count * sizeof *ret_records);
	given += count;
	*ret_lost = has_lost;
	has_lost = false;
	return is_broken ? -EBADF : (int)count;
}

void ll_port_note_away(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	(void)claim;
	assert_true(start_ns >= last_end_ns && end_ns > start_ns && end_ns <= ll_now_ns());
	away_ns += end_ns - start_ns;
	last_end_ns = end_ns;
}

void ll_port_note_traced(struct ll_claim *claim, uint64_t until_ns)
{
	(void)claim;
	traced_ns = until_ns;
}

void ll_trace_close(struct ll_trace *trace)
{
	assert_non_null(trace);
	closed++;
}

static bool is_own(const void *of, uint32_t context)
{
	(void)of;
	return context == OWN;
}

static bool follow(bool has_company)
{
	return ll_stays_follow(&stays, NULL, "GPU-1", NULL, has_company, is_own, NULL);
}

static void note(enum ll_rm_switch_tag tag, uint32_t context, uint64_t at_ns)
{
	assert_true(record_count < MOST);
	records[record_count++] =
	    (struct ll_rm_switch_record){.tag = (uint8_t)tag, .context = context, .ns = at_ns + card_ahead_ns};
}

/* A stay of the context. */
static void stay(uint32_t context, uint64_t start_ns, uint64_t end_ns)
{
	note(LL_RM_SWITCH_START, context, start_ns);
	note(LL_RM_SWITCH_END, context, end_ns);
}

static int begin(void **state)
{
	(void)state;
	memset(&stays, 0, sizeof stays);
	record_count = given = opened = closed = 0;
	is_refused = has_lost = is_broken = false;
	away_ns = last_end_ns = traced_ns = 0;
	card_ahead_ns = UINT64_C(1700000000000000000);
	return 0;
}

/* The first records tell of the clock. */
static void open_trace(void)
{
	note(LL_RM_SWITCH_START, OWN, ll_now_ns());
	assert_true(follow(true));
	assert_int_equal(away_ns, 0);
}

TEST_EACH(begin, NULL);

TEST(without_company_no_trace_is_opened)
{
	assert_false(follow(false));
	assert_int_equal(opened, 0);
	assert_int_equal(traced_ns, 0);
}

/* More records than are read at once tell of one clock. Twenty rounds of 2 ms of its own and 2 ms of another. Of each
 * own stay 0.13 ms are its saving. */
TEST(the_stays_of_others_are_time_off_the_card)
{
	open_trace();
	uint64_t from_ns = ll_now_ns() - 80 * MS;
	for (unsigned i = 0; i < 20; i++) {
		stay(OTHER, from_ns + i * 4 * MS, from_ns + (i * 4 + 2) * MS);
		stay(OWN, from_ns + (i * 4 + 2) * MS, from_ns + (i * 4 + 4) * MS - 1);
	}
	uint64_t before_ns = ll_now_ns();
	assert_true(follow(true));
	assert_true(traced_ns >= before_ns);
	uint64_t open_ns = traced_ns - (from_ns + 80 * MS); /* since the last record it is off */
	assert_in_range(away_ns, 42 * MS + MS / 2, 42 * MS + open_ns + 2 * MS);
}

TEST(who_is_on_the_card_when_the_trace_begins_is_told_by_the_first_records)
{
	open_trace();
	uint64_t from_ns = ll_now_ns() - 20 * MS;
	note(LL_RM_SWITCH_END, OTHER, from_ns); /* it was on: unknown, so it counts as ours */
	note(LL_RM_SWITCH_START, OTHER, from_ns + 5 * MS);
	note(LL_RM_SWITCH_START, OWN, from_ns + 15 * MS);
	note(LL_RM_SWITCH_START, OWN, from_ns + 20 * MS - 1000);
	follow(true);
	assert_in_range(away_ns, 10 * MS - MS / 100, 10 * MS + MS / 100);
}

/* Between two of its own contexts it is away for the change alone. */
TEST(all_contexts_of_the_process_are_its_own)
{
	open_trace();
	uint64_t from_ns = ll_now_ns() - 20 * MS;
	stay(OWN, from_ns, from_ns + 10 * MS);
	note(LL_RM_SWITCH_START, OWN, from_ns + 10 * MS + MS / 5);
	note(LL_RM_SWITCH_START, OWN, from_ns + 20 * MS - 1000);
	follow(true);
	assert_in_range(away_ns, MS / 5, MS / 2);
}

TEST(what_is_off_now_is_told_up_to_now_and_goes_on)
{
	open_trace();
	uint64_t from_ns = ll_now_ns() - 10 * MS;
	note(LL_RM_SWITCH_END, OWN, from_ns + MS / 10);
	note(LL_RM_SWITCH_START, OTHER, ll_now_ns());
	follow(true);
	uint64_t first_ns = away_ns;
	assert_true(first_ns >= 9 * MS);
	uint64_t looked_ns = traced_ns;
	follow(true);
	assert_true(away_ns - first_ns >= traced_ns - looked_ns && traced_ns > looked_ns);
}

TEST(after_lost_records_it_counts_as_on_the_card_until_the_next_one)
{
	open_trace();
	note(LL_RM_SWITCH_END, OWN, ll_now_ns());
	has_lost = true;
	follow(true);
	uint64_t before_ns = away_ns;
	follow(true);
	assert_int_equal(away_ns, before_ns);
}

TEST(a_refused_trace_is_not_asked_for_again_and_the_claim_knows_of_none)
{
	is_refused = true;
	assert_false(follow(true));
	assert_false(follow(true));
	assert_int_equal(opened, 1);
	assert_int_equal(traced_ns, 0);
}

TEST(company_that_pauses_is_followed_on)
{
	open_trace();
	assert_true(follow(false));
	assert_true(traced_ns > 0);
}

/* Without the numbers of its contexts it would be taken for away all the time, and be charged nothing. */
TEST(records_of_others_alone_are_no_trace)
{
	note(LL_RM_SWITCH_START, OTHER, ll_now_ns());
	assert_true(follow(true));
	note(LL_RM_SWITCH_END, OTHER, ll_now_ns());
	note(LL_RM_SWITCH_START, OTHER, ll_now_ns());
	assert_true(follow(true));
	assert_int_equal(traced_ns, 0);
	assert_int_equal(away_ns, 0);
	note(LL_RM_SWITCH_START, OWN, ll_now_ns());
	assert_true(follow(true));
	assert_true(traced_ns > 0);
}

TEST(a_trace_that_breaks_is_given_up)
{
	open_trace();
	note(LL_RM_SWITCH_END, OWN, ll_now_ns());
	is_broken = true;
	assert_false(follow(true));
	assert_int_equal(closed, 1);
	assert_int_equal(traced_ns, 0);
	assert_false(follow(true));
	assert_int_equal(opened, 1);
}
