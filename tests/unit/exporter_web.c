/* The data of loadline-exporter's page, from figures that the test makes, and its files. */
#include "exporter/web.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

/* A whole minute. */
#define NOON INT64_C(1700049600)

enum { CARDS = 8, JOBS = 64 };

struct world {
	struct ll_figures figures;
	struct ll_exporter_history readings;
	struct ll_web_history history;
	struct ll_message_sense_card cards[CARDS];
	struct ll_message_job_row jobs[JOBS];
	struct ll_message_card_row on_cards[JOBS];
	struct ll_message_queue_row queued[JOBS];
	struct ll_message_metrics_tenant tenant;
	struct ll_message_policy_part part;
};

/* Each job is on one card, with the longest names. */
static void init_world(struct world *world)
{
	memset(world, 0, sizeof *world);
	for (unsigned i = 0; i < CARDS; i++) {
		world->cards[i] = (struct ll_message_sense_card){.index = i,
								 .slice = -1,
								 .memory_bytes = UINT64_C(100) << 30,
								 .used_bytes = UINT64_C(25) << 30,
								 .watched_ns = 10000000000,
								 .busy_ns = 4000000000};
		snprintf(world->cards[i].uuid, sizeof world->cards[i].uuid, "GPU-%u", i);
		strcpy(world->cards[i].name, "NVIDIA H200");
	}
	for (unsigned i = 0; i < JOBS; i++) {
		struct ll_message_job_row *job = &world->jobs[i];
		job->number = i + 1;
		job->job.uid = 4000000000;
		memset(job->tenant, '<', sizeof job->tenant - 1);
		memset(job->job.tenant, '&', sizeof job->job.tenant - 1);
		memset(job->job.command, '"', sizeof job->job.command - 1);
		world->on_cards[i] =
		    (struct ll_message_card_row){.job_number = i + 1, .recent_ns = 1, .recent_permille = 10};
		memcpy(world->on_cards[i].uuid, world->cards[i % CARDS].uuid, sizeof world->on_cards[i].uuid);
		world->queued[i] =
		    (struct ll_message_queue_row){.number = i + 1, .uid = 4000000000, .since_s = 1700000000};
		memset(world->queued[i].tenant, '<', sizeof world->queued[i].tenant - 1);
		memset(world->queued[i].command, '"', sizeof world->queued[i].command - 1);
		world->queued[i].why.rule = LL_QUEUE_WHY_ROOM;
	}
	strcpy(world->tenant.name, "research");
	world->part = (struct ll_message_policy_part){.guaranteed_cards = UINT64_MAX,
						      .guaranteed_memory_bytes = 1024,
						      .guaranteed_compute_permille = 1500,
						      .limit_cards = UINT64_MAX,
						      .limit_memory_bytes = UINT64_MAX,
						      .limit_compute_permille = UINT64_MAX,
						      .used_memory_bytes = 4096,
						      .is_known = 1};
	strcpy(world->part.tenant, "research");
	strcpy(world->part.group, "parts");
	world->figures = (struct ll_figures){
	    .is_up = true,
	    .list = {.jobs = world->jobs, .job_count = JOBS, .cards = world->on_cards, .card_count = JOBS},
	    .sensed = {.cards = world->cards, .card_count = CARDS},
	    .sums = {.tenants = &world->tenant, .tenant_count = 1, .parts = &world->part, .part_count = 1},
	    .queued = world->queued,
	    .queued_count = JOBS,
	};
}

/* The cards have work for that part of 10 s, from one reading to the next. */
static json_t *data_after(struct world *world, double part, int64_t now_s)
{
	for (unsigned i = 0; i < CARDS; i++) {
		world->cards[i].watched_ns += 10000000000;
		world->cards[i].busy_ns += (uint64_t)(part * 1e10);
	}
	assert_int_equal(ll_exporter_history_add(&world->readings, &world->figures.sensed), 0);
	json_t *data = ll_web_data(&world->figures, &world->readings, &world->history, NULL, now_s);
	assert_non_null(data);
	return data;
}

