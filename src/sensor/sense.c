#include "sensor/sense.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "driver/health.h"
#include "driver/readings.h"
#include "driver/xid.h"
#include "sensor/idle.h"
#include "sensor/process.h"

/* More than the 14 s that NVML keeps. */
#define LOOK_BACK_NS (60 * LL_NS_PER_S)
/* The cards are listed anew, for slices that were made and cards that came back. */
#define LIST_AGAIN_NS (60 * LL_NS_PER_S)
/* Conditions change slowly, and the driver has a call for each link of a card. */
enum { SAMPLES = 256, XIDS_AT_A_TIME = 16, ROUNDS_OF_HEALTH = 6 };

struct seen_process {
	uint32_t pid;
	uint64_t start_ticks, first_ns, round;
	struct ll_idle_process idle;
};

struct seen_card {
	struct seen_card *next;
	char uuid[LL_UUID_SIZE];
	unsigned index;
	bool is_slice;
	struct ll_util_reader util;
	struct ll_idle_card idle;
	struct ll_xid_watch *xids;
	bool has_tried_xids;
	struct seen_process *processes;
	size_t count, count_before;
	uint64_t round_ns; /* of the last round */
};

struct ll_sense {
	struct ll_driver *driver;
	struct seen_card *cards;
	struct ll_process_list list;
	uint64_t listed_ns, round;
	bool is_unsure; /* a card did not answer */
	uint32_t card_count, process_count;
};

/* One round of one card. */
struct look {
	struct ll_sense *sense;
	const struct ll_card *card;
	struct seen_card *seen;
	uint64_t now_ns;
	ll_sense_give_fn give;
	void *data;
	struct ll_err *err;
};

int ll_sense_new(struct ll_sense **ret_sense)
{
	*ret_sense = calloc(1, sizeof **ret_sense);
	return *ret_sense ? 0 : -ENOMEM;
}

static void close_xids(struct ll_sense *sense)
{
	for (struct seen_card *card = sense->cards; card; card = card->next) {
		ll_xid_close(card->xids);
		card->xids = NULL;
		card->has_tried_xids = false;
	}
}

void ll_sense_free(struct ll_sense *sense)
{
	if (!sense)
		return;
	close_xids(sense);
	while (sense->cards) {
		struct seen_card *card = sense->cards;
		sense->cards = card->next;
		free(card->processes);
		free(card);
	}
	ll_process_list_fini(&sense->list);
	ll_driver_close(sense->driver);
	free(sense);
}

/* ---- the driver ---- */

/* The old list is closed last: a driver that no process has open may unload its state. */
static int open_driver(struct ll_sense *sense, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	uint64_t now_ns = ll_boot_ns();
	if (sense->driver && !sense->is_unsure && now_ns < sense->listed_ns + LIST_AGAIN_NS)
		return 0;
	int rc = ll_driver_open(&driver, err);
	close_xids(sense);
	ll_driver_close(sense->driver);
	sense->driver = driver;
	sense->listed_ns = now_ns;
	sense->is_unsure = false;
	return rc;
}

/* A card that was lost has no UUID when the cards are listed anew: it is known by its index. */
static bool is_same_card(const struct seen_card *seen, const struct ll_card *card)
{
	return card->uuid[0] ? strcmp(seen->uuid, card->uuid) == 0 : seen->index == card->index && !seen->is_slice;
}

/* Returns NULL if there is no memory, and of a lost card that was never seen. */
static struct seen_card *find_seen(struct ll_sense *sense, const struct ll_card *card)
{
	struct seen_card *seen = sense->cards;
	while (seen && !is_same_card(seen, card))
		seen = seen->next;
	if (!seen && !card->uuid[0])
		return NULL;
	if (!seen) {
		seen = calloc(1, sizeof *seen);
		if (!seen)
			return NULL;
		memcpy(seen->uuid, card->uuid, sizeof seen->uuid);
		ll_util_reader_init(&seen->util, card);
		ll_util_reader_look_back(&seen->util, LOOK_BACK_NS);
		seen->next = sense->cards;
		sense->cards = seen;
	}
	seen->util.card = card;
	seen->index = card->index;
	seen->is_slice = card->is_mig;
	return seen;
}

/* ---- the card's use ---- */

static uint64_t boot_of_wall(uint64_t wall_ns, uint64_t now_wall_ns, uint64_t now_boot_ns)
{
	uint64_t ago_ns = now_wall_ns > wall_ns ? now_wall_ns - wall_ns : 0;
	return now_boot_ns > ago_ns ? now_boot_ns - ago_ns : 1;
}

