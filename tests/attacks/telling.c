/* Attacks on what loadlined counts and is told: reports, metrics, the sensor, how jobs ended. */
#include "attack.h"

#include <stdlib.h>

#include "accounts/database.h"

enum { CONFIG_SIZE = 64, NOBODY = 65534 };
#define GHOST "GPU-00000000-0000-0000-0000-00000000dead"

static char config[CONFIG_SIZE], state_folder[CONFIG_SIZE];

/* Both users are in tenant team. Metrics are not configured. */
static void make_files(void)
{
	snprintf(config, sizeof config, "/tmp/ll-attack-%d.yaml", (int)getpid());
	snprintf(state_folder, sizeof state_folder, "/tmp/ll-attack-state-XXXXXX");
	FILE *file = fopen(config, "we");
	assert_non_null(file);
	fprintf(file,
		"version: 1\n"
		"tenants:\n"
		"  - name: team\n"
		"    members: {users: [\"%d\", \"%d\"]}\n",
		VICTIM, ATTACKER);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(config, 0644), 0);
	assert_non_null(mkdtemp(state_folder));
	assert_int_equal(chown(state_folder, NOBODY, NOBODY), 0);
	setenv("STATE_DIRECTORY", state_folder, 1);
}

static int begin_telling(void **state)
{
	(void)state;
	make_files();
	return scene_begin_with(config);
}

static const char *const names[] = {"accounts.db", "accounts.db-wal", "accounts.db-shm"};

static void remove_state(void)
{
	int folder_fd = open(state_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlinkat(folder_fd, names[i], 0);
	close(folder_fd);
	rmdir(state_folder);
}

static int end_telling(void **state)
{
	unsetenv("STATE_DIRECTORY");
	remove_state();
	return scene_end(state);
}

static void end_and_succeed_if(bool is_so, const char *what)
{
	if (is_so)
		remove_state();
	succeed_if(is_so, what);
}

/* ---- reports ---- */

static void ask_report(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REPORT);
	message.report.until_s = INT64_MAX;
	message.report.by = 1; /* by user */
	ll_message_send(fd, &message, NULL, 0);
}

/* Reads the reply. Returns 0, or the code of the refusal. */
static int read_report(int fd, const char *key, bool *ret_is_there)
{
	union ll_message message;
	unsigned kind;
	*ret_is_there = false;
	while ((kind = next_message(fd, &message)) == LL_MESSAGE_REPORT_ROW)
		*ret_is_there |= strcmp(message.report_row.key, key) == 0;
	return kind == LL_MESSAGE_REPORT_END ? 0 : message.refused.code;
}

/* The report of that user. */
static bool has_use(uid_t reader, uid_t uid)
{
	char key[20];
	bool is_there = false;
	int rc = -EBUSY;
	snprintf(key, sizeof key, "%u", (unsigned)uid);
	int fd = connect_as(reader, LL_ROLE_COMMAND, -1);
	while (rc == -EBUSY) {
		ask_report(fd);
		rc = read_report(fd, key, &is_there);
	}
	close(fd);
	return !rc && is_there;
}

/* loadlined writes at its end what was used. */
static void write_accounts(void)
{
	assert_int_equal(kill(scene.system.daemon, SIGTERM), 0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)scene.system.daemon, &info, WEXITED | WNOWAIT), 0);
	system_world_restart(&scene.system);
}

TEST_WITH(begin_telling, end_telling, reads_the_use_of_others)
{
	struct puppet puppet;
	victim_puppet(&puppet);
	ll_sleep_until_ns(ll_now_ns() + 2 * LL_NS_PER_S);
	write_accounts();
	wait_for(has_use(0, VICTIM));
	end_and_succeed_if(has_use(ATTACKER, VICTIM), "the attacker reads how much the victim has used");
	puppet_kill(&puppet);
}

enum { HOURS = 16, ROWS_OF_HOUR = 3000 };

static void fill_hour(struct ll_use_database *database, int hour)
{
	struct ll_use_batch batch = {0};
	struct ll_use_key key = {.hour_s = hour * INT64_C(3600), .uid = ATTACKER, .card = CARD};
	const struct ll_use use = {.used_ns = 1};
	for (int i = 0; i < ROWS_OF_HOUR; i++) {
		snprintf(key.job, sizeof key.job, "%016x-%d", (unsigned)i, ATTACKER);
		assert_int_equal(ll_use_batch_add(&batch, &key, &use, ROWS_OF_HOUR), 0);
	}
	assert_int_equal(ll_use_database_write(database, &batch, NULL), 0);
	ll_use_batch_fini(&batch);
}

