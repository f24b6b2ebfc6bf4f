/*
 * A process is killed, or stopped, in the midst of a change to the memory total: at the changes that it makes to the
 * shared page, and at instructions between. The parent steps it there (ptrace) and then does what another process of
 * the tenant would do.
 *
 * LOADLINE_TEST_LONG=1 makes kills at every change, and between them at every instruction of a short way. Otherwise a
 * long way has a part of them, which LOADLINE_STEP_PHASE chooses; without it each day has another part.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "base/scope.h"
#include "ledger/layout.h"
#include "ledger/memory.h"
#include "ledger_fixture.h"

enum { LIMIT = 1000, OWN = 100, HELD = 300, WANTED = 600, STOPS = 6, HANDLED = 20 };

/* Steps that one test may take. ThreadSanitizer makes each way twenty times longer: the long ones are skipped there. */
enum { STEPS_MAX = 90000, KILLS_MAX = 400 };

/* Steps for all kills between changes, and at changes. A short run leaves kills out, and each day begins at others. */
static struct {
	unsigned between, changes, phase;
} budget = {.between = 8000, .changes = 40000};

typedef int (*deed)(struct ll_ledger *ledger, struct ll_claim *claim);

static int reserve(struct ll_ledger *ledger, struct ll_claim *claim)
{
	(void)ledger;
	return ll_memory_reserve(claim, WANTED);
}

static int charge(struct ll_ledger *ledger, struct ll_claim *claim)
{
	(void)ledger;
	ll_memory_charge(claim, WANTED);
	return 0;
}

static int release(struct ll_ledger *ledger, struct ll_claim *claim)
{
	(void)ledger;
	ll_memory_release(claim, HELD);
	return 0;
}

static int end_claim(struct ll_ledger *ledger, struct ll_claim *claim)
{
	(void)ledger;
	ll_claim_release(claim);
	return 0;
}

/* Reserves what is only there when the dead are cleared. */
static int reserve_after_sweep(struct ll_ledger *ledger, struct ll_claim *claim)
{
	(void)ledger;
	return ll_memory_reserve(claim, WANTED + OWN);
}

static int join_another(struct ll_ledger *ledger, struct ll_claim *claim)
{
	unsigned row;
	struct ll_tenant_wish wish = {.id = 2, .name = "another"};
	(void)claim;
	return ll_tenant_join(ledger, &wish, &row, NULL);
}

static int sweep(struct ll_ledger *ledger, struct ll_claim *claim)
{
	(void)claim;
	ll_ledger_sweep(ledger);
	return 0;
}

struct scene {
	const char *name; /* of the test */
	struct ll_ledger *ledger;
	struct ll_ledger_file *file;
	struct ll_claim *claim;
	unsigned row;
	pid_t child;
};

static void set_scene(struct fixture *f, const char *name, struct scene *scene)
{
	*scene = (struct scene){.name = name, .ledger = open_ledger(f)};
	LL_SCOPE_CLOSE int fd = open(f->path, O_RDWR);
	scene->file = mmap(NULL, sizeof *scene->file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(scene->file != MAP_FAILED);
	scene->row = join_tenant(scene->ledger, 1, LIMIT);
	scene->claim = take_claim_of(scene->ledger, scene->row);
	assert_int_equal(ll_memory_reserve(scene->claim, OWN), 0);
}

static void strike_scene(struct scene *scene)
{
	ll_claim_release(scene->claim);
	munmap(scene->file, sizeof *scene->file);
}

static uint64_t total(const struct scene *scene)
{
	return scene->file->tenants[scene->row].memory_used_bytes;
}

/* A claim that nobody owns any more, with memory, for a sweep to find. */
static void leave_a_dead_claim(struct scene *scene)
{
	pid_t pid = fork();
	if (!pid) {
		struct ll_claim *claim = take_claim_of(scene->ledger, scene->row);
		_exit(ll_memory_reserve(claim, HELD));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void do_traced(const struct scene *scene, deed what)
{
	struct ll_claim *claim = take_claim_of(scene->ledger, scene->row);
	if (what == release && ll_memory_reserve(claim, HELD))
		_exit(1);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(LL_EXIT_SKIPPED);
	raise(SIGSTOP);
	int rc = what(scene->ledger, claim);
	raise(SIGSTOP);
	_exit(rc ? 2 : 0);
}

/* Stopped before its first step; false where nobody may trace. */
static bool start_traced(struct scene *scene, deed what)
{
	int status;
	scene->child = fork();
	if (!scene->child)
		do_traced(scene, what);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == LL_EXIT_SKIPPED)
		return false;
	assert_true(WIFSTOPPED(status));
	return true;
}

/* One instruction on; false when the deed is done. */
static bool step(const struct scene *scene)
{
	int status;
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, scene->child, NULL, NULL), 0);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	assert_true(WIFSTOPPED(status));
	return WSTOPSIG(status) != SIGSTOP;
}

