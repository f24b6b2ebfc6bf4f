/*
 * Rounds of start, client, kill and stop on the simulated daemon, broken off anywhere and with faults: nothing hangs,
 * and after the last stop of each round no process of MPS, no record and no card in the wrong mode is left.
 *
 * A round's dice come from its number. The first number is LOADLINE_MPS_SEED; without it each day has a first number of
 * its own, so that days see different rounds. LOADLINE_MPS_CYCLES is how many rounds are made in all; several worlds
 * work side by side. The test prints its first number, and a failure names its round: LOADLINE_MPS_SEED=ROUND
 * LOADLINE_MPS_CYCLES=1 makes that round alone. Without root cards keep their mode, and the rest is tested alone.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mps/mps.h"

enum { WORLDS = 4, CYCLES = 1000, DAY_ROUNDS = 1000, FOUND_MAX = 64 };

/* What a step is told to take at most where something hangs, and how much longer a loaded machine may make it. */
#define SHORT_NS (200 * LL_NS_PER_MS)
#define LONG_NS (60 * LL_NS_PER_S)
#define SLACK_NS (60 * LL_NS_PER_S)

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "round %u: %s:%d: not so: %s\n", world.round, __FILE__, __LINE__, #condition); \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static struct {
	char folder[40], state[LL_MPS_PATH_SIZE];
	unsigned round;
	uint64_t dice;
	struct ll_mps_place place;
	struct ll_driver *driver;
	struct ll_mps_session session;
} world;

static unsigned roll(unsigned sides)
{
	world.dice = world.dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(world.dice >> 33) % sides;
}

/* loadline-simctl WORD...; its own output goes nowhere. Returns its process. */
static pid_t start_simctl(const char *const *words)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	const char *simctl = getenv("LOADLINE_SIMCTL");
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	setenv("CUDA_MPS_PIPE_DIRECTORY", world.place.pipe, 1);
	execv(simctl ? simctl : "loadline-simctl", (char *const *)words);
	_exit(127);
}

static void simctl(const char *a, const char *b, const char *c, const char *d)
{
	const char *words[] = {"loadline-simctl", a, b, c, d, NULL};
	int status;
	pid_t pid = start_simctl(words);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void open_world(void)
{
	struct ll_err err = {0};
	if (ll_driver_open(&world.driver, &err))
		fprintf(stderr, "%s\n", err.text);
	CHECK(world.driver);
	CHECK(ll_mps_place_find(ll_driver_sim_folder(world.driver), &world.place, &err) == 0);
	CHECK(ll_mps_state_folder(ll_driver_sim_folder(world.driver), world.state, &err) == 0);
	world.session = (struct ll_mps_session){.driver = world.driver, .folder = world.state, .place = &world.place};
}

static int start(void)
{
	const struct ll_card **cards = NULL;
	struct ll_mps_wish wish = {.is_exclusive = geteuid() == 0, .compute_percent = 50};
	wish.memory_bytes = roll(4) ? 0 : 1 << 30;
	CHECK(ll_cards_select(world.driver, NULL, &cards, &wish.count, NULL) == 0);
	wish.cards = cards;
	int rc = ll_mps_session_start(&world.session, &wish, roll(8) ? LONG_NS : SHORT_NS, NULL, NULL);
	free(cards);
	return rc;
}

static int stop(bool force, uint64_t within_ns)
{
	struct ll_mps_stopped stopped;
	return ll_mps_session_stop(&world.session, force, within_ns, &stopped, NULL);
}

static int stop_roughly(void)
{
	return stop(roll(2), roll(8) ? LONG_NS : SHORT_NS);
}

/* A process of its own, as the program is, killed somewhere on its way in one of three cases. */
static void step(int (*run)(void), bool may_be_killed)
{
	uint64_t from_ns = ll_now_ns();
	unsigned kill_after_us = may_be_killed && roll(3) == 0 ? 1 + roll(25000) : 0;
	int status;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		open_world();
		run();
		_exit(0);
	}
	if (kill_after_us) {
		ll_sleep_until_ns(from_ns + kill_after_us * LL_NS_PER_US);
		kill(pid, SIGKILL);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == 0 || (kill_after_us && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	CHECK(ll_now_ns() - from_ns < LONG_NS + SLACK_NS);
}

/* True: there is something to heal. */
static bool add_fault(void)
{
	static const char *const hung[] = {"quit", "get_server_list", "terminate_client", "ps",
					   "set_default_active_thread_percentage"};
	switch (roll(16)) {
	case 0:
		simctl("mps", "hang", hung[roll(5)], roll(4) ? "100ms" : "1s");
		break;
	case 1:
		simctl("mps", "die", "daemon", NULL);
		break;
	case 2:
		simctl("mps", "die", "server", NULL);
		break;
	case 3:
		simctl("mps", "fault", NULL, NULL);
		break;
	case 4:
		simctl("mps", "refuse", NULL, NULL);
		break;
	default:
		return false;
	}
	return true;
}

static pid_t client;

static int end_client(void)
{
	return ll_mps_client_end(&world.place, client, roll(4) ? LONG_NS : SHORT_NS, NULL);
}

static void work(void)
{
	const char *words[] = {"loadline-simctl", "busy", "0", "kernel", "1ms", "sleep", "1ms", NULL};
	client = start_simctl(words);
	/* It may be a client by then, on its way, or refused. */
	ll_sleep_until_ns(ll_now_ns() + roll(20) * LL_NS_PER_MS);
	if (roll(2))
		step(end_client, false);
	if (roll(4)) {
		kill(client, SIGKILL);
		waitpid(client, NULL, 0);
		client = 0;
	}
}

static bool is_empty(void)
{
	struct ll_mps_found found[FOUND_MAX];
	size_t count = ll_mps_search(found, FOUND_MAX);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(found[i].pipe, world.place.pipe) == 0)
			return false;
	}
	return true;
}

