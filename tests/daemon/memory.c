/*
 * Processes of one job reserve and give back memory without end. They and loadlined are killed at any moment, and some
 * are stopped for a while. Expected whenever all stand still: together they do not use more than the limit, what ended
 * ones have not given back included; and no reservation stays without an answer.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "herd.h"
#include "test.h"
#include "wait_for.h"

enum {
	PROCESSES = 32,
	LIMIT = 100000,
	UNITS = LIMIT / PROCESSES * 2,
	ROUNDS = 500,
	LONG_ROUNDS = 5000,
	DAEMON_EACH = 16,
	/* Kills come in bursts: else memory is on its way out all the time, and all wait for it. */
	BURST_EACH = 100,
	BURST = 12
};

static pid_t processes[PROCESSES];
static int frozen = -1; /* stays stopped for a while; -1: none */

static void end_process(int index)
{
	kill_process(processes[index], SIGKILL);
	assert_int_equal(waitpid(processes[index], NULL, 0), processes[index]);
}

static void freeze_or_thaw(void)
{
	if (frozen < 0 && rand() % 20 == 0) {
		frozen = rand() % PROCESSES;
	} else if (frozen >= 0 && rand() % 20 == 0) {
		kill_process(processes[frozen], SIGCONT);
		frozen = -1;
	}
}

static void kill_some(const struct herd *herd, int round)
{
	int who = rand() % PROCESSES;
	if (round % BURST_EACH < BURST && who != frozen) {
		end_process(who);
		processes[who] = herd_fork(herd, UNITS, UINT32_MAX);
	}
	pid_t daemon = round % DAEMON_EACH == 0 ? world_daemon(herd->world) : 0;
	if (daemon > 1)
		kill_process(daemon, SIGKILL);
}

static void live_a_round(struct herd *herd, int round)
{
	usleep(1000 + (unsigned)rand() % 4000);
	for (int i = 0; i < PROCESSES; i++) {
		if (i != frozen)
			assert_true(herd_stop_process(processes[i]));
	}
	herd_check(herd);
	kill_some(herd, round);
	freeze_or_thaw();
	for (int i = 0; i < PROCESSES; i++) {
		if (i != frozen)
			kill_process(processes[i], SIGCONT);
	}
}

TEST(processes_never_use_more_than_the_limit_together)
{
	struct world world;
	struct herd herd;
	int rounds = is_long_test() ? LONG_ROUNDS : ROUNDS;
	world_init(&world);
	world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	herd_start(&herd, &world, LIMIT);
	for (int i = 0; i < PROCESSES; i++)
		processes[i] = herd_fork(&herd, UNITS, UINT32_MAX);
	for (int i = 0; i < rounds; i++)
		live_a_round(&herd, i);
	if (frozen >= 0)
		kill_process(processes[frozen], SIGCONT);
	for (int i = 0; i < PROCESSES; i++)
		end_process(i);
	printf("%d rounds, %d processes and %d daemons killed: %lu reservations, %lu refused, filled to %.1f %%\n",
	       rounds, rounds / BURST_EACH * BURST, rounds / DAEMON_EACH, atomic_load(&herd.counts->reserved),
	       atomic_load(&herd.counts->refused), (double)herd.most * 100 / LIMIT);
	wait_for(herd_used(&herd) == 0);
	assert_true(herd.counts->reserved > PROCESSES);
	herd_stop(&herd);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}
