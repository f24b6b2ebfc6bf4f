/* What one user may have of what all share, and whose a subordinate uid is. */
#include "daemon/policy/policy.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

/* The user takes one after the other. Returns how many it gets. */
static uint64_t take_all(uint64_t size, uint64_t *all)
{
	struct ll_fair_room room = {.size = size, .all = *all};
	while (ll_fair_room_permits(&room, 1))
		ll_fair_room_count(&room, true, 1);
	*all = room.all;
	return room.user;
}

TEST(one_user_gets_a_fifth_and_the_next_a_fifth_of_the_rest)
{
	uint64_t all = 0;
	assert_int_equal(take_all(1000, &all), 200);
	assert_int_equal(take_all(1000, &all), 160);
	assert_int_equal(take_all(1000, &all), 128);
}

TEST(forty_greedy_users_leave_room_in_the_descriptors_of_the_service)
{
	uint64_t all = 0;
	for (int i = 0; i < 40; i++)
		take_all(UINT64_C(1) << 18, &all);
	assert_true((UINT64_C(1) << 18) - all >= 16);
}

TEST(what_is_more_than_the_whole_finds_no_room)
{
	assert_false(ll_fair_room_permits(&(struct ll_fair_room){.size = 10}, 11));
	assert_true(ll_fair_room_permits(&(struct ll_fair_room){.size = 10}, 10));
	assert_false(ll_fair_room_permits(&(struct ll_fair_room){.size = 10, .all = 11}, 1));
	assert_false(ll_fair_room_permits(&(struct ll_fair_room){.size = 10, .all = 2, .user = UINT64_MAX}, 1));
}

static void read_texts(struct ll_subordinates *subordinates, const char *ranges, const char *users)
{
	FILE *file = fmemopen((char *)(uintptr_t)ranges, strlen(ranges), "r");
	FILE *names = users ? fmemopen((char *)(uintptr_t)users, strlen(users), "r") : NULL;
	assert_non_null(file);
	ll_subordinates_add(subordinates, file, names);
	fclose(file);
	if (names)
		fclose(names);
}

TEST(a_subordinate_uid_is_the_users_whom_the_line_names)
{
	struct ll_subordinates subordinates = {0};
	read_texts(&subordinates, "bob:200000:65536\n1001:100000:65536\nann:300000:10\nann:400000:10\n",
		   "root:x:0:0::/:\nbob:x:1002:1002::/:\n");
	assert_int_equal(ll_subordinates_find(&subordinates, 100000), 1001);
	assert_int_equal(ll_subordinates_find(&subordinates, 165535), 1001);
	assert_int_equal(ll_subordinates_find(&subordinates, 165536), 165536);
	assert_int_equal(ll_subordinates_find(&subordinates, 99999), 99999);
	assert_int_equal(ll_subordinates_find(&subordinates, 200001), 1002);
	/* A name that is not in the file of users: its ranges belong together. */
	assert_int_equal(ll_subordinates_find(&subordinates, 300009), 300000);
	assert_int_equal(ll_subordinates_find(&subordinates, 400000), 300000);
	ll_subordinates_fini(&subordinates);
}

TEST(bad_lines_are_left_out)
{
	struct ll_subordinates subordinates = {0};
	read_texts(
	    &subordinates,
	    "\n#\nbob\nbob:\nbob:1\nbob:1:\nbob:x:5\nbob:5:x\n:5:5\nbob:-1:5\nbob:5:0\nbob:99999999999999999999:5\n"
	    "bob:4294967296:5\nbob:5:5:5\n7:4294967295:4294967295",
	    NULL);
	assert_int_equal(subordinates.count, 1);
	assert_int_equal(ll_subordinates_find(&subordinates, UINT32_MAX), 7);
	assert_int_equal(ll_subordinates_find(&subordinates, 5), 5);
	ll_subordinates_fini(&subordinates);
}
