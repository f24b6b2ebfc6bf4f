/* Exchanges with control programs of every bad kind: shell scripts that stand in for nvidia-cuda-mps-control. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mps/mps.h"
#include "wait_for.h"

/* Far more than any of these takes, on any machine. */
#define LONG_NS (60 * LL_NS_PER_S)

static struct {
	char folder[40];
	struct ll_mps_place place;
} fixture;

static int set_up(void **state)
{
	(void)state;
	snprintf(fixture.folder, sizeof fixture.folder, "/tmp/ll-mps-XXXXXX");
	if (!mkdtemp(fixture.folder) || ll_mps_place_at("", fixture.folder, &fixture.place, NULL))
		return -1;
	snprintf(fixture.place.program, sizeof fixture.place.program, "%s/control", fixture.folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(fixture.place.program);
	return rmdir(fixture.folder);
}

static void be(const char *script)
{
	int fd = open(fixture.place.program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	dprintf(fd, "#!/bin/sh\n%s\n", script);
	close(fd);
}

static int ask(uint64_t within_ns, struct ll_strbuf *answer, struct ll_err *err)
{
	return ll_mps_ask(&fixture.place, ll_now_ns() + within_ns, answer, err, "get_server_list");
}

TEST(test_an_answer_is_what_is_printed)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err = {0};
	be("read command; echo \"$command\"; echo \"$CUDA_MPS_PIPE_DIRECTORY\"; echo; echo");
	assert_int_equal(ask(LONG_NS, &answer, &err), 0);
	char wanted[LL_MPS_PATH_SIZE + 20];
	snprintf(wanted, sizeof wanted, "get_server_list\n%s", fixture.place.pipe);
	assert_string_equal(answer.buf, wanted);
	assert_int_equal(err.code, 0);
}

TEST(test_limits_and_libraries_of_the_caller_are_not_the_programs)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err = {0};
	setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "5", 1);
	setenv("CUDA_MPS_PROTOCOL_VERSION", "3", 1);
	setenv("LOADLINE_RUN", "x", 1);
	be("echo \"[$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE$LOADLINE_RUN]\" $CUDA_MPS_PROTOCOL_VERSION");
	assert_int_equal(ask(LONG_NS, &answer, &err), 0);
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	unsetenv("CUDA_MPS_PROTOCOL_VERSION");
	unsetenv("LOADLINE_RUN");
	assert_string_equal(answer.buf, "[] 2");
}

TEST(test_one_that_hangs_is_killed_at_the_deadline)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err;
	be("echo $$ > \"$(dirname \"$0\")/pid\"; exec sleep 1000");
	uint64_t from_ns = ll_now_ns();
	/* It may be killed before it has written its number: then nothing was there to outlive it. */
	assert_fails(ask(LL_NS_PER_S, &answer, &err), -ETIMEDOUT, "get_server_list: no answer in time");
	assert_true(ll_now_ns() - from_ns >= LL_NS_PER_S);
	char path[80];
	snprintf(path, sizeof path, "%s/pid", fixture.folder);
	FILE *file = fopen(path, "re");
	int pid = 0;
	if (file && fscanf(file, "%d", &pid) == 1)
		assert_int_equal(kill(pid, 0), -1);
	if (file)
		fclose(file);
	unlink(path);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(test_one_that_leaves_something_running_holds_nobody_up)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err = {0};
	be("sleep 1000 & echo $!");
	assert_int_equal(ask(LONG_NS, &answer, &err), 0);
	pid_t pid = (pid_t)strtol(answer.buf, NULL, 10);
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
}

/* A daemon that goes on writing to what it was started with: its starter's end must not be its own. */
TEST(test_what_a_starter_leaves_running_may_write_on)
{
	LL_SCOPE_STRBUF struct ll_strbuf output = LL_STRBUF_INIT;
	struct ll_err err = {0};
	char path[LL_MPS_PATH_SIZE + 20];
	int status = -1;
	snprintf(path, sizeof path, "%s.done", fixture.place.program);
	be("echo started; (while [ ! -e \"$0.go\" ]; do sleep 0.01; done; echo late; touch \"$0.done\") &\nexit 3");
	assert_int_equal(ll_mps_program_run(&fixture.place, NULL, NULL, ll_now_ns() + LONG_NS, &output, &status, &err),
			 0);
	assert_int_equal(status, 3);
	assert_string_equal(output.buf, "started\n");
	/* By now every end of ours is closed. */
	char go[LL_MPS_PATH_SIZE + 20];
	snprintf(go, sizeof go, "%s.go", fixture.place.program);
	int fd = open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	wait_for(access(path, F_OK) == 0);
	unlink(go);
	unlink(path);
}