/* Not each run is of the same length: the way to the middle of the guarded part begins at its beginning. */
static void step_into_guard(const struct scene *scene, unsigned count)
{
	while (!scene->file->tenants[scene->row].guard && step(scene))
		continue;
	for (unsigned i = 0; i < count && step(scene); i++)
		continue;
}

static unsigned take_steps(const struct scene *scene, unsigned count)
{
	unsigned steps = 0;
	while (steps < count && step(scene))
		steps++;
	return steps;
}

/* All that others see of the deed: the tenants' rows, the first slots, the header. */
struct shown {
	char header[256], rows[2 * LL_LEDGER_TENANT_BYTES], slots[3 * LL_LEDGER_SLOT_BYTES];
};

static bool is_changed(const struct scene *scene, struct shown *shown)
{
	static struct shown now;
	memcpy(now.header, scene->file, sizeof now.header);
	memcpy(now.rows, scene->file->tenants, sizeof now.rows);
	memcpy(now.slots, scene->file->slots, sizeof now.slots);
	if (!memcmp(&now, shown, sizeof now))
		return false;
	*shown = now;
	return true;
}

/* Steps until the page has changed so many times, or the deed is done; returns how often it has. */
static unsigned take_changes(const struct scene *scene, unsigned count)
{
	struct shown shown;
	unsigned changes = 0;
	memset(&shown, 0, sizeof shown);
	is_changed(scene, &shown);
	while (changes < count && step(scene))
		changes += is_changed(scene, &shown);
	return changes;
}

struct way {
	unsigned steps, changes;
};

static struct way take_whole_way(const struct scene *scene)
{
	struct shown shown;
	struct way way = {0};
	memset(&shown, 0, sizeof shown);
	is_changed(scene, &shown);
	while (way.steps < STEPS_MAX && step(scene)) {
		way.steps++;
		way.changes += is_changed(scene, &shown);
	}
	return way;
}

static void kill_child(struct scene *scene)
{
	int status;
	kill(scene->child, SIGKILL);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	assert_true(WIFSIGNALED(status));
}

/* Every other time the memory of the dead is found by a reservation, else by a sweep. */
static void expect_all_made_good(const struct scene *scene, bool is_swept)
{
	assert_true(total(scene) <= LIMIT);
	if (is_swept)
		ll_ledger_sweep(scene->ledger);
	assert_int_equal(ll_memory_reserve(scene->claim, LIMIT - OWN), 0);
	assert_int_equal(total(scene), LIMIT);
	assert_int_equal(ll_memory_reserve(scene->claim, 1), -ENOMEM);
	ll_memory_release(scene->claim, LIMIT - OWN);
	assert_int_equal(total(scene), OWN);
	assert_int_equal(scene->file->tenants[scene->row].guard, 0);
	assert_int_equal(count_claims(scene->ledger), 1);
	assert_int_equal(count_tenants(scene->ledger), 1);
}

