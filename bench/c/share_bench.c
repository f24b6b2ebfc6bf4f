/* What decisions for a card cost: contenders that wait for each of their launches, on a simulated clock. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbiter/cards.h"
#include "protocol/words.h"

enum { MOST = 256, ROUNDS = 20000 };

static struct ll_cards cards;
static uv_loop_t loop;

static struct {
	struct ll_page *page;
	struct ll_orders *orders;
	struct ll_card_job *job;
} jobs[MOST];

static struct contender {
	struct ll_card_claim *claim;
	struct ll_page_slot *slot;
	const struct ll_orders_slot *orders;
	unsigned job;
} contenders[MOST];

static int begin_job(unsigned i)
{
	const uint64_t token[2] = {1 + i, 1};
	int page_fd, orders_fd;
	if (ll_page_make(&page_fd) || ll_orders_make(token, &orders_fd) || ll_page_map(page_fd, true, &jobs[i].page) ||
	    ll_orders_map(orders_fd, true, &jobs[i].orders))
		return -1;
	close(page_fd);
	close(orders_fd);
	const struct ll_card_join join = {.uuid = "card", .id = 1 + i, .page = jobs[i].page, .orders = jobs[i].orders};
	return ll_cards_join(&cards, &join, &jobs[i].job);
}

static int begin(unsigned job_count, unsigned count)
{
	for (unsigned i = 0; i < job_count; i++) {
		if (begin_job(i))
			return -1;
	}
	for (unsigned i = 0; i < count; i++) {
		struct contender *contender = &contenders[i];
		unsigned job = i % job_count, slot = i / job_count;
		*contender = (struct contender){
		    .slot = &jobs[job].page->slots[slot], .orders = &jobs[job].orders->slots[slot], .job = job};
		contender->slot->launch_mode = LL_LAUNCH_MODE_SYNC;
		if (ll_card_claim_add(jobs[job].job, slot, NULL, &contender->claim))
			return -1;
	}
	return 0;
}

static void end(unsigned job_count, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ll_card_claim_remove(contenders[i].claim);
	for (unsigned i = 0; i < job_count; i++) {
		ll_card_job_leave(jobs[i].job);
		ll_page_unmap(jobs[i].page);
		ll_orders_unmap(jobs[i].orders);
	}
}

/* Each ms all post, the holder has used the card, and `wakes` of them wake loadlined; with `rests` they end or begin to
 * want the card. Returns ns for each ms. */
static double measure(unsigned count, unsigned wakes, bool rests)
{
	static uint64_t now_ns;
	uint64_t spent_ns = 0;
	if (!now_ns) /* far ahead, so that the timer that is set does not end */
		now_ns = ll_now_ns() + 1000 * LL_NS_PER_S;
	for (unsigned round = 0; round < ROUNDS; round++, now_ns += LL_NS_PER_MS) {
		bool has_used = false;
		for (unsigned i = 0; i < count; i++) {
			struct ll_page_slot *slot = contenders[i].slot;
			slot->posted_ns = now_ns;
			if (!rests)
				slot->want_since_ns = now_ns;
			if (!has_used && contenders[i].orders->flags & LL_ORDER_MAY_LAUNCH)
				jobs[contenders[i].job].page->cards[0].gpu_time_ns += LL_NS_PER_MS;
			has_used |= contenders[i].orders->flags & LL_ORDER_MAY_LAUNCH;
		}
		for (unsigned i = 0; i < wakes; i++) {
			struct contender *contender = &contenders[(round * wakes + i) % count];
			if (rests)
				contender->slot->want_since_ns = contender->slot->want_since_ns ? 0 : now_ns;
			contender->slot->post++;
			ll_card_claim_wake(contender->claim);
		}
		uint64_t before_ns = ll_now_ns();
		ll_cards_settle(&cards, now_ns);
		spent_ns += ll_now_ns() - before_ns;
	}
	return (double)spent_ns / ROUNDS;
}

int main(void)
{
	static const unsigned sizes[][2] = {{2, 2}, {8, 8}, {64, 64}, {2, 200}};
	if (uv_loop_init(&loop) || ll_cards_init(&cards, &loop))
		return 1;
	printf("us for each ms, and thereby tenths of a percent of a core\n");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		if (begin(sizes[i][0], sizes[i][1]))
			return 1;
		double quiet_ns = measure(sizes[i][1], 0, false), bells_ns = measure(sizes[i][1], 2, false);
		double rests_ns = measure(sizes[i][1], 2, true);
		printf("%2u jobs, %3u contenders: %6.1f; with two wakes %6.1f; with two that come or end %6.1f\n",
		       sizes[i][0], sizes[i][1], quiet_ns / 1e3, bells_ns / 1e3, rests_ns / 1e3);
		end(sizes[i][0], sizes[i][1]);
	}
	ll_cards_fini(&cards);
	uv_run(&loop, UV_RUN_DEFAULT);
	return 0;
}