/* Slices have no utilisation, and stay unwatched. */
static void read_use(const struct look *look)
{
	struct ll_util_sample read[SAMPLES];
	struct ll_idle_sample samples[SAMPLES];
	size_t count = 0;
	uint64_t wall_ns = ll_wall_ns();
	if (ll_util_reader_next(&look->seen->util, read, SAMPLES, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++)
		samples[i] = (struct ll_idle_sample){.end_ns = boot_of_wall(read[i].end_wall_ns, wall_ns, look->now_ns),
						     .window_ns = read[i].window_ns,
						     .percent = read[i].percent};
	ll_idle_card_take(&look->seen->idle, samples, count);
}

/* A slice has no counter of its own. */
static uint64_t read_energy_mj(const struct ll_card *card)
{
	uint64_t energy_mj = 0;
	return card->is_mig || ll_read_energy(card, &energy_mj, NULL) ? 0 : energy_mj;
}

static int give_card(const struct look *look)
{
	union ll_message message;
	struct ll_memory memory = {0};
	const struct ll_card *card = look->card;
	const struct ll_idle_card *idle = look->seen ? &look->seen->idle : NULL;
	bool is_lost = card->fault || ll_read_memory(card, &memory, NULL);
	ll_message_init(&message, LL_MESSAGE_SENSE_CARD);
	struct ll_message_sense_card *row = &message.sense_card;
	row->index = card->index;
	row->slice = card->is_mig ? (int32_t)card->slice : -1;
	row->memory_bytes = card->memory_bytes;
	row->usable_bytes = card->usable_bytes;
	row->used_bytes = memory.used_bytes;
	row->numa_node = ll_card_numa_node(card);
	row->energy_mj = is_lost ? 0 : read_energy_mj(card);
	row->flags = (is_lost ? LL_SENSE_IS_LOST : 0U) | (card->has_slices ? LL_SENSE_HAS_SLICES : 0U);
	if (idle && idle->watched_ns && look->now_ns < idle->seen_ns + LL_IDLE_FRESH_NS) {
		row->watched_ns = look->now_ns - idle->watched_ns;
		row->idle_ns = ll_idle_card_idle_ns(idle, look->now_ns);
		row->busy_ns = idle->busy_ns;
		row->flags |= ll_idle_card_is_busy(idle, look->now_ns) ? LL_SENSE_IS_BUSY : 0U;
	}
	ll_message_text_set(row->uuid, sizeof row->uuid, look->seen ? look->seen->uuid : card->uuid);
	ll_message_text_set(row->bus_id, sizeof row->bus_id, card->pci);
	ll_message_text_set(row->name, sizeof row->name, card->name);
	look->sense->is_unsure |= is_lost;
	look->sense->card_count++;
	return look->give(look->data, &message, look->err);
}

/* ---- processes ---- */

static struct seen_process *find_process(struct seen_card *card, const struct ll_message_sense_process *process)
{
	for (size_t i = 0; i < card->count; i++) {
		if (card->processes[i].pid == process->pid && card->processes[i].start_ticks == process->start_ticks)
			return &card->processes[i];
	}
	struct seen_process *more = reallocarray(card->processes, card->count + 1, sizeof *more);
	if (!more)
		return NULL;
	card->processes = more;
	more[card->count] = (struct seen_process){.pid = process->pid, .start_ticks = process->start_ticks};
	return &more[card->count++];
}

static void drop_ended(struct seen_card *card, uint64_t round)
{
	size_t kept = 0;
	for (size_t i = 0; i < card->count; i++) {
		if (card->processes[i].round == round)
			card->processes[kept++] = card->processes[i];
	}
	card->count = kept;
}

/* A process that is the only one now, and was the only one in the round before, had all the work between. */
static void find_last(const struct look *look, struct seen_process *process, struct ll_message_sense_process *row)
{
	struct seen_card *card = look->seen;
	bool was_seen = process->first_ns != 0;
	bool is_alone = look->sense->list.count == 1;
	uint64_t start_ns = row->age_ns == UINT64_MAX || row->age_ns > look->now_ns ? 0 : look->now_ns - row->age_ns;
	if (!was_seen)
		process->first_ns = look->now_ns;
	process->round = look->sense->round;
	ll_idle_process_take(&process->idle, &card->idle, card->round_ns,
			     is_alone && was_seen && card->count_before == 1);
	row->seen_ns = look->now_ns - process->first_ns;
	row->last = ll_idle_process_last(&process->idle, &card->idle, start_ns, is_alone, look->now_ns, &row->last_ns);
}

static int give_process(const struct look *look, const struct ll_process *process)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_PROCESS);
	struct ll_message_sense_process *row = &message.sense_process;
	row->pid = (uint32_t)process->pid;
	row->used_bytes = process->memory_bytes;
	ll_message_text_set(row->uuid, sizeof row->uuid, look->card->uuid);
	ll_sense_read_process(row, look->now_ns);
	struct seen_process *seen = find_process(look->seen, row);
	if (seen)
		find_last(look, seen, row);
	look->sense->process_count++;
	return look->give(look->data, &message, look->err);
}

