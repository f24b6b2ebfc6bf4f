/*
 * ledger_fixture.h - a folder of its own for each test, and one ledger in it.
 */
#ifndef LOADLINE_TESTS_UNIT_LEDGER_FIXTURE_H
#define LOADLINE_TESTS_UNIT_LEDGER_FIXTURE_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/claim.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "ledger/tenant.h"

#define UUID "GPU-00000000-1111-2222-3333-444444444444"

struct fixture {
	char folder[64];
	char path[160];
	struct ll_ledger *ledger; /* NULL until open_ledger */
};

static inline int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	snprintf(f->folder, sizeof f->folder, "/tmp/ll-ledger-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof f->path, "%s/" UUID ".ledger", f->folder);
	*state = f;
	return 0;
}

static inline void remove_files(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	ll_ledger_close(f->ledger);
	remove_files(f->folder);
	rmdir(f->folder);
	free(f);
	return 0;
}

static inline struct ll_ledger *open_ledger(struct fixture *f)
{
	struct ll_err err = {0};
	if (ll_ledger_open(f->folder, UUID, true, &f->ledger, &err))
		fail_msg("%s", err.text);
	return f->ledger;
}

static inline struct ll_claim *take_claim(struct ll_ledger *ledger, enum ll_priority priority)
{
	struct ll_err err = {0};
	struct ll_claim *claim = NULL;
	struct ll_claim_wish wish = {.priority = priority, .tenant = "test"};
	if (ll_claim_take(ledger, &wish, "0", &claim, &err))
		fail_msg("%s", err.text);
	return claim;
}

/* The row of the tenant with this id. */
static inline unsigned join_tenant(struct ll_ledger *ledger, uint64_t id, uint64_t limit_bytes)
{
	struct ll_err err = {0};
	unsigned row = 0;
	struct ll_tenant_wish wish = {
	    .id = id, .name = "test", .priority = LL_PRIORITY_NORMAL, .memory_limit_bytes = limit_bytes};
	if (ll_tenant_join(ledger, &wish, &row, &err))
		fail_msg("%s", err.text);
	return row;
}

static inline struct ll_claim *take_claim_of(struct ll_ledger *ledger, unsigned row)
{
	struct ll_err err = {0};
	struct ll_claim *claim = NULL;
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant = "test", .tenant_row = row + 1};
	if (ll_claim_take(ledger, &wish, "0", &claim, &err))
		fail_msg("%s", err.text);
	return claim;
}

/* A claim of a tenant that is made for it. */
static inline struct ll_claim *take_claim_of_new(struct ll_ledger *ledger, const struct ll_tenant_wish *wish)
{
	unsigned row = 0;
	assert_int_equal(ll_tenant_join(ledger, wish, &row, NULL), 0);
	return take_claim_of(ledger, row);
}

static inline size_t count_tenants(struct ll_ledger *ledger)
{
	return ll_tenant_list(ledger, NULL, 0);
}

static inline size_t count_claims(struct ll_ledger *ledger)
{
	return ll_ledger_list(ledger, NULL, 0);
}

#endif
