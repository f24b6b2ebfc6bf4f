/* The text of loadline-exporter, from figures that the test makes. */
#include "exporter/text.h"

#include <string.h>

#include "test.h"

#define CARD "GPU-11111111-2222-3333-4444-555555555555"
#define LABELS "{gpu=\"0\",UUID=\"" CARD "\"}"

struct world {
	struct ll_figures figures;
	struct ll_exporter_history history;
	struct ll_exporter_self self;
	struct ll_message_sense_card card;
	struct ll_message_metrics_tenant tenants[2];
	struct ll_message_policy_part part;
	struct ll_strbuf text;
};

static void init_world(struct world *world)
{
	memset(world, 0, sizeof *world);
	world->text = (struct ll_strbuf)LL_STRBUF_INIT;
	world->card = (struct ll_message_sense_card){.memory_bytes = UINT64_C(100) << 20,
						     .usable_bytes = UINT64_C(99) << 20,
						     .used_bytes = UINT64_C(30) << 20,
						     .watched_ns = 10000000000,
						     .busy_ns = 4000000000,
						     .slice = -1,
						     .xid = 79,
						     .xids = 2};
	strcpy(world->card.uuid, CARD);
	strcpy(world->card.bus_id, "0000:18:00.0");
	strcpy(world->card.name, "NVIDIA H200");
	strcpy(world->tenants[0].name, "research");
	world->tenants[0].used_s = 12.5;
	world->tenants[0].waiting = 3;
	world->tenants[0].borrowing = 2;
	world->tenants[0].recalled = 1;
	world->tenants[0].borrowed_bytes = UINT64_C(3) << 30;
	world->tenants[0].oldest_wait_s = 60;
	world->tenants[1].running = 1;
	world->tenants[1].oldest_wait_s = 90;
	world->tenants[1].waiting = 1;
	world->part = (struct ll_message_policy_part){.is_known = 1,
						      .guaranteed_cards = UINT64_MAX,
						      .guaranteed_memory_bytes = 1024,
						      .guaranteed_compute_permille = UINT64_MAX,
						      .limit_cards = UINT64_MAX,
						      .limit_memory_bytes = UINT64_MAX,
						      .limit_compute_permille = 1500,
						      .used_memory_bytes = 512};
	strcpy(world->part.tenant, "research");
	strcpy(world->part.group, "shared");
	world->figures = (struct ll_figures){.is_up = true,
					     .sensed = {.cards = &world->card, .card_count = 1},
					     .sums = {.tenants = world->tenants,
						      .tenant_count = 2,
						      .parts = &world->part,
						      .part_count = 1,
						      .end = {.accounts = LL_METRICS_ACCOUNTS_GOOD, .has_queue = 1}}};
}

static const char *text_of(struct world *world)
{
	ll_strbuf_reset(&world->text);
	assert_int_equal(ll_exporter_history_add(&world->history, &world->figures.sensed), 0);
	ll_exporter_text(&world->text, &world->figures, &world->history, &world->self);
	assert_false(world->text.failed);
	return world->text.buf;
}

