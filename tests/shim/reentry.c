/* Inside and outside: what tells the program's calls from those made on our behalf. */
#include "shim/interpose/reentry.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static bool nested(int depth)
{
	LL_REENTRY_SCOPE();
	errno = depth;
	return ll_reentry_is_inside() && (depth == 0 || nested(depth - 1));
}

static void a_scope_is_left_at_its_end_however_deep(void **state)
{
	(void)state;
	assert_false(ll_reentry_is_inside());
	assert_true(nested(5));
	assert_false(ll_reentry_is_inside());
}

static void errno_is_kept(void **state)
{
	(void)state;
	errno = EXDEV;
	assert_true(nested(3));
	assert_int_equal(errno, EXDEV);
}

static void *look(void *user)
{
	*(bool *)user = ll_reentry_is_inside();
	return NULL;
}

static void threads_do_not_see_each_other(void **state)
{
	(void)state;
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

static void a_cancelled_thread_leaves_its_scopes(void **state)
{
	(void)state;
	pthread_t thread;
	bool is_inside = true;
	assert_int_equal(pthread_create(&thread, NULL, be_cancelled, &is_inside), 0);
	pthread_cancel(thread);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(is_inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_scope_is_left_at_its_end_however_deep),
	    cmocka_unit_test(errno_is_kept),
	    cmocka_unit_test(threads_do_not_see_each_other),
	    cmocka_unit_test(a_cancelled_thread_leaves_its_scopes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
