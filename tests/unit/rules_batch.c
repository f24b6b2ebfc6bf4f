/* How long a card worked on a batch, from what its marks tell. */
#include "test.h"

#include "base/clock.h"
#include "rules/share/batch.h"

#define US LL_NS_PER_US
/* Behind what the launch call takes, where an event takes LL_BATCH_EVENT_NS and recording the first took 1040 ns. */
#define END_NS (280 + LL_BATCH_EVENT_NS - LL_BATCH_EVENT_BUSY_NS)

static void assert_verdict(struct ll_batch batch, enum ll_batch_lesson lesson, uint64_t busy_ns)
{
	struct ll_batch_verdict verdict = ll_batch_judge(&batch);
	assert_int_equal(verdict.lesson, lesson);
	assert_int_equal(verdict.busy_ns, busy_ns);
}

/* 10 us of kernel between two marks on an idle stream. */
static const struct ll_batch single = {.span_ns = 10 * US + 5200 - 1700,
				       .end_wait_ns = 11 * US,
				       .host_ns = 3700,
				       .start_call_ns = 1040,
				       .launch_ns = 2600,
				       .tail_ns = 30,
				       .end_call_ns = 1040,
				       .guess_ns = 50 * US,
				       .launches = 1,
				       .event_ns = LL_BATCH_EVENT_NS,
				       .has_start = true};

TEST(a_launch_by_itself_is_a_sample_without_what_the_host_took)
{
	assert_verdict(single, LL_BATCH_SAMPLE, single.span_ns - 2600 - END_NS);
	struct ll_batch slow = single; /* the same with a launch call that takes 10 us more */
	slow.launch_ns += 10 * US, slow.host_ns += 10 * US, slow.span_ns += 10 * US;
	assert_verdict(slow, LL_BATCH_SAMPLE, single.span_ns - 2600 - END_NS);
}

TEST(a_start_that_waited_covers_part_of_the_launch_call)
{
	struct ll_batch batch = single;
	batch.launch_ns += 3000, batch.host_ns += 3000;
	batch.start_wait_ns = 3000;
	assert_verdict(batch, LL_BATCH_SAMPLE, single.span_ns - 2600 - END_NS);
	batch.start_wait_ns = 6000; /* the launch was waiting, too: it came right behind */
	assert_verdict(batch, LL_BATCH_SAMPLE,
		       single.span_ns - LL_BATCH_FOLLOW_NS - LL_BATCH_EVENT_NS + LL_BATCH_EVENT_BUSY_NS);
}

/* It does so sometime in its call, the slower that is the earlier before its end. */
TEST(when_the_first_event_came_to_the_card_is_reckoned_with)
{
	struct ll_batch slow = single;
	slow.start_call_ns = 4040, slow.host_ns += 3000, slow.span_ns += 810;
	assert_verdict(slow, LL_BATCH_SAMPLE, single.span_ns - 2600 - END_NS);
}

TEST(a_sample_is_rough_if_the_last_event_did_not_wait_unless_the_launch_is_long)
{
	struct ll_batch end = single;
	end.end_wait_ns = 0;
	assert_verdict(end, LL_BATCH_ROUGH, end.span_ns - 2600 - END_NS);
	end.span_ns += 40 * US;
	assert_verdict(end, LL_BATCH_SAMPLE, end.span_ns - 2600 - END_NS);
}

/* How long it waited is not known that well: where all events wait, clocks can only be seen to drift apart. */
TEST(a_sample_behind_others_is_rough_unless_the_stream_never_ran_empty)
{
	struct ll_batch behind = single;
	behind.is_behind = true;
	assert_verdict(behind, LL_BATCH_ROUGH, behind.span_ns - 2600 - END_NS);
	behind.start_wait_ns = 4000;
	assert_verdict(behind, LL_BATCH_QUEUED, behind.span_ns - LL_BATCH_EVENT_NS);
}

TEST(where_events_take_longer_so_much_less_is_work)
{
	struct ll_batch slow = single;
	slow.event_ns += 750;
	assert_verdict(slow, LL_BATCH_SAMPLE, single.span_ns - 2600 - END_NS - 750);
}

TEST(an_interrupted_host_makes_no_sample_of_a_short_launch)
{
	struct ll_batch start = single; /* after the first event had come to the card: the span begins early */
	start.start_call_ns += 12 * US, start.host_ns += 12 * US, start.span_ns += 12 * US;
	assert_verdict(start, LL_BATCH_UNTOLD, start.span_ns);
	struct ll_batch end = single; /* before the last event came to the card: the span ends late */
	end.end_call_ns += 30 * US, end.span_ns += 20 * US, end.end_wait_ns = 0;
	assert_verdict(end, LL_BATCH_UNTOLD, end.span_ns);
	struct ll_batch launch = single;
	launch.launch_ns += 30 * US, launch.host_ns += 30 * US, launch.span_ns += 30 * US;
	assert_verdict(launch, LL_BATCH_UNTOLD, launch.span_ns);
}

TEST(an_interrupted_host_does_not_matter_to_a_long_launch)
{
	struct ll_batch end = single; /* the card was still at it */
	end.end_call_ns += 30 * US, end.span_ns += 90 * US, end.end_wait_ns = 60 * US;
	assert_verdict(end, LL_BATCH_SAMPLE, end.span_ns - end.launch_ns - END_NS);
	struct ll_batch launch = single;
	launch.launch_ns = launch.host_ns = 2 * LL_NS_PER_MS;
	launch.span_ns = 100 * LL_NS_PER_MS;
	assert_verdict(launch, LL_BATCH_SAMPLE, 98 * LL_NS_PER_MS - END_NS);
}

