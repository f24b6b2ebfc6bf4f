#include "ledger/tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/scope.h"
#include "ledger/act.h"
#include "ledger/handle.h"
#include "ledger/liveness.h"
#include "ledger/rows.h"
#include "ledger/virtual_time.h"

/* Higher than the descriptors of shells and scripts, lower than our own ones. */
enum { KEEP_FD = 100, JOIN_WAIT_MS = 5000, MIB_SHIFT = 20 };

static int fail_tenant(const struct ll_ledger *ledger, int rc, struct ll_err *err)
{
	return ll_err_set(err, rc, "ledger %s: tenant: %s", ll_ledger_path(ledger), strerror(-rc));
}

/* A process that joins keeps the row by a description of its own. So it has time to take a claim, or to keep the row
 * for longer. */
static int open_joined(struct ll_ledger *ledger)
{
	if (ll_own_fd_is_ours(ledger, &ledger->joined))
		return 0;
	ll_fork_block();
	int rc = ll_own_fd_open(ledger, &ledger->joined);
	ll_fork_unblock();
	return rc;
}

/* Writes a free row. The caller has LL_LOCK_JOIN. */
static void make_row(struct ll_ledger_file *file, unsigned row, const struct ll_tenant_wish *wish)
{
	struct ll_ledger_tenant *tenant = &file->tenants[row];
	ll_tenant_rows_zero(tenant);
	ll_act_open_card(file, row + 1);
	tenant->priority = wish->priority;
	tenant->memory_limit_bytes = wish->memory_limit_bytes;
	tenant->memory_request_bytes = wish->memory_request_bytes;
	tenant->compute_cap_permille = wish->compute_cap_permille;
	tenant->weight_permille = wish->weight_permille ? wish->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE;
	tenant->space_permille = wish->space_permille;
	tenant->taken_ns = ll_now_ns();
	LL_TEXT_PUT(tenant, name, wish->name);
	atomic_store(&tenant->id, wish->id);
}

/* What all other tenants of the card are promised. */
static uint64_t sum_requests(const struct ll_ledger_file *file, unsigned but_row)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < LL_LEDGER_TENANTS; i++) {
		uint64_t bytes = i != but_row && file->tenants[i].id ? file->tenants[i].memory_request_bytes : 0;
		sum = bytes <= UINT64_MAX - sum ? sum + bytes : UINT64_MAX;
	}
	return sum;
}

static bool may_promise(const struct ll_ledger_file *file, unsigned row, uint64_t bytes, uint64_t promisable_bytes)
{
	uint64_t others = sum_requests(file, row);
	return !bytes || !promisable_bytes || (bytes <= promisable_bytes && others <= promisable_bytes - bytes);
}

static int fail_promise(const struct ll_ledger *ledger, unsigned row, uint64_t bytes, uint64_t promisable_bytes,
			struct ll_err *err)
{
	uint64_t others = sum_requests(ledger->file, row);
	uint64_t left = others < promisable_bytes ? promisable_bytes - others : 0;
	return ll_err_set(err, -EDQUOT,
			  "%" PRIu64 " MiB cannot be promised: of the card's %" PRIu64
			  " MiB other tenants are promised %" PRIu64 ", and %" PRIu64 " are left",
			  bytes >> MIB_SHIFT, promisable_bytes >> MIB_SHIFT, others >> MIB_SHIFT, left >> MIB_SHIFT);
}

static int find_or_make(struct ll_ledger *ledger, const struct ll_tenant_wish *wish, unsigned *ret_row)
{
	unsigned row = ll_tenant_rows_find(ledger->file, wish->id);
	bool is_new = row == LL_LEDGER_TENANTS;
	if (is_new)
		row = ll_tenant_rows_find(ledger->file, 0);
	if (row == LL_LEDGER_TENANTS)
		return -ENOSPC;
	if (is_new && !may_promise(ledger->file, row, wish->memory_request_bytes, wish->promisable_bytes))
		return -EDQUOT;
	int rc = ll_lock_try_shared(ledger->joined.fd, LL_LOCK_TENANTS + (off_t)row);
	if (rc)
		return rc;
	if (is_new)
		make_row(ledger->file, row, wish);
	*ret_row = row;
	return 0;
}

static int join_row(struct ll_ledger *ledger, const struct ll_tenant_wish *wish, unsigned *ret_row)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ledger->mutex);
	if (!ll_ledger_has_scan(ledger))
		return -EMFILE;
	int rc = open_joined(ledger);
	if (!rc)
		rc = ll_lock_wait(ledger->scan.fd, LL_LOCK_JOIN, JOIN_WAIT_MS);
	if (rc)
		return rc;
	rc = find_or_make(ledger, wish, ret_row);
	ll_lock_free(ledger->scan.fd, LL_LOCK_JOIN);
	return rc;
}

