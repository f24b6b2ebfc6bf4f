/* What clients may send, and what they may leave undone. Expected of all of it: that connection ends or is refused, and
 * loadlined goes on serving all others. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/process.h"
#include "puppet.h"
#include "test.h"
#include "wait_for.h"

enum { FLOOD = 100000, PATIENCE_MS = 30000, MANY = 64, FEW_FILES = 40, SCRIBBLES = 20 };
#define CARD "GPU-00000000-0000-0000-0000-000000000000"

/* The daemon of this world serves one job, and this one shall be known after each test. */
struct scene {
	struct world world;
	struct job job;
	uint64_t instance;
};

static uint64_t instance_of(const struct world *world)
{
	union ll_message message;
	int fd = world_connect(world, LL_ROLE_COMMAND);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	close(fd);
	return message.welcome.instance;
}

static int begin(void **state)
{
	static struct scene scene;
	world_init(&scene.world);
	job_start(&scene.job, &scene.world, "witness", NULL);
	scene.instance = instance_of(&scene.world);
	*state = &scene;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;
	/* A daemon that had no descriptors may not have closed all that it was let go yet, and refuse once more. */
	wait_for(world_has_jobs(&scene->world, 1));
	assert_true(instance_of(&scene->world) == scene->instance);
	job_stop(&scene->job);
	world_fini(&scene->world);
	return 0;
}

TEST_EACH(begin, end);

static void expect_end(int fd)
{
	union ll_message message;
	while (next_message(fd, &message))
		;
	close(fd);
}

static int connect_only(const struct world *world)
{
	int fd;
	assert_int_equal(ll_place_connect(&world->place, &fd, NULL), 0);
	return fd;
}

TEST_GIVEN(struct scene *scene, bytes_that_are_no_message_end_the_connection)
{
	char bytes[4096];
	for (size_t length = 1; length <= sizeof bytes; length = length * 3 + 1) {
		for (int round = 0; round < 4; round++) {
			int fd =
			    round & 1 ? world_connect(&scene->world, LL_ROLE_MONITOR) : connect_only(&scene->world);
			for (size_t i = 0; i < length; i++)
				bytes[i] = (char)(round & 2 ? rand() : 0xff);
			ll_packet_send(fd, bytes, length, NULL, 0);
			expect_end(fd);
		}
	}
}

TEST_GIVEN(struct scene *scene, every_cut_of_every_message_ends_the_connection)
{
	for (unsigned kind = LL_MESSAGE_HELLO; kind <= LL_MESSAGE_CLAIM_ROW; kind++) {
		union ll_message message;
		ll_message_init(&message, (enum ll_message_kind)kind);
		for (size_t length = 1; length < message.header.size; length += 7) {
			int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
			assert_int_equal(ll_packet_send(fd, &message, length, NULL, 0), 0);
			expect_end(fd);
		}
	}
}

TEST_GIVEN(struct scene *scene, a_message_in_the_wrong_place_ends_the_connection)
{
	static const unsigned kinds[] = {LL_MESSAGE_HELLO,       LL_MESSAGE_WELCOME,     LL_MESSAGE_JOB,
					 LL_MESSAGE_ACCEPTED,    LL_MESSAGE_JOB_ENDED,   LL_MESSAGE_JOB_ROW,
					 LL_MESSAGE_PROCESS_ROW, LL_MESSAGE_HANDED_OVER, LL_MESSAGE_LIST_END,
					 LL_MESSAGE_CLAIMED,     LL_MESSAGE_WATCH,       LL_MESSAGE_CHECKPOINT};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		union ll_message message;
		int fd = world_connect(&scene->world, LL_ROLE_COMMAND); /* a second HELLO is wrong too */
		ll_message_init(&message, (enum ll_message_kind)kinds[i]);
		ll_message_send(fd, &message, NULL, 0);
		expect_end(fd);
		fd = connect_only(&scene->world); /* nothing but HELLO may be first */
		ll_message_init(&message, LL_MESSAGE_LIST);
		ll_message_send(fd, &message, NULL, 0);
		expect_end(fd);
	}
}

TEST_GIVEN(struct scene *scene, an_unknown_kind_is_refused_and_the_connection_goes_on)
{
	union ll_message message;
	struct ll_message_header header = {.kind = 4711, .size = sizeof header, .serial = 5};
	int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	assert_int_equal(ll_packet_send(fd, &header, sizeof header, NULL, 0), 0);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_REFUSED);
	assert_int_equal(message.refused.code, -ENOTSUP);
	assert_int_equal(message.header.serial, 5);
	ll_message_init(&message, LL_MESSAGE_LIST);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_JOB_ROW);
	close(fd);
}

