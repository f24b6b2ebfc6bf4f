#include "cli/status/status.h"

#include "base/clock.h"
#include "base/scope.h"
#include "test.h"

static struct ll_card card = {.label = "12", .name = "NVIDIA H200 NVL with a long name", .uuid = "GPU-1"};

static struct ll_status_card reading(uint64_t now_ns)
{
	return (struct ll_status_card){
	    .card = &card,
	    .is_simulated = true,
	    .util_percent = 87,
	    .has_memory = true,
	    .memory = {.used_bytes = UINT64_C(100) << 30, .total_bytes = UINT64_C(140) << 30},
	    .power_watts = 512,
	    .power_limit_watts = 700,
	    .celsius = 61,
	    .has_mode = true,
	    .mode = LL_MODE_EXCLUSIVE_PROCESS,
	    .now_ns = now_ns,
	};
}

static void table_fits_a_narrow_terminal_with_all_its_numbers(void **state)
{
	(void)state;
	static const unsigned widths[] = {79, 72, 70};
	struct ll_status_card status = reading(0);
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_text(&text, &status, 1, widths[i]);
		assert_non_null(strstr(text.buf, "  87 %  100.0 of 140.0 GiB  512 of 700 W  61 C  "));
		assert_non_null(strstr(text.buf, "NVID"));
		for (const char *line = text.buf; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= widths[i]);
	}
}

static void who_is_not_held_to_its_limits_is_told(void **state)
{
	(void)state;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_tenant_info tenant = {.row = 1, .id = 71, .name = "stray", .lost_since_ns = 5 * LL_NS_PER_S};
	struct ll_status_card status = reading(17 * LL_NS_PER_S);
	status.tenants = &tenant;
	status.tenant_count = 1;
	ll_status_add_text(&text, &status, 1, 0);
	assert_non_null(strstr(text.buf, "tenant stray: "));
	assert_non_null(strstr(text.buf, ", NOT HELD TO ITS LIMITS for 12 s: a process has lost its claim\n"));
}

static void table_is_whole_where_there_is_room(void **state)
{
	(void)state;
	static const unsigned widths[] = {0, 200};
	struct ll_status_card status = reading(0);
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_status_add_text(&text, &status, 1, widths[i]);
		assert_non_null(strstr(text.buf, "NVIDIA H200 NVL with a long name (simulated)  87 %"));
		assert_non_null(strstr(text.buf, "  exclusive-process  0\n"));
	}
}

static void tenant_has_its_share_of_the_time_between_two_readings(void **state)
{
	(void)state;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_tenant_info before[] = {{.row = 1, .id = 71, .gpu_time_ns = 5 * LL_NS_PER_S}};
	struct ll_tenant_info now[] = {{.row = 0, .id = 72, .name = "new"},
				       {.row = 1, .id = 71, .name = "old", .gpu_time_ns = 6 * LL_NS_PER_S}};
	struct ll_status_card earlier = reading(10 * LL_NS_PER_S);
	struct ll_status_card status = reading(14 * LL_NS_PER_S);
	struct ll_status_recent recent;
	earlier.tenants = before;
	earlier.tenant_count = 1;
	status.tenants = now;
	status.tenant_count = 2;
	assert_false(ll_status_recent_tenant(&status, &now[1], &recent));
	status.earlier = &earlier;
	assert_false(ll_status_recent_tenant(&status, &now[0], &recent));
	assert_true(ll_status_recent_tenant(&status, &now[1], &recent));
	assert_float_equal(recent.percent, 25, 1e-9);
	assert_float_equal(recent.seconds, 4, 1e-9);
	ll_status_add_claims(&text, &status);
	assert_non_null(strstr(text.buf, "tenant old: "));
	assert_non_null(strstr(text.buf, ", GPU time 6.0 s (tenant: 25 % of the last 4.0 s)\n"));
	assert_non_null(strstr(text.buf, ", GPU time 0.0 s\n"));
}

static void server_of_mps_is_not_called_ungoverned(void **state)
{
	(void)state;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_status_stranger strangers[] = {
	    {.pid = 17, .memory_bytes = 30 << 20, .name = "nvidia-cuda-mps", .is_mps_server = true},
	    {.pid = 18, .memory_bytes = LL_MEMORY_UNKNOWN, .name = "python3"}};
	struct ll_status_card status = reading(0);
	status.strangers = strangers;
	status.stranger_count = 2;
	ll_status_add_claims(&text, &status);
	assert_string_equal(text.buf, "  pid 17  MPS server, 30 MiB\n  pid 18  python3: ungoverned\n");
}

/* A program of the text's second line, on a card of one claim. */
static void check_program(const struct ll_claim_info *program, const char *expected)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_claim_info claim = *program;
	struct ll_status_card status = reading(0);
	status.claims = &claim;
	status.claim_count = 1;
	ll_status_add_claims(&text, &status);
	assert_string_equal(text.buf, expected);
}

static void memory_that_is_away_can_be_moved_or_is_pinned_is_told_of_evictable_programs_alone(void **state)
{
	(void)state;
	struct ll_claim_info claim = {.pid = 5,
				      .is_pid_ours = true,
				      .state = LL_CLAIM_RUNNING,
				      .priority = LL_PRIORITY_NORMAL,
				      .tenant = "job",
				      .memory_used_bytes = 700 << 20};
	check_program(&claim, "  12/0  pid 5  job: running, normal priority, 700 MiB, GPU time 0.0 s\n");
	claim.residency = LL_CLAIM_EVICTED;
	claim.evictable_bytes = 600 << 20;
	claim.away_bytes = 500 << 20;
	check_program(&claim, "  12/0  pid 5  job: evicted, normal priority, 700 MiB, 200 MiB on the card "
			      "(evictable: 600 MiB, pinned: 100 MiB), GPU time 0.0 s\n");
	claim.residency = LL_CLAIM_STOPPED;
	/* The words are not of one moment. */
	claim.memory_used_bytes = 300 << 20;
	check_program(&claim, "  12/0  pid 5  job: stopped, normal priority, 300 MiB, 0 MiB on the card "
			      "(evictable: 600 MiB, pinned: 0 MiB), GPU time 0.0 s\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(table_fits_a_narrow_terminal_with_all_its_numbers),
	    cmocka_unit_test(who_is_not_held_to_its_limits_is_told),
	    cmocka_unit_test(table_is_whole_where_there_is_room),
	    cmocka_unit_test(tenant_has_its_share_of_the_time_between_two_readings),
	    cmocka_unit_test(server_of_mps_is_not_called_ungoverned),
	    cmocka_unit_test(memory_that_is_away_can_be_moved_or_is_pinned_is_told_of_evictable_programs_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