int ll_tenant_join(struct ll_ledger *ledger, const struct ll_tenant_wish *wish, unsigned *ret_row, struct ll_err *err)
{
	if (!wish->id)
		return ll_err_set(err, -EINVAL, "ledger %s: a tenant needs an id", ll_ledger_path(ledger));
	int rc = join_row(ledger, wish, ret_row);
	if (rc == -ENOSPC || rc == -EDQUOT) {
		ll_ledger_sweep(ledger);
		rc = join_row(ledger, wish, ret_row);
	}
	if (rc == -EDQUOT)
		return fail_promise(ledger, LL_LEDGER_TENANTS, wish->memory_request_bytes, wish->promisable_bytes, err);
	if (rc == -ENOSPC) {
		ll_err_set(err, rc, "ledger %s: is full: %d tenants share this card", ll_ledger_path(ledger),
			   LL_LEDGER_TENANTS);
		ll_err_hint(err, "`loadline status` shows them");
		return rc;
	}
	return rc ? fail_tenant(ledger, rc, err) : 0;
}

/* Copies the descriptor. exec leaves the copy open. */
static int open_for_exec(struct ll_ledger *ledger)
{
	struct ll_own_fd own = LL_OWN_FD_NONE;
	int rc = ll_own_fd_open(ledger, &own);
	if (rc)
		return rc;
	int fd = fcntl(own.fd, F_DUPFD, KEEP_FD);
	if (fd < 0)
		fd = fcntl(own.fd, F_DUPFD, STDERR_FILENO + 1);
	rc = fd < 0 ? -errno : fd;
	close(own.fd);
	return rc;
}

int ll_tenant_keep(struct ll_ledger *ledger, unsigned row, int *ret_fd, struct ll_err *err)
{
	if (row >= LL_LEDGER_TENANTS || !ledger->file->tenants[row].id)
		return ll_err_set(err, -EINVAL, "ledger %s: there is no tenant %u", ll_ledger_path(ledger), row);
	LL_SCOPE_NO_CANCEL;
	ll_fork_block();
	LL_SCOPE_CLOSE int fd = open_for_exec(ledger);
	ll_fork_unblock();
	int rc = fd < 0 ? fd : ll_lock_try_shared(fd, LL_LOCK_TENANTS + (off_t)row);
	if (rc)
		return fail_tenant(ledger, rc, err);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* If the process did not say it again, the process has ended. */
#define LOST_FRESH_NS (3 * LL_NS_PER_S)

static bool is_lost(const struct ll_ledger_tenant *tenant, uint64_t now_ns)
{
	uint64_t seen_ns = tenant->lost_seen_ns;
	return seen_ns && ll_contender_elapsed_ns(seen_ns, now_ns) < LOST_FRESH_NS;
}

static struct ll_ledger_tenant *row_of(struct ll_ledger *ledger, uint64_t id)
{
	for (unsigned i = 0; i < LL_LEDGER_TENANTS; i++) {
		if (ledger->file->tenants[i].id == id)
			return &ledger->file->tenants[i];
	}
	return NULL;
}

void ll_tenant_note_lost(struct ll_ledger *ledger, uint64_t id, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = row_of(ledger, id);
	if (!tenant)
		return;
	if (!is_lost(tenant, now_ns))
		tenant->lost_since_ns = now_ns;
	tenant->lost_seen_ns = now_ns;
}

void ll_tenant_note_had(struct ll_ledger *ledger, uint64_t id)
{
	struct ll_ledger_tenant *tenant = row_of(ledger, id);
	if (tenant)
		tenant->lost_seen_ns = 0;
}

bool ll_tenant_memory_limit(struct ll_ledger *ledger, uint64_t id, uint64_t *ret_bytes)
{
	const struct ll_ledger_tenant *tenant = row_of(ledger, id);
	uint64_t bytes = tenant ? tenant->memory_limit_bytes : 0;
	if (!tenant || tenant->id != id)
		return false;
	*ret_bytes = bytes;
	return true;
}

static bool copy_row(struct ll_ledger *ledger, unsigned row, struct ll_tenant_info *ret_info)
{
	const struct ll_ledger_tenant *tenant = &ledger->file->tenants[row];
	uint64_t id = tenant->id;
	if (!id)
		return false;
	struct ll_tenant_info info = {
	    .row = row,
	    .id = id,
	    .priority = (enum ll_priority)tenant->priority,
	    .memory_limit_bytes = tenant->memory_limit_bytes,
	    .memory_used_bytes = tenant->memory_used_bytes,
	    .memory_request_bytes = tenant->memory_request_bytes,
	    .compute_cap_permille = tenant->compute_cap_permille,
	    .weight_permille = tenant->weight_permille,
	    .space_permille = tenant->space_permille,
	    .gpu_time_ns = tenant->gpu_time_ns,
	    .virtual_time_ns = tenant->virtual_time_ns,
	    .tokens_ns = tenant->tokens_ns,
	    .lost_since_ns = is_lost(tenant, ll_now_ns()) ? tenant->lost_since_ns : 0,
	    .is_held = !(atomic_load(&ledger->file->card_words[row]) & LL_VISIT_WORD_OPEN),
	    .is_lock_held = !ll_lock_is_free(ledger->scan.fd, LL_LOCK_TENANTS + (off_t)row),
	    .claims = ll_tenant_rows_claims(ledger->file, row, true),
	};
	LL_TEXT_GET(tenant, name, info.name);
	if (tenant->id != id)
		return false;
	*ret_info = info;
	return true;
}

size_t ll_tenant_list(struct ll_ledger *ledger, struct ll_tenant_info *tenants, size_t capacity)
{
	size_t count = 0;
	struct ll_tenant_info info;
	ll_ledger_sweep(ledger);
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ledger->mutex);
	for (unsigned i = 0; i < LL_LEDGER_TENANTS; i++) {
		if (!copy_row(ledger, i, &info))
			continue;
		if (count < capacity)
			tenants[count] = info;
		count++;
	}
	return count;
}

