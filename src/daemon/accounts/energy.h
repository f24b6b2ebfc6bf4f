/*
 * energy.h - divides the energy of a card among the jobs on it.
 *
 * The sensor reads the card's energy counter once in a round. Between two readings the energy counts as spent evenly:
 * the driver does not tell how it went up and down, and tells nothing of the card's programs. A card whose counter is
 * not known, and a MIG slice, which has none, give no job any energy: it stays unknown.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_ENERGY_H
#define LOADLINE_DAEMON_ACCOUNTS_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounts/batch.h"

struct ll_account;
struct ll_message_sense_card;

/* What one job did on the card in a period, and its part of the energy. */
struct ll_energy_part {
	uint64_t used_ns, idle_held_ns; /* batch.h */
	uint64_t on_card_ns;            /* while it could use the card */
	double joules;
};

/*
 * Sets the joules of each part. The energy of the time in which the card worked goes to the jobs in proportion to their
 * used time. That of the rest of the time in which a job was on the card goes to those that held it idle, in proportion
 * to that time; if none did, to all in proportion to their time on the card. Returns the rest, of the time without
 * jobs. The sum of all is joules.
 */
double ll_energy_divide(double joules, uint64_t period_ns, struct ll_energy_part *parts, size_t count);

enum { LL_ENERGY_CARDS = 128 }; /* the energy of more cards is unknown */

/* An ended job's account waits so long for the reading that has its last seconds. */
#define LL_ENERGY_WAIT_NS UINT64_C(15000000000)

struct ll_energy_card {
	char uuid[LL_USE_CARD_SIZE];
	uint64_t energy_mj, at_ns; /* the last reading */
};

/* Initially 0. */
struct ll_energy {
	struct ll_energy_card cards[LL_ENERGY_CARDS];
	size_t count;
};

/* Whether the card's counter has been read. */
bool ll_energy_has_card(const struct ll_energy *energy, const char *uuid);

/* Takes a round of the sensor, and adds to the accounts what is new. Read the accounts before. A counter that has gone
 * back begins anew, and nothing is counted for the time before. */
void ll_energy_read(struct ll_energy *energy, const struct ll_message_sense_card *rows, size_t count,
		    struct ll_account *accounts, uint64_t now_ns);

#endif
