#include "hold/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "driver/readings.h"
#include "hold/others.h"
#include "protocol/client.h"
#include "protocol/message.h"
#include "protocol/page.h"
#include "protocol/place.h"
#include "protocol/words.h"

/* ---- stranger ---- */

/* Smaller ranks are more likely to have run kernels. */
enum rank { RANK_HAS_WORK, RANK_PROGRAM, RANK_SERVES_OTHERS };

struct search {
	const struct ll_governed *governed;
	size_t governed_count;
	struct ll_hold_stranger best;
	enum rank best_rank;
	unsigned programs;
};

/* The kernel cuts the name at 15 characters. */
static void read_name(pid_t pid, char *ret_name, size_t size)
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_name, size - 1);
	if (fd >= 0)
		close(fd);
	ret_name[n > 0 ? n : 0] = '\0';
	ret_name[strcspn(ret_name, "\n")] = '\0';
	ll_utf8_clean(ret_name);
}

static bool serves_others(const char *name)
{
	return strncmp(name, "nvidia-cuda-mps", 15) == 0 || strncmp(name, "loadline", 8) == 0;
}

static const struct ll_governed *governed_of(const struct search *search, pid_t pid)
{
	for (size_t i = 0; i < search->governed_count; i++) {
		if (search->governed[i].pid == pid)
			return &search->governed[i];
	}
	return NULL;
}

/* governed: NULL for a program that is not governed. */
static void consider_process(struct search *search, pid_t pid, const struct ll_governed *governed)
{
	struct ll_hold_stranger found = {.pid = pid};
	read_name(pid, found.name, sizeof found.name);
	enum rank rank = !governed && serves_others(found.name) ? RANK_SERVES_OTHERS
			 : governed && governed->has_work       ? RANK_HAS_WORK
								: RANK_PROGRAM;
	if (governed && governed->tenant[0])
		snprintf(found.name, sizeof found.name, "%s", governed->tenant);
	if (!found.name[0]) /* it has ended, or is of another PID namespace */
		return;
	search->programs += rank != RANK_SERVES_OTHERS;
	if (search->best.pid && rank >= search->best_rank)
		return;
	search->best = found;
	search->best_rank = rank;
}

static bool is_listed(const struct ll_process_list *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++) {
		if (processes->items[i].pid == pid)
			return true;
	}
	return false;
}

void ll_hold_stranger_find(const struct ll_process_list *processes, pid_t own_pid, const struct ll_governed *governed,
			   size_t governed_count, struct ll_hold_stranger *stranger)
{
	struct search search = {.governed = governed, .governed_count = governed_count};
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = processes->items[i].pid;
		if (pid != own_pid && pid != getpid())
			consider_process(&search, pid, governed_of(&search, pid));
	}
	/* NVML shows a new process late, and no process of another PID namespace. */
	for (size_t i = 0; i < governed_count; i++) {
		if (!is_listed(processes, governed[i].pid))
			consider_process(&search, governed[i].pid, &governed[i]);
	}
	if (!search.best.pid)
		return;
	*stranger = search.best;
	stranger->others = search.programs > 1 ? search.programs - 1 : 0;
}

/* ---- governed ---- */

