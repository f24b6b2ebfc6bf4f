/* The system's loadlined and two ordinary users: what each sees and may do. Root is neither, and may all. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/process.h"
#include "puppet.h"
#include "system_world.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
#define MIB UINT64_C(0x100000)
enum { UNITS_IN_MIB = 2048, FIRST_MIB = 100, SECOND_MIB = 40, FILES = 300, PACKETS = 300, ID = 0x1234 };

static struct system_world scene;
static struct job first, second; /* of the two users, in tenants of the same name, with limits of their own */

static int begin(void **state)
{
	(void)state;
	system_world_init(&scene, 0);
	scene.world.limits = (struct ll_limits){.memory_bytes = FIRST_MIB * MIB, .request_bytes = FIRST_MIB * MIB};
	job_start_as(&first, &scene, FIRST_UID, "team");
	scene.world.limits = (struct ll_limits){.memory_bytes = SECOND_MIB * MIB, .request_bytes = SECOND_MIB * MIB};
	job_start_as(&second, &scene, SECOND_UID, "team");
	return 0;
}

static int end(void **state)
{
	(void)state;
	job_stop(&first);
	job_stop(&second);
	wait_for(world_has_jobs(&scene.world, 0));
	system_world_fini(&scene);
	return 0;
}

TEST_EACH(begin, end);

static int ask_as(uid_t uid, union ll_message *message, const int *fds, size_t fd_count)
{
	struct ll_client client;
	open_as(&client, &scene, uid);
	int rc = ll_client_request(&client, message, fds, fd_count, NULL, ll_now_ns() + DEADLINE_NS, NULL);
	ll_client_close(&client);
	return rc;
}

static const struct ll_message_job_row *row_of(const struct ll_list *list, uid_t uid)
{
	for (size_t i = 0; i < list->job_count; i++) {
		if (list->jobs[i].job.uid == uid)
			return &list->jobs[i];
	}
	return NULL;
}

static uint64_t number_of(uid_t uid)
{
	struct ll_list list;
	list_as(&list, &scene, 0);
	const struct ll_message_job_row *row = row_of(&list, uid);
	assert_non_null(row);
	uint64_t number = row->number;
	ll_list_fini(&list);
	return number;
}

/* ---- what each sees ---- */

TEST(each_sees_the_rows_of_all_and_the_token_of_its_own_alone)
{
	struct ll_list list;
	list_as(&list, &scene, FIRST_UID);
	assert_int_equal(list.job_count, 2);
	assert_true(row_of(&list, FIRST_UID)->job.token[0] == first.id);
	assert_true(row_of(&list, SECOND_UID)->job.token[0] != second.id);
	assert_true(row_of(&list, SECOND_UID)->job.token[1] == 0);
	assert_string_equal(row_of(&list, SECOND_UID)->job.tenant, "team");
	ll_list_fini(&list);
	list_as(&list, &scene, 0);
	assert_true(row_of(&list, FIRST_UID)->job.token[0] == first.id);
	assert_true(row_of(&list, SECOND_UID)->job.token[0] == second.id);
	ll_list_fini(&list);
}

/* Pages that a hold of that user gets: so many, and then no other. */
static size_t count_pages(uid_t uid)
{
	union ll_message message;
	size_t count = 0;
	become(uid);
	int fd = world_connect(&scene.world, LL_ROLE_HOLD);
	become(0);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_WATCH);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	ll_message_init(&message, LL_MESSAGE_LIST); /* its answers come after the pages, or between them */
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	for (unsigned kind = 0; kind != LL_MESSAGE_LIST_END;) {
		kind = next_message(fd, &message);
		assert_true(kind != 0);
		count += kind == LL_MESSAGE_PAGE;
	}
	close(fd);
	return count;
}

TEST(a_hold_gets_the_pages_of_its_own_user_and_of_root_all)
{
	assert_int_equal(count_pages(FIRST_UID), 1);
	assert_int_equal(count_pages(SECOND_UID + 1), 0);
	assert_int_equal(count_pages(0), 2);
}

/* ---- what each may do ---- */

static int set_as(uid_t uid, uint64_t number)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = number;
	message.set.fields = LL_SET_MEMORY;
	message.set.limits.memory_bytes = FIRST_MIB * MIB;
	return ask_as(uid, &message, NULL, 0);
}

