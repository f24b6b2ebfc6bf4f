#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/scope.h"
#include "ledger/contender.h"
#include "ledger/file.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/total.h"

/* A child scans with a description of its own. Otherwise parent and child would not exclude each other. */
static void reopen_in_child(struct ll_fork_item *item)
{
	struct ll_ledger *ledger = (struct ll_ledger *)((char *)item - offsetof(struct ll_ledger, fork));
	struct ll_own_fd scan = LL_OWN_FD_NONE;
	ll_own_fd_open(ledger, &scan);
	ll_own_fd_close(ledger, &ledger->scan);
	ledger->scan = scan;
	ll_own_fd_close(ledger, &ledger->joined);
	ledger->namespaces = ll_process_namespaces();
	ll_guard_in_child();
	pthread_mutex_init(&ledger->mutex, NULL);
}

static int open_file(const char *folder, const char *uuid, bool is_created, const char *path, int *ret_fd,
		     struct ll_err *err)
{
	LL_SCOPE_CLOSE int folder_fd = -1;
	if (!is_created && access(folder, F_OK) && errno == ENOENT)
		return ll_err_set(err, -ENOENT, "ledger %s: %s", path, strerror(ENOENT));
	int rc = ll_ledger_folder_open(folder, &folder_fd, err);
	return rc ? rc : ll_ledger_file_open(folder_fd, path, uuid, is_created, ret_fd, err);
}

static int map_file(struct ll_ledger *ledger, int fd, struct ll_err *err)
{
	struct stat st;
	void *page = mmap(NULL, LL_LEDGER_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return ll_err_set(err, -errno, "ledger %s: map: %s", ledger->path, strerror(errno));
	ledger->file = page;
	if (fstat(fd, &st))
		return ll_err_set(err, -errno, "ledger %s: %s", ledger->path, strerror(errno));
	ledger->device = st.st_dev;
	ledger->inode = st.st_ino;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, LL_LOCK_HIGH_FD);
	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (high < 0)
		return ll_err_set(err, -errno, "ledger %s: %s", ledger->path, strerror(errno));
	ledger->scan = ll_own_fd_mark(high);
	return 0;
}

static int init_ledger(struct ll_ledger *ledger, const char *folder, const char *uuid, bool is_created,
		       struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = -1;
	int n = snprintf(ledger->path, sizeof ledger->path, "%s/%s.ledger", folder, uuid);
	if (n < 0 || (size_t)n >= sizeof ledger->path)
		return ll_err_set(err, -ENAMETOOLONG, "ledger of card %s: path is too long", uuid);
	int rc = open_file(folder, uuid, is_created, ledger->path, &fd, err);
	return rc ? rc : map_file(ledger, fd, err);
}

static void free_ledger(struct ll_ledger *ledger)
{
	if (ledger->file)
		munmap(ledger->file, LL_LEDGER_FILE_BYTES);
	ll_own_fd_close(ledger, &ledger->joined);
	ll_own_fd_close(ledger, &ledger->scan);
	pthread_mutex_destroy(&ledger->mutex);
	free(ledger);
}

int ll_ledger_open(const char *folder, const char *uuid, bool is_created, struct ll_ledger **ret_ledger,
		   struct ll_err *err)
{
	if (!*uuid || strchr(uuid, '/') || strlen(uuid) >= sizeof((struct ll_ledger_file *)0)->uuid)
		return ll_err_set(err, -EINVAL, "ledger: '%s' is not a card's UUID", uuid);
	struct ll_ledger *ledger = calloc(1, sizeof *ledger);
	if (!ledger)
		return ll_err_set(err, -ENOMEM, "ledger: %s", strerror(ENOMEM));
	ledger->scan = LL_OWN_FD_NONE;
	ledger->joined = LL_OWN_FD_NONE;
	ledger->fork.in_child = reopen_in_child;
	ledger->namespaces = ll_process_namespaces();
	pthread_mutex_init(&ledger->mutex, NULL);
	int rc = init_ledger(ledger, folder, uuid, is_created, err);
	if (rc) {
		free_ledger(ledger);
		return rc;
	}
	ll_fork_add(&ledger->fork);
	*ret_ledger = ledger;
	return 0;
}

void ll_ledger_close(struct ll_ledger *ledger)
{
	if (!ledger)
		return;
	ll_fork_remove(&ledger->fork);
	free_ledger(ledger);
}

const char *ll_ledger_path(const struct ll_ledger *ledger)
{
	return ledger->path;
}

/* The lock is taken by an owner, or by a stray child of an owner. Withdraws the claim if its owner is gone. */
/* Before its memory is given back. */
static void note_death(struct ll_ledger *ledger, const struct ll_ledger_slot *slot)
{
	if (slot->memory_used_bytes)
		ledger->file->death_ns = ll_now_ns();
}

static bool withdraw_if_gone(struct ll_ledger *ledger, unsigned index)
{
	const struct ll_ledger_slot *slot = &ledger->file->slots[index];
	uint64_t token = slot->token;
	struct ll_process_id owner = {
	    .pid = slot->pid,
	    .start_ticks = slot->start_ticks,
	    .namespaces = slot->namespaces,
	};
	if (!token || !ll_process_is_gone(&owner, ledger->namespaces))
		return false;
	note_death(ledger, slot);
	return ll_total_withdraw(ledger, index, token);
}

uint64_t ll_ledger_death_ns(const struct ll_ledger *ledger)
{
	return ledger->file->death_ns;
}