static void prepare(struct scene *scene, deed what)
{
	if (!start_traced(scene, what)) {
		strike_scene(scene);
		SKIP_TEST_OF(scene->name, "no process may be traced here");
	}
	if (what == sweep || what == reserve_after_sweep)
		leave_a_dead_claim(scene);
}

static struct way measure_way(struct scene *scene, deed what)
{
	prepare(scene, what);
	struct way way = take_whole_way(scene);
	kill_child(scene);
	expect_all_made_good(scene, true);
	if (way.steps == STEPS_MAX) {
		strike_scene(scene);
		SKIP_TEST_OF(scene->name, "too many steps with this sanitizer");
	}
	return way;
}

/* Its pid says nothing then: only its lock does. */
static void let_it_be_of_another_namespace(const struct scene *scene)
{
	struct ll_ledger_slot *slot = &scene->file->slots[1];
	if (slot->token)
		slot->namespaces = 1;
}

/* Each stride is odd, so that none falls in step with a loop. Returns how many were killed. */
static unsigned kill_on_the_way(struct scene *scene, deed what, unsigned all, unsigned kills_max,
				unsigned (*take)(const struct scene *, unsigned))
{
	unsigned stride = !kills_max || all <= kills_max ? 1 : (all / kills_max) | 1;
	unsigned kills = 0;
	for (unsigned count = budget.phase % stride; count <= all; count += stride, kills++) {
		prepare(scene, what);
		take(scene, count);
		if (kills % 4 >= 2)
			let_it_be_of_another_namespace(scene);
		kill_child(scene);
		expect_all_made_good(scene, kills % 2);
	}
	return kills;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static void kill_everywhere(void **state, const char *name, deed what)
{
	struct scene scene;
	set_scene(*state, name, &scene);
	struct way way = measure_way(&scene, what);
	unsigned at_changes = kill_on_the_way(&scene, what, way.changes,
					      least(KILLS_MAX, 1 + budget.changes * 2 / (1 + way.steps)), take_changes);
	unsigned between = kill_on_the_way(&scene, what, way.steps,
					   least(KILLS_MAX, 1 + budget.between * 2 / (1 + way.steps)), take_steps);
	printf("killed %u times at %u changes of the page, %u times in %u instructions\n", at_changes, way.changes,
	       between, way.steps);
	strike_scene(&scene);
}

static void killed_while_it_reserves(void **state)
{
	kill_everywhere(state, __func__, reserve);
}

static void killed_while_it_charges(void **state)
{
	kill_everywhere(state, __func__, charge);
}

static void killed_while_it_releases(void **state)
{
	kill_everywhere(state, __func__, release);
}

static void killed_while_it_ends_its_claim(void **state)
{
	kill_everywhere(state, __func__, end_claim);
}

static void killed_while_it_sweeps(void **state)
{
	kill_everywhere(state, __func__, sweep);
}

static void killed_while_it_sweeps_for_a_reservation(void **state)
{
	kill_everywhere(state, __func__, reserve_after_sweep);
}

static void killed_while_it_joins_another_tenant(void **state)
{
	kill_everywhere(state, __func__, join_another);
}

/* To the end of the deed. */
static void finish_deed(const struct scene *scene)
{
	int status;
	assert_int_equal(ptrace(PTRACE_CONT, scene->child, NULL, NULL), 0);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	assert_int_equal(total(scene),
			 scene->file->slots[0].memory_used_bytes + scene->file->slots[1].memory_used_bytes);
}

/* Whether the deed succeeded. */
static bool end_child(const struct scene *scene)
{
	int status;
	assert_int_equal(ptrace(PTRACE_DETACH, scene->child, NULL, NULL), 0);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

/* For how many steps of the deed the child has the guard. */
static unsigned count_guarded_steps(struct scene *scene, deed what)
{
	unsigned steps = 0;
	prepare(scene, what);
	step_into_guard(scene, 0);
	while (scene->file->tenants[scene->row].guard && step(scene))
		steps++;
	kill_child(scene);
	ll_ledger_sweep(scene->ledger);
	assert_true(steps > 0);
	return steps;
}

static void who_stands_still_in_the_guard_is_robbed_and_nothing_is_lost(void **state)
{
	struct scene scene;
	unsigned robbed = 0;
	unsigned successes = 0;
	set_scene(*state, __func__, &scene);
	unsigned steps = count_guarded_steps(&scene, reserve);
	for (unsigned i = 0; i < STOPS; i++) {
		prepare(&scene, reserve);
		step_into_guard(&scene, steps * i / STOPS);
		robbed += scene.file->tenants[scene.row].guard != 0;
		int rc = ll_memory_reserve(scene.claim, WANTED);
		assert_true(total(&scene) <= LIMIT);
		finish_deed(&scene);
		assert_true(total(&scene) <= LIMIT);
		assert_int_not_equal(end_child(&scene), rc == 0); /* there is room for one of them */
		successes += rc == 0;
		ll_memory_release(scene.claim, rc ? 0 : WANTED);
		expect_all_made_good(&scene, false);
	}
	assert_true(robbed > 0 && successes > 0);
	printf("robbed %u times, of them %u before it had what it wanted\n", robbed, successes);
	strike_scene(&scene);
}

static struct ll_claim *handlers_claim;

static void reserve_in_handler(int number)
{
	(void)number;
	if (ll_memory_reserve(handlers_claim, 3) == 0)
		ll_memory_release(handlers_claim, 3);
}

static int reserve_interrupted(struct ll_ledger *ledger, struct ll_claim *claim)
{
	struct sigaction action = {.sa_handler = reserve_in_handler};
	handlers_claim = claim;
	sigaction(SIGUSR1, &action, NULL);
	return reserve(ledger, claim);
}

static void interrupt_child(const struct scene *scene)
{
	int status;
	kill(scene->child, SIGUSR1);
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, scene->child, NULL, NULL), 0);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, scene->child, NULL, SIGUSR1), 0);
	assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
	assert_true(WIFSTOPPED(status));
}