TEST(limits_are_set_by_the_owner_and_by_root)
{
	uint64_t number = number_of(FIRST_UID);
	assert_int_equal(set_as(SECOND_UID, number), -EPERM);
	assert_int_equal(set_as(FIRST_UID, number), 0);
	assert_int_equal(set_as(0, number), 0);
}

static int move_as(uid_t uid, enum ll_message_kind kind)
{
	union ll_message message;
	ll_message_init(&message, kind);
	message.move.job = first.id;
	ll_message_text_set(message.move.uuid, sizeof message.move.uuid, CARD);
	return ask_as(uid, &message, NULL, 0);
}

/* Expected: even one that has learnt the token is refused. For the owner and root there is no such program. */
TEST(memory_is_moved_by_the_owner_and_by_root)
{
	static const enum ll_message_kind kinds[] = {LL_MESSAGE_EVICT, LL_MESSAGE_SUSPEND, LL_MESSAGE_RESUME};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		assert_int_equal(move_as(SECOND_UID, kinds[i]), -EPERM);
		assert_int_equal(move_as(FIRST_UID, kinds[i]), -ESRCH);
		assert_int_equal(move_as(0, kinds[i]), -ESRCH);
	}
}

static int bind_as(uid_t uid, uint64_t job, uint64_t promisable_mib)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = job;
	message.bind.promisable_bytes = promisable_mib * MIB;
	message.bind.usable_bytes = 1000 * MIB;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, CARD);
	return ask_as(uid, &message, NULL, 0);
}

/* Rows of that user's jobs on cards: those that say which program it is, or those that do not. */
static size_t count_programs(const struct ll_list *list, uid_t uid, bool are_said)
{
	size_t count = 0;
	for (size_t i = 0; i < list->card_count; i++) {
		const struct ll_message_job_row *row = ll_list_job(list, list->cards[i].job_number);
		count += row && row->job.uid == uid && (list->cards[i].program != 0) == are_said;
	}
	return count;
}

TEST(which_program_it_is_is_told_to_its_user_and_to_root)
{
	struct ll_list list;
	assert_int_equal(bind_as(FIRST_UID, first.id, FIRST_MIB + SECOND_MIB), 0);
	assert_int_equal(bind_as(SECOND_UID, second.id, FIRST_MIB + SECOND_MIB), 0);
	list_as(&list, &scene, FIRST_UID);
	assert_int_equal(count_programs(&list, FIRST_UID, true), 1);
	assert_int_equal(count_programs(&list, SECOND_UID, false), 1);
	assert_int_equal(list.card_count, 2);
	ll_list_fini(&list);
	list_as(&list, &scene, 0);
	assert_int_equal(count_programs(&list, FIRST_UID, true), 1);
	assert_int_equal(count_programs(&list, SECOND_UID, true), 1);
	ll_list_fini(&list);
}

TEST(what_one_user_is_promised_another_cannot_have)
{
	assert_int_equal(bind_as(SECOND_UID, first.id, FIRST_MIB), -EPERM);
	assert_int_equal(bind_as(FIRST_UID, first.id, FIRST_MIB + SECOND_MIB - 1), 0);
	assert_int_equal(bind_as(SECOND_UID, second.id, FIRST_MIB + SECOND_MIB - 1), -EDQUOT);
	assert_int_equal(bind_as(SECOND_UID, second.id, FIRST_MIB + SECOND_MIB), -EDQUOT);
	assert_int_equal(bind_as(FIRST_UID, first.id, FIRST_MIB + SECOND_MIB), 0);
	assert_int_equal(bind_as(SECOND_UID, second.id, FIRST_MIB + SECOND_MIB), 0);
}

static int checkpoint_as(uid_t uid, pid_t pid)
{
	union ll_message message;
	int fd = ll_process_open(pid);
	ll_message_init(&message, LL_MESSAGE_CHECKPOINT);
	message.checkpoint.state = LL_CHECKPOINT_SUSPENDED;
	int rc = ask_as(uid, &message, &fd, 1);
	close(fd);
	return rc;
}

static void puppet_start_as(struct puppet *puppet, uid_t uid, uint64_t job)
{
	become(uid);
	puppet_start(puppet, &scene.world, job, CARD);
	become(0);
}

TEST(a_checkpoint_is_told_by_the_owner_and_by_root)
{
	struct puppet puppet;
	puppet_start_as(&puppet, FIRST_UID, first.id);
	assert_int_equal(checkpoint_as(SECOND_UID, puppet.pid), -EPERM);
	assert_int_equal(checkpoint_as(FIRST_UID, puppet.pid), 0);
	assert_int_equal(checkpoint_as(0, puppet.pid), 0);
	puppet_kill(&puppet);
}

