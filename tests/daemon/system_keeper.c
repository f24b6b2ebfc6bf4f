/* The system's loadlined and a keeper that does not do what it should. The keeper is a process of the test. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "protocol/keeper.h"
#include "system_world.h"
#include "test.h"
#include "wait_for.h"

enum { SOON_MS = 1000 };

/* What it does with PLACE. */
enum behaviour { IS_SILENT, REFUSES, ENDS, PLACES, BABBLES };

static struct system_world scene;
static struct ll_place place;
static pid_t keeper;

static void serve_request(int fd, enum behaviour behaviour)
{
	struct ll_keeper_request request;
	size_t count = 0;
	int pidfd = -1;
	if (ll_packet_receive(fd, true, &request, sizeof request, &pidfd, 1, &count))
		_exit(0);
	struct ll_keeper_reply reply = {.version = LL_KEEPER_VERSION,
					.call = request.call,
					.serial = request.serial,
					.groups = LL_GROUPS_FOLDER,
					.text = "/none"};
	if (request.call == LL_KEEPER_PLACE && behaviour == IS_SILENT)
		return;
	if (request.call == LL_KEEPER_PLACE && behaviour == ENDS)
		_exit(0);
	if (request.call == LL_KEEPER_PLACE && behaviour == REFUSES)
		reply.code = -EPERM;
	if (behaviour == BABBLES)
		memset(&reply, 'x', sizeof reply);
	ll_packet_send(fd, &reply, sizeof reply, NULL, 0);
}

/* As systemd does, the listener stays, and each connection has a keeper. */
static void serve(int listen_fd, enum behaviour behaviour)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (fork() == 0) {
			for (;;)
				serve_request(fd, behaviour);
		}
		close(fd);
	}
}

static void begin_with(enum behaviour behaviour)
{
	struct sockaddr_un address;
	system_world_init(&scene, 0);
	assert_int_equal(ll_keeper_place(&scene.world.place, &place), 0);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t length = ll_place_address(place.name, &address);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(chmod(place.name, 0666), 0);
	assert_int_equal(listen(fd, 16), 0);
	keeper = fork();
	if (keeper == 0) {
		setpgid(0, 0);
		serve(fd, behaviour);
	}
	setpgid(keeper, keeper);
	close(fd);
	system_world_restart(&scene);
}

static void end_all(struct job *job)
{
	job_stop(job);
	wait_for(world_has_jobs(&scene.world, 0));
	kill(-keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	unlink(place.name);
	system_world_fini(&scene);
}

static uint32_t flags_of_job(void)
{
	struct ll_list list;
	list_as(&list, &scene, 0);
	assert_int_equal(list.job_count, 1);
	uint32_t flags = list.jobs[0].job.flags;
	ll_list_fini(&list);
	return flags;
}

TEST(a_keeper_that_hangs_delays_its_job_alone)
{
	struct job job;
	struct ll_list list;
	union ll_message message;
	begin_with(IS_SILENT);
	become(FIRST_UID);
	job_launch(&job, &scene.world, "slow", NULL);
	become(0);
	wait_for(world_has_jobs(&scene.world, 1));
	uint64_t before_ns = ll_now_ns();
	list_as(&list, &scene, 0);
	ll_list_fini(&list);
	assert_true(is_in_time(before_ns, SOON_MS * LL_NS_PER_MS));
	assert_int_equal(poll(&(struct pollfd){.fd = job.report_fd, .events = POLLIN}, 1, 0), 0);
	assert_int_equal(next_message(job.report_fd, &message), LL_MESSAGE_ACCEPTED);
	assert_false(flags_of_job() & LL_JOB_HAS_GROUP);
	end_all(&job);
}

TEST(a_job_that_the_keeper_refuses_runs_by_its_token)
{
	struct job job;
	begin_with(REFUSES);
	job_start_as(&job, &scene, FIRST_UID, "refused");
	assert_false(flags_of_job() & LL_JOB_HAS_GROUP);
	end_all(&job);
}

TEST(a_keeper_that_ends_at_each_request_is_asked_twice)
{
	struct job job;
	begin_with(ENDS);
	job_start_as(&job, &scene, FIRST_UID, "lost");
	assert_false(flags_of_job() & LL_JOB_HAS_GROUP);
	end_all(&job);
}

TEST(a_keeper_that_babbles_harms_nobody)
{
	struct job job;
	begin_with(BABBLES);
	job_start_as(&job, &scene, FIRST_UID, "patient");
	assert_false(flags_of_job() & LL_JOB_HAS_GROUP);
	end_all(&job);
}

TEST(a_job_that_was_placed_is_listed_so)
{
	struct job job;
	begin_with(PLACES);
	job_start_as(&job, &scene, FIRST_UID, "placed");
	assert_true(flags_of_job() & LL_JOB_HAS_GROUP);
	end_all(&job);
}

TESTS_OF_ROOT;
