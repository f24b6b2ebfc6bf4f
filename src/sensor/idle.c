#include "sensor/idle.h"

static void take_sample(struct ll_idle_card *card, const struct ll_idle_sample *sample)
{
	uint64_t begin_ns = sample->end_ns > sample->window_ns ? sample->end_ns - sample->window_ns : 0;
	if (!card->watched_ns || begin_ns > card->seen_ns + LL_IDLE_FRESH_NS || sample->end_ns < card->seen_ns) {
		card->watched_ns = begin_ns;
		card->work_ns = 0;
	}
	card->seen_ns = sample->end_ns;
	if (sample->percent <= 0)
		return;
	card->work_ns = sample->end_ns;
	card->busy_ns += (uint64_t)((double)sample->window_ns * sample->percent / 100);
}

void ll_idle_card_take(struct ll_idle_card *card, const struct ll_idle_sample *samples, size_t count)
{
	for (size_t i = 0; i < count; i++)
		take_sample(card, &samples[i]);
}

static bool is_fresh(const struct ll_idle_card *card, uint64_t now_ns)
{
	return card->watched_ns && now_ns < card->seen_ns + LL_IDLE_FRESH_NS;
}

bool ll_idle_card_is_busy(const struct ll_idle_card *card, uint64_t now_ns)
{
	return is_fresh(card, now_ns) && card->work_ns == card->seen_ns;
}

static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

uint64_t ll_idle_card_idle_ns(const struct ll_idle_card *card, uint64_t now_ns)
{
	if (!is_fresh(card, now_ns) || ll_idle_card_is_busy(card, now_ns))
		return 0;
	return since(card->work_ns ? card->work_ns : card->watched_ns, now_ns);
}

void ll_idle_process_take(struct ll_idle_process *process, const struct ll_idle_card *card, uint64_t since_ns,
			  bool is_alone)
{
	if (card->work_ns <= since_ns)
		return;
	if (is_alone)
		process->own_ns = card->work_ns;
	else
		process->maybe_ns = card->work_ns;
}

enum ll_sense_last ll_idle_process_last(const struct ll_idle_process *process, const struct ll_idle_card *card,
					uint64_t start_ns, bool is_alone, uint64_t now_ns, uint64_t *ret_ns)
{
	*ret_ns = 0;
	if (!is_fresh(card, now_ns))
		return LL_SENSE_LAST_UNKNOWN;
	if (ll_idle_card_is_busy(card, now_ns))
		return is_alone ? LL_SENSE_LAST_NOW : LL_SENSE_LAST_BUSY;
	uint64_t latest_ns = card->watched_ns;
	if (process->own_ns > process->maybe_ns && process->own_ns >= card->watched_ns) {
		*ret_ns = since(process->own_ns, now_ns);
		return LL_SENSE_LAST_AGO;
	}
	if (process->maybe_ns > latest_ns)
		latest_ns = process->maybe_ns;
	if (card->work_ns > latest_ns && start_ns <= card->work_ns)
		latest_ns = card->work_ns;
	if (start_ns > latest_ns)
		latest_ns = start_ns;
	*ret_ns = since(latest_ns, now_ns);
	return LL_SENSE_LAST_AT_LEAST;
}
