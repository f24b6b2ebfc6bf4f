#include "sensor/sensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "driver/cards.h"
#include "driver/readings.h"

/* ---- process ---- */

enum { PATH_SIZE = 48, STATUS_SIZE = 1024 };

/* The owner of the folder /proc/PID is root if the process cannot be dumped, so the file is read. */
static uint32_t read_uid(pid_t pid)
{
	char text[STATUS_SIZE];
	uint32_t uids[4];
	ll_process_read_file(pid, "status", text, sizeof text);
	return ll_process_parse_uids(text, uids) ? uids[0] : UINT32_MAX;
}

/* Takes what the kernel knows already, so that a file system of a user's (FUSE) is not asked. */
static bool read_identity(const char *path, struct statx *ret_file)
{
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO, ret_file) ==
	       0;
}

/*
 * The path counts only if that file, as this process sees it, is the one that runs, and if it is root's. A user who has
 * a mount namespace can show another file at any path, and a user can write to an own file.
 */
static void read_program(uint32_t pid, char ret_program[LL_SENSE_PATH_SIZE])
{
	char link[PATH_SIZE], path[LL_SENSE_PATH_SIZE];
	struct statx running, here;
	snprintf(link, sizeof link, "/proc/%u/exe", pid);
	ssize_t length = readlink(link, path, sizeof path - 1);
	ret_program[0] = '\0';
	if (length <= 0 || length >= (ssize_t)sizeof path - 1)
		return;
	path[length] = '\0';
	if (!read_identity(link, &running) || running.stx_uid != 0 || (running.stx_mode & (S_IWGRP | S_IWOTH)) != 0 ||
	    !read_identity(path, &here) || running.stx_ino != here.stx_ino ||
	    running.stx_dev_major != here.stx_dev_major || running.stx_dev_minor != here.stx_dev_minor)
		return;
	ll_message_text_set(ret_program, LL_SENSE_PATH_SIZE, path);
}

static void read_ancestors(uint32_t pid, uint32_t ret_ancestors[LL_SENSE_ANCESTORS])
{
	struct ll_process_stat stat;
	for (int i = 0; i < LL_SENSE_ANCESTORS && pid > 1; i++) {
		if (ll_process_stat_of((pid_t)pid, &stat) || stat.parent <= 0)
			return;
		pid = ret_ancestors[i] = (uint32_t)stat.parent;
	}
}

static uint64_t age_of(uint64_t start_ticks, uint64_t now_ns)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t start_ns = start_ticks / ticks * LL_NS_PER_S + start_ticks % ticks * LL_NS_PER_S / ticks;
	return now_ns > start_ns ? now_ns - start_ns : 0;
}

/* Fills in age_ns, start_ticks, uid, ancestors, command, program and cgroup of the process with the pid that is set. A
 * field stays 0, or age_ns UINT64_MAX, if it is unknown: the process has ended, or this one may not read it. No lock of
 * the process is waited for: /proc/PID/cmdline and /proc/PID/environ would. */
static void read_process(struct ll_message_sense_process *process, uint64_t now_ns)
{
	char name[LL_COMMAND_SIZE], cgroup[LL_CGROUP_SIZE] = "";
	struct ll_process_stat stat;
	process->age_ns = UINT64_MAX;
	process->uid = UINT32_MAX;
	if (ll_process_stat_of((pid_t)process->pid, &stat))
		return;
	process->start_ticks = stat.start_ticks;
	process->age_ns = age_of(stat.start_ticks, now_ns);
	process->uid = read_uid((pid_t)process->pid);
	read_ancestors(process->pid, process->ancestors);
	ll_process_read_file((pid_t)process->pid, "comm", name, sizeof name);
	name[strcspn(name, "\n")] = '\0';
	ll_message_text_set(process->command, sizeof process->command, name);
	read_program(process->pid, process->program);
	ll_cgroup_read((pid_t)process->pid, cgroup, sizeof cgroup);
	ll_message_text_set(process->cgroup, sizeof process->cgroup, cgroup);
}

/* ---- idle ---- */

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

/* ---- sense ---- */

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
	row->sm_count = card->sm_count;
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
	read_process(row, look->now_ns);
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

static int give_faults(const struct look *look, const struct seen_card *seen)
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
	if (rc || look->card->is_mig)
		return rc;
	if (!look->seen->has_tried_xids && ll_xid_open(look->card, &look->seen->xids, NULL))
		look->seen->xids = NULL;
	look->seen->has_tried_xids = true;
	rc = give_faults(look, look->seen);
	return rc ? rc : give_conditions(look);
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
	int rc = 0;
	/* Before the cards are listed anew, which ends the watches: while a card is lost, that is each round. */
	for (const struct seen_card *seen = sense->cards; seen && !rc; seen = seen->next)
		rc = give_faults(&look, seen);
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
