#include "daemon/accounts/energy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/accounts/account.h"
#include "protocol/message_sense.h"

#define MJ_PER_J 1e3

/* ---- one period ---- */

static uint64_t smaller_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

struct sums {
	double used_ns, idle_held_ns, on_card_ns;
	double longest_ns; /* of on_card_ns */
};

static struct sums add_up(uint64_t period_ns, const struct ll_energy_part *parts, size_t count)
{
	struct sums sums = {0};
	for (size_t i = 0; i < count; i++) {
		double on_card_ns = (double)smaller_of(parts[i].on_card_ns, period_ns);
		sums.used_ns += (double)parts[i].used_ns;
		sums.idle_held_ns += (double)parts[i].idle_held_ns;
		sums.on_card_ns += on_card_ns;
		if (on_card_ns > sums.longest_ns)
			sums.longest_ns = on_card_ns;
	}
	return sums;
}

double ll_energy_divide(double joules, uint64_t period_ns, struct ll_energy_part *parts, size_t count)
{
	struct sums sums = add_up(period_ns, parts, count);
	double period = (double)period_ns;
	if (!period_ns)
		return joules;
	double busy_ns = sums.used_ns < period ? sums.used_ns : period;
	double held_ns = sums.longest_ns > busy_ns ? sums.longest_ns - busy_ns : 0;
	double busy = joules * (busy_ns / period), held = joules * (held_ns / period);
	for (size_t i = 0; i < count; i++) {
		double on_card_ns = (double)smaller_of(parts[i].on_card_ns, period_ns);
		parts[i].joules = busy_ns > 0 ? busy * ((double)parts[i].used_ns / sums.used_ns) : 0;
		if (held_ns > 0 && sums.idle_held_ns > 0)
			parts[i].joules += held * ((double)parts[i].idle_held_ns / sums.idle_held_ns);
		else if (held_ns > 0)
			parts[i].joules += held * (on_card_ns / sums.on_card_ns);
	}
	return joules - busy - held;
}

/* ---- the accounts ---- */

/* What the account has since the last reading. Used time that is found to be shared later (overlap.h) lowers a sum. */
static struct ll_energy_part part_of(const struct ll_account *account)
{
	const struct ll_account_energy *energy = &account->energy;
	uint64_t used_ns = ll_account_used_ns(account);
	return (struct ll_energy_part){
	    .used_ns = used_ns > energy->used_ns ? used_ns - energy->used_ns : 0,
	    .idle_held_ns = energy->all_idle_held_ns - energy->idle_held_ns,
	    .on_card_ns = energy->all_on_card_ns - energy->on_card_ns,
	};
}

static void begin_period(struct ll_account *account)
{
	struct ll_account_energy *energy = &account->energy;
	uint64_t used_ns = ll_account_used_ns(account);
	if (used_ns > energy->used_ns)
		energy->used_ns = used_ns;
	energy->idle_held_ns = energy->all_idle_held_ns;
	energy->on_card_ns = energy->all_on_card_ns;
	energy->is_complete = !account->card;
}

static bool is_on(const struct ll_account *account, const char *uuid)
{
	return strcmp(account->key.card, uuid) == 0;
}

static void begin_periods(struct ll_account *accounts, const char *uuid)
{
	for (struct ll_account *account = accounts; account; account = account->next) {
		if (is_on(account, uuid))
			begin_period(account);
	}
}

/* The accounts of the card are those of parts, in the same order. */
static void give_part(struct ll_account *accounts, const char *uuid, const struct ll_energy_part *part)
{
	for (struct ll_account *account = accounts; account; account = account->next) {
		if (!is_on(account, uuid) || account->energy.is_complete)
			continue;
		account->energy.joules += part++->joules;
		account->energy.is_known = true;
		begin_period(account);
	}
}

/* Without memory the period goes on until the next reading. */
static bool divide_energy(const struct ll_energy_card *card, uint64_t energy_mj, struct ll_account *accounts,
			  uint64_t now_ns)
{
	size_t count = 0, at = 0;
	for (const struct ll_account *account = accounts; account; account = account->next)
		count += is_on(account, card->uuid) && !account->energy.is_complete;
	if (!count)
		return true;
	struct ll_energy_part *parts = calloc(count, sizeof *parts);
	if (!parts)
		return false;
	for (const struct ll_account *account = accounts; account; account = account->next) {
		if (is_on(account, card->uuid) && !account->energy.is_complete)
			parts[at++] = part_of(account);
	}
	ll_energy_divide((double)(energy_mj - card->energy_mj) / MJ_PER_J, now_ns - card->at_ns, parts, count);
	give_part(accounts, card->uuid, parts);
	free(parts);
	return true;
}

/* ---- readings ---- */

static size_t place_of(const struct ll_energy *energy, const char *uuid)
{
	size_t place = 0;
	while (place < energy->count && strcmp(energy->cards[place].uuid, uuid) != 0)
		place++;
	return place;
}

bool ll_energy_has_card(const struct ll_energy *energy, const char *uuid)
{
	return place_of(energy, uuid) < energy->count;
}

/* Returns NULL if it is the card's first reading, which is taken. */
static struct ll_energy_card *find_card(struct ll_energy *energy, const struct ll_message_sense_card *row,
					uint64_t now_ns)
{
	size_t place = place_of(energy, row->uuid);
	if (place < energy->count)
		return &energy->cards[place];
	if (place < LL_ENERGY_CARDS) {
		struct ll_energy_card *card = &energy->cards[energy->count++];
		*card = (struct ll_energy_card){.energy_mj = row->energy_mj, .at_ns = now_ns};
		snprintf(card->uuid, sizeof card->uuid, "%s", row->uuid);
	}
	return NULL;
}

static void read_card(struct ll_energy *energy, const struct ll_message_sense_card *row, struct ll_account *accounts,
		      uint64_t now_ns)
{
	struct ll_energy_card *card = find_card(energy, row, now_ns);
	bool has_period = card && row->energy_mj >= card->energy_mj && now_ns > card->at_ns;
	if (!has_period)
		begin_periods(accounts, row->uuid);
	else if (!divide_energy(card, row->energy_mj, accounts, now_ns))
		return;
	if (card) {
		card->energy_mj = row->energy_mj;
		card->at_ns = now_ns;
	}
}

void ll_energy_read(struct ll_energy *energy, const struct ll_message_sense_card *rows, size_t count,
		    struct ll_account *accounts, uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].energy_mj)
			read_card(energy, &rows[i], accounts, now_ns);
	}
}
