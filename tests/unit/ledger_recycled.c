/* A row and a slot that get another owner have nothing of the former one's. Each byte is looked at, so that a field
 * which comes new is not forgotten. */
#include <string.h>

#include "test.h"

#include "ledger/handle.h"
#include "ledger/layout.h"
#include "ledger_fixture.h"

/* The first byte from `from` on that is not zero; bytes: none. */
static size_t first_rest(const void *thing, size_t from, size_t bytes)
{
	const unsigned char *byte = thing;
	while (from < bytes && !byte[from])
		from++;
	return from;
}

static void a_row_has_nothing_of_its_former_tenant(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f), *other = NULL;
	assert_int_equal(ll_ledger_open(f->folder, UUID, true, &other, NULL), 0);
	unsigned row = join_tenant(other, 7, 1000);
	struct ll_ledger_tenant *tenant = &ledger->file->tenants[row];
	memset((char *)tenant + sizeof tenant->id, 0xa5, sizeof *tenant - sizeof tenant->id);
	ll_ledger_close(other);
	assert_int_equal(ll_tenant_list(ledger, NULL, 0), 0);
	size_t sequence = offsetof(struct ll_ledger_tenant, text_sequence);
	assert_int_equal(first_rest(tenant, 0, sequence), sequence);
	assert_int_equal(first_rest(tenant, sequence + sizeof tenant->text_sequence, sizeof *tenant), sizeof *tenant);
}

/* Who has cleared a row may have been killed half-way. */
static void a_row_is_made_from_the_wish_alone(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_ledger_tenant *tenant = &ledger->file->tenants[0];
	memset((char *)tenant + sizeof tenant->id, 0xa5, sizeof *tenant - sizeof tenant->id);
	assert_int_equal(join_tenant(ledger, 7, 1000), 0);
	assert_int_equal(tenant->memory_limit_bytes, 1000);
	assert_int_equal(tenant->weight_permille, 1000);
	assert_int_equal(tenant->memory_used_bytes, 0);
	assert_int_equal(tenant->first_card, 0);
	assert_int_equal(tenant->gang_turn_until_ns, 0);
	assert_int_equal(tenant->others_busy_ns, 0);
	assert_int_equal(tenant->others_launches, 0);
	assert_int_equal(tenant->ending_ns, 0);
}

static void a_slot_has_nothing_of_its_former_claim(void **state)
{
	struct fixture *f = *state;
	struct ll_ledger *ledger = open_ledger(f);
	struct ll_claim *claim = take_claim_of(ledger, join_tenant(ledger, 7, 1000));
	struct ll_ledger_slot *slot = claim->slot;
	size_t token = sizeof slot->token;
	memset((char *)slot + token, 0xa5, sizeof *slot - token);
	slot->tenant_row = 1;
	slot->memory_used_bytes = 0;
	ll_claim_release(claim);
	assert_int_equal(first_rest(slot, 0, sizeof *slot), sizeof *slot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_row_has_nothing_of_its_former_tenant),
	    TEST(a_row_is_made_from_the_wish_alone),
	    TEST(a_slot_has_nothing_of_its_former_claim),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
