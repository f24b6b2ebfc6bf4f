/* Launches that are counted before they are made: none is made that was not counted, and none is lost. */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "shim/time/gate.h"

#define STREAM(number) ((struct ll_cu_stream *)(uintptr_t)(0x1000 * (number)))
#define CONTEXT(number) ((const struct ll_cu_context *)(uintptr_t)(0x100 * (number)))

static const struct ll_prepaid_kernel what = {CONTEXT(1), {.handle = STREAM(1)}, 7};

TEST(test_only_as_many_as_were_given)
{
	struct ll_prepaid prepaid = {0};
	assert_false(ll_prepaid_use(&prepaid, &what));
	ll_prepaid_give(&prepaid, &what, 3);
	for (int i = 0; i < 3; i++)
		assert_true(ll_prepaid_use(&prepaid, &what));
	assert_false(ll_prepaid_use(&prepaid, &what));
	assert_int_equal(ll_prepaid_return(&prepaid), 0);
}

TEST(test_what_is_taken_back_is_gone)
{
	struct ll_prepaid prepaid = {0};
	ll_prepaid_give(&prepaid, &what, LL_PREPAID_MOST);
	assert_true(ll_prepaid_use(&prepaid, &what));
	assert_int_equal(ll_prepaid_return(&prepaid), LL_PREPAID_MOST - 1);
	assert_false(ll_prepaid_use(&prepaid, &what));
	assert_int_equal(ll_prepaid_return(&prepaid), 0);
	ll_prepaid_give(&prepaid, &what, 1);
	assert_true(ll_prepaid_use(&prepaid, &what));
	assert_false(ll_prepaid_use(&prepaid, &what));
}

TEST(test_only_launches_of_that_kind)
{
	struct ll_prepaid prepaid = {0}, other_flow = {0};
	struct ll_prepaid_kernel other[4] = {what, what, what, what};
	other[0].kernel_key = 8;
	other[1].context = CONTEXT(2);
	other[2].stream.handle = STREAM(2);
	other[3].stream.thread = 1;
	ll_prepaid_give(&prepaid, &what, 1);
	for (int i = 0; i < 4; i++)
		assert_false(ll_prepaid_use(&prepaid, &other[i]));
	assert_false(ll_prepaid_use(&other_flow, &what));
	assert_true(ll_prepaid_use(&prepaid, &what));
}

static void *use_of_another_thread(void *prepaid)
{
	return ll_prepaid_use(prepaid, &what) ? prepaid : NULL;
}

TEST(test_only_by_the_thread_that_asked)
{
	struct ll_prepaid prepaid = {0};
	pthread_t thread;
	void *used;
	ll_prepaid_give(&prepaid, &what, 1);
	assert_int_equal(pthread_create(&thread, NULL, use_of_another_thread, &prepaid), 0);
	assert_int_equal(pthread_join(thread, &used), 0);
	assert_null(used);
	assert_true(ll_prepaid_use(&prepaid, &what));
}

TEST(test_a_launch_is_like_the_last_one_if_all_of_it_is)
{
	struct ll_prepaid prepaid = {0};
	struct ll_prepaid_kernel other = what;
	assert_false(ll_prepaid_is_like_last(&prepaid, &what));
	assert_true(ll_prepaid_is_like_last(&prepaid, &what));
	other.kernel_key++;
	assert_false(ll_prepaid_is_like_last(&prepaid, &other));
	assert_false(ll_prepaid_is_like_last(&prepaid, &what));
	assert_true(ll_prepaid_is_like_last(&prepaid, &what));
	other = what;
	other.stream.thread++;
	assert_false(ll_prepaid_is_like_last(&prepaid, &other));
}

/* As a flow does: whoever has the lock takes back what is left first, and adds to what it counts. */
enum { ROUNDS = 20000, THREADS = 3 };

static struct {
	struct ll_prepaid prepaid;
	pthread_mutex_t lock;
	uint64_t counted;
	_Atomic uint64_t launched;
} flow = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void take_back(void)
{
	flow.counted -= ll_prepaid_return(&flow.prepaid);
}

static void *launch_many(void *kind)
{
	struct ll_prepaid_kernel own = what;
	own.kernel_key = (uintptr_t)kind;
	for (int i = 0; i < ROUNDS; i++) {
		if (!ll_prepaid_use(&flow.prepaid, &own)) {
			pthread_mutex_lock(&flow.lock);
			take_back();
			ll_prepaid_give(&flow.prepaid, &own, LL_PREPAID_MOST);
			flow.counted += 1 + LL_PREPAID_MOST;
			pthread_mutex_unlock(&flow.lock);
		}
		atomic_fetch_add(&flow.launched, 1);
	}
	return NULL;
}

static void *look_often(void *is_over)
{
	while (!atomic_load((atomic_bool *)is_over)) {
		pthread_mutex_lock(&flow.lock);
		take_back();
		pthread_mutex_unlock(&flow.lock);
	}
	return NULL;
}

TEST(test_what_is_counted_is_what_was_launched)
{
	pthread_t threads[THREADS], looker;
	atomic_bool is_over = false;
	assert_int_equal(pthread_create(&looker, NULL, look_often, &is_over), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_many, (void *)(i / 2)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&is_over, true);
	pthread_join(looker, NULL);
	take_back();
	assert_int_equal(flow.counted, THREADS * ROUNDS);
	assert_int_equal(flow.launched, THREADS * ROUNDS);
}