static double number_at(const json_t *data, const char *list, size_t index, const char *key)
{
	const json_t *value = json_object_get(json_array_get(json_object_get(data, list), index), key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

TEST(a_day_of_8_cards_and_64_jobs_is_less_than_a_megabyte)
{
	struct world *world = test_malloc(sizeof *world);
	init_world(world);
	const double percent[LL_WEB_SERIES] = {100, 100, 100};
	for (int64_t i = 0; i < LL_WEB_MINUTES; i++) {
		for (int card = 0; card < CARDS; card++)
			ll_web_history_add(&world->history, NOON + 60 * i, world->cards[card].uuid, percent);
	}
	json_t *data = data_after(world, 1, NOON + 60 * LL_WEB_MINUTES);
	const json_t *history = json_object_get(data, "history");
	const json_t *util = json_object_get(json_object_get(json_object_get(history, "cards"), "GPU-7"), "util");
	assert_int_equal(json_array_size(util), LL_WEB_MINUTES);
	assert_int_equal(json_array_size(json_object_get(data, "jobs")), JOBS);
	assert_int_equal(json_array_size(json_object_get(data, "queue")), JOBS);
	char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
	assert_true(strlen(text) < 1 << 20);
	free(text);
	json_decref(data);
	ll_exporter_history_fini(&world->readings);
	test_free(world);
}

TEST(a_card_s_use_beyond_that_of_jobs_is_the_synthetic_load_s_if_there_is_one)
{
	struct world world;
	init_world(&world);
	json_decref(data_after(&world, 0.5, NOON));
	json_t *data = data_after(&world, 0.5, NOON);
	assert_true(number_at(data, "cards", 0, "util_percent") == 50);
	assert_true(number_at(data, "cards", 0, "synthetic_percent") == 0);
	json_decref(data);
	world.cards[1].flags = LL_SENSE_HAS_SYNTHETIC;
	data = data_after(&world, 0.5, NOON);
	assert_true(number_at(data, "cards", 0, "synthetic_percent") == 0);
	assert_true(number_at(data, "cards", 1, "synthetic_percent") == 42); /* 8 jobs have 1 % each */
	json_decref(data);
	/* Where jobs are hidden, what they use is not known. */
	world.figures.sums.end.hides_others = 1;
	data = data_after(&world, 0.5, NOON);
	assert_true(isnan(number_at(data, "cards", 1, "synthetic_percent")));
	json_decref(data);
	ll_exporter_history_fini(&world.readings);
}

TEST(what_is_not_known_is_null)
{
	struct world world;
	init_world(&world);
	world.figures.sensed.end.silent_ns = LL_SENSED_FRESH_NS;
	json_t *data = data_after(&world, 0.5, NOON);
	assert_true(isnan(number_at(data, "cards", 0, "util_percent")));
	assert_true(isnan(number_at(data, "cards", 0, "memory_bytes")));
	assert_true(isnan(number_at(data, "tenants", 0, "limit_memory_bytes")));
	assert_true(isnan(number_at(data, "tenants", 0, "used_cards")));
	assert_true(number_at(data, "tenants", 0, "used_memory_bytes") == 4096);
	assert_true(number_at(data, "tenants", 0, "guaranteed_compute_percent") == 150);
	json_decref(data);
	/* Nobody replies. */
	struct ll_figures none = {.sensed.end.silent_ns = UINT64_MAX};
	data = ll_web_data(&none, &world.readings, &world.history, "why", NOON);
	assert_false(json_boolean_value(json_object_get(data, "up")));
	assert_string_equal(json_string_value(json_object_get(data, "error")), "why");
	json_decref(data);
	ll_exporter_history_fini(&world.readings);
}

/* ---- history ---- */

static void add_reading(struct ll_web_history *history, int64_t at_s, double util)
{
	const double percent[LL_WEB_SERIES] = {util, 0, NAN};
	ll_web_history_add(history, at_s, "GPU-0", percent);
}

static char *utils_of(const struct ll_web_history *history)
{
	json_t *json = ll_web_history_json(history);
	const json_t *card = json_object_get(json_object_get(json, "cards"), "GPU-0");
	char *text = json_dumps(json_object_get(card, "util"), JSON_COMPACT);
	assert_int_equal(json_array_size(json_object_get(card, "memory")), 0);
	json_decref(json);
	return text;
}

static void assert_utils(const struct ll_web_history *history, const char *expected)
{
	char *text = utils_of(history);
	assert_string_equal(text, expected);
	free(text);
}

TEST(a_minute_s_value_is_the_mean_of_its_readings_and_a_minute_without_one_is_not_known)
{
	struct ll_web_history history = {0};
	add_reading(&history, NOON, 10);
	add_reading(&history, NOON + 30, 20);
	assert_utils(&history, "[]");
	add_reading(&history, NOON + 60, 100);
	assert_utils(&history, "[15]");
	add_reading(&history, NOON + 240, 0);
	assert_utils(&history, "[15,100,null,null]");
	/* A day later nothing of it is left; a clock that was set back begins anew. */
	add_reading(&history, NOON + 240 + 86400 + 60, 7);
	assert_utils(&history, "[]");
	add_reading(&history, NOON + 240 + 86400 + 120, 8);
	assert_utils(&history, "[7]");
	add_reading(&history, NOON, 9);
	assert_utils(&history, "[]");
}

TEST(a_history_goes_on_after_it_was_written_and_read_and_nonsense_is_left_out)
{
	struct ll_web_history history = {0}, next = {0};
	for (int i = 0; i < 4; i++)
		add_reading(&history, NOON + 60 * i, 10 * i);
	json_t *json = ll_web_history_json(&history);
	ll_web_history_read(&next, json, NOON + 180);
	assert_utils(&next, "[0,10,20]");
	add_reading(&next, NOON + 300, 50);
	add_reading(&next, NOON + 360, 50);
	assert_utils(&next, "[0,10,20,null,null,50]");
	/* Of more than a day ago, or of later. */
	struct ll_web_history old = {0}, later = {0}, odd = {0};
	ll_web_history_read(&old, json, NOON + 180 + 86400);
	ll_web_history_read(&later, json, NOON);
	assert_int_equal(old.count + later.count, 0);
	json_decref(json);
	static const char long_name[] = "{\"end\":%lld,\"step\":60,\"cards\":{\"GPU-0\":3,"
					"\"a name that is longer than any UUID of a card can ever be, whoever made it, "
					"and then some more of it\":{}}}";
	static const char *const texts[] = {
	    "{\"end\":%lld,\"step\":60,\"cards\":{\"GPU-0\":{\"util\":[1,300,-1,\"x\",2]}}}",
	    "{\"end\":%lld,\"step\":60,\"cards\":[1]}", long_name, "{\"end\":%lld}", "[%lld]"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char text[300];
		snprintf(text, sizeof text, texts[i], (long long)NOON);
		json = json_loads(text, 0, NULL);
		assert_non_null(json);
		ll_web_history_read(&odd, json, NOON);
		json_decref(json);
	}
	assert_utils(&odd, "[1,null,null,null,2]");
}

/* ---- files ---- */

static int open_folder(char *path)
{
	assert_non_null(mkdtemp(path));
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void assert_content(int folder_fd, const char *name, const char *expected)
{
	char text[16] = "";
	int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof text - 1) >= 0);
	assert_string_equal(text, expected);
	close(fd);
}

TEST(a_file_is_replaced_as_a_whole_and_no_symbolic_link_in_the_folder_is_followed)
{
	char path[] = "/tmp/exporter_web.XXXXXX";
	int fd = open_folder(path);
	struct stat st;
	assert_int_equal(mkdirat(fd, "elsewhere", 0755), 0);
	int victim = openat(fd, "elsewhere/victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(victim, "kept", 4), 4);
	close(victim);
	assert_int_equal(symlinkat("elsewhere/victim", fd, "data.js"), 0);
	assert_int_equal(symlinkat("elsewhere/victim", fd, ".data.js.new"), 0);
	mode_t before = umask(077);
	assert_int_equal(ll_web_put(fd, "data.js", "one", 3, NULL), 0);
	umask(before);
	assert_content(fd, "elsewhere/victim", "kept");
	assert_content(fd, "data.js", "one");
	assert_int_equal(fstatat(fd, "data.js", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0644);
	/* A reader that has the former file keeps it. */
	int reader = openat(fd, "data.js", O_RDONLY | O_CLOEXEC);
	assert_int_equal(ll_web_put(fd, "data.js", "other", 5, NULL), 0);
	char text[8] = "";
	assert_int_equal(read(reader, text, sizeof text - 1), 3);
	assert_string_equal(text, "one");
	close(reader);
	assert_content(fd, "data.js", "other");
	assert_int_equal(faccessat(fd, ".data.js.new", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	/* What cannot be replaced is left, and nothing stays behind. */
	struct ll_err err = {0};
	assert_int_equal(ll_web_put(fd, "elsewhere", "x", 1, &err), -EISDIR);
	assert_string_equal(err.text, "elsewhere: Is a directory");
	assert_int_equal(faccessat(fd, ".elsewhere.new", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	unlinkat(fd, "elsewhere/victim", 0);
	unlinkat(fd, "elsewhere", AT_REMOVEDIR);
	unlinkat(fd, "data.js", 0);
	close(fd);
	assert_int_equal(rmdir(path), 0);
}
