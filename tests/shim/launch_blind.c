/* A program under a cap whose timing events fail, once or for ever: its limit holds all the same, and it is timed
 * again. */
#include "launching.h"

#define MS UINT64_C(1000000)

enum { ID = 1, CAP_PERMILLE = 100 };

static const char *failing;

/* Launches kernels of 1 ms for so long; the part of the time that they ran, in permille. */
static uint64_t permille_of(struct ll_cu_function *work, struct ll_cu_stream *stream, uint64_t ns)
{
	uint64_t start_ns = ll_now_ns(), launches = 0;
	while (ll_now_ns() < start_ns + ns) {
		for (int i = 0; i < 4; i++, launches++)
			launch_timed(work, stream, MS, 1, 32);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	return launches * MS * 1000 / (ll_now_ns() - start_ns);
}

static void body_fails(void)
{
	char command[100];
	struct ll_cu_function *work;
	struct ll_cu_stream *stream;
	begin_program(ID, CAP_PERMILLE, &work, &stream);
	permille_of(work, stream, 100 * MS);
	snprintf(command, sizeof command, "fail %s", failing);
	CHECK_EQUAL(simctl(command), 0);
	uint64_t permille = permille_of(work, stream, 1500 * MS);
	printf("%s: %llu permille of the time under a cap of %d\n", failing, (unsigned long long)permille,
	       CAP_PERMILLE);
	fflush(stdout);
	/* The account holds some time ahead, and what fails has to be found out. */
	CHECK(permille < 250);
	CHECK_EQUAL(simctl("heal"), 0);
	uint64_t before_ns = gpu_ns(ID);
	permille_of(work, stream, 300 * MS);
	CHECK(gpu_ns(ID) > before_ns);
	WAIT_FOR(!has_note(ID));
	check_rests(ID);
}

static void in_world_that_fails(const char *function)
{
	failing = function;
	in_world(NULL, body_fails);
}

TEST(one_failed_record_does_not_end_a_limit)
{
	in_world_that_fails("cuEventRecord 999 count 1");
}

TEST(one_failed_query_does_not_end_a_limit)
{
	in_world_that_fails("cuEventQuery 999 count 1");
}

TEST(one_failed_difference_does_not_end_a_limit)
{
	in_world_that_fails("cuEventElapsedTime* 999 count 1");
}

TEST(records_that_always_fail_do_not_end_a_limit)
{
	in_world_that_fails("cuEventRecord 999");
}

TEST(a_driver_without_any_timing_does_not_end_a_limit)
{
	in_world_that_fails("cuEvent* 999");
}
