/* A thread that sleeps until it is called, and who keeps it so. */
#include "test.h"

#include <pthread.h>

#include "base/clock.h"
#include "hold/pacer.h"
#include "wait_for.h"

static struct ll_parking parking;
static _Atomic unsigned rounds;
static _Atomic bool is_ending;

static int reset(void **state)
{
	(void)state;
	parking = (struct ll_parking){0};
	rounds = 0;
	is_ending = false;
	return 0;
}

TEST_EACH(reset, NULL);

TEST(test_who_is_not_parked_or_has_not_heard_a_call_is_not_kept)
{
	assert_false(ll_parking_keep(&parking));
	uint32_t heard = ll_parking_listen(&parking);
	ll_parking_call(&parking);
	ll_parking_park(&parking, heard);
	assert_false(ll_parking_keep(&parking));
	ll_parking_leave(&parking);
	ll_parking_park(&parking, ll_parking_listen(&parking));
	assert_true(ll_parking_keep(&parking));
	assert_false(ll_parking_keep(&parking)); /* is kept already, by another */
	ll_parking_let_go(&parking);
	ll_parking_let_go(&parking);
	ll_parking_leave(&parking);
	assert_false(ll_parking_keep(&parking));
	ll_parking_park(&parking, ll_parking_listen(&parking));
	ll_parking_forget(&parking);
	assert_false(ll_parking_keep(&parking));
}

static void *sleep_and_wake(void *arg)
{
	(void)arg;
	while (!is_ending) {
		ll_parking_park(&parking, ll_parking_listen(&parking));
		ll_parking_leave(&parking);
		rounds++;
	}
	return NULL;
}

TEST(test_a_kept_one_stays_even_when_it_wakes)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, sleep_and_wake, NULL), 0);
	for (unsigned i = 0; i < 20; i++) {
		wait_for(ll_parking_keep(&parking));
		unsigned before = rounds;
		for (unsigned look = 0; look < 1000; look++)
			assert_int_equal(rounds, before);
		ll_parking_let_go(&parking);
		wait_for(rounds > before);
	}
	is_ending = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
}