TEST(test_an_unknown_command_with_status_0_is_an_error)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err;
	be("echo 'Unknown command: whatever'; exit 0");
	assert_fails(ask(LONG_NS, &answer, &err), -EOPNOTSUPP, "does not know 'get_server_list'");
}

TEST(test_no_daemon_is_an_error_of_its_own)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err;
	be("echo 'Cannot find MPS control daemon process' >&2; exit 1");
	assert_fails(ask(LONG_NS, &answer, &err), -ECONNREFUSED, fixture.place.pipe);
	be("exit 3");
	assert_fails(ask(LONG_NS, &answer, &err), -EIO, "exit status 3");
	be("kill -SEGV $$");
	assert_fails(ask(LONG_NS, &answer, &err), -EIO, "exit status 139");
}

TEST(test_an_order_is_carried_out_or_refused)
{
	struct ll_err err = {0};
	uint64_t deadline_ns = ll_now_ns() + LONG_NS;
	static const struct {
		const char *answer;
		int rc;
	} cases[] = {{"", 0},     {"0", 0},       {"50.0", 0},       {"25.0", -EIO},
		     {"1", -EIO}, {"Done", -EIO}, {"Invalid", -EIO}, {"Unknown command", -EOPNOTSUPP}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char script[80];
		snprintf(script, sizeof script, "echo '%s'", cases[i].answer);
		be(script);
		assert_int_equal(ll_mps_order(&fixture.place, deadline_ns, 50, &err, "set %d", 50), cases[i].rc);
	}
	be("echo 50.0");
	assert_int_equal(ll_mps_order(&fixture.place, deadline_ns, -1, &err, "set"), -EIO);
	assert_int_equal(ll_mps_order(&fixture.place, deadline_ns, -1, &err, "set\nquit"), -EINVAL);
}

TEST(test_a_missing_program_is_named)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct ll_err err;
	struct ll_mps_place place = fixture.place;
	place.program[0] = '\0';
	err = (struct ll_err){0};
	assert_int_equal(ll_mps_ask(&place, ll_now_ns() + LONG_NS, &answer, &err, "x"), -ENOENT);
	assert_non_null(strstr(err.text, "nvidia-cuda-mps-control"));
	assert_true(err.hint[0]);
}

TEST(test_versions_are_told_by_what_is_answered)
{
	LL_SCOPE_STRBUF struct ll_strbuf partitions = LL_STRBUF_INIT;
	struct ll_err err = {0};
	struct ll_mps_version version;
	uint64_t deadline_ns = ll_now_ns() + LONG_NS;
	be("read c; case $c in lspart) echo 'Unknown command: lspart' ;; esac");
	assert_int_equal(ll_mps_version_read(&fixture.place, deadline_ns, &version, &partitions, &err), 0);
	assert_int_equal(version.protocol, 2);
	assert_false(version.has_static_partitions);
	be("read c; case $c in lspart) echo 'GPU-1 8 chunks' ;; esac");
	assert_int_equal(ll_mps_version_read(&fixture.place, deadline_ns, &version, &partitions, &err), 0);
	assert_true(version.has_static_partitions);
	assert_string_equal(partitions.buf, "GPU-1 8 chunks");
	be("echo 'Unknown command'");
	assert_int_equal(ll_mps_version_read(&fixture.place, deadline_ns, &version, &partitions, &err), 0);
	assert_int_equal(version.protocol, 3);
	assert_int_equal(err.code, 0);
}

TEST(test_a_memory_limit_names_visible_cards_alone)
{
	const char *const uuids[] = {"GPU-aaaa-1", "GPU-bbbb-2"};
	struct ll_err err;
	assert_int_equal(ll_mps_memory_text_check("0=8G", uuids, 2, &err), 0);
	assert_int_equal(ll_mps_memory_text_check("0=8G,1=512M", uuids, 2, &err), 0);
	assert_int_equal(ll_mps_memory_text_check("GPU-bbbb-2=8G", uuids, 2, &err), 0);
	assert_fails(ll_mps_memory_text_check("2=8G", uuids, 2, &err), -EINVAL, "card '2' is not visible");
	assert_fails(ll_mps_memory_text_check("0=8G,GPU-cccc=1G", uuids, 2, &err), -EINVAL,
		     "'GPU-cccc' is not visible");
	assert_fails(ll_mps_memory_text_check("8G", uuids, 2, &err), -EINVAL, "is not CARD=SIZE");
	assert_fails(ll_mps_memory_text_check("0=", uuids, 2, &err), -EINVAL, "is not CARD=SIZE");
	assert_fails(ll_mps_memory_text_check("0=0", uuids, 2, &err), -EINVAL, "is not CARD=SIZE");
	assert_fails(ll_mps_memory_text_check("=8G", uuids, 2, &err), -EINVAL, "is not visible");
}

TEST_ALL(set_up, tear_down);
