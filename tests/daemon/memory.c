/*
 * Processes of one job reserve and give back memory without end. They and loadlined are killed at any moment, and some
 * are stopped for a while. Expected whenever all stand still: together they do not use more than the limit, what ended
 * ones have not given back included; and no reservation stays without an answer.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/test.h"
#include "../unit/wait_for.h"
#include "base/process.h"
#include "user.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
enum {
	PROCESSES = 32,
	LIMIT = 100000,
	HELD = 64,
	ROUNDS = 500,
	LONG_ROUNDS = 5000,
	DAEMON_EACH = 16,
	/* Kills come in bursts: else memory is on its way out all the time, and all wait for it. */
	BURST_EACH = 100,
	BURST = 12,
	BATCH = 64
};

struct shared {
	atomic_ulong reserved, refused;
};

struct herd {
	struct world world;
	struct job job;
	struct shared *shared;
	struct ll_page *page;
	struct ll_orders *orders;
	pid_t processes[PROCESSES];
	int frozen; /* stays stopped for a while; -1: none */
	uint64_t most;
};

/* ---- the processes ---- */

static void move_once(struct user *user, struct shared *shared, uint32_t held[HELD], int *count)
{
	uint32_t units = 1 + (uint32_t)rand() % (LIMIT / PROCESSES / 2) * (1 + (uint32_t)rand() % 4);
	if (*count == HELD || (*count && rand() % 2)) {
		user_release(user, held[--*count]);
		return;
	}
	int rc = user_reserve(user, units);
	if (rc == 0) {
		held[(*count)++] = units;
		atomic_fetch_add(&shared->reserved, 1);
	} else {
		assert_int_equal(rc, -ENOMEM);
		atomic_fetch_add(&shared->refused, 1);
	}
}

static _Noreturn void reserve_for_ever(const struct herd *herd)
{
	struct user user;
	uint32_t held[HELD];
	int count = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand((unsigned)getpid());
	user_begin(&user, &herd->world, herd->job.id, CARD);
	for (unsigned i = 0;; i++) {
		user_have_no_reserve(&user);
		move_once(&user, herd->shared, held, &count);
		if (i % BATCH == 0)
			usleep((unsigned)rand() % 300);
	}
}

static void start_process(struct herd *herd, int index)
{
	herd->processes[index] = fork();
	if (herd->processes[index] == 0)
		reserve_for_ever(herd);
	assert_true(herd->processes[index] > 1);
}

static void end_process(struct herd *herd, int index)
{
	kill_process(herd->processes[index], SIGKILL);
	assert_int_equal(waitpid(herd->processes[index], NULL, 0), herd->processes[index]);
}

static void stop_process(pid_t pid)
{
	int status;
	kill_process(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (!WIFSTOPPED(status))
		fail_msg("a process has failed: see above");
}

/* ---- what is seen while all stand still ---- */

static uint64_t used_units(const struct herd *herd)
{
	uint64_t units = herd->orders->cards[0].leaving_bytes / LL_MEMORY_UNIT;
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++) {
		const struct ll_page_slot *slot = &herd->page->slots[i];
		if (slot->token)
			units += LL_MEMORY_USED(slot->memory);
	}
	return units;
}

static void check(struct herd *herd)
{
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++) {
		uint64_t word = herd->page->slots[i].memory;
		if (herd->page->slots[i].token)
			assert_true(LL_MEMORY_USED(word) <= LL_MEMORY_GRANTED(word));
	}
	/* The daemon goes on: between the two steps in which it ends a slot, that counts twice. */
	uint64_t used = used_units(herd);
	for (int i = 0; used > LIMIT && i < 1000; i++) {
		usleep(1000);
		used = used_units(herd);
	}
	if (used > LIMIT)
		fail_msg("%lu of %u units are used", (unsigned long)used, LIMIT);
	herd->most = used > herd->most ? used : herd->most;
}

static void kill_daemon(const struct herd *herd)
{
	pid_t pid = world_daemon(&herd->world);
	if (pid > 1)
		kill_process(pid, SIGKILL);
}

static void freeze_or_thaw(struct herd *herd)
{
	if (herd->frozen < 0 && rand() % 20 == 0) {
		herd->frozen = rand() % PROCESSES;
	} else if (herd->frozen >= 0 && rand() % 20 == 0) {
		kill_process(herd->processes[herd->frozen], SIGCONT);
		herd->frozen = -1;
	}
}

static void live_a_round(struct herd *herd, int round)
{
	usleep(1000 + (unsigned)rand() % 4000);
	for (int i = 0; i < PROCESSES; i++) {
		if (i != herd->frozen)
			stop_process(herd->processes[i]);
	}
	check(herd);
	int who = rand() % PROCESSES;
	if (round % BURST_EACH < BURST && who != herd->frozen) {
		end_process(herd, who);
		start_process(herd, who);
	}
	if (round % DAEMON_EACH == 0)
		kill_daemon(herd);
	freeze_or_thaw(herd);
	for (int i = 0; i < PROCESSES; i++) {
		if (i != herd->frozen)
			kill_process(herd->processes[i], SIGCONT);
	}
}

static void watch(struct herd *herd)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	int fd = world_connect(&herd->world, LL_ROLE_HOLD);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_WATCH);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	assert_int_equal(next_message_with_fds(fd, &message, fds, &count), LL_MESSAGE_PAGE);
	assert_int_equal(ll_page_map(fds[0], false, &herd->page), 0);
	assert_int_equal(ll_orders_map(fds[1], false, &herd->orders), 0);
	ll_message_close_fds(fds, count);
	close(fd);
}

static void processes_never_use_more_than_the_limit_together(void **state)
{
	(void)state;
	static struct herd herd = {.frozen = -1};
	int rounds = is_long_test() ? LONG_ROUNDS : ROUNDS;
	herd.shared = mmap(NULL, sizeof *herd.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	world_init(&herd.world);
	herd.world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	job_start(&herd.job, &herd.world, NULL, NULL);
	watch(&herd);
	for (int i = 0; i < PROCESSES; i++)
		start_process(&herd, i);
	for (int i = 0; i < rounds; i++)
		live_a_round(&herd, i);
	if (herd.frozen >= 0)
		kill_process(herd.processes[herd.frozen], SIGCONT);
	for (int i = 0; i < PROCESSES; i++)
		end_process(&herd, i);
	printf("%d rounds, %d processes and %d daemons killed: %lu reservations, %lu refused, filled to %.1f %%\n",
	       rounds, rounds / BURST_EACH * BURST, rounds / DAEMON_EACH, atomic_load(&herd.shared->reserved),
	       atomic_load(&herd.shared->refused), (double)herd.most * 100 / LIMIT);
	wait_for(used_units(&herd) == 0);
	assert_true(herd.shared->reserved > PROCESSES);
	job_stop(&herd.job);
	wait_for(world_has_jobs(&herd.world, 0));
	world_fini(&herd.world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(processes_never_use_more_than_the_limit_together)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
