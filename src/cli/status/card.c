#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/status/status.h"

static void read_card(struct ll_status_card *status)
{
	const struct ll_card *card = status->card;
	struct ll_power power;
	struct ll_temperature temperature;
	uint64_t energy_mj;
	if (!ll_read_power(card, &power, NULL))
		status->power_watts = power.watts;
	if (!ll_read_energy(card, &energy_mj, NULL))
		status->energy_joules = (double)energy_mj / 1000;
	if (!ll_read_temperature(card, &temperature, NULL)) {
		status->celsius = temperature.celsius;
		status->slowdown_celsius = temperature.slowdown_celsius;
	}
	ll_read_util(card, &status->util_percent, NULL);
	ll_read_power_limit(card, &status->power_limit_watts, NULL);
	status->has_memory = !ll_read_memory(card, &status->memory, NULL);
	status->has_clocks = !ll_read_clocks(card, &status->clocks, NULL);
	status->has_slowdown = !ll_read_slowdown(card, &status->slowdown, NULL);
	status->has_mode = !ll_read_compute_mode(card, &status->mode, NULL);
	status->has_processes = !ll_read_processes(card, LL_PROCESS_ALL, &status->processes, NULL);
}

int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, struct ll_err *err)
{
	const double unknown = (double)NAN;
	*status = (struct ll_status_card){
	    .card = card,
	    .is_simulated = ll_driver_sim_folder(card->driver) != NULL,
	    .util_percent = unknown,
	    .power_watts = unknown,
	    .power_limit_watts = unknown,
	    .energy_joules = unknown,
	    .celsius = unknown,
	    .slowdown_celsius = unknown,
	    .now_ns = ll_now_ns(),
	};
	if (card->fault)
		return 0;
	read_card(status);
	int rc = ll_status_read_ledger(status, err);
	if (!rc && !card->has_slices)
		ll_status_find_strangers(status);
	return rc;
}

void ll_status_card_fini(struct ll_status_card *status)
{
	free(status->claims);
	free(status->tenants);
	free(status->strangers);
	ll_process_list_fini(&status->processes);
	status->claims = NULL;
	status->tenants = NULL;
	status->strangers = NULL;
	status->claim_count = status->tenant_count = status->stranger_count = 0;
}
