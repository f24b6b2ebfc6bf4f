/* What part of its cards a job has, by the texts of Slurm 22.05 and of 23.02 on. */
#include "slurm/plugin.h"

#include <errno.h>

#include "base/err.h"
#include "test.h"

static struct ll_err err;

static struct ll_spank_job part(size_t cards, const char *job_gres, const char *node_gres)
{
	struct ll_spank_job job = {.card_count = cards};
	assert_int_equal(ll_spank_part_read(job_gres, node_gres, &job, &err), 0);
	return job;
}

static void has(struct ll_spank_job job, unsigned shards, unsigned of_shards)
{
	assert_int_equal(job.shards, shards);
	assert_int_equal(job.of_shards, of_shards);
}

static int refused(size_t cards, const char *job_gres, const char *node_gres)
{
	struct ll_spank_job job = {.card_count = cards};
	return ll_spank_part_read(job_gres, node_gres, &job, &err);
}

TEST(shards_are_a_part_of_a_card_of_the_node)
{
	has(part(1, "shard:4(IDX:0)", "gpu:h200:1,shard:16"), 4, 16);
	has(part(1, "shard:4(IDX:3)", "gpu:h200:8,shard:128"), 4, 16);
	has(part(2, "gpu:0,shard:8(IDX:0-1)", "gpu:h200:2(S:0),shard:32(S:0)"), 4, 16);
}

TEST(a_text_with_the_parts_of_each_card_needs_no_count_of_the_node)
{
	has(part(1, "shard:h200:4(4/16,0/16)", ""), 4, 16);
	/* Of different parts the smallest counts. */
	has(part(2, "shard:h200:6(4/16,2/16)", ""), 2, 16);
	has(part(2, "shard:6(4/8,2/16)", ""), 2, 16);
}

TEST(a_job_with_whole_cards_has_them_whole)
{
	has(part(2, "gpu:h200:2(IDX:0-1)", "gpu:h200:8,shard:128"), 0, 0);
	has(part(0, "", "gpu:h200:8,shard:128"), 0, 0);
}

TEST(shards_of_which_the_part_is_not_known_are_refused)
{
	assert_int_equal(refused(1, "shard:4(IDX:0)", "shard:16"), -EINVAL);         /* no cards */
	assert_int_equal(refused(1, "shard:4(IDX:0)", "gpu:3,shard:16"), -EINVAL);   /* of different sizes */
	assert_int_equal(refused(2, "shard:5(IDX:0-1)", "gpu:2,shard:32"), -EINVAL); /* divided unequally */
	assert_int_equal(refused(1, "shard:20(IDX:0)", "gpu:2,shard:32"), -EINVAL);  /* more than a card has */
	assert_int_equal(refused(0, "shard:4(IDX:0)", "gpu:1,shard:16"), -EINVAL);   /* on no card */
}

TEST(the_numbers_of_cards_are_read)
{
	struct ll_spank_job job = {.id = 0};
	assert_int_equal(ll_spank_cards_read("0,2-3", &job), 0);
	assert_int_equal(job.card_count, 3);
	assert_int_equal(job.cards[0], 0);
	assert_int_equal(job.cards[1], 2);
	assert_int_equal(job.cards[2], 3);
	static const char *const wrong[] = {"x", "1-", "3-2", "1;2", "0-64", NULL};
	for (size_t i = 0; wrong[i]; i++) {
		job.card_count = 0;
		assert_int_equal(ll_spank_cards_read(wrong[i], &job), -EINVAL);
	}
}
