/* Programs that share the simulated card have what they have on an H200 (doc/share.md), each within a tenth. */
#include "paced.h"
#include "test.h"

TEST(test_alone)
{
	paced_check("sync", PROGRAMS(A_SYNC(40600)), NULL);
	paced_check("eager", PROGRAMS(AN_EAGER(82000)), NULL);
	paced_check("flood 10", PROGRAMS(A_FLOOD(10, 4870)), NULL);
}

TEST(test_all_wait)
{
	paced_check("2 x sync", PROGRAMS(A_SYNC(3517), A_SYNC(3517)), NULL);
	paced_check("4 x sync", PROGRAMS(A_SYNC(1760), A_SYNC(1760), A_SYNC(1760), A_SYNC(1760)), NULL);
	paced_check("8 x sync",
		    PROGRAMS(A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880),
			     A_SYNC(880)),
		    NULL);
	paced_check("2 x sync of 50 us", PROGRAMS({SYNC, 50 * US, 50 * US, 0, 2670}, {SYNC, 50 * US, 50 * US, 0, 2670}),
		    NULL);
}

TEST(test_all_launch_ahead)
{
	paced_check("2 x eager", PROGRAMS(AN_EAGER(69000), AN_EAGER(69000)), NULL);
	paced_check("4 x eager", PROGRAMS(AN_EAGER(41450), AN_EAGER(41450), AN_EAGER(41450), AN_EAGER(41450)), NULL);
	paced_check("8 x eager",
		    PROGRAMS(AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550),
			     AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550)),
		    NULL);
}

TEST(test_one_waits_beside_a_flood)
{
	paced_check("sync + flood 1", PROGRAMS(A_SYNC(2089), A_FLOOD(1, 2087)), NULL);
	paced_check("sync + flood 2", PROGRAMS(A_SYNC(1481), A_FLOOD(2, 2938)), NULL);
	paced_check("sync + flood 4", PROGRAMS(A_SYNC(419), A_FLOOD(4, 4603)), NULL);
	paced_check("sync + flood 10", PROGRAMS(A_SYNC(426), A_FLOOD(10, 4603)), NULL);
	paced_check("sync + flood 40", PROGRAMS(A_SYNC(419), A_FLOOD(40, 4603)), NULL);
	paced_check("eager + sync", PROGRAMS(AN_EAGER(77800), A_SYNC(1950)), NULL);
}

TEST(test_one_launches_ahead_beside_a_flood)
{
	paced_check("eager + flood 1", PROGRAMS(AN_EAGER(79500), A_FLOOD(1, 1196)), NULL);
	paced_check("eager + flood 2", PROGRAMS(AN_EAGER(79000), A_FLOOD(2, 1686)), NULL);
	paced_check("eager + flood 10", PROGRAMS(AN_EAGER(58000), A_FLOOD(10, 3189)), NULL);
	paced_check("eager + flood of 2 ms", PROGRAMS(AN_EAGER(59700), {FLOOD, 2 * MS, 0, 1, 299}), NULL);
	paced_check("eager + flood of 20 us", PROGRAMS(AN_EAGER(58150), {FLOOD, 20 * US, 0, 20, 28650}), NULL);
}

TEST(test_floods)
{
	paced_check("flood 10 + flood 10", PROGRAMS(A_FLOOD(10, 2449), A_FLOOD(10, 2449)), NULL);
	paced_check("flood 2 + flood 10", PROGRAMS(A_FLOOD(2, 718), A_FLOOD(10, 3948)), NULL);
	paced_check("flood 1 + flood 10", PROGRAMS(A_FLOOD(1, 388), A_FLOOD(10, 4256)), NULL);
	paced_check("4 x flood 10",
		    PROGRAMS(A_FLOOD(10, 1225), A_FLOOD(10, 1225), A_FLOOD(10, 1225), A_FLOOD(10, 1225)), NULL);
}