TEST(a_batch_launched_before_its_start_was_reached_is_work_throughout)
{
	struct ll_batch batch = {.span_ns = 300 * US,
				 .start_wait_ns = 90 * US,
				 .host_ns = 80 * US,
				 .end_wait_ns = 350 * US,
				 .guess_ns = 200 * US,
				 .launches = 30,
				 .event_ns = LL_BATCH_EVENT_NS};
	assert_verdict(batch, LL_BATCH_QUEUED, 300 * US - LL_BATCH_EVENT_NS);
	batch.host_ns = 100 * US; /* the end waited longer than was guessed in all */
	assert_verdict(batch, LL_BATCH_UNTOLD, 300 * US);
}

TEST(where_the_stream_may_have_run_empty_the_guess_counts)
{
	struct ll_batch batch = {.span_ns = 300 * US,
				 .host_ns = 250 * US,
				 .end_wait_ns = 20 * US,
				 .guess_ns = 120 * US,
				 .launches = 30,
				 .event_ns = LL_BATCH_EVENT_NS};
	assert_verdict(batch, LL_BATCH_UNTOLD, 120 * US);
	batch.guess_ns = 400 * US;
	assert_verdict(batch, LL_BATCH_UNTOLD, 300 * US);
}

TEST(a_mark_that_came_late_to_an_empty_stream_proves_nothing)
{
	struct ll_batch batch = {.span_ns = 900 * US,
				 .start_wait_ns = 90 * US,
				 .host_ns = 80 * US,
				 .tail_ns = 700 * US,
				 .guess_ns = 120 * US,
				 .launches = 30,
				 .event_ns = LL_BATCH_EVENT_NS};
	assert_verdict(batch, LL_BATCH_UNTOLD, 120 * US);
	batch.end_wait_ns =
	    100 * US; /* it found work, but perhaps others', too: the driver's, say, that loads a kernel */
	assert_verdict(batch, LL_BATCH_ROUGH, 900 * US - LL_BATCH_EVENT_NS);
	struct ll_batch late = single;
	late.tail_ns = 800 * US, late.span_ns = 800 * US, late.end_wait_ns = 0;
	assert_verdict(late, LL_BATCH_UNTOLD, 50 * US);
}

TEST(what_the_end_waited_is_work_whatever_was_guessed)
{
	struct ll_batch batch = {.span_ns = 21 * LL_NS_PER_MS,
				 .host_ns = 30 * US,
				 .tail_ns = LL_NS_PER_MS,
				 .end_wait_ns = 19 * LL_NS_PER_MS,
				 .guess_ns = 50 * US,
				 .launches = 10,
				 .event_ns = LL_BATCH_EVENT_NS};
	assert_verdict(batch, LL_BATCH_LONGER, 19 * LL_NS_PER_MS);
	batch.guess_ns = 18 * LL_NS_PER_MS;
	assert_verdict(batch, LL_BATCH_UNTOLD, 19 * LL_NS_PER_MS);
}

/* A long kernel, marked a while after it was launched. */
TEST(launches_longer_than_the_time_that_nobody_saw_worked_all_through)
{
	struct ll_batch batch = {.span_ns = 60 * LL_NS_PER_MS,
				 .host_ns = 30 * US,
				 .tail_ns = 3 * LL_NS_PER_MS,
				 .end_wait_ns = 57 * LL_NS_PER_MS,
				 .guess_ns = 50 * US,
				 .launches = 2,
				 .event_ns = LL_BATCH_EVENT_NS};
	assert_verdict(batch, LL_BATCH_LONGER, 60 * LL_NS_PER_MS);
	batch.launches = 30;
	assert_verdict(batch, LL_BATCH_LONGER, 57 * LL_NS_PER_MS);
	batch.launches = 2, batch.guess_ns = 50 * LL_NS_PER_MS;
	assert_verdict(batch, LL_BATCH_UNTOLD, 57 * LL_NS_PER_MS);
}

/* Its mark was put off until the stream was idle. */
TEST(what_was_seen_at_work_is_work_whatever_was_guessed)
{
	struct ll_batch batch = {.span_ns = 21 * LL_NS_PER_MS,
				 .host_ns = 30 * US,
				 .tail_ns = 20 * LL_NS_PER_MS,
				 .seen_ns = 19 * LL_NS_PER_MS,
				 .guess_ns = 50 * US,
				 .launches = 200,
				 .event_ns = LL_BATCH_EVENT_NS};
	assert_verdict(batch, LL_BATCH_LONGER, 19 * LL_NS_PER_MS);
	batch.seen_ns = 30 * LL_NS_PER_MS;
	assert_verdict(batch, LL_BATCH_LONGER, 21 * LL_NS_PER_MS);
	batch.seen_ns = 10 * US;
	assert_verdict(batch, LL_BATCH_UNTOLD, 50 * US);
}

TEST(no_batch_takes_less_than_nothing)
{
	struct ll_batch batch = {.launches = 1, .has_start = true, .host_ns = 3700, .launch_ns = 2600};
	assert_verdict(batch, LL_BATCH_ROUGH, 0);
	batch.start_wait_ns = 4000;
	assert_verdict(batch, LL_BATCH_QUEUED, 0);
}

TEST(what_is_learned_of_a_launch_is_for_an_idle_card)
{
	struct ll_batch_verdict verdict = {.busy_ns = 50 * US, .lesson = LL_BATCH_SAMPLE};
	assert_int_equal(ll_batch_each_ns(verdict, 10), 5 * US);
	verdict.lesson = LL_BATCH_QUEUED;
	assert_int_equal(ll_batch_each_ns(verdict, 10), 5 * US + LL_BATCH_IDLE_NS);
	verdict.busy_ns = 13;
	assert_int_equal(ll_batch_each_ns(verdict, 1), LL_BATCH_LEAST_NS);
}
