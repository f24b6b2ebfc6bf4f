#include "hold_events.h"

#include <errno.h>
#include <sys/stat.h>

#include "rules/hold/curve.h"

static char folder[] = "/tmp/ll-record-XXXXXX";
static char path[sizeof folder + 16];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/hold.csv", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static char *contents(char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	buf[fread(buf, 1, size - 1, file)] = '\0';
	fclose(file);
	return buf;
}

static const char header[] = "time_s,wall_time,card,uuid,metric,unit,level,target,own_util_percent,util_percent,"
			     "power_watts,temperature_celsius,state\n";

static struct ll_hold_output *new_output(struct ll_hold_output_config *config)
{
	struct ll_hold_output *output = NULL;
	config->record_path = path;
	assert_int_equal(ll_hold_output_new(config, &output, NULL), 0);
	return output;
}

TEST(sample_is_a_row_on_disk_within_a_second)
{
	char buf[1024];
	char expected[1024];
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = new_output(&config);
	assert_string_equal(contents(buf, sizeof buf), header);
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	event.status.temperature_c = NAN;
	ll_hold_output_tick(output, LL_NS_PER_S);
	ll_hold_output_event(output, &event);
	ll_hold_output_tick(output, 2 * LL_NS_PER_S);
	snprintf(expected, sizeof expected,
		 "%s1.200,2026-01-31T12:00:00.250Z,0,%s,util,percent,50,50,49.75,50,121.2,,holding\n", header,
		 test_card.uuid);
	assert_string_equal(contents(buf, sizeof buf), expected);
	ll_hold_output_free(output);
	assert_string_equal(contents(buf, sizeof buf), expected);
}

TEST(only_samples_are_recorded_power_in_watts)
{
	static struct test_capture log;
	char buf[1024];
	struct ll_hold_output_config config = test_config();
	config.hold = &test_power;
	struct ll_hold_output *output = new_output(&config);
	struct ll_event yield = test_yield(1);
	struct ll_event sample = test_yield(1.2);
	sample.kind = LL_EVENT_SAMPLE;
	sample.status.level = 198.25;
	sample.status.target = 200;
	test_log_begin(&log);
	ll_hold_output_event(output, &yield);
	ll_hold_output_event(output, &sample);
	test_log_end(&log);
	ll_hold_output_free(output);
	assert_contains(contents(buf, sizeof buf), ",power,watts,198.25,200,49.75,50,121.2,45,yielded\n");
	assert_null(strchr(strchr(strchr(buf, '\n') + 1, '\n') + 1, '\n'));
}

/* The line of awk that hold/command/output.c documents. */
TEST(one_line_of_awk_makes_a_replay)
{
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = new_output(&config);
	for (int i = 1; i <= 3; i++) {
		struct ll_event event = test_event(LL_EVENT_SAMPLE, i * 0.2, "");
		event.status.target = i * 0.1;
		ll_hold_output_event(output, &event);
	}
	ll_hold_output_free(output);
	char command[256];
	char csv[256];
	snprintf(command, sizeof command, "awk -F, 'NR > 1 && $3 == \"0\" { print $1 \",\" $8 }' %s", path);
	FILE *awk = popen(command, "re");
	assert_non_null(awk);
	size_t length = fread(csv, 1, sizeof csv, awk);
	assert_int_equal(pclose(awk), 0);
	struct ll_curve curve;
	assert_int_equal(ll_curve_parse_replay("csv", csv, length, &curve, NULL), 0);
	assert_int_equal(curve.point_count, 3);
	assert_float_equal(ll_curve_at(&curve, 0.5), 0.2, 1e-9);
	ll_curve_fini(&curve);
}

TEST(unwritable_record_fails_before_the_start)
{
	struct ll_err err;
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = NULL;
	config.record_path = "/nonexistent/hold.csv";
	assert_fails(ll_hold_output_new(&config, &output, &err), -ENOENT, "record /nonexistent/hold.csv: No such file");
	config.record_path = "/dev/full";
	assert_fails(ll_hold_output_new(&config, &output, &err), -ENOSPC, "record /dev/full: No space");
	assert_null(output);
}

/* A disk that fills up later. */
TEST(full_disk_warns_once_the_hold_goes_on_and_fails_at_its_end)
{
	static struct test_capture log;
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = new_output(&config);
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1.2, "");
	test_log_begin(&log);
	/* The descriptor that the record writes to becomes /dev/full. */
	FILE *full = fopen("/dev/full", "we");
	assert_non_null(full);
	struct stat wanted;
	assert_int_equal(stat(path, &wanted), 0);
	for (int fd = 3; fd < 64; fd++) {
		struct stat found;
		if (fstat(fd, &found) == 0 && found.st_ino == wanted.st_ino && found.st_dev == wanted.st_dev)
			dup2(fileno(full), fd);
	}
	for (unsigned i = 1; i < 5; i++) {
		ll_hold_output_event(output, &event);
		ll_hold_output_tick(output, i * LL_NS_PER_S);
	}
	struct ll_err err = {0};
	int rc = ll_hold_output_finish(output, &err);
	ll_hold_output_free(output);
	fclose(full);
	const char *text = test_log_end(&log);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(err.status, LL_EXIT_FAILED);
	assert_contains(err.text, path);
	assert_contains(text, "No space left on device; the recording ends, the hold goes on\n");
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
}

TEST_ALL(make_folder, remove_folder);