static void fini_world(struct world *world)
{
	ll_exporter_history_fini(&world->history);
	ll_strbuf_fini(&world->text);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

TEST(without_a_reply_of_loadlined_only_that_is_told)
{
	struct world world;
	init_world(&world);
	world.figures.is_up = false;
	world.self.failures = 4;
	const char *text = text_of(&world);
	assert_has(text, "\nloadline_up 0\n");
	assert_has(text, "\nloadline_exporter_failures_total 4\n");
	assert_null(strstr(text, "loadline_jobs"));
	assert_null(strstr(text, "DCGM_"));
	assert_null(strstr(text, "loadline_tenant"));
	fini_world(&world);
}

TEST(cards_have_the_names_and_units_of_dcgm_exporter)
{
	struct world world;
	init_world(&world);
	const char *text = text_of(&world);
#define DCGM "{gpu=\"0\",UUID=\"" CARD "\",pci_bus_id=\"0000:18:00.0\",modelName=\"NVIDIA H200\"}"
	assert_has(text, "\n# TYPE DCGM_FI_DEV_FB_USED gauge\nDCGM_FI_DEV_FB_USED" DCGM " 30\n");
	assert_has(text, "\nDCGM_FI_DEV_FB_FREE" DCGM " 69\n");
	assert_has(text, "\nDCGM_FI_DEV_XID_ERRORS" DCGM " 79\n");
	assert_has(text,
		   "\n# TYPE loadline_card_xid_errors_total counter\nloadline_card_xid_errors_total" LABELS " 2\n");
	assert_has(text, "\nloadline_card_busy_seconds_total" LABELS " 4\n");
	fini_world(&world);
}

TEST(utilisation_is_that_between_two_reports_of_the_sensor)
{
	struct world world;
	init_world(&world);
	assert_null(strstr(text_of(&world), "DCGM_FI_DEV_GPU_UTIL"));
	world.card.watched_ns += 5000000000;
	world.card.busy_ns += 2000000000;
	assert_has(text_of(&world), "\nDCGM_FI_DEV_GPU_UTIL" DCGM " 40\n");
	assert_has(text_of(&world), "\nDCGM_FI_DEV_GPU_UTIL" DCGM " 40\n"); /* the same report */
	world.card.watched_ns = 1000000000;                                 /* another sensor */
	world.card.busy_ns = 0;
	assert_null(strstr(text_of(&world), "DCGM_FI_DEV_GPU_UTIL"));
	fini_world(&world);
}

TEST(a_card_that_is_lost_has_no_memory_in_use)
{
	struct world world;
	init_world(&world);
	world.card.flags = LL_SENSE_IS_LOST;
	world.card.used_bytes = 0;
	const char *text = text_of(&world);
	assert_has(text, "\nloadline_card_lost" LABELS " 1\n");
	assert_null(strstr(text, "DCGM_FI_DEV_FB_USED"));
	fini_world(&world);
}

TEST(a_slice_has_a_label_of_its_own)
{
	struct world world;
	init_world(&world);
	world.card.slice = 2;
	const char *text = text_of(&world);
	assert_has(text, "loadline_card_memory_bytes{gpu=\"0\",UUID=\"" CARD "\",GPU_I_ID=\"2\"} 104857600\n");
	assert_null(strstr(text, "DCGM_FI_DEV_XID_ERRORS")); /* of the card */
	fini_world(&world);
}

TEST(a_silent_sensor_leaves_no_old_values_of_cards)
{
	struct world world;
	init_world(&world);
	world.figures.sensed.end.silent_ns = 20000000000;
	const char *text = text_of(&world);
	assert_has(text, "\nloadline_sensor_up 0\n");
	assert_has(text, "\nloadline_sensor_silent_seconds 20\n");
	assert_null(strstr(text, "DCGM_"));
	assert_null(strstr(text, "loadline_card_"));
	fini_world(&world);
}

TEST(only_cards_out_of_use_say_so)
{
	struct world world;
	init_world(&world);
	assert_has(text_of(&world), "\nloadline_card_out_of_use" LABELS " 0\n");
	world.figures.sums.end.out_of_use = 1;
	assert_has(text_of(&world), "\nloadline_card_out_of_use" LABELS " 1\n");
	world.figures.sums.end.has_queue = 0;
	assert_null(strstr(text_of(&world), "loadline_card_out_of_use"));
	fini_world(&world);
}

TEST(a_drained_card_has_its_reason)
{
	struct world world;
	init_world(&world);
	struct ll_message_sense_drained drained[] = {{.index = 0, .reason = "Xid 79"}, {.index = 1}, {.index = 2}};
	world.figures.sensed.drained = drained;
	world.figures.sensed.drained_count = 3;
	world.figures.sums.end.out_of_use = 3; /* the third will be drained later */
	const char *text = text_of(&world);
	assert_has(text, "\nloadline_card_drained{gpu=\"0\",UUID=\"" CARD "\",reason=\"Xid 79\"} 1\n"
			 "loadline_card_drained{gpu=\"1\",reason=\"operator\"} 1\n");
	assert_null(strstr(text, "loadline_card_drained{gpu=\"2\""));
	fini_world(&world);
}

TEST(use_is_told_by_tenant_and_the_queue_as_a_whole_too)
{
	struct world world;
	init_world(&world);
	const char *text = text_of(&world);
	assert_has(text, "\n# TYPE loadline_tenant_gpu_used_seconds_total counter\n"
			 "loadline_tenant_gpu_used_seconds_total{tenant=\"research\"} 12.5\n"
			 "loadline_tenant_gpu_used_seconds_total{tenant=\"(none)\"} 0\n");
	assert_has(text, "\nloadline_tenant_jobs_waiting{tenant=\"research\"} 3\n");
	assert_has(text, "\nloadline_tenant_jobs_borrowing{tenant=\"research\"} 2\n");
	assert_has(text, "\nloadline_tenant_jobs_recalled{tenant=\"research\"} 1\n");
	assert_has(text, "\nloadline_tenant_memory_borrowed_bytes{tenant=\"research\"} 3221225472\n");
	assert_has(text, "\nloadline_queue_jobs 4\n");
	assert_has(text, "\nloadline_queue_oldest_wait_seconds 90\n");
	assert_has(text, "\nloadline_tenant_guaranteed_memory_bytes{tenant=\"research\",group=\"shared\"} 1024\n");
	assert_has(text, "\nloadline_tenant_limit_compute_ratio{tenant=\"research\",group=\"shared\"} 1.5\n");
	assert_null(strstr(text, "loadline_tenant_guaranteed_cards"));
	assert_null(strstr(text, "loadline_tenant_requested_cards")); /* the group gives memory */
	fini_world(&world);
}

TEST(without_accounts_use_is_not_told)
{
	struct world world;
	init_world(&world);
	world.figures.sums.end.accounts = LL_METRICS_ACCOUNTS_NONE;
	assert_null(strstr(text_of(&world), "seconds_total{tenant"));
	assert_null(strstr(text_of(&world), "loadline_accounts"));
	world.figures.sums.end.accounts = LL_METRICS_ACCOUNTS_FAILING;
	assert_has(text_of(&world), "\nloadline_accounts_up 0\n");
	assert_has(text_of(&world), "loadline_tenant_gpu_used_seconds_total{");
	fini_world(&world);
}

enum { MANY = LL_EXPORTER_JOBS + 44 };

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;
	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

TEST(jobs_beyond_the_bound_are_added_up)
{
	static struct ll_message_job_row jobs[MANY];
	static struct ll_message_card_row cards[MANY];
	struct world world;
	init_world(&world);
	for (size_t i = 0; i < MANY; i++) {
		jobs[i] = (struct ll_message_job_row){.number = i + 1};
		jobs[i].job.uid = 1001;
		strcpy(jobs[i].job.tenant, "secret-command");
		strcpy(jobs[i].job.command, "secret-command");
		cards[i] = (struct ll_message_card_row){.job_number = i + 1, .used_bytes = 1000};
		strcpy(cards[i].uuid, CARD);
	}
	strcpy(jobs[0].tenant, "research");
	strcpy(jobs[1].pod, "prod/serve-7d9f-x2x1z/main");
	world.figures.list.jobs = jobs;
	world.figures.list.cards = cards;
	world.figures.list.job_count = world.figures.list.card_count = MANY;
	const char *text = text_of(&world);
	assert_int_equal(count_of(text, "\nloadline_job_memory_used_bytes{"), LL_EXPORTER_JOBS);
	assert_has(text, "\nloadline_job_memory_used_bytes{job_number=\"1\",tenant=\"research\",uid=\"1001\",gpu=\"0\","
			 "UUID=\"" CARD "\"} 1000\n");
	assert_has(text, "\nloadline_job_memory_used_bytes{job_number=\"2\",tenant=\"(none)\",uid=\"1001\",gpu=\"0\","
			 "UUID=\"" CARD "\",namespace=\"prod\",pod=\"serve-7d9f-x2x1z\",container=\"main\"} 1000\n");
	assert_has(text, "{job_number=\"256\",tenant=\"(none)\",uid=\"1001\"");
	assert_null(strstr(text, "job_number=\"257\""));
	assert_has(text, "\nloadline_jobs_omitted 44\n");
	assert_has(text, "\nloadline_jobs_omitted_memory_used_bytes 44000\n");
	assert_null(strstr(text, "secret")); /* the command, and a name that is made of it */
	fini_world(&world);
}

TEST(a_label_with_quotes_stays_one_label)
{
	struct world world;
	init_world(&world);
	strcpy(world.tenants[0].name, "a\"} 7\\");
	assert_has(text_of(&world), "loadline_tenant_jobs_running{tenant=\"a\\\"} 7\\\\\"} 0\n");
	fini_world(&world);
}