/* ---- processes and their pages ---- */

static void make_slot(union ll_message *message, unsigned kind, uint64_t token)
{
	ll_message_init(message, (enum ll_message_kind)kind);
	message->slot.slot_token = token;
	message->slot.slot = 3;
}

/* Each role has its own requests. */
TEST_GIVEN(struct scene *scene, a_request_of_another_role_ends_the_connection)
{
	static const unsigned roles[] = {LL_ROLE_MONITOR, LL_ROLE_COMMAND, LL_ROLE_HOLD};
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		union ll_message message;
		int fd = world_connect(&scene->world, roles[i]);
		make_slot(&message, LL_MESSAGE_WAKE, 1);
		assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
		expect_end(fd);
		fd = world_connect(&scene->world, roles[i]);
		ll_message_init(&message, LL_MESSAGE_CLAIM);
		message.claim.job = scene->job.id;
		assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
		expect_end(fd);
	}
	for (unsigned kind = LL_MESSAGE_SET; kind <= LL_MESSAGE_WATCH; kind++) {
		union ll_message message;
		int fd = world_connect(&scene->world, LL_ROLE_PROCESS);
		ll_message_init(&message, (enum ll_message_kind)kind);
		message.set.job_number = 1;
		assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
		expect_end(fd);
	}
}

/* Expected: it is refused, and the slot's process keeps it. */
TEST_GIVEN(struct scene *scene, a_slot_of_another_process_is_not_given_and_not_taken)
{
	struct puppet owner;
	struct user thief;
	puppet_start(&owner, &scene->world, scene->job.id, CARD);
	user_begin(&thief, &scene->world, scene->job.id, CARD);
	uint64_t token = thief.page->slots[0].token;
	user_say(&thief, LL_MESSAGE_RELEASE);
	wait_for(!user_has_slot(&thief));
	thief.token = token;
	thief.slot = 0;
	assert_int_equal(user_claim(&thief), -ESTALE);
	user_say(&thief, LL_MESSAGE_RELEASE);
	user_say(&thief, LL_MESSAGE_WAKE);
	thief.slot = 700;
	assert_int_equal(user_claim(&thief), -ESTALE);
	assert_int_equal(puppet_do(&owner, PUPPET_HAS_SLOT, 0), 1);
	user_close(&thief);
	puppet_kill(&owner);
}

/* A process that speaks for another one would end that one's slots with its own death, or keep them. */
TEST_GIVEN(struct scene *scene, a_process_speaks_for_itself_alone)
{
	union ll_message message;
	int other = ll_process_open(scene->job.pid), fd = connect_only(&scene->world);
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_PROCESS;
	assert_int_equal(ll_message_send(fd, &message, &other, 1), 0);
	expect_end(fd);
	close(other);
}

/* Its words may say anything. Expected: no other job has less or more, and the daemon goes on. */
TEST_GIVEN(struct scene *scene, a_process_that_writes_all_over_its_page_harms_its_own_job_alone)
{
	struct puppet vandal, witness;
	struct job job;
	scene->world.limits.memory_bytes = 1000 * LL_MEMORY_UNIT;
	job_start(&job, &scene->world, "vandal", NULL);
	puppet_start(&witness, &scene->world, scene->job.id, CARD);
	puppet_start(&vandal, &scene->world, job.id, CARD);
	puppet_tell(&vandal, PUPPET_SCRIBBLE, 0);
	for (int i = 0; i < SCRIBBLES || !puppet_has_answer(&vandal); i++) {
		assert_int_equal(puppet_do(&witness, PUPPET_RESERVE, 900), 0);
		assert_int_equal(puppet_do(&witness, PUPPET_RELEASE, 900), 0);
		assert_true(world_has_jobs(&scene->world, 2));
	}
	puppet_kill(&vandal);
	puppet_kill(&witness);
	job_stop(&job);
	wait_for(world_has_jobs(&scene->world, 1));
}

/* ---- descriptors that are not what they should be ---- */

static void make_job(union ll_message *message)
{
	ll_message_init(message, LL_MESSAGE_JOB);
	message->job.job.token[0] = 4711;
	message->job.job.state = LL_JOB_RUNNING;
	strcpy(message->job.job.tenant, "liar");
}

