#include "cli/common/stalling.h"

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "test.h"

/* Reads of this process do not end before the pipe has a byte. */
enum { STUCK = 17 };
static int ends[2];
static atomic_int begun, ended;

static void read_number(pid_t pid, void *ret_result)
{
	char byte;
	atomic_fetch_add(&begun, 1);
	if (pid == STUCK)
		assert_int_equal(read(ends[0], &byte, 1), 1);
	*(int *)ret_result = (int)pid * 2;
	atomic_fetch_add(&ended, 1);
}

TEST(one_that_does_not_end_is_left_and_not_read_again_before_it_does)
{
	static const pid_t pids[] = {16, STUCK, 18};
	int results[3] = {1, 1, 1};
	bool are_read[3];
	assert_int_equal(pipe(ends), 0);
	uint64_t begin_ns = ll_now_ns();
	ll_stalling_read(pids, 3, read_number, sizeof *results, results, are_read);
	assert_true(ll_now_ns() - begin_ns >= LL_STALLING_NS);
	assert_true(are_read[0] && !are_read[1] && are_read[2]);
	assert_int_equal(results[0], 32);
	assert_int_equal(results[1], 0);
	assert_int_equal(results[2], 36);
	assert_int_equal(begun, 3);
	/* No second thread waits for it. */
	ll_stalling_read(&pids[1], 1, read_number, sizeof *results, results, are_read);
	assert_false(are_read[0]);
	assert_int_equal(begun, 3);
	assert_int_equal(write(ends[1], "xx", 2), 2);
	for (uint64_t deadline_ns = begin_ns + 60 * LL_NS_PER_S; !are_read[0] && ll_now_ns() < deadline_ns;)
		ll_stalling_read(&pids[1], 1, read_number, sizeof *results, results, are_read);
	assert_true(are_read[0]);
	assert_int_equal(results[0], 34);
	assert_int_equal(begun, 4);
	assert_int_equal(ended, 4);
	close(ends[0]);
	close(ends[1]);
}

TEST(none_is_nothing)
{
	ll_stalling_read(NULL, 0, read_number, sizeof(int), NULL, NULL);
}