/* With accounts of which a report takes some time. */
static int begin_with_accounts(void **state)
{
	char path[LL_USE_PATH_SIZE], moved[LL_USE_PATH_SIZE];
	struct ll_use_database *database;
	bool is_new;
	(void)state;
	make_files();
	snprintf(path, sizeof path, "%s/%s", state_folder, names[0]);
	assert_int_equal(ll_use_database_open(path, &database, &is_new, moved, NULL), 0);
	for (int hour = 0; hour < HOURS; hour++)
		fill_hour(database, hour);
	ll_use_database_close(database);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", state_folder, names[i]);
		if (chown(path, NOBODY, NOBODY))
			assert_int_equal(errno, ENOENT);
	}
	return scene_begin_with(config);
}

/* Each connection has one report at a time, and asks again at once. */
TEST_WITH(begin_with_accounts, end_telling, asks_for_reports_without_end)
{
	enum { CONNECTIONS = 40, TRIES = 20 };
	int fds[CONNECTIONS], stop[2], busy = 0;
	bool is_there;
	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = connect_as(ATTACKER, LL_ROLE_COMMAND, -1);
	int fd = connect_as(VICTIM, LL_ROLE_COMMAND, -1);
	pid_t flood = fork();
	if (flood == 0) {
		char bytes[LL_MESSAGE_MAX];
		close(stop[1]);
		for (int i = 0; poll(&(struct pollfd){.fd = stop[0], .events = POLLIN}, 1, 0) == 0; i++) {
			ask_report(fds[i % CONNECTIONS]);
			while (recv(fds[i % CONNECTIONS], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
				;
		}
		_exit(0);
	}
	ll_sleep_until_ns(ll_now_ns() + 200 * LL_NS_PER_MS);
	for (int i = 0; i < TRIES; i++) {
		ask_report(fd);
		busy += read_report(fd, "", &is_there) == -EBUSY;
	}
	ll_message_close_fds(stop, 2);
	assert_int_equal(waitpid(flood, NULL, 0), flood);
	ll_message_close_fds(fds, CONNECTIONS);
	close(fd);
	end_and_succeed_if(busy > TRIES / 2, "the victim gets no report");
}

/* ---- metrics ---- */

TEST_WITH(begin_telling, end_telling, reads_the_metrics)
{
	union ll_message message;
	int fd = connect_as(ATTACKER, LL_ROLE_COMMAND, -1);
	ll_message_init(&message, LL_MESSAGE_METRICS);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	unsigned kind = next_message(fd, &message);
	close(fd);
	end_and_succeed_if(kind && kind != LL_MESSAGE_REFUSED, "the attacker reads what the tenants use");
}

/* ---- the sensor ---- */

static void report_ghost(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_CARD);
	message.sense_card.slice = message.sense_card.numa_node = -1;
	message.sense_card.memory_bytes = MIB;
	ll_message_text_set(message.sense_card.uuid, sizeof message.sense_card.uuid, GHOST);
	ll_message_send(fd, &message, NULL, 0);
	ll_message_init(&message, LL_MESSAGE_SENSE_END);
	ll_message_send(fd, &message, NULL, 0);
}

static bool has_ghost(void)
{
	union ll_message message;
	bool is_there = false;
	int fd = connect_as(VICTIM, LL_ROLE_COMMAND, -1);
	ll_message_init(&message, LL_MESSAGE_SENSED);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	unsigned kind;
	while ((kind = next_message(fd, &message)) && kind != LL_MESSAGE_SENSE_END)
		is_there |= kind == LL_MESSAGE_SENSE_CARD && strcmp(message.sense_card.uuid, GHOST) == 0;
	close(fd);
	return is_there;
}

TEST_WITH(begin_telling, end_telling, poses_as_the_sensor)
{
	int fd = connect_as(ATTACKER, LL_ROLE_SENSOR, -1);
	if (fd >= 0) {
		report_ghost(fd);
		assert_true(victim_is_served());
		close(fd);
	}
	end_and_succeed_if(has_ghost(), "the machine has the cards that the attacker says");
}

TEST_WITH(begin_telling, end_telling, sends_messages_of_the_sensor)
{
	int fd = connect_as(ATTACKER, LL_ROLE_COMMAND, -1);
	report_ghost(fd);
	assert_true(victim_is_served());
	close(fd);
	end_and_succeed_if(has_ghost(), "the machine has the cards that the attacker says");
}
