/* What is told of earlier runs by slices and by space, and what --by auto makes of it. */
#include <unistd.h>

#include "advice/advice.h"
#include "base/strbuf.h"
#include "cli/run/run.h"
#include "test.h"

#define S UINT64_C(1000000000)

enum { UID = 1000, PROGRAM = 11, OTHER = 22 };

static struct ll_earlier earlier;

static uint64_t beside(uint64_t program)
{
	return ll_programs_key(&program, 1);
}

static int forget(void **state)
{
	(void)state;
	earlier.count = 0;
	return 0;
}

TEST_EACH(forget, NULL);

static void ran(enum ll_way way, uint64_t seconds, uint64_t launches)
{
	const struct ll_earlier_record record = {.ended_s = 1764158400, /* noon of 2025-11-26 */
						 .program = PROGRAM,
						 .others = beside(OTHER),
						 .way = way,
						 .ns = seconds * S,
						 .launches = launches,
						 .card = "GPU-1",
						 .name = "train.py",
						 .others_names = "infer.py"};
	ll_earlier_put(&earlier, &record);
}

static struct ll_message_card_row row_of(uint64_t seconds, uint64_t launches)
{
	return (struct ll_message_card_row){.job_number = 1,
					    .program = PROGRAM,
					    .others = beside(OTHER),
					    .company_ns = seconds * S,
					    .company_launches = launches,
					    .uuid = "GPU-1"};
}

TEST(this_run_is_compared_with_an_earlier_one_the_other_way)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_message_card_row row = row_of(10, 1000);
	struct ll_other_way other;
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	ran(LL_WAY_SLICES, 10, 5); /* the same way tells nothing */
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	ran(LL_WAY_SPACE, 20, 2840);
	assert_true(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	ll_other_way_add(&text, &other);
	assert_string_equal(text.buf, "train.py beside infer.py: by space it completed 1.42 times as many launches a "
				      "second on 2025-11-26; programs that share by space share a fault domain");
	assert_true(ll_other_way_find(&earlier, &row, LL_WAY_SPACE, &other));
	assert_int_equal(other.record->way, LL_WAY_SLICES);
	assert_true(other.times == 0.005);
}

TEST(a_run_that_is_too_young_stands_for_the_last_one_of_its_way)
{
	struct ll_message_card_row row = row_of(4, 4000);
	struct ll_other_way other;
	ran(LL_WAY_SPACE, 10, 2000);
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	ran(LL_WAY_SLICES, 10, 1000);
	assert_true(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	assert_true(other.times == 2);
}

TEST(another_card_other_neighbours_and_no_launches_tell_nothing)
{
	struct ll_message_card_row row = row_of(10, 1000);
	struct ll_other_way other;
	ran(LL_WAY_SPACE, 10, 0);
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	ran(LL_WAY_SPACE, 10, 2000);
	row.company_launches = 0;
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	row = row_of(10, 1000);
	row.others = beside(OTHER + 1);
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	row = row_of(10, 1000);
	memcpy(row.uuid, "GPU-2", 6);
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
	row = row_of(10, 1000);
	row.others = 0;
	assert_false(ll_other_way_find(&earlier, &row, LL_WAY_SLICES, &other));
}

/* ---- --by auto ---- */

static struct ll_message_job_row job;
static struct ll_message_card_row card;
static struct ll_message_claim_row claim;

static struct ll_list list_of(enum ll_way way)
{
	job = (struct ll_message_job_row){.number = 7};
	job.job.uid = UID;
	job.job.limits.space_permille = way == LL_WAY_SPACE ? 1000 : 0;
	card = (struct ll_message_card_row){.job_number = 7, .program = OTHER, .uuid = "GPU-1"};
	claim = (struct ll_message_claim_row){.job_number = 7, .uuid = "GPU-1"};
	return (struct ll_list){
	    .jobs = &job, .job_count = 1, .cards = &card, .card_count = 1, .claims = &claim, .claim_count = 1};
}

static bool finds(const struct ll_list *list, struct ll_run_measured *ret_measured)
{
	return ll_run_measured_find(&earlier, list, "GPU-1", PROGRAM, UID, ret_measured);
}

TEST(the_better_way_is_taken_if_the_others_share_so)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_run_measured measured;
	struct ll_list slices = list_of(LL_WAY_SLICES);
	assert_false(finds(&slices, &measured));
	ran(LL_WAY_SLICES, 10, 1200);
	assert_false(finds(&slices, &measured)); /* the other way is not known */
	ran(LL_WAY_SPACE, 10, 1000);
	assert_true(finds(&slices, &measured));
	assert_int_equal(measured.record->way, LL_WAY_SLICES);
	ll_run_measured_add(&text, &measured);
	assert_string_equal(
	    text.buf, "beside infer.py it completed 1.20 times as many launches a second so on 2025-11-26 as by space");
	struct ll_list space = list_of(LL_WAY_SPACE);
	assert_false(finds(&space, &measured));
	ran(LL_WAY_SPACE, 10, 2000);
	assert_true(finds(&space, &measured));
	assert_int_equal(measured.record->way, LL_WAY_SPACE);
	slices = list_of(LL_WAY_SLICES);
	assert_false(finds(&slices, &measured));
}

TEST(a_little_better_and_who_has_no_work_or_is_not_known_count_not)
{
	struct ll_run_measured measured;
	struct ll_list list = list_of(LL_WAY_SLICES);
	ran(LL_WAY_SPACE, 10, 1000);
	ran(LL_WAY_SLICES, 10, 1090);
	assert_false(finds(&list, &measured));
	ran(LL_WAY_SLICES, 10, 1110);
	assert_true(finds(&list, &measured));
	claim.idle_ns = 11 * S;
	assert_false(finds(&list, &measured));
	claim.idle_ns = 0;
	job.job.uid = UID + 1;
	assert_false(finds(&list, &measured));
	job.job.uid = UID;
	card.program = 0;
	assert_false(finds(&list, &measured));
	card.program = OTHER + 1;
	assert_false(finds(&list, &measured));
	card.program = OTHER;
	assert_true(finds(&list, &measured));
	list.card_count = 0;
	assert_false(finds(&list, &measured));
}
