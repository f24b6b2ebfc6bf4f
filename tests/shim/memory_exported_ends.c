/* Memory that processes share: with other tenants and none, after errors, and by descriptors that nobody imports. */
#include "exporting.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- other tenants, and none ---- */

static void govern_small(void)
{
	govern(CONTEXT_BYTES + SHARED_BYTES - 2 * MIB);
}

static void govern_large(void)
{
	govern(8 * GIB);
}

static void govern_not(void)
{
	unsetenv(LL_RUN_VARIABLE);
}

TEST_RUN_BY(each_way, each_tenant_is_charged_for_what_it_holds)
{
	open_office();
	govern(8 * GIB);
	start(0, NULL);
	start(1, govern_large);
	start(2, govern_small);
	make();
	take(1);
	CHECK_EQUAL(take_as(2, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	close_descriptor();
	CHECK_EQUAL(charged_beyond(1), made_bytes());
	CHECK_EQUAL(tell(1, CHARGED, 0), CONTEXT_BYTES + SHARED_BYTES);
	CHECK_EQUAL(tell(2, CHARGED, 0), CONTEXT_BYTES);
	tell(0, UNMAKE, 0);
	CHECK_EQUAL(charged_beyond(1), 0);
	CHECK_EQUAL(tell(1, CHARGED, 0), CONTEXT_BYTES + SHARED_BYTES);
	tell(1, LET_GO, 0);
	CHECK_EQUAL(tell(1, CHARGED, 0), CONTEXT_BYTES);
}

/* Memory of nobody's tenant: its takers of one tenant are charged once. */
TEST_RUN_BY(each_way, what_comes_from_outside_is_charged_to_the_tenant_that_takes_it)
{
	open_office();
	govern(8 * GIB);
	start(0, govern_not);
	start(1, NULL);
	start(2, NULL);
	start(3, govern_small);
	make();
	take(1);
	take(2);
	CHECK_EQUAL(take_as(3, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(tell(3, CHARGED, 0), CONTEXT_BYTES);
	close_descriptor();
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES);
	tell(1, LET_GO, 0);
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES);
	tell(2, LET_GO, 0);
	look(1);
	CHECK_EQUAL(charged_beyond(2), 0);
}

/* ---- errors ---- */

TEST_RUN_BY(each_way, what_the_driver_refuses_nobody_holds)
{
	char line[128];
	start_tenant(8 * GIB, 1);
	make();
	snprintf(line, sizeof line, "fail %s CUDA_ERROR_LAUNCH_FAILED count 1", way->take_symbol);
	CHECK_EQUAL(simctl(line), 0);
	CHECK_EQUAL(take_as(1, 0), LL_CUDA_ERROR_LAUNCH_FAILED);
	close_descriptor();
	tell(0, UNMAKE, 0);
	CHECK_EQUAL(charged_beyond(2), 0);
}

static const char *table_path(char *path, size_t size)
{
	char uuid[96];
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(card, uuid, sizeof uuid), 0);
	snprintf(path, size, "%s/%s.exported", getenv("LOADLINE_SIM_DIR"), uuid);
	return path;
}

/* Nobody can tell that it is the same memory: who takes it is charged as if nobody else had it. */
TEST_RUN_BY(each_way, where_it_cannot_be_told_each_is_charged)
{
	char path[512];
	start_tenant(8 * GIB, 1);
	CHECK(mkdir(table_path(path, sizeof path), 0700) == 0);
	make();
	take(1);
	close_descriptor();
	CHECK_EQUAL(charged_beyond(2), made_bytes() + SHARED_BYTES);
	tell(0, UNMAKE, 0);
	tell(1, LET_GO, 0);
	CHECK(rmdir(path) == 0);
	WAIT_FOR(charged_beyond(2) == 0);
}

/* A process that is stopped in the midst of a change holds up others for a moment, and then they go on without. */
TEST_RUN_BY(each_way, a_busy_table_holds_nobody_up)
{
	char path[512];
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	start_tenant(8 * GIB, 1);
	make();
	int fd = open(table_path(path, sizeof path), O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
	take(1);
	close_descriptor();
	CHECK_EQUAL(charged_beyond(2), made_bytes() + SHARED_BYTES);
	close(fd);
	tell(1, LET_GO, 0);
	tell(0, UNMAKE, 0);
	WAIT_FOR(charged_beyond(2) == 0);
}

/* Others clear the claim of a maker that lives, and carry what it carried, before it has another claim. */
TEST_RUN_BY(each_way, a_maker_that_lost_its_claim_is_not_charged_twice)
{
	start_tenant(8 * GIB, 1);
	make();
	take(1);
	close_descriptor();
	stop_without_claim(0);
	look(1);
	CHECK(kill(pids[0], SIGCONT) == 0);
	WAIT_FOR(charged_beyond(2) == made_bytes() + (way->pool_bytes ? SHARED_BYTES : 0));
	tell(0, UNMAKE, 0);
	look(0);
	WAIT_FOR(charged_beyond(2) == SHARED_BYTES);
	tell(1, LET_GO, 0);
	look(0);
	CHECK_EQUAL(charged_beyond(2), 0);
}

/* ---- descriptors ---- */

TEST_IN_WORLD(NULL, an_open_descriptor_holds_memory)
{
	way = &ways[0];
	start_tenant(8 * GIB, 1);
	make();
	tell(0, SEND, 0);
	close_descriptor();
	tell(0, UNMAKE, 0);
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES); /* it is on its way */
	int fd = receive_fd(), second = dup(fd);
	close(fd);
	tell(0, ALLOCATE, MIB);
	CHECK_EQUAL(charged_beyond(2), SHARED_BYTES + MIB);
	kill_it(0);
	CHECK_EQUAL(tell(1, ALLOCATE, MIB), 0);
	WAIT_FOR(charged_beyond(1) == SHARED_BYTES + MIB); /* who has nothing to do with it carries it */
	close(second);
	WAIT_FOR(charged_beyond(1) == MIB);
}

static void keep_descriptor(void)
{
	struct made made;
	way = &ways[0];
	open_context(0);
	CHECK_EQUAL(make_physical(&made), 0);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	close(made.fd);
	free_physical(&made);
	CHECK_EQUAL(charged_beyond(1), SHARED_BYTES);
	CHECK(kill(child, SIGKILL) == 0);
	CHECK_EQUAL(waitpid(child, NULL, 0), child);
	WAIT_FOR(charged_beyond(1) == 0);
}

TEST_IN_WORLD(NULL, a_forked_child_s_descriptor_holds_memory)
{
	govern(8 * GIB);
	join(spawn(keep_descriptor));
}