/* ---- tenants, pages, monitors ---- */

TEST(tenants_of_one_name_and_two_users_share_no_limit)
{
	struct puppet one, other;
	struct ll_list list;
	list_as(&list, &scene, FIRST_UID);
	assert_int_equal(list.tenant_count, 2);
	ll_list_fini(&list);
	puppet_start_as(&one, FIRST_UID, first.id);
	puppet_start_as(&other, SECOND_UID, second.id);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, FIRST_MIB * UNITS_IN_MIB), 0);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, SECOND_MIB * UNITS_IN_MIB), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&one);
	puppet_kill(&other);
}

/* Expected: by what a user sees of another's job nothing of it can be claimed. */
TEST(nobody_claims_into_the_page_of_another_user)
{
	struct puppet puppet;
	struct ll_list list;
	list_as(&list, &scene, SECOND_UID);
	uint64_t shown = row_of(&list, FIRST_UID)->job.token[0];
	ll_list_fini(&list);
	become(SECOND_UID);
	puppet_make(&puppet, &scene.world, shown, CARD);
	become(0);
	assert_int_equal(puppet_do(&puppet, PUPPET_CLAIM, 0), -EAGAIN);
	puppet_kill(&puppet);
}

TEST(the_token_of_another_user_is_refused)
{
	struct puppet puppet;
	become(SECOND_UID);
	puppet_make(&puppet, &scene.world, first.id, CARD);
	become(0);
	assert_int_equal(puppet_do(&puppet, PUPPET_CLAIM, 0), -EPERM);
	puppet_kill(&puppet);
}

/* Registers a job by hand, with that id; page_fds NULL: it has no pages yet. Returns 0, or the code of the refusal; the
 * connection stays open as *ret_fd. */
static int register_as(uid_t uid, uint64_t id, const int *page_fds, int *ret_fd, int ret_fds[LL_MESSAGE_FDS],
		       size_t *ret_count)
{
	union ll_message message;
	int lifeline[2];
	assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
	become(uid);
	*ret_fd = world_connect(&scene.world, LL_ROLE_MONITOR);
	assert_int_equal(next_message(*ret_fd, &message), LL_MESSAGE_WELCOME);
	const int fds[] = {ll_process_open(getpid()), lifeline[0], page_fds ? page_fds[0] : -1,
			   page_fds ? page_fds[1] : -1};
	ll_message_init(&message, LL_MESSAGE_JOB);
	message.job.job.token[0] = id;
	message.job.job.token[1] = 1;
	message.job.job.state = LL_JOB_RUNNING;
	ll_message_text_set(message.job.job.tenant, sizeof message.job.job.tenant, "mine");
	assert_int_equal(ll_message_send(*ret_fd, &message, fds, page_fds ? 4 : 2), 0);
	unsigned kind = next_message_with_fds(*ret_fd, &message, ret_fds, ret_count);
	become(0);
	assert_true(kind == LL_MESSAGE_REFUSED || kind == LL_MESSAGE_ACCEPTED);
	close(fds[0]);
	close(lifeline[0]);
	close(lifeline[1]);
	return kind == LL_MESSAGE_REFUSED ? message.refused.code : 0;
}

/* Says that the job has ended. */
static void end_job(int fd, uint64_t id)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_JOB_ENDED);
	message.job_ended.token[0] = id;
	message.job_ended.token[1] = 1;
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	wait_for(world_has_jobs(&scene.world, 2));
	close(fd);
}

TEST(nobody_registers_the_job_of_another_user)
{
	int fd, fds[LL_MESSAGE_FDS];
	size_t count;
	assert_int_equal(register_as(SECOND_UID, first.id, NULL, &fd, fds, &count), -EPERM);
	close(fd);
}

static bool can_open_for_writing(uid_t uid, int fd)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	become(uid);
	int again = open(path, O_RDWR | O_CLOEXEC);
	become(0);
	if (again >= 0)
		close(again);
	return again >= 0;
}

