#include "hold/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "driver/gpm.h"
#include "driver/readings.h"
#include "hold/governor.h"
#include "hold/pacer.h"
#include "hold/payload.h"
#include "protocol/place.h"

/* ---- config ---- */

const char *ll_metric_name(enum ll_metric metric)
{
	static const char *const names[] = {
	    [LL_METRIC_UTIL] = "util",     [LL_METRIC_SM] = "sm",     [LL_METRIC_OCCUPANCY] = "occupancy",
	    [LL_METRIC_TENSOR] = "tensor", [LL_METRIC_DRAM] = "dram", [LL_METRIC_POWER] = "power",
	};
	return names[metric];
}

double ll_metric_scale(enum ll_metric metric)
{
	return metric == LL_METRIC_POWER ? 1 : 100;
}

const char *ll_metric_unit(enum ll_metric metric)
{
	return metric == LL_METRIC_POWER ? "W" : "%";
}

bool ll_metric_is_gpm(enum ll_metric metric, enum ll_gpm_metric *ret_gpm)
{
	static const struct {
		bool is_gpm;
		enum ll_gpm_metric gpm;
	} readings[] = {
	    [LL_METRIC_SM] = {true, LL_GPM_SM},
	    [LL_METRIC_OCCUPANCY] = {true, LL_GPM_OCCUPANCY},
	    [LL_METRIC_TENSOR] = {true, LL_GPM_TENSOR},
	    [LL_METRIC_DRAM] = {true, LL_GPM_DRAM},
	    [LL_METRIC_POWER] = {false},
	};
	if (readings[metric].is_gpm && ret_gpm)
		*ret_gpm = readings[metric].gpm;
	return readings[metric].is_gpm;
}

bool ll_metric_needs_cuda(enum ll_metric metric)
{
	return metric == LL_METRIC_TENSOR || metric == LL_METRIC_DRAM;
}

/* ---- event ---- */

/* Samples may not use these, so that a state change finds room. */
enum { RESERVED_SLOTS = LL_EVENT_SLOTS / 4 };

int ll_event_queue_init(struct ll_event_queue *queue, struct ll_err *err)
{
	queue->head = queue->tail = 0;
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->fd < 0)
		return ll_err_set(err, -errno, "make an event queue: %s", strerror(errno));
	pthread_mutex_init(&queue->lock, NULL);
	return 0;
}

void ll_event_queue_fini(struct ll_event_queue *queue)
{
	close(queue->fd);
	queue->fd = -1;
	pthread_mutex_destroy(&queue->lock);
}

void ll_event_add(struct ll_event_queue *queue, const struct ll_event *event)
{
	LL_SCOPE_LOCK(&queue->lock);
	size_t used = queue->head - queue->tail;
	size_t room = event->kind == LL_EVENT_SAMPLE ? LL_EVENT_SLOTS - RESERVED_SLOTS : LL_EVENT_SLOTS;
	if (used >= room)
		return;
	queue->slots[queue->head++ % LL_EVENT_SLOTS] = *event;
}

void ll_event_wake(struct ll_event_queue *queue)
{
	ll_pacer_wake(queue->fd);
}

void ll_event_put(struct ll_event_queue *queue, const struct ll_event *event)
{
	ll_event_add(queue, event);
	ll_event_wake(queue);
}

bool ll_event_take(struct ll_event_queue *queue, struct ll_event *ret_event)
{
	LL_SCOPE_LOCK(&queue->lock);
	if (queue->tail == queue->head) {
		uint64_t count;
		ssize_t n = read(queue->fd, &count, sizeof count); /* empties the eventfd; EAGAIN is fine */
		(void)n;
		return false;
	}
	*ret_event = queue->slots[queue->tail++ % LL_EVENT_SLOTS];
	return true;
}

const char *ll_event_name(enum ll_event_kind kind)
{
	static const char *const names[] = {
	    [LL_EVENT_STATE] = "state", [LL_EVENT_SAMPLE] = "sample",   [LL_EVENT_SETTLE] = "settle",
	    [LL_EVENT_YIELD] = "yield", [LL_EVENT_RESUME] = "resume",   [LL_EVENT_RELEASE] = "release",
	    [LL_EVENT_FAULT] = "fault", [LL_EVENT_SUMMARY] = "summary", [LL_EVENT_LEAVE] = "leave",
	};
	return names[kind];
}

/* ---- hold ---- */

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
	/* A shared worker serves the cards that may run Vulkan, if there are two or more. A CUDA payload needs its own
	 * process, because its memory is freed only when the process ends. */
	size_t sharing = 0;
	for (size_t i = 0; i < hold->count; i++)
		sharing += may_share(config, &hold->cards[i]);
	if (rc == 0 && sharing > 1)
		rc = ll_worker_new(sharing, &hold->worker, err);
	uint64_t start_ns = ll_now_ns();
	for (size_t i = 0; i < hold->count && rc == 0; i++) {
		struct held_card *held = &hold->cards[i];
		struct ll_governor_config governor = {
		    .hold = config,
		    .card = held->card,
		    .places = hold->has_places ? &hold->places : NULL,
		    .hold_socket = ll_hold_sockets_at(hold->sockets, i),
		    .worker = may_share(config, held) ? hold->worker : NULL,
		    .events = &hold->events,
		    .start_ns = start_ns,
		};
		rc = ll_governor_new(&governor, &held->governor, err);
	}
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