TEST_GIVEN(struct scene *scene, a_job_with_wrong_descriptors_is_not_taken)
{
	int ends[2], null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), self = ll_process_open(getpid());
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const int wrong[][3] = {{null_fd, ends[0], 2}, {ends[0], self, 2}, {self, null_fd, 2},
				{root, ends[0], 2},    {self, ends[0], 1}, {-1, -1, 0}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		union ll_message message;
		int fd = world_connect(&scene->world, LL_ROLE_MONITOR);
		make_job(&message);
		assert_int_equal(ll_message_send(fd, &message, wrong[i], (size_t)wrong[i][2]), 0);
		expect_end(fd);
	}
	ll_message_close_fds((const int[]){null_fd, self, root, ends[0], ends[1]}, 5);
}

/* A page that another user could shorten or write, or another job's. Expected: the job is refused. */
TEST_GIVEN(struct scene *scene, pages_that_are_not_the_jobs_are_not_taken)
{
	const uint64_t token[2] = {4711, 0}, wrong_token[2] = {4712, 0};
	int ends[2], self = ll_process_open(getpid()), page, orders, others, loose;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(ll_page_make(&page), 0);
	assert_int_equal(ll_orders_make(token, &orders), 0);
	assert_int_equal(ll_orders_make(wrong_token, &others), 0);
	loose = memfd_create("loose", MFD_CLOEXEC);
	assert_int_equal(ftruncate(loose, sizeof(struct ll_page)), 0);
	const int wrong[][2] = {{page, others}, {orders, page}, {loose, orders}, {self, ends[0]}, {page, page}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		union ll_message message;
		int fd = world_connect(&scene->world, LL_ROLE_MONITOR);
		assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
		make_job(&message);
		const int fds[] = {self, ends[0], wrong[i][0], wrong[i][1]};
		assert_int_equal(ll_message_send(fd, &message, fds, 4), 0);
		assert_int_equal(next_message(fd, &message), LL_MESSAGE_REFUSED);
		assert_int_equal(message.refused.code, -EBADMSG);
		close(fd);
	}
	ll_message_close_fds((const int[]){self, ends[0], ends[1], page, orders, others, loose}, 7);
}

static size_t fds_of(pid_t pid)
{
	size_t count = 0;
	char path[64];
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
		count += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	}
	return count;
}

TEST_GIVEN(struct scene *scene, descriptors_that_nobody_asked_for_are_closed)
{
	pid_t daemon = world_daemon(&scene->world);
	size_t before = fds_of(daemon);
	for (int i = 0; i < MANY; i++) {
		union ll_message message;
		int zeros[LL_MESSAGE_FDS] = {0};
		int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
		ll_message_init(&message, LL_MESSAGE_LIST);
		assert_int_equal(ll_message_send(fd, &message, zeros, LL_MESSAGE_FDS), 0);
		expect_end(fd);
	}
	wait_for(fds_of(daemon) <= before);
}

/* ---- floods, and clients that do nothing ---- */

static size_t memory_of(pid_t pid)
{
	char path[64], line[256];
	size_t kib = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "RssAnon: %zu", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib;
}

/* It asks and asks, and reads nothing. The daemon stops reading from it. */
TEST_GIVEN(struct scene *scene, a_client_that_takes_no_answers_costs_no_memory)
{
	union ll_message message;
	pid_t daemon = world_daemon(&scene->world);
	int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
	size_t sent = 0;
	ll_message_init(&message, LL_MESSAGE_LIST);
	while (sent < FLOOD && poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 500) > 0)
		sent += ll_message_send(fd, &message, NULL, 0) == 0;
	assert_true(sent < FLOOD); /* it was held back */
	assert_true(instance_of(&scene->world) == scene->instance);
	assert_true(memory_of(daemon) < 4096);
	/* Then it reads, and gets an answer to each. */
	size_t ends = 0;
	while (ends < sent && next_message(fd, &message))
		ends += message.header.kind == LL_MESSAGE_LIST_END;
	assert_int_equal(ends, sent);
	close(fd);
}

TEST_GIVEN(struct scene *scene, a_client_that_ends_in_the_middle_of_a_flood_is_forgotten)
{
	pid_t daemon = world_daemon(&scene->world);
	size_t before = fds_of(daemon);
	for (int i = 0; i < MANY; i++) {
		union ll_message message;
		int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
		ll_message_init(&message, LL_MESSAGE_LIST);
		while (ll_message_send(fd, &message, NULL, 0) == 0)
			;
		if (i & 1)
			shutdown(fd, SHUT_WR);
		close(fd);
	}
	wait_for(fds_of(daemon) <= before);
}

TEST_GIVEN(struct scene *scene, who_says_nothing_is_let_go_after_5_s)
{
	int fd = connect_only(&scene->world);
	uint64_t begin_ns = ll_now_ns();
	expect_end(fd);
	assert_true(ll_now_ns() - begin_ns >= 4 * LL_NS_PER_S);
}

