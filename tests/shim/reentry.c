/* Inside and outside: what tells the program's calls from those made on our behalf. */
#include "shim/interpose/reentry.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

static bool nested(int depth)
{
	LL_REENTRY_SCOPE();
	errno = depth;
	return ll_reentry_is_inside() && (depth == 0 || nested(depth - 1));
}

TEST(a_scope_is_left_at_its_end_however_deep)
{
	assert_false(ll_reentry_is_inside());
	assert_true(nested(5));
	assert_false(ll_reentry_is_inside());
}

TEST(errno_is_kept)
{
	errno = EXDEV;
	assert_true(nested(3));
	assert_int_equal(errno, EXDEV);
}

static void *look(void *user)
{
	*(bool *)user = ll_reentry_is_inside();
	return NULL;
}

TEST(threads_do_not_see_each_other)
{
	pthread_t thread;
	bool is_inside = true;
	LL_REENTRY_SCOPE();
	assert_int_equal(pthread_create(&thread, NULL, look, &is_inside), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(is_inside);
	assert_true(ll_reentry_is_inside());
}

static void note(void *user)
{
	*(bool *)user = ll_reentry_is_inside();
}

static void wait_for_ever(void)
{
	LL_REENTRY_SCOPE();
	for (;;)
		pause();
}

static void *be_cancelled(void *user)
{
	pthread_cleanup_push(note, user);
	wait_for_ever();
	pthread_cleanup_pop(0);
	return NULL;
}

TEST(a_cancelled_thread_leaves_its_scopes)
{
	pthread_t thread;
	bool is_inside = true;
	assert_int_equal(pthread_create(&thread, NULL, be_cancelled, &is_inside), 0);
	pthread_cancel(thread);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(is_inside);
}
