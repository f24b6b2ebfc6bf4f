/*
 * status.h - what `loadline status` knows about one card at one moment, and its two ways of telling it.
 */
#ifndef LOADLINE_CLI_STATUS_H
#define LOADLINE_CLI_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "driver/readings.h"
#include "ledger/ledger.h"

/* NaN, LL_MEMORY_UNKNOWN or false in has_… where the card does not tell. */
struct ll_status_card {
	const struct ll_card *card;
	bool is_simulated;
	double util_percent;
	bool has_memory;
	struct ll_memory memory;
	double power_watts, power_limit_watts;
	double energy_joules;
	double celsius, slowdown_celsius;
	bool has_clocks;
	struct ll_clocks clocks;
	bool has_slowdown;
	unsigned slowdown;
	bool has_mode;
	enum ll_compute_mode mode;
	size_t process_count;
	bool has_processes;
	struct ll_claim_info *claims;
	size_t claim_count;
	uint64_t now_ns; /* when it was read */
};

/*
 * Asks the card and its ledger. What the card does not tell stays unknown; an error is the ledger's (readings
 * are filled all the same, and there are no claims). fini frees the claims.
 */
int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, struct ll_err *err);
void ll_status_card_fini(struct ll_status_card *status);

/* One object for the card, then one for each claim. */
int ll_status_print_json(const struct ll_status_card *status, struct ll_err *err);

/* A table with a line for each card, and its claims below it. */
void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count);

#endif
