/* Requests to the keeper, which has rights: of another user, and of a loadlined that the attacker has taken over. */
#include "attack.h"

#include <sys/random.h>
#include <sys/un.h>

#include "protocol/keeper.h"

enum { NOBODY = 65534, START_MS = 5000 };

struct keeper_scene {
	char folder[40];
	struct ll_place place;
	pid_t keeper, victim; /* a process of the victim */
	uint64_t job;         /* of the attacker */
};
static struct keeper_scene world;

/* Returns a socket that blocks; -1: it cannot connect. */
static int connect_to_keeper(uid_t uid)
{
	int fd;
	become(uid);
	int rc = ll_place_connect_any(&world.place, &fd);
	become(0);
	if (rc)
		return -1;
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	return fd;
}

static int begin_keeper(void **state)
{
	struct ll_place system;
	const char *program = getenv("LOADLINE_KEEPER");
	(void)state;
	world = (struct keeper_scene){.folder = "/tmp/ll-keeper-XXXXXX"};
	assert_non_null(program);
	assert_non_null(mkdtemp(world.folder));
	assert_int_equal(chmod(world.folder, 0755), 0);
	assert_int_equal(ll_place_of_system(world.folder, &system), 0);
	assert_int_equal(ll_keeper_place(&system, &world.place), 0);
	assert_int_equal(getrandom(&world.job, sizeof world.job, 0), sizeof world.job);
	world.victim = sleeper_start(VICTIM);
	world.keeper = fork();
	if (world.keeper == 0) {
		int null_fd = open("/dev/null", O_RDWR);
		dup2(null_fd, STDERR_FILENO);
		setenv("LOADLINE_SIM_DIR", world.folder, 1);
		if (program)
			execl(program, "loadline-keeper", "--user", "nobody", (char *)NULL);
		_exit(1);
	}
	return 0;
}

/* Sends the request, about the victim's process if has_process. Returns the code of the reply; -EPIPE: none. */
static int send_request(int fd, struct ll_keeper_request request, bool has_process)
{
	struct ll_keeper_reply reply;
	size_t count = 0;
	int process_fd = has_process ? ll_process_open_pidfd(world.victim) : -1;
	if (has_process)
		request.pid = world.victim;
	ll_packet_send(fd, &request, sizeof request, &process_fd, has_process);
	if (process_fd >= 0)
		close(process_fd);
	int rc = ll_packet_receive(fd, true, &reply, sizeof reply, NULL, 0, &count);
	if (rc == -ECONNRESET) /* reported first, once: the keeper did not read the request */
		rc = ll_packet_receive(fd, true, &reply, sizeof reply, NULL, 0, &count);
	return rc ? -EPIPE : reply.code;
}

static struct ll_keeper_request request_for(enum ll_keeper_call call)
{
	return (struct ll_keeper_request){
	    .version = LL_KEEPER_VERSION, .call = call, .uid = ATTACKER, .job = world.job, .signal = SIGKILL};
}

static int request_of(int fd, enum ll_keeper_call call, bool has_process)
{
	return send_request(fd, request_for(call), has_process);
}

/* Waits for the keeper. False: it refuses all, because there are no control groups here. */
static bool is_keeper_there(void)
{
	uint64_t end_ns = ll_now_ns() + START_MS * LL_NS_PER_MS;
	while (waitpid(world.keeper, NULL, WNOHANG) == 0 && ll_now_ns() < end_ns) {
		int fd = connect_to_keeper(0);
		if (fd >= 0) {
			bool serves = request_of(fd, LL_KEEPER_HELLO, false) == 0;
			close(fd);
			return serves;
		}
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
	return false;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static int end_keeper(void **state)
{
	char path[LL_PLACE_SIZE];
	(void)state;
	become(0);
	kill(world.victim, SIGKILL);
	waitpid(world.victim, NULL, 0);
	int fd = connect_to_keeper(0);
	while (fd >= 0 && request_of(fd, LL_KEEPER_REMOVE, false) == -EBUSY)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	if (fd >= 0)
		close(fd);
	kill(world.keeper, SIGKILL);
	waitpid(world.keeper, NULL, 0);
	unlink(world.place.name);
	snprintf(path, sizeof path, "%s/system", world.folder);
	rmdir(path);
	rmdir(world.folder);
	return 0;
}

/* The groups and the folder are removed before the program ends. */
static void end_and_succeed_if(bool is_so, const char *what)
{
	if (is_so)
		end_keeper(NULL);
	succeed_if(is_so, what);
}

TEST_WITH(begin_keeper, end_keeper, sends_requests_to_the_keeper)
{
	if (!is_keeper_there())
		SKIP_TEST("the keeper finds no control groups");
	int fd = connect_to_keeper(ATTACKER);
	bool is_served = fd >= 0 && request_of(fd, LL_KEEPER_HELLO, false) == 0;
	if (fd >= 0)
		close(fd);
	end_and_succeed_if(is_served, "the keeper serves the attacker");
}

TEST_WITH(begin_keeper, end_keeper, has_a_process_placed_in_its_job)
{
	if (!is_keeper_there())
		SKIP_TEST("the keeper finds no control groups");
	int fd = connect_to_keeper(NOBODY);
	int rc = request_of(fd, LL_KEEPER_PLACE, true);
	close(fd);
	end_and_succeed_if(!rc, "the victim's process is in the group of the attacker's job");
}

TEST_WITH(begin_keeper, end_keeper, has_a_process_outside_killed)
{
	if (!is_keeper_there())
		SKIP_TEST("the keeper finds no control groups");
	int fd = connect_to_keeper(NOBODY);
	int rc = request_of(fd, LL_KEEPER_SIGNAL_OUTSIDE, true);
	close(fd);
	if (!rc)
		wait_for(has_ended(world.victim));
	end_and_succeed_if(!rc, "the victim's process is killed as one of the attacker's outside of jobs");
}

/* The uid of the request is right. */
TEST_WITH(begin_keeper, end_keeper, has_a_process_outside_stopped)
{
	if (!is_keeper_there())
		SKIP_TEST("the keeper finds no control groups");
	int fd = connect_to_keeper(NOBODY);
	struct ll_keeper_request request = request_for(LL_KEEPER_SIGNAL_OUTSIDE);
	request.uid = VICTIM;
	request.signal = SIGSTOP;
	int rc = send_request(fd, request, true);
	close(fd);
	end_and_succeed_if(!rc, "the victim's process is stopped for ever, and no event says so");
}

TEST_WITH(begin_keeper, end_keeper, has_a_process_of_root_killed)
{
	if (!is_keeper_there())
		SKIP_TEST("the keeper finds no control groups");
	kill(world.victim, SIGKILL);
	waitpid(world.victim, NULL, 0);
	world.victim = sleeper_start(0);
	int fd = connect_to_keeper(NOBODY);
	struct ll_keeper_request request = request_for(LL_KEEPER_SIGNAL_OUTSIDE);
	request.uid = 0;
	int rc = send_request(fd, request, true);
	close(fd);
	if (!rc)
		wait_for(has_ended(world.victim));
	end_and_succeed_if(!rc, "a process of root is killed");
}
