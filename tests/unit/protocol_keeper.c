#include "protocol/keeper.h"

#include <errno.h>

#include "test.h"

static const struct ll_groups scopes = {LL_GROUPS_SCOPE, "/loadline.slice"};
static const struct ll_groups folders = {LL_GROUPS_FOLDER, "/loadline.slice/loadline-keeper.service/loadline-jobs"};

TEST(a_job_is_found_by_each_path_in_its_group)
{
	char path[LL_GROUP_SIZE], below[2 * LL_GROUP_SIZE];
	uint32_t uid;
	uint64_t job;
	assert_int_equal(ll_group_path(&scopes, 61234, 0x2081b, path), 0);
	assert_string_equal(path, "/loadline.slice/loadline-61234.slice/loadline-job-61234-2081b.scope");
	snprintf(below, sizeof below, "%s/a/b", path);
	uid = 0, job = 0;
	assert_true(ll_group_find_job(&scopes, below, &uid, &job));
	assert_int_equal(uid, 61234);
	assert_true(job == 0x2081b);
	assert_int_equal(ll_group_path(&folders, 7, UINT64_MAX, path), 0);
	assert_string_equal(path,
			    "/loadline.slice/loadline-keeper.service/loadline-jobs/loadline-job-7-ffffffffffffffff");
	assert_true(ll_group_find_job(&folders, path, &uid, &job));
	assert_true(uid == 7 && job == UINT64_MAX);
}

TEST(a_path_that_a_user_can_make_is_no_jobs)
{
	static const char *const paths[] = {
	    "/",
	    "",
	    "/loadline.slice",
	    "/loadline.slice/loadline-1000.slice",
	    /* in a subtree that is delegated to a user */
	    ("/user.slice/user-1000.slice/user@1000.service/loadline.slice/loadline-1000.slice/"
	     "loadline-job-1000-1.scope"),
	    "/user.slice/user-1000.slice/loadline-job-1000-1.scope",
	    /* of two users, with other digits, with more behind it */
	    "/loadline.slice/loadline-1000.slice/loadline-job-1001-1.scope",
	    "/loadline.slice/loadline-1000.slice/loadline-job-01000-1.scope",
	    "/loadline.slice/loadline-1000.slice/loadline-job-1000-0x1.scope",
	    "/loadline.slice/loadline-1000.slice/loadline-job-1000-01.scope",
	    "/loadline.slice/loadline-1000.slice/loadline-job--1-1.scope",
	    "/loadline.slice/loadline-1000.slice/loadline-job-4294968296-1.scope",
	    "/loadline.slice/loadline-1000.slice/loadline-job-1000-1.scopes",
	    "/loadline.slice/loadline-1000.slice/loadline-job-1000-1.scope (deleted)",
	    "/loadline.slice/loadline-1000.slice/loadline-job-1000-1",
	    "/loadline.slice/loadline-1000.slice/loadline-job-",
	    "/loadline.slice/loadline-1000.slice/loadline-job-1000",
	};
	uint32_t uid;
	uint64_t job;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_false(ll_group_find_job(&scopes, paths[i], &uid, &job));
	const struct ll_groups none = {LL_GROUPS_NONE, ""};
	assert_false(ll_group_find_job(&none, "/loadline-job-1000-1", &uid, &job));
}

TEST(the_path_is_that_of_version_2)
{
	static const char text[] = "9:name=systemd:/a\n8:pids,cpu:/no\n6:freezer:/frozen\n4:memory:/m\n0::/two:x\n";
	char path[LL_GROUP_SIZE];
	assert_int_equal(ll_group_in_text(text, path), 0);
	assert_string_equal(path, "/two:x");
	assert_int_equal(ll_group_in_text("4:memory:/m\n1:cpu:/0::/x\n", path), -ENOENT);
	assert_int_equal(ll_group_in_text("0::/without a line break", path), 0);
	assert_string_equal(path, "/without a line break");
	assert_int_equal(ll_group_in_text("", path), -ENOENT);
}

TEST(a_path_that_does_not_fit_is_not_cut)
{
	char text[2 * LL_GROUP_SIZE] = "0::/", path[LL_GROUP_SIZE];
	memset(text + 4, 'a', LL_GROUP_SIZE);
	assert_int_equal(ll_group_in_text(text, path), -ENAMETOOLONG);
	struct ll_groups groups = {.kind = LL_GROUPS_FOLDER};
	memset(groups.base, 'a', sizeof groups.base - 1);
	assert_int_equal(ll_group_path(&groups, 1, 1, path), -ENAMETOOLONG);
}

TEST(the_keepers_socket_is_beside_loadlineds)
{
	struct ll_place place, system = {"/run/loadline/socket"}, user = {"loadline/1000"};
	assert_int_equal(ll_keeper_place(&system, &place), 0);
	assert_string_equal(place.name, "/run/loadline/keeper");
	assert_int_equal(ll_keeper_place(&user, &place), -EINVAL);
}

TEST(the_fence_opens_for_open_groups_and_those_above)
{
	static const char fence[] =
	    "majors 195 511\nopen /loadline.slice, /machine.slice/a\npartly /system.slice\nroot 3\n";
	assert_true(ll_fence_opens(fence, "/loadline.slice/loadline-1.slice/job"));
	assert_true(ll_fence_opens(fence, "/machine.slice/a"));
	assert_true(ll_fence_opens(fence, "/machine.slice"));
	assert_true(ll_fence_opens(fence, "/"));
	assert_false(ll_fence_opens(fence, "/machine.slice/ab"));
	assert_false(ll_fence_opens(fence, "/docker"));
	assert_false(ll_fence_opens(fence, "/loadline.slices"));
	assert_false(ll_fence_opens("majors 195\nopen \npartly \nroot 0\n", "/docker"));
	assert_false(ll_fence_opens("", "/docker"));
}
