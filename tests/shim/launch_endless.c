/* Kernels that never end: they are told of, or end their program, as its --max-kernel says. */
#include "launching.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MS UINT64_C(1000000)

static struct ll_run_settings other;

static void stop(pid_t pid)
{
	CHECK_EQUAL(kill(pid, SIGKILL), 0);
	CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
}

static void launch_one_long(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	govern_by(other);
	open_context(0);
	launch_timed(get_kernel("work_ns"), new_stream(), 100000 * MS, 1, 32);
	for (;;)
		sleep_ms(1000);
}

static pid_t start_long(struct ll_run_settings settings)
{
	other = settings;
	return spawn(launch_one_long);
}

TEST_IN_WORLD(NULL, a_kernel_that_never_ends_is_told_of_or_ends_its_program)
{
	int status;
	char note[64];
	pid_t told = start_long((struct ll_run_settings){.id = 1, .tenant = "a", .max_kernel_ns = 100 * MS});
	pid_t killed = start_long(
	    (struct ll_run_settings){.id = 2, .tenant = "b", .max_kernel_ns = 100 * MS, .kills_at_max_kernel = true});
	CHECK_EQUAL(waitpid(killed, &status, 0), killed);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_EQUAL(open_cuda() > 1000, 0);
	CHECK_EQUAL(cu.cuInit(0), 0);
	WAIT_FOR(claim_of(1) && has_note(1));
	CHECK_EQUAL(count_claims(1), 1);
	ll_page_read_note(claim_of(1), note);
	CHECK(strncmp(note, "kernel runs for ", 16) == 0);
	CHECK_EQUAL(waitpid(told, &status, WNOHANG), 0);
	stop(told);
}

/* Behind short ones of its kind, in a stream that nobody else can time: a thread's own, the legacy one beside another.
 */
static struct ll_cu_stream *endless_in;

static void launch_short_ones_and_an_endless_one(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	govern_by(other);
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *beside = new_stream();
	for (int i = 0; i < 40; i++) {
		launch_timed(work, endless_in, MS / 20, 1, 32);
		launch_timed(work, beside, MS / 20, 1, 32);
	}
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	sleep_ms(50);
	launch_timed(work, endless_in, 100000 * MS, 1, 32);
	for (;;) {
		launch_timed(work, beside, MS / 20, 1, 32);
		CHECK_EQUAL(cu.cuStreamSynchronize(beside), 0);
		sleep_ms(1);
	}
}

TEST_IN_WORLD(NULL, an_endless_kernel_is_found_in_a_stream_that_nobody_else_can_event)
{
	static struct ll_cu_stream *const where[] = {LL_CU_STREAM_PER_THREAD, LL_CU_STREAM_LEGACY, NULL};
	for (unsigned i = 0; i < 6; i++) {
		int status = 0;
		uint64_t deadline_ns = deadline_in_s(30);
		endless_in = where[i % 3];
		other = (struct ll_run_settings){.id = 1 + i,
						 .tenant = "a",
						 .max_kernel_ns = 300 * MS,
						 .kills_at_max_kernel = true,
						 .compute_cap_permille = i < 3 ? 0 : 500};
		pid_t pid = spawn(launch_short_ones_and_an_endless_one);
		while (waitpid(pid, &status, WNOHANG) == 0 && !is_past(deadline_ns))
			sleep_ms(5);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}
