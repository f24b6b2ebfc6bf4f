#include "hold/hold.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/translate.h"
#include "driver/gpm.h"
#include "driver/readings.h"
#include "hold/governor.h"
#include "hold/hold_socket.h"
#include "hold/payload.h"
#include "hold/worker.h"
#include "protocol/place.h"

struct held_card {
	const struct ll_card *card;
	struct ll_governor *governor;
};

struct ll_hold {
	struct ll_event_queue events;
	struct ll_places places; /* where loadlined may be */
	bool has_places;
	struct ll_hold_sockets *sockets;
	struct ll_worker *worker; /* of the cards that share one; NULL: none is shared */
	size_t count;
	struct held_card cards[];
};

static int check_mode(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err)
{
	enum ll_compute_mode mode;
	if (ll_read_compute_mode(card, &mode, NULL) < 0 || mode == LL_MODE_DEFAULT)
		return 0;
	if (mode != LL_MODE_PROHIBITED && config->as_mps_client)
		return 0;
	ll_err_set(err, -EBUSY, "card %s: compute mode is %s: %s", card->label, _(ll_compute_mode_text(mode)),
		   mode == LL_MODE_PROHIBITED ? _("no context may be made")
					      : _("a context of the hold would lock every other program out"));
	return ll_err_hint(
	    err, mode == LL_MODE_PROHIBITED
		     ? N_("set the default mode: nvidia-smi -c DEFAULT")
		     : N_("run MPS and hold as its client with --mps, or set the default mode: nvidia-smi -c DEFAULT"));
}

/* If the limit cannot be read, the held level will show whether it is enough. */
static int check_power(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err)
{
	double limit_watts;
	double most_watts = config->target_watts;
	if (config->has_idle_target && config->idle_target > most_watts)
		most_watts = config->idle_target;
	if (ll_read_power_limit(card, &limit_watts, NULL) < 0 || most_watts <= limit_watts)
		return 0;
	return ll_err_set(err, -EINVAL, "card %s: its power limit is %.0f W: it cannot reach %.0f W", card->label,
			  limit_watts, most_watts);
}

static int check_metric(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err)
{
	enum ll_gpm_metric gpm;
	if (ll_metric_is_gpm(config->metric, &gpm))
		return ll_gpm_check_metric(card, gpm, err);
	if (config->metric == LL_METRIC_POWER && !card->is_mig)
		return check_power(config, card, err);
	if (!card->is_mig)
		return 0;
	ll_err_set(err, -ENOSYS, "card %s: a MIG slice has no %s reading of its own", card->label,
		   ll_metric_name(config->metric));
	return ll_err_hint(err, "use --metric sm or --metric occupancy, which GPM gives for slices");
}

int ll_hold_check(const struct ll_hold_config *config, const struct ll_card *card, struct ll_err *err)
{
	if (card->has_slices) {
		ll_err_set(err, -ENODEV, "card %s: is in MIG mode: only its slices run programs", card->label);
		return ll_err_hint(err, "name its slices: -i %s:0, or -i all", card->label);
	}
	int rc = check_mode(config, card, err);
	return rc < 0 ? rc : check_metric(config, card, err);
}

static bool may_share(const struct ll_hold_config *config, const struct held_card *held)
{
	return ll_payload_may_be_vulkan(config->payload, config->as_mps_client, held->card);
}

/* A shared worker serves the cards that may run Vulkan, if there are two or more. A CUDA payload needs its own process,
 * because its memory is freed only when the process ends. */
static int make_worker(struct ll_hold *hold, const struct ll_hold_config *config, struct ll_err *err)
{
	size_t count = 0;
	for (size_t i = 0; i < hold->count; i++)
		count += may_share(config, &hold->cards[i]);
	return count < 2 ? 0 : ll_worker_new(count, &hold->worker, err);
}

static int make_governor(struct ll_hold *hold, size_t index, const struct ll_hold_config *config, uint64_t start_ns,
			 struct ll_err *err)
{
	struct held_card *held = &hold->cards[index];
	struct ll_governor_config governor = {
	    .hold = config,
	    .card = held->card,
	    .places = hold->has_places ? &hold->places : NULL,
	    .hold_socket = ll_hold_sockets_at(hold->sockets, index),
	    .worker = may_share(config, held) ? hold->worker : NULL,
	    .events = &hold->events,
	    .start_ns = start_ns,
	};
	return ll_governor_new(&governor, &held->governor, err);
}

static int start_all(struct ll_hold *hold, const struct ll_hold_config *config, const struct ll_card *const *cards,
		     struct ll_err *err)
{
	const char *sim_folder = ll_driver_sim_folder(cards[0]->driver);
	int rc = 0;
	/* In a user namespace that has no user outside, no program can reach loadlined either. */
	hold->has_places = ll_places_find(sim_folder, &hold->places, NULL) == 0;
	for (size_t i = 0; i < hold->count && rc == 0; i++)
		rc = ll_hold_check(config, hold->cards[i].card, err);
	if (rc == 0)
		rc = ll_hold_sockets_bind(cards, hold->count, sim_folder, &hold->sockets, err);
	if (rc == 0)
		rc = make_worker(hold, config, err);
	uint64_t start_ns = ll_now_ns();
	for (size_t i = 0; i < hold->count && rc == 0; i++)
		rc = make_governor(hold, i, config, start_ns, err);
	for (size_t i = 0; i < hold->count && rc == 0; i++)
		rc = ll_governor_start(hold->cards[i].governor, err);
	return rc;
}

int ll_hold_new(const struct ll_hold_config *config, const struct ll_card *const *cards, size_t count,
		struct ll_hold **ret_hold, struct ll_err *err)
{
	struct ll_hold *hold = calloc(1, sizeof *hold + count * sizeof hold->cards[0]);
	if (!hold)
		return ll_err_set(err, -ENOMEM, "hold: out of memory");
	int rc = ll_event_queue_init(&hold->events, err);
	if (rc < 0) {
		free(hold);
		return rc;
	}
	hold->count = count;
	for (size_t i = 0; i < count; i++)
		hold->cards[i].card = cards[i];
	rc = start_all(hold, config, cards, err);
	if (rc < 0) {
		ll_hold_end(hold);
		ll_hold_free(hold, ll_now_ns() + LL_NS_PER_S);
		return rc;
	}
	*ret_hold = hold;
	return 0;
}

int ll_hold_fd(const struct ll_hold *hold)
{
	return hold->events.fd;
}

bool ll_hold_take(struct ll_hold *hold, struct ll_event *ret_event)
{
	return ll_event_take(&hold->events, ret_event);
}

void ll_hold_end(struct ll_hold *hold)
{
	for (size_t i = 0; i < hold->count; i++) {
		if (hold->cards[i].governor)
			ll_governor_end(hold->cards[i].governor);
	}
}

bool ll_hold_free(struct ll_hold *hold, uint64_t deadline_ns)
{
	if (!hold)
		return true;
	bool is_joined = true;
	for (size_t i = 0; i < hold->count; i++)
		is_joined = ll_governor_free(hold->cards[i].governor, deadline_ns) && is_joined;
	if (!is_joined)
		return false;
	ll_worker_free(hold->worker);
	ll_hold_sockets_free(hold->sockets);
	ll_event_queue_fini(&hold->events);
	free(hold);
	return true;
}