bool ll_tenant_read(struct ll_ledger *ledger, unsigned row, struct ll_tenant_info *ret_info)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ledger->mutex);
	return row < LL_LEDGER_TENANTS && copy_row(ledger, row, ret_info);
}

bool ll_tenant_shares_by_space(const struct ll_ledger *ledger, unsigned row)
{
	return row < LL_LEDGER_TENANTS && ledger->file->tenants[row].space_permille != 0;
}

void ll_tenant_set_memory_limit(struct ll_ledger *ledger, unsigned row, uint64_t bytes)
{
	if (row < LL_LEDGER_TENANTS)
		ledger->file->tenants[row].memory_limit_bytes = bytes;
}

static int set_request(struct ll_ledger *ledger, unsigned row, uint64_t bytes, uint64_t promisable_bytes)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ledger->mutex);
	if (!ll_ledger_has_scan(ledger))
		return -EMFILE;
	int rc = ll_lock_wait(ledger->scan.fd, LL_LOCK_JOIN, JOIN_WAIT_MS);
	if (rc)
		return rc;
	if (may_promise(ledger->file, row, bytes, promisable_bytes))
		ledger->file->tenants[row].memory_request_bytes = bytes;
	else
		rc = -EDQUOT;
	ll_lock_free(ledger->scan.fd, LL_LOCK_JOIN);
	return rc;
}

int ll_tenant_set_memory_request(struct ll_ledger *ledger, unsigned row, uint64_t bytes, uint64_t promisable_bytes,
				 struct ll_err *err)
{
	if (row >= LL_LEDGER_TENANTS)
		return ll_err_set(err, -EINVAL, "ledger %s: there is no tenant %u", ll_ledger_path(ledger), row);
	ll_ledger_sweep(ledger);
	int rc = set_request(ledger, row, bytes, promisable_bytes);
	if (rc == -EDQUOT)
		return fail_promise(ledger, row, bytes, promisable_bytes, err);
	return rc ? fail_tenant(ledger, rc, err) : 0;
}

void ll_tenant_set_compute_cap(struct ll_ledger *ledger, unsigned row, unsigned permille)
{
	if (row < LL_LEDGER_TENANTS)
		ledger->file->tenants[row].compute_cap_permille = permille;
}

void ll_tenant_set_weight(struct ll_ledger *ledger, unsigned row, unsigned permille)
{
	if (row < LL_LEDGER_TENANTS)
		ledger->file->tenants[row].weight_permille = permille ? permille : 1000;
}

void ll_tenant_set_priority(struct ll_ledger *ledger, unsigned row, enum ll_priority priority, uint64_t now_ns)
{
	if (row >= LL_LEDGER_TENANTS || ledger->file->tenants[row].priority == priority)
		return;
	ledger->file->tenants[row].priority = priority;
	ll_virtual_time_enter_class(ledger->file, row + 1, now_ns);
}
