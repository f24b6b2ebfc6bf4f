#include "config/sums.h"

#include <string.h>
#include <time.h>

#include "config/check.h"
#include "config/value.h"

enum { DAYS = 7, DAY_S = 86400, WEEK_S = DAYS * DAY_S, DAYS_MAX = 400 };

/* A moment: in seconds since 1970, and since Monday 0:00 in the machine's time zone. at_s -1: in each week, so that no
 * reservation without `every` is meant. */
struct moment {
	int64_t at_s, week_s;
};

static bool is_once(const struct ll_config_reservation *reservation)
{
	return reservation->every < 0 && reservation->begin.is_given && !reservation->begin.is_daily;
}

static bool is_repeated(const struct ll_config_reservation *reservation)
{
	return reservation->every >= 0 && reservation->begin.is_given && reservation->begin.is_daily;
}

static int64_t length_s(const struct ll_config_reservation *reservation)
{
	return reservation->for_ns == LL_CONFIG_NONE ? 0 : (int64_t)(reservation->for_ns / 1000000000);
}

/* day: 0 is Monday. */
static bool is_on_day(const struct ll_config_reservation *reservation, int day)
{
	return reservation->every == day || reservation->every == LL_CONFIG_EVERY_DAY ||
	       (reservation->every == LL_CONFIG_WEEKDAYS && day < 5);
}

static struct moment moment_at(int64_t at_s)
{
	time_t time = (time_t)at_s;
	struct tm tm = {0};
	localtime_r(&time, &tm);
	int day = (tm.tm_wday + DAYS - 1) % DAYS;
	return (struct moment){at_s, day * (int64_t)DAY_S + tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec};
}

static bool covers(const struct ll_config_reservation *reservation, const struct moment *moment)
{
	if (is_once(reservation))
		return moment->at_s >= 0 && reservation->begin.at_s <= moment->at_s &&
		       moment->at_s < reservation->begin.at_s + length_s(reservation);
	for (int day = 0; is_repeated(reservation) && day < DAYS; day++) {
		int64_t since_s = moment->week_s - (day * (int64_t)DAY_S + reservation->begin.at_s);
		if (is_on_day(reservation, day) && (since_s + WEEK_S) % WEEK_S < length_s(reservation))
			return true;
	}
	return false;
}

static uint64_t sum_at(const struct ll_config_policy *policy, const char *of, const struct moment *moment)
{
	uint64_t cards = 0;
	for (size_t i = 0; i < policy->reservations.count; i++) {
		const struct ll_config_reservation *other = &policy->reservations.items[i];
		if (of && other->of && strcmp(other->of, of) == 0 && other->cards != LL_CONFIG_NONE &&
		    covers(other, moment))
			cards += other->cards;
	}
	return cards;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The greatest sum at the beginnings of a repeated reservation while the other one, which does not repeat, holds. */
static uint64_t sum_while(const struct ll_config_policy *policy, const struct ll_config_reservation *reservation,
			  const struct ll_config_reservation *once)
{
	uint64_t most = 0;
	for (int day = 0; day < DAYS_MAX; day++) {
		int64_t at_s = once->begin.at_s + day * (int64_t)DAY_S;
		struct moment moment = moment_at(at_s);
		int64_t shift_s = reservation->begin.at_s - moment.week_s % DAY_S;
		int week_day = (int)(moment.week_s / DAY_S);
		moment.at_s += shift_s;
		moment.week_s += shift_s;
		if (at_s - DAY_S >= once->begin.at_s + length_s(once))
			break;
		if (is_on_day(reservation, week_day) && covers(once, &moment))
			most = greater(most, sum_at(policy, reservation->of, &moment));
	}
	return most;
}

static uint64_t greatest_sum(const struct ll_config_policy *policy, const struct ll_config_reservation *reservation)
{
	uint64_t most = 0;
	if (is_once(reservation)) {
		struct moment moment = moment_at(reservation->begin.at_s);
		return sum_at(policy, reservation->of, &moment);
	}
	for (int day = 0; is_repeated(reservation) && day < DAYS; day++) {
		struct moment moment = {-1, day * (int64_t)DAY_S + reservation->begin.at_s};
		if (is_on_day(reservation, day))
			most = greater(most, sum_at(policy, reservation->of, &moment));
	}
	for (size_t i = 0; is_repeated(reservation) && i < policy->reservations.count; i++) {
		const struct ll_config_reservation *once = &policy->reservations.items[i];
		if (is_once(once) && once->of && strcmp(once->of, reservation->of) == 0)
			most = greater(most, sum_while(policy, reservation, once));
	}
	return most;
}

void ll_config_check_sums(const struct ll_config_policy *policy, struct ll_config_findings *findings)
{
	for (size_t i = 0; i < policy->reservations.count; i++) {
		const struct ll_config_reservation *reservation = &policy->reservations.items[i];
		const struct ll_config_group *group = ll_config_group_find(policy, reservation->of);
		/* One that alone wants too much has a fault of its own. */
		if (!group || !group->cards.count || reservation->cards == LL_CONFIG_NONE ||
		    reservation->cards > group->cards.count)
			continue;
		uint64_t cards = greatest_sum(policy, reservation);
		if (cards > group->cards.count)
			ll_config_fault(findings, ll_config_value_mark(reservation->from, "from"),
					"from: reservations want %llu cards of group %s at this time, and it has %zu",
					(unsigned long long)cards, group->name, group->cards.count);
	}
}