TEST(the_monitor_of_a_job_cannot_write_its_orders)
{
	int fd, fds[LL_MESSAGE_FDS];
	size_t count;
	assert_int_equal(register_as(FIRST_UID, ID, NULL, &fd, fds, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(fcntl(fds[0], F_GETFL) & O_ACCMODE, O_RDWR);
	assert_int_equal(fcntl(fds[1], F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_false(can_open_for_writing(FIRST_UID, fds[1]));
	ll_message_close_fds(fds, count);
	end_job(fd, ID);
}

/* Makes the pages of that job as the user's own loadlined would. */
static void make_pages_as(uid_t uid, uint32_t weight_permille, int ret_fds[2])
{
	struct ll_orders *orders;
	const struct ll_limits limits = {.memory_bytes = MIB, .weight_permille = weight_permille};
	become(uid);
	assert_int_equal(ll_page_make(&ret_fds[0]), 0);
	assert_int_equal(ll_orders_make((const uint64_t[]){ID, 1}, &ret_fds[1]), 0);
	become(0);
	assert_int_equal(ll_orders_map(ret_fds[1], true, &orders), 0);
	ll_orders_write_limits(orders, &limits);
	ll_orders_unmap(orders);
}

/* Whether a job of the first user that comes with pages made by that user, with that weight, is taken. */
static int register_moved(uid_t maker, uint32_t weight_permille)
{
	int fd, fds[LL_MESSAGE_FDS], pages[2];
	size_t count;
	make_pages_as(maker, weight_permille, pages);
	int rc = register_as(FIRST_UID, ID, pages, &fd, fds, &count);
	ll_message_close_fds(pages, 2);
	if (rc) {
		close(fd);
		return rc;
	}
	ll_message_close_fds(fds, count);
	end_job(fd, ID);
	return 0;
}

TEST(pages_of_the_jobs_own_user_are_taken_if_they_can_be_true)
{
	assert_int_equal(register_moved(FIRST_UID, 2000), 0);
	assert_int_equal(register_moved(SECOND_UID, 2000), -EBADMSG);
	assert_int_equal(register_moved(FIRST_UID, UINT32_MAX), -EBADMSG);
}

/* Pages that can be shortened would end the service. */
TEST(pages_that_are_not_sealed_are_not_taken)
{
	int fd, fds[LL_MESSAGE_FDS], pages[2], open_fds[2];
	size_t count;
	make_pages_as(FIRST_UID, 2000, pages);
	become(FIRST_UID);
	for (int i = 0; i < 2; i++) {
		struct stat st;
		off_t from = 0;
		assert_int_equal(fstat(pages[i], &st), 0);
		open_fds[i] = memfd_create("open", MFD_CLOEXEC);
		assert_int_equal(fchmod(open_fds[i], 0600), 0);
		assert_int_equal(sendfile(open_fds[i], pages[i], &from, (size_t)st.st_size), st.st_size);
	}
	become(0);
	assert_int_equal(register_as(FIRST_UID, ID, open_fds, &fd, fds, &count), -EBADMSG);
	close(fd);
	ll_message_close_fds(pages, 2);
	ll_message_close_fds(open_fds, 2);
}

/* ---- faults ---- */

TEST(a_restarted_service_has_all_jobs_with_their_memory_and_limits)
{
	struct puppet one, other;
	puppet_start_as(&one, FIRST_UID, first.id);
	puppet_start_as(&other, SECOND_UID, second.id);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, FIRST_MIB * UNITS_IN_MIB), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, SECOND_MIB * UNITS_IN_MIB - 1), 0);
	system_world_restart(&scene);
	wait_for(world_has_jobs(&scene.world, 2));
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&one);
	puppet_kill(&other);
}

/* Expected: a process that is not seen in /proc is not taken for dead. */
TEST(a_restarted_service_that_does_not_see_the_processes_has_their_memory)
{
	struct puppet puppet;
	puppet_start_as(&puppet, FIRST_UID, first.id);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, FIRST_MIB * UNITS_IN_MIB), 0);
	scene.is_blind = true;
	system_world_restart(&scene);
	wait_for(world_has_jobs(&scene.world, 2));
	assert_int_equal(puppet_do(&puppet, PUPPET_HAS_SLOT, 0), 1);
	assert_int_equal(puppet_do(&puppet, PUPPET_COME_BACK, 0), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&puppet);
}

static size_t count_jobs(uint32_t flags)
{
	struct ll_list list;
	size_t count = 0;
	list_as(&list, &scene, 0);
	for (size_t i = 0; i < list.job_count; i++)
		count += (list.jobs[i].job.flags & flags) == flags;
	ll_list_fini(&list);
	return count;
}

/* Expected: a process loses nothing if another user's slot says that it is that process, and the service hears of that
 * one first. */