static int give_processes(const struct look *look)
{
	struct ll_process_list *list = &look->sense->list;
	if (look->card->has_slices || ll_read_processes(look->card, LL_PROCESS_ALL, list, NULL))
		return 0;
	int rc = 0;
	for (size_t i = 0; !rc && i < list->count; i++)
		rc = give_process(look, &list->items[i]);
	drop_ended(look->seen, look->sense->round);
	look->seen->count_before = list->count;
	look->seen->round_ns = look->now_ns;
	return rc;
}

/* ---- faults ---- */

static int give_faults_of(const struct look *look, const struct seen_card *seen)
{
	union ll_message message;
	int rc = 0;
	for (int i = 0; !rc && seen->xids && i < XIDS_AT_A_TIME; i++) {
		ll_message_init(&message, LL_MESSAGE_SENSE_HEALTH);
		if (ll_xid_poll(seen->xids, &message.sense_health.xid, NULL) <= 0)
			break;
		ll_message_text_set(message.sense_health.uuid, sizeof message.sense_health.uuid, seen->uuid);
		rc = look->give(look->data, &message, look->err);
	}
	return rc;
}

/* Before the cards are listed anew, which ends the watches: while a card is lost, that is each round. */
static int give_all_faults(const struct look *look)
{
	int rc = 0;
	for (const struct seen_card *seen = look->sense->cards; seen && !rc; seen = seen->next)
		rc = give_faults_of(look, seen);
	return rc;
}

static int give_faults(const struct look *look)
{
	struct seen_card *seen = look->seen;
	if (!seen->has_tried_xids && ll_xid_open(look->card, &seen->xids, NULL))
		seen->xids = NULL;
	seen->has_tried_xids = true;
	return give_faults_of(look, seen);
}

static int give_conditions(const struct look *look)
{
	struct ll_card_health health;
	union ll_message message;
	if (look->sense->round % ROUNDS_OF_HEALTH != 1)
		return 0;
	ll_read_health(look->card, &health);
	ll_message_init(&message, LL_MESSAGE_SENSE_CONDITIONS);
	uint64_t *values = message.sense_conditions.values;
	values[LL_SENSE_ROW_REMAP_FAILURE] = health.row_remap_failure;
	values[LL_SENSE_ROW_REMAP_PENDING] = health.row_remap_pending;
	values[LL_SENSE_ECC_UNCORRECTED] = health.ecc_uncorrected;
	values[LL_SENSE_THERMAL_SLOWDOWN] = health.thermal_slowdown;
	values[LL_SENSE_NVLINK_ERRORS] = health.nvlink_errors;
	ll_message_text_set(message.sense_conditions.uuid, sizeof message.sense_conditions.uuid, look->card->uuid);
	return look->give(look->data, &message, look->err);
}

/* ---- a round ---- */

static int look_at_card(const struct look *look)
{
	if (!look->seen && !look->card->uuid[0])
		return 0;
	if (!look->card->fault && look->seen)
		read_use(look);
	int rc = give_card(look);
	if (rc || look->card->fault || !look->seen)
		return rc;
	rc = give_processes(look);
	if (!rc && !look->card->is_mig)
		rc = give_faults(look);
	return rc || look->card->is_mig ? rc : give_conditions(look);
}

static int give_end(struct look *look, const char *reason)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_END);
	message.sense_end.cards = look->sense->card_count;
	message.sense_end.processes = look->sense->process_count;
	ll_message_text_set(message.sense_end.reason, sizeof message.sense_end.reason, reason);
	return look->give(look->data, &message, look->err);
}

int ll_sense_round(struct ll_sense *sense, ll_sense_give_fn give, void *data, struct ll_err *err)
{
	const struct ll_card *cards = NULL;
	struct ll_err reason = {0};
	struct look look = {.sense = sense, .give = give, .data = data, .err = err};
	sense->card_count = sense->process_count = 0;
	sense->round++;
	int rc = give_all_faults(&look);
	if (rc)
		return rc;
	rc = open_driver(sense, &reason);
	if (rc)
		return give_end(&look, reason.text);
	size_t count = ll_driver_cards(sense->driver, &cards);
	for (size_t i = 0; !rc && i < count; i++) {
		look.card = &cards[i];
		look.seen = find_seen(sense, look.card);
		look.now_ns = ll_boot_ns();
		rc = look_at_card(&look);
	}
	return rc ? rc : give_end(&look, "");
}