void ll_ledger_clear_slot(struct ll_ledger *ledger, unsigned index, int lock_fd)
{
	note_death(ledger, &ledger->file->slots[index]);
	ll_total_leave(ledger, index, lock_fd);
	ll_slot_clean(ledger->file, index);
}

static bool sweep_slot(struct ll_ledger *ledger, unsigned index)
{
	if (!ll_slot_is_used(ledger->file, index))
		return false;
	off_t byte = LL_LOCK_SLOTS + (off_t)index;
	if (ll_lock_try(ledger->scan.fd, byte))
		return withdraw_if_gone(ledger, index);
	/* The owner may have released the claim meanwhile. */
	bool is_dead = ll_slot_is_used(ledger->file, index);
	if (is_dead)
		ll_ledger_clear_slot(ledger, index, ledger->scan.fd);
	ll_lock_free(ledger->scan.fd, byte);
	return is_dead;
}

size_t ll_ledger_sweep(struct ll_ledger *ledger)
{
	size_t count = 0;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ledger->mutex);
	if (!ll_ledger_has_scan(ledger))
		return 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++)
		count += sweep_slot(ledger, i);
	ll_tenant_rows_sweep(ledger);
	return count;
}

static void copy_numbers(const struct ll_ledger_slot *slot, struct ll_claim_info *info)
{
	info->pid = slot->pid;
	info->priority = (enum ll_priority)slot->priority;
	info->state = (enum ll_claim_state)slot->state;
	info->taken_ns = slot->taken_ns;
	info->heartbeat_ns = slot->heartbeat_ns;
	info->activity_ns = slot->activity_ns;
	info->memory_limit_bytes = slot->memory_limit_bytes;
	info->memory_used_bytes = slot->memory_used_bytes;
	info->residency = (enum ll_claim_residency)slot->residency;
	info->checkpoint = (enum ll_claim_checkpoint)slot->checkpoint;
	info->evictable_bytes = slot->evictable_bytes;
	info->away_bytes = slot->away_bytes;
	info->want_since_ns = slot->want_since_ns;
	info->compute_cap_permille = slot->compute_cap_permille;
	info->weight_permille = slot->weight_permille;
	info->target_permille = slot->target_permille;
	info->target_watts = slot->target_watts;
	info->gpu_time_ns = slot->gpu_time_ns;
	info->synthetic_busy_ns = slot->synthetic_busy_ns;
	info->energy_mj = slot->energy_mj;
	info->yields = slot->yields;
	info->gate = slot->gate;
	info->tenant_row = slot->tenant_row <= LL_LEDGER_TENANTS ? slot->tenant_row : 0;
}

static void copy_tenant(const struct ll_ledger_file *file, struct ll_claim_info *info)
{
	info->tenant_priority = info->priority;
	if (!info->tenant_row)
		return;
	const struct ll_ledger_tenant *tenant = &file->tenants[info->tenant_row - 1];
	info->tenant_priority = (enum ll_priority)tenant->priority;
	info->tenant_request_bytes = tenant->memory_request_bytes;
	info->tenant_used_bytes = tenant->memory_used_bytes;
}

/* Copies the claim in a slot. False: there is none, or it ended meanwhile. own_namespaces: see liveness.h. */
static bool copy_slot(const struct ll_ledger_file *file, unsigned index, uint64_t own_namespaces,
		      struct ll_claim_info *ret_info)
{
	const struct ll_ledger_slot *slot = &file->slots[index];
	uint64_t token = slot->token;
	if (!token || !ll_slot_is_used(file, index))
		return false;
	struct ll_claim_info info = {.index = index};
	copy_numbers(slot, &info);
	copy_tenant(file, &info);
	info.is_pid_ours = own_namespaces && slot->namespaces == own_namespaces;
	LL_TEXT_GET(slot, tenant, info.tenant);
	LL_TEXT_GET(slot, payload, info.payload);
	LL_TEXT_GET(slot, note, info.note);
	LL_TEXT_GET(slot, metric, info.metric);
	if (slot->token != token)
		return false;
	*ret_info = info;
	return true;
}

size_t ll_ledger_list(struct ll_ledger *ledger, struct ll_claim_info *claims, size_t capacity)
{
	size_t count = 0;
	struct ll_claim_info info;
	ll_ledger_sweep(ledger);
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		if (!copy_slot(ledger->file, i, ledger->namespaces, &info))
			continue;
		if (count < capacity)
			claims[count] = info;
		count++;
	}
	return count;
}

void ll_ledger_note_checkpoint(struct ll_ledger *ledger, pid_t pid, enum ll_claim_checkpoint checkpoint)
{
	struct ll_claim_info info;
	ll_ledger_sweep(ledger);
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		if (copy_slot(ledger->file, i, ledger->namespaces, &info) && info.is_pid_ours && info.pid == pid)
			atomic_store(&ledger->file->slots[i].checkpoint, (uint32_t)checkpoint);
	}
}

static uint64_t slot_activity_ns(const struct ll_ledger_slot *slot)
{
	if (!atomic_load_explicit(&slot->token, memory_order_acquire) ||
	    atomic_load_explicit(&slot->priority, memory_order_relaxed) == LL_PRIORITY_HOLD)
		return 0;
	return atomic_load_explicit(&slot->activity_ns, memory_order_acquire);
}

uint64_t ll_ledger_activity_ns(const struct ll_ledger *ledger)
{
	uint64_t newest_ns = 0;
	LL_CONTENDER_EACH(ledger->file, index)
	{
		uint64_t activity_ns = slot_activity_ns(&ledger->file->slots[index]);
		newest_ns = activity_ns > newest_ns ? activity_ns : newest_ns;
	}
	return newest_ns;
}
