/* What decisions for a card cost: contenders that wait for each of their launches, on a simulated clock. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/cards.h"
#include "protocol/words.h"

enum { MOST = 64, ROUNDS = 20000 };

static struct ll_cards cards;
static uv_loop_t loop;
static struct ll_page *pages[MOST];
static struct ll_orders *orders[MOST];
static struct ll_card_job *jobs[MOST];
static struct ll_card_claim *claims[MOST];

static int begin(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const uint64_t token[2] = {1 + i, 1};
		int page_fd, orders_fd;
		if (ll_page_make(&page_fd) || ll_orders_make(token, &orders_fd) ||
		    ll_page_map(page_fd, true, &pages[i]) || ll_orders_map(orders_fd, true, &orders[i]))
			return -1;
		close(page_fd);
		close(orders_fd);
		const struct ll_card_join join = {.uuid = "card", .id = 1 + i, .page = pages[i], .orders = orders[i]};
		if (ll_cards_join(&cards, &join, &jobs[i]) || ll_card_claim_add(jobs[i], 0, NULL, &claims[i]))
			return -1;
		pages[i]->slots[0].pace = LL_PACE_WAITS;
	}
	return 0;
}

static void end(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		ll_card_claim_remove(claims[i]);
		ll_card_job_leave(jobs[i]);
		ll_page_unmap(pages[i]);
		ll_orders_unmap(orders[i]);
	}
}

/* Each ms all post, the holder has used the card, and `bells` of them ring. Returns ns for each ms. */
static double measure(unsigned count, unsigned bells)
{
	uint64_t now_ns = ll_now_ns(), spent_ns = 0;
	for (unsigned round = 0; round < ROUNDS; round++, now_ns += LL_NS_PER_MS) {
		for (unsigned i = 0; i < count; i++) {
			struct ll_page_slot *slot = &pages[i]->slots[0];
			slot->want_since_ns = slot->posted_ns = now_ns;
			if (orders[i]->slots[0].flags & LL_ORDER_MAY_LAUNCH)
				pages[i]->cards[0].gpu_time_ns += LL_NS_PER_MS;
		}
		for (unsigned i = 0; i < bells; i++) {
			pages[(round + i) % count]->slots[0].post++;
			ll_card_claim_bell(claims[(round + i) % count]);
		}
		uint64_t before_ns = ll_now_ns();
		ll_cards_settle(&cards, now_ns);
		spent_ns += ll_now_ns() - before_ns;
	}
	return (double)spent_ns / ROUNDS;
}

int main(void)
{
	static const unsigned counts[] = {2, 8, 64};
	if (uv_loop_init(&loop) || ll_cards_init(&cards, &loop))
		return 1;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		if (begin(counts[i]))
			return 1;
		double tick_ns = measure(counts[i], 0), bell_ns = measure(counts[i], 2);
		printf("%2u contenders: %6.0f ns each ms (%.2f %% of a core); with two bells %6.0f ns\n", counts[i],
		       tick_ns, tick_ns / 1e4, bell_ns);
		end(counts[i]);
	}
	ll_cards_fini(&cards);
	uv_run(&loop, UV_RUN_DEFAULT);
	return 0;
}