/* ---- a connection's end is no death ---- */

/* This process is the monitor. */
static int register_job(const struct world *world, int process_fd, int lifeline_fd)
{
	union ll_message message;
	int fd = connect_only(world), own = ll_process_open(getpid());
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_MONITOR;
	assert_int_equal(ll_message_send(fd, &message, &own, 1), 0);
	close(own);
	make_job(&message);
	assert_int_equal(ll_message_send(fd, &message, (const int[]){process_fd, lifeline_fd}, 2), 0);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_ACCEPTED);
	return fd;
}

/* The flags of the job that register_job registers. */
static bool has_flag(const struct world *world, uint32_t flag)
{
	struct ll_daemon_view view;
	bool is_so = false;
	ll_daemon_view_init_at(&view, &world->place);
	for (size_t i = 0; i < view.list.job_count; i++) {
		if (view.list.jobs[i].job.token[0] == 4711)
			is_so = !flag || view.list.jobs[i].job.flags & flag;
	}
	ll_daemon_view_fini(&view);
	return is_so;
}

/* Expected: nothing of the job is freed. After 5 s it is called unresponsive, and no longer when its monitor is back.
 */
TEST_GIVEN(struct scene *scene, a_monitor_that_lives_without_a_connection_may_come_back)
{
	union ll_message message;
	int ends[2], self = ll_process_open(getpid());
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	int fd = register_job(&scene->world, self, ends[0]);
	close(fd);
	uint64_t begin_ns = ll_now_ns();
	assert_true(has_flag(&scene->world, 0));
	wait_for(has_flag(&scene->world, LL_JOB_UNRESPONSIVE));
	assert_true(ll_now_ns() - begin_ns >= 4 * LL_NS_PER_S);
	fd = register_job(&scene->world, self, ends[0]);
	assert_true(has_flag(&scene->world, 0));
	assert_false(has_flag(&scene->world, LL_JOB_UNRESPONSIVE));
	ll_message_init(&message, LL_MESSAGE_JOB_ENDED);
	message.job_ended.token[0] = 4711;
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	wait_for(!has_flag(&scene->world, 0));
	ll_message_close_fds((const int[]){fd, self, ends[0], ends[1]}, 4);
}

/* ---- no descriptors left ---- */

static uint64_t cpu_ticks(pid_t pid)
{
	char path[64], text[1024] = "";
	unsigned long user = 0, system = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (file && fgets(text, sizeof text, file))
		sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
	if (file)
		fclose(file);
	return user + system;
}

/* Expected: who comes is told so, nobody who is there loses anything, the daemon does not spin, and takes jobs again
 * when others have gone. */
TEST_GIVEN(struct scene *scene, a_daemon_without_descriptors_refuses_and_recovers)
{
	struct rlimit limit = {FEW_FILES, FEW_FILES};
	union ll_message message;
	struct job late;
	int fds[FEW_FILES];
	size_t count = 0;
	pid_t daemon = world_daemon(&scene->world);
	assert_int_equal(prlimit(daemon, RLIMIT_NOFILE, &limit, NULL), 0);
	for (; count < FEW_FILES; count++) {
		/* It may be refused before it has said anything. */
		fds[count] = connect_only(&scene->world);
		ll_message_init(&message, LL_MESSAGE_HELLO);
		message.hello.protocol = LL_PROTOCOL_VERSION;
		message.hello.role = LL_ROLE_COMMAND;
		ll_message_send(fds[count], &message, NULL, 0);
		if (next_message(fds[count], &message) != LL_MESSAGE_WELCOME)
			break;
	}
	assert_true(count < FEW_FILES);
	assert_int_equal(message.header.kind, LL_MESSAGE_REFUSED);
	assert_int_equal(message.refused.code, -EMFILE);
	job_launch(&late, &scene->world, "late", NULL);
	assert_int_equal(next_message(late.report_fd, &message), LL_MESSAGE_REFUSED);
	assert_int_equal(message.refused.code, -EMFILE);
	uint64_t ticks = cpu_ticks(daemon), until_ns = ll_now_ns() + LL_NS_PER_S;
	ll_sleep_until_ns(until_ns);
	assert_true(cpu_ticks(daemon) - ticks < (uint64_t)sysconf(_SC_CLK_TCK) / 4);
	ll_message_close_fds(fds, count + 1);
	wait_for(world_has_jobs(&scene->world, 2));
	job_stop(&late);
	wait_for(world_has_jobs(&scene->world, 1));
}