static void signal_handler_does_not_wait_for_what_it_interrupts(void **state)
{
	struct scene scene;
	unsigned interrupted = 0;
	set_scene(*state, __func__, &scene);
	unsigned steps = count_guarded_steps(&scene, reserve_interrupted);
	for (unsigned i = 0; i < HANDLED; i++) {
		prepare(&scene, reserve_interrupted);
		step_into_guard(&scene, steps * i / HANDLED);
		interrupted += scene.file->tenants[scene.row].guard != 0;
		interrupt_child(&scene);
		finish_deed(&scene);
		assert_int_equal(total(&scene), OWN + WANTED);
		assert_true(end_child(&scene));
		expect_all_made_good(&scene, false);
	}
	assert_true(interrupted > 0);
	strike_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

static void set_budget(void)
{
	const char *text = getenv("LOADLINE_STEP_PHASE");
	if (is_long_test()) {
		budget.between = 40000;
		budget.changes = 200000;
	} else {
		budget.phase =
		    text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)(ll_wall_ns() / (24 * 3600 * LL_NS_PER_S));
		printf("LOADLINE_STEP_PHASE=%u\n", budget.phase);
	}
}

/* Parent and child take turns: on one processor that is several times faster. */
static void share_one_processor(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(killed_while_it_reserves),
	    TEST(killed_while_it_charges),
	    TEST(killed_while_it_releases),
	    TEST(killed_while_it_ends_its_claim),
	    TEST(killed_while_it_sweeps),
	    TEST(killed_while_it_sweeps_for_a_reservation),
	    TEST(killed_while_it_joins_another_tenant),
	    TEST(who_stands_still_in_the_guard_is_robbed_and_nothing_is_lost),
	    TEST(signal_handler_does_not_wait_for_what_it_interrupts),
	};
	set_budget();
	share_one_processor();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