static int fill_list(const struct ll_list *rows, const char *uuid, struct ll_governed **ret_list, size_t *ret_count)
{
	size_t count = 0;
	struct ll_governed *list = calloc(rows->claim_count + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < rows->claim_count; i++) {
		const struct ll_message_claim_row *row = &rows->claims[i];
		const struct ll_message_job_row *job = ll_list_job(rows, row->job_number);
		if (!row->pid || !job || strcmp(row->uuid, uuid) != 0)
			continue;
		struct ll_governed *governed = &list[count++];
		governed->pid = (pid_t)row->pid;
		governed->has_work = row->wanting_ns != 0;
		snprintf(governed->tenant, sizeof governed->tenant, "%s", job->job.tenant);
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* If the daemon's own pid differs from the pid that this process sees, the daemon is in another PID namespace. */
static int request_list(struct ll_client *client, const struct ll_places *places, uint64_t wait_ns,
			struct ll_list *ret_rows)
{
	uint64_t deadline_ns = ll_now_ns() + wait_ns;
	int rc =
	    ll_client_open(client, ll_places_choose(places), LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	if (rc)
		return rc;
	if ((pid_t)client->welcome.pid != client->pid)
		return -ESRCH;
	return ll_client_list(client, ret_rows, deadline_ns, NULL);
}

int ll_governed_list(const struct ll_places *places, const char *uuid, uint64_t wait_ns, struct ll_governed **ret_list,
		     size_t *ret_count)
{
	struct ll_client client;
	struct ll_list rows = {0};
	int rc = request_list(&client, places, wait_ns, &rows);
	if (rc == 0)
		rc = fill_list(&rows, uuid, ret_list, ret_count);
	ll_list_fini(&rows);
	ll_client_close(&client);
	return rc;
}

/* ---- job watch ---- */

enum { MESSAGES_AT_A_TIME = 16 };
#define READ_EVERY_NS (10 * LL_NS_PER_MS)
#define CONNECT_EVERY_NS (500 * LL_NS_PER_MS)
/* The monitors of jobs may take this long to register with a new loadlined. */
#define FORGET_AFTER_NS (5 * LL_NS_PER_S)

struct watched_slot {
	const struct ll_page_slot *slot;
	uint64_t token;
	uint64_t activity_ns; /* as last seen */
};

struct ll_watched_job {
	uint64_t number; /* from loadlined; 0: from a former one */
	struct ll_page *page;
	struct ll_orders *orders;
	uint32_t slot_changes; /* the list is valid for this count */
	struct watched_slot *slots;
	size_t slot_count;
};

/* ---- the list of a job's slots ---- */

static uint64_t activity_of(const struct ll_page_slot *slot)
{
	return atomic_load_explicit(&slot->activity_ns, memory_order_acquire);
}

/* Returns the last seen activity of a slot that was listed before. A new slot had no work. */
static uint64_t seen_before(const struct ll_watched_job *job, const struct watched_slot *slot)
{
	for (size_t i = 0; i < job->slot_count; i++) {
		if (job->slots[i].slot == slot->slot && job->slots[i].token == slot->token)
			return job->slots[i].activity_ns;
	}
	return 0;
}

static bool is_on_card(const struct ll_page_slot *slot, unsigned card, uint64_t *ret_token)
{
	*ret_token = atomic_load_explicit(&slot->token, memory_order_acquire);
	return *ret_token && atomic_load_explicit(&slot->card, memory_order_relaxed) == card;
}

static size_t count_slots(const struct ll_page *page, unsigned card)
{
	uint64_t token;
	size_t count = 0;
	for (size_t i = 0; i < ll_page_slot_end(page); i++)
		count += is_on_card(&page->slots[i], card, &token);
	return count;
}

/* Lists the slots again. If there is no memory, the old list stays, and the next look tries again. */
static void list_slots(struct ll_watched_job *job, const char *uuid)
{
	uint32_t changes = atomic_load_explicit(&job->orders->slot_changes, memory_order_acquire);
	unsigned card = ll_orders_find_card(job->orders, uuid);
	size_t capacity = card < LL_PAGE_CARDS ? count_slots(job->page, card) : 0, count = 0;
	struct watched_slot *slots = calloc(capacity + 1, sizeof *slots);
	if (!slots)
		return;
	for (size_t i = 0; i < ll_page_slot_end(job->page) && count < capacity; i++) {
		struct watched_slot slot = {.slot = &job->page->slots[i]};
		if (!is_on_card(slot.slot, card, &slot.token))
			continue;
		slot.activity_ns = seen_before(job, &slot);
		slots[count++] = slot;
	}
	free(job->slots);
	job->slots = slots;
	job->slot_count = count;
	job->slot_changes = changes;
}

/* Whether one of the slots has work, or has had some since it was last seen. */
static bool look_at_job(struct ll_watched_job *job, const char *uuid)
{
	bool is_active = false;
	if (atomic_load_explicit(&job->orders->slot_changes, memory_order_acquire) != job->slot_changes)
		list_slots(job, uuid);
	for (size_t i = 0; i < job->slot_count; i++) {
		struct watched_slot *slot = &job->slots[i];
		uint64_t activity_ns = activity_of(slot->slot);
		is_active |= activity_ns == LL_ACTIVITY_NOW || activity_ns != slot->activity_ns;
		slot->activity_ns = activity_ns;
	}
	return is_active;
}

/* ---- jobs are added and removed ---- */

static void close_job(struct ll_watched_job *job)
{
	free(job->slots);
	ll_page_unmap(job->page);
	ll_orders_unmap(job->orders);
}

static void remove_job(struct ll_job_watch *watch, size_t index)
{
	close_job(&watch->jobs[index]);
	watch->jobs[index] = watch->jobs[--watch->count];
}

static void remove_jobs(struct ll_job_watch *watch, uint64_t number)
{
	for (size_t i = watch->count; i-- > 0;) {
		if (watch->jobs[i].number == number)
			remove_job(watch, i);
	}
}

/* The page may also come from a former loadlined, or from this one before the job's monitor ended. The activity that
 * was seen then is kept. */
static bool is_known(struct ll_job_watch *watch, const struct ll_orders *orders, uint64_t number)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct ll_watched_job *job = &watch->jobs[i];
		if (memcmp(job->orders->token, orders->token, sizeof orders->token) != 0)
			continue;
		job->number = number;
		return true;
	}
	return false;
}

static void say_unread(struct ll_job_watch *watch, uint64_t number, int rc)
{
	if (watch->has_warned)
		return;
	watch->has_warned = true;
	ll_warn("the page of job %llu cannot be read (%s): the load sees its work only when that is on the card",
		(unsigned long long)number, strerror(-rc));
}

static void add_job(struct ll_job_watch *watch, uint64_t number, const int *fds)
{
	struct ll_watched_job job = {.number = number};
	struct ll_watched_job *jobs = reallocarray(watch->jobs, watch->count + 1, sizeof *jobs);
	if (!jobs)
		return;
	watch->jobs = jobs;
	int rc = ll_page_map(fds[0], false, &job.page);
	if (!rc)
		rc = ll_orders_map(fds[1], false, &job.orders);
	if (rc)
		say_unread(watch, number, rc);
	if (!rc && !is_known(watch, job.orders, number)) {
		list_slots(&job, watch->uuid);
		for (size_t i = 0; i < job.slot_count; i++)
			job.slots[i].activity_ns = activity_of(job.slots[i].slot);
		watch->jobs[watch->count++] = job;
	} else {
		close_job(&job);
	}
}

/* ---- the connection ---- */

static void disconnect_watch(struct ll_job_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
	for (size_t i = 0; i < watch->count; i++)
		watch->jobs[i].number = 0;
	watch->forget_ns = 0;
}

static int send_all(int fd)
{
	union ll_message message;
	ll_message_init_hello(&message, LL_ROLE_HOLD, LOADLINE_VERSION);
	int rc = ll_message_send(fd, &message, NULL, 0);
	if (rc)
		return rc;
	ll_message_init(&message, LL_MESSAGE_WATCH);
	return ll_message_send(fd, &message, NULL, 0);
}

static void connect_watch(struct ll_job_watch *watch, uint64_t now_ns)
{
	watch->is_welcome = false;
	/* The load does not wait here. -EAGAIN: loadlined is flooded, and has a place for one who asks often. */
	int rc = ll_place_connect(ll_places_choose(watch->places), &watch->fd, NULL);
	watch->next_ns = now_ns + (rc == -EAGAIN ? READ_EVERY_NS : CONNECT_EVERY_NS);
	if (rc)
		return;
	if (send_all(watch->fd))
		disconnect_watch(watch);
	else
		watch->next_ns = now_ns;
}

static void take_message(struct ll_job_watch *watch, const union ll_message *message, const int *fds, size_t count,
			 uint64_t now_ns)
{
	if (message->header.kind == LL_MESSAGE_WELCOME) {
		watch->is_welcome = true;
		watch->forget_ns = now_ns + FORGET_AFTER_NS;
	} else if (message->header.kind == LL_MESSAGE_PAGE && count == 2) {
		add_job(watch, message->page.job_number, fds);
	} else if (message->header.kind == LL_MESSAGE_PAGE_GONE) {
		remove_jobs(watch, message->page.job_number);
	}
}

/* Returns 0 if there may be more messages, -EAGAIN if not; other errors end the connection. */
static int read_some(struct ll_job_watch *watch, uint64_t now_ns)
{
	int rc = 0;
	for (int i = 0; i < MESSAGES_AT_A_TIME && !rc; i++) {
		union ll_message message;
		int fds[LL_MESSAGE_FDS];
		size_t count = 0;
		rc = ll_message_receive(watch->fd, &message, fds, &count);
		if (!rc)
			take_message(watch, &message, fds, count, now_ns);
		ll_message_close_fds(fds, count);
		if (rc == -ENOTSUP) /* a message of a newer version */
			rc = 0;
	}
	return rc;
}

static void look_at_socket(struct ll_job_watch *watch, uint64_t now_ns)
{
	if (watch->fd < 0) {
		connect_watch(watch, now_ns);
		return;
	}
	int rc = read_some(watch, now_ns);
	if (rc && rc != -EAGAIN) {
		disconnect_watch(watch);
		watch->next_ns = now_ns + CONNECT_EVERY_NS;
	} else if (rc && watch->is_welcome) {
		watch->next_ns = now_ns + READ_EVERY_NS;
	} /* otherwise the next look reads too, so that a load that starts beside work sees it at once */
	if (watch->forget_ns && now_ns >= watch->forget_ns) {
		remove_jobs(watch, 0);
		watch->forget_ns = 0;
	}
}

/* ---- for the loop ---- */

void ll_job_watch_begin(struct ll_job_watch *watch, const struct ll_places *places, const char *uuid, uint64_t now_ns)
{
	*watch = (struct ll_job_watch){.places = places, .uuid = uuid, .fd = -1};
	connect_watch(watch, now_ns);
}

void ll_job_watch_end(struct ll_job_watch *watch)
{
	if (!watch->places)
		return;
	disconnect_watch(watch);
	remove_jobs(watch, 0);
	free(watch->jobs);
	*watch = (struct ll_job_watch){0};
}

bool ll_job_watch_look(struct ll_job_watch *watch, uint64_t now_ns)
{
	bool is_active = false;
	if (!watch->places)
		return false;
	if (now_ns >= watch->next_ns)
		look_at_socket(watch, now_ns);
	for (size_t i = 0; i < watch->count; i++)
		is_active |= look_at_job(&watch->jobs[i], watch->uuid);
	return is_active;
}