static void check_nothing_is_left(void)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(world.driver, &cards);
	struct ll_mps_record *records = NULL;
	size_t record_count = 0;
	for (size_t i = 0; i < count; i++) {
		enum ll_compute_mode mode;
		CHECK(ll_read_compute_mode(&cards[i], &mode, NULL) == 0 && mode == LL_MODE_DEFAULT);
	}
	CHECK(ll_mps_record_list(world.state, &records, &record_count, NULL) == 0 && record_count == 0);
	free(records);
	CHECK(is_empty());
}

static int stop_at_last(void)
{
	struct ll_mps_stopped stopped;
	struct ll_err err = {0};
	int rc = ll_mps_session_stop(&world.session, true, LONG_NS, &stopped, &err);
	if (rc && rc != -ESRCH) {
		fprintf(stderr, "round %u: %s\n", world.round, err.text);
		abort();
	}
	check_nothing_is_left();
	return 0;
}

static void make_round(unsigned round)
{
	world.round = round;
	world.dice = round * UINT64_C(0x9e3779b97f4a7c15) + 1;
	bool is_ill = roll(4) == 0 && add_fault();
	step(start, true);
	if (roll(4) == 0)
		work();
	is_ill |= add_fault();
	step(stop_roughly, true);
	if (is_ill)
		simctl("mps", "heal", NULL, NULL);
	step(stop_at_last, false);
	if (client) {
		kill(client, SIGKILL);
		waitpid(client, NULL, 0);
		client = 0;
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void run_world(unsigned first, unsigned last)
{
	char path[80];
	snprintf(world.folder, sizeof world.folder, "/tmp/ll-cycles-XXXXXX");
	CHECK(mkdtemp(world.folder));
	snprintf(path, sizeof path, "%s/scenario", world.folder);
	FILE *stream = fopen(path, "we");
	CHECK(stream && fputs("cards 2\ninit-time 1ms\ncard all context-time 1ms\n", stream) >= 0 && !fclose(stream));
	/* Daemons are nobody's children: where no init reaps them they would fill the table of processes. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	setenv("LOADLINE_SIM_DIR", world.folder, 1);
	setenv("LOADLINE_SIM_SCENARIO", path, 1);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	/* Only to know the place: whoever has a card open is in the way of exclusive mode. */
	snprintf(path, sizeof path, "%s", world.folder);
	CHECK(ll_mps_place_find(path, &world.place, NULL) == 0);
	for (unsigned round = first; round < last; round++)
		make_round(round);
	snprintf(path, sizeof path, "rm -rf '%s'", world.folder);
	CHECK(system(path) == 0);
}

static unsigned read_number(const char *variable, unsigned otherwise)
{
	const char *text = getenv(variable);
	return text && *text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

TEST(test_rounds_leave_nothing_behind)
{
	unsigned day = (unsigned)(ll_wall_ns() / (24 * 3600 * LL_NS_PER_S));
	unsigned first = read_number("LOADLINE_MPS_SEED", day * DAY_ROUNDS);
	unsigned cycles = read_number("LOADLINE_MPS_CYCLES", CYCLES);
	printf("rounds %u to %u\n", first, first + cycles - 1);
	fflush(stdout);
	pid_t pids[WORLDS];
	int bad = 0;
	for (unsigned i = 0; i < WORLDS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			run_world(first + cycles * i / WORLDS, first + cycles * (i + 1) / WORLDS);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < WORLDS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		bad += status != 0;
	}
	assert_int_equal(bad, 0);
}