TEST(a_slot_that_names_a_process_of_another_user_harms_its_own_job_alone)
{
	struct puppet victim, liar;
	puppet_start_as(&victim, FIRST_UID, first.id);
	puppet_start_as(&liar, SECOND_UID, second.id);
	assert_int_equal(puppet_do(&victim, PUPPET_RESERVE, 1), 0);
	assert_int_equal(puppet_do(&liar, PUPPET_POSE, (uint32_t)victim.pid), 0);
	pid_t monitor = job_monitor(&scene.world, &first);
	kill_process(monitor, SIGSTOP);
	system_world_restart(&scene);
	wait_for(count_jobs(0) == 1);
	kill_process(monitor, SIGCONT);
	wait_for(world_has_jobs(&scene.world, 2));
	assert_int_equal(puppet_do(&victim, PUPPET_COME_BACK, 0), 0);
	assert_int_equal(puppet_do(&victim, PUPPET_HAS_SLOT, 0), 1);
	assert_int_equal(puppet_do(&victim, PUPPET_RESERVE, FIRST_MIB * UNITS_IN_MIB - 1), 0);
	assert_int_equal(puppet_do(&victim, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&victim);
	puppet_kill(&liar);
}

/* Expected: the service, which has another uid than the job, starts no monitor. It sees the job's end itself. */
TEST(a_job_whose_monitor_is_killed_stays_known_until_its_end)
{
	struct job job;
	job_start_as(&job, &scene, FIRST_UID, NULL);
	kill_process(job_monitor(&scene.world, &job), SIGKILL);
	wait_for(count_jobs(LL_JOB_UNWATCHED) == 1);
	job_stop(&job);
	wait_for(count_jobs(0) == 2);
}

TEST(no_newer_version_is_handed_the_socket)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_HANDOVER);
	message.handover.version = UINT64_MAX;
	assert_int_equal(ask_as(FIRST_UID, &message, NULL, 0), -EPERM);
	assert_int_equal(ask_as(0, &message, NULL, 0), -EPERM);
}

TEST(garbage_of_one_user_harms_no_other)
{
	become(SECOND_UID);
	for (int i = 0; i < PACKETS; i++) {
		char bytes[LL_MESSAGE_MAX];
		size_t length = 1 + (size_t)rand() % sizeof bytes;
		int fd = world_connect(&scene.world, 1 + (uint32_t)rand() % LL_ROLE_HOLD);
		for (size_t k = 0; k < length; k++)
			bytes[k] = (char)rand();
		bytes[0] = (char)(rand() % (LL_MESSAGE_OPENED + 2)); /* a kind that it knows, more or less */
		bytes[1] = 0;
		bytes[2] = (char)length;
		bytes[3] = (char)(length >> 8);
		ll_packet_send(fd, bytes, length, NULL, 0);
		close(fd);
	}
	become(0);
	assert_int_equal(set_as(FIRST_UID, number_of(FIRST_UID)), 0);
	wait_for(world_has_jobs(&scene.world, 2));
}

static bool is_refused(int fd)
{
	union ll_message message;
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1 &&
	       next_message(fd, &message) == LL_MESSAGE_REFUSED && message.refused.code == -EMFILE;
}

/* Expected: the second user's are refused when it has a fifth of the descriptors, and the first one is served. They are
 * accepted in the order in which they came. */
TEST_WITH(NULL, NULL, one_user_cannot_take_all_descriptors)
{
	struct system_world small;
	struct ll_client client;
	enum { KEPT = FILES / 8, OF_CONNECTION = 3, OF_JOB = 6 };
	enum { ACCEPTED = 1 + (FILES - KEPT - OF_JOB) / (5 * OF_CONNECTION) };
	int fds[FILES], refused = 0;
	system_world_init(&small, FILES);
	become(SECOND_UID);
	for (int i = 0; i < FILES; i++)
		assert_int_equal(ll_place_connect_by(&small.world.place, ll_now_ns() + DEADLINE_NS, &fds[i], NULL), 0);
	become(0);
	wait_for(is_refused(fds[FILES - 1]));
	for (int i = 0; i < FILES - 1; i++)
		refused += is_refused(fds[i]);
	assert_int_equal(refused, FILES - ACCEPTED - 1);
	open_as(&client, &small, FIRST_UID);
	ll_client_close(&client);
	for (int i = 0; i < FILES; i++)
		close(fds[i]);
	system_world_fini(&small);
}

TESTS_OF_ROOT;
