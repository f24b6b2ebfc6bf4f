/* Messages that say something false about their sender. */
#include "attack.h"

#include <sched.h>
#include <sys/mount.h>

static void send_to(int fd, const union ll_message *message)
{
	assert_int_equal(ll_message_send(fd, message, NULL, 0), 0);
}

TEST(says_another_uid)
{
	struct registration registration;
	struct ll_list list;
	bool is_victims = false;
	registration_init(&registration);
	registration.facts.uid = VICTIM;
	attacker_register(&registration);
	victim_list(&list);
	for (size_t i = 0; i < list.job_count; i++)
		is_victims |=
		    list.jobs[i].job.token[0] == registration.facts.token[0] && list.jobs[i].job.uid == VICTIM;
	ll_list_fini(&list);
	succeed_if(is_victims, "a job of the attacker counts as the victim's");
	registration_end(&registration);
}

TEST(joins_the_tenant)
{
	struct ll_list list;
	victim_list(&list);
	succeed_if(list.tenant_count == 1, "the attacker's job is in the victim's tenant, and shares its limits");
	ll_list_fini(&list);
}

static void claim_card(int fd, pid_t pid)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = scene.attacker.id;
	message.claim.pid = pid;
	ll_message_text_set(message.claim.uuid, sizeof message.claim.uuid, CARD);
	send_to(fd, &message);
	next_message(fd, &message);
}

/* A process belongs to one job: its claims in another job end. */
TEST(poses_as_a_process)
{
	struct puppet puppet;
	victim_puppet(&puppet);
	int process_fd = ll_process_open(puppet.pid), fd = attacker_connect(LL_ROLE_PROCESS, process_fd);
	if (fd >= 0) {
		claim_card(fd, puppet.pid);
		close(fd);
	}
	close(process_fd);
	succeed_if(!puppet_do(&puppet, PUPPET_HAS_SLOT, 0), "the victim's process has lost its slot");
	puppet_kill(&puppet);
}

/* The token may have been read over a shoulder, or in a log. */
TEST(uses_a_stolen_token)
{
	struct puppet puppet;
	become(ATTACKER);
	puppet_make(&puppet, &scene.system.world, scene.victim.id, CARD);
	become(0);
	int rc = puppet_do(&puppet, PUPPET_CLAIM, 0);
	puppet_kill(&puppet);
	succeed_if(!rc, "a process of the attacker has a slot in the page of the victim's job");
}

/* ---- descriptors that are not what they should be ---- */

/* Such a job has no end. */
TEST(passes_a_folder_as_a_process)
{
	struct registration registration;
	char path[] = "/tmp/ll-attack-XXXXXX";
	registration_init(&registration);
	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, 0755), 0);
	int folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(folder_fd, "stat", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(dprintf(fd, "%d (python) S 1 ", (int)scene.victim.pid),
			 (int)snprintf(NULL, 0, "%d (python) S 1 ", (int)scene.victim.pid));
	close(fd);
	registration.process_fd = folder_fd;
	int rc = attacker_register(&registration);
	unlinkat(folder_fd, "stat", 0);
	close(folder_fd);
	rmdir(path);
	succeed_if(!rc, "a job has a folder of the attacker in place of a process, which never ends");
	registration_end(&registration);
}

TEST(passes_a_file_as_a_lifeline)
{
	struct registration registration;
	registration_init(&registration);
	registration.lifeline_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int rc = attacker_register(&registration);
	close(registration.lifeline_fd);
	succeed_if(!rc, "a job has a lifeline that never ends");
	registration_end(&registration);
}

/* The one process that reads the pipe is loadlined, and it has the other end too. */
TEST(passes_a_lifeline_that_writes)
{
	struct registration registration;
	int ends[2];
	registration_init(&registration);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	registration.lifeline_fd = ends[1];
	int rc = attacker_register(&registration);
	ll_message_close_fds(ends, 2);
	succeed_if(!rc, "loadlined holds the writable end of a lifeline, so that two jobs keep each other for ever");
	registration_end(&registration);
}

/* ---- processes of another user ---- */

TEST(names_the_process_of_another)
{
	struct registration registration;
	struct ll_list list;
	bool is_taken = false;
	registration_init(&registration);
	registration.process_fd = ll_process_open(scene.victim.pid);
	attacker_register(&registration);
	list_as(&list, &scene.system, 0);
	for (size_t i = 0; i < list.job_count; i++)
		is_taken |= list.jobs[i].job.uid == ATTACKER && list.jobs[i].job.pid == (uint32_t)scene.victim.pid;
	ll_list_fini(&list);
	succeed_if(is_taken, "the attacker's job has the victim's process, which counts as the attacker's");
	close(registration.process_fd);
	registration_end(&registration);
}

/* A job whose monitor lives is not ended. */
TEST(names_the_monitor_of_another)
{
	struct registration registration;
	struct ll_list list;
	bool is_taken = false;
	int process_fd = ll_process_open(scene.victim.pid), fd = attacker_connect(LL_ROLE_MONITOR, process_fd);
	registration_init(&registration);
	registration.fd = fd;
	if (fd >= 0)
		attacker_register(&registration);
	list_as(&list, &scene.system, 0);
	for (size_t i = 0; i < list.job_count; i++)
		is_taken |= list.jobs[i].job.uid == ATTACKER && list.jobs[i].monitor_pid == (uint32_t)scene.victim.pid;
	ll_list_fini(&list);
	succeed_if(is_taken, "the attacker's job lives as long as a process of the victim");
	close(process_fd);
	registration_end(&registration);
}

/* Makes the next process of this PID namespace have that number. */
static bool set_next_pid(pid_t pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	bool is_set = fd >= 0 && dprintf(fd, "%d", (int)pid - 1) > 0;
	if (fd >= 0)
		close(fd);
	return is_set;
}

static void send_fd(int to, int fd)
{
	assert_int_equal(ll_packet_send(to, "", 1, &fd, 1), 0);
}

static int receive_fd(int from)
{
	char byte;
	int fd;
	size_t count;
	assert_int_equal(ll_packet_receive(from, true, &byte, 1, &fd, 1, &count), 0);
	assert_int_equal(count, 1);
	return fd;
}

/* Connects in a process that then ends. Returns the socket, and the process's number. */
static int connect_and_end(pid_t *ret_pid)
{
	int ends[2], fd, status;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		if (setresuid(ATTACKER, ATTACKER, ATTACKER) || ll_place_connect(&scene.system.world.place, &fd, NULL))
			_exit(1);
		send_fd(ends[1], fd);
		_exit(0);
	}
	fd = receive_fd(ends[0]);
	assert_int_equal(waitpid(*ret_pid, &status, 0), *ret_pid);
	ll_message_close_fds(ends, 2);
	return fd;
}

/* The kernel reports the number of the process that connected, which another process may have got since. */
TEST(waits_for_its_pid_to_be_reused)
{
	struct puppet puppet;
	union ll_message message;
	pid_t pid;
	int fd = connect_and_end(&pid);
	if (!set_next_pid(pid))
		SKIP_TEST("ns_last_pid cannot be written");
	victim_puppet(&puppet);
	assert_int_equal(puppet.pid, pid);
	int process_fd = ll_process_open(puppet.pid);
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_PROCESS;
	ll_message_send(fd, &message, &process_fd, 1);
	if (next_message(fd, &message) == LL_MESSAGE_WELCOME)
		claim_card(fd, pid);
	close(process_fd);
	close(fd);
	succeed_if(!puppet_do(&puppet, PUPPET_HAS_SLOT, 0), "the victim's process has lost its slot");
	puppet_kill(&puppet);
}

/* In a PID namespace of its own: sends the folder of a process that has that number there. */
static _Noreturn void be_in_namespace(int to, pid_t pid, const char *mount_point)
{
	char path[80];
	close_all_but(to);
	if (unshare(CLONE_NEWNS | CLONE_NEWPID))
		_exit(1);
	pid_t init = fork();
	if (init) {
		waitpid(init, NULL, 0);
		_exit(0);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", mount_point, "proc", 0, NULL) ||
	    !set_next_pid(pid))
		_exit(1);
	if (fork() == 0) {
		if (setresuid(ATTACKER, ATTACKER, ATTACKER))
			_exit(1);
		snprintf(path, sizeof path, "%s/%d", mount_point, (int)pid);
		send_fd(to, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	}
	for (;;)
		pause();
}

TEST(passes_a_number_of_its_pid_namespace)
{
	struct registration registration;
	struct ll_list list;
	char mount_point[] = "/tmp/ll-attack-XXXXXX";
	int ends[2];
	bool is_shown = false;
	registration_init(&registration);
	assert_non_null(mkdtemp(mount_point));
	assert_int_equal(chmod(mount_point, 0755), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid_t child = fork();
	if (child == 0)
		be_in_namespace(ends[1], scene.victim.pid, mount_point);
	registration.process_fd = receive_fd(ends[0]);
	assert_int_equal(attacker_register(&registration), 0);
	list_as(&list, &scene.system, 0);
	for (size_t i = 0; i < list.job_count; i++)
		is_shown |= list.jobs[i].job.uid == ATTACKER && list.jobs[i].job.pid == (uint32_t)scene.victim.pid;
	ll_list_fini(&list);
	rmdir(mount_point);
	succeed_if(is_shown, "the attacker's job is shown with the number of the victim's process");
	sleeper_end(child);
	close(registration.process_fd);
	ll_message_close_fds(ends, 2);
	registration_end(&registration);
}

/* ---- messages out of order ---- */

TEST(ends_a_job_that_it_has_not)
{
	union ll_message message;
	int fd = attacker_connect(LL_ROLE_MONITOR, -1);
	ll_message_init(&message, LL_MESSAGE_JOB_ENDED);
	message.job_ended.token[0] = scene.victim.id;
	send_to(fd, &message);
	next_message(fd, &message);
	close(fd);
	succeed_if(!victim_is_served(), "loadlined has ended");
}

TEST(sends_an_unknown_kind)
{
	struct ll_message_header header = {.kind = UINT16_MAX, .size = sizeof header};
	int fd = attacker_connect(LL_ROLE_COMMAND, -1);
	assert_int_equal(ll_packet_send(fd, &header, sizeof header, NULL, 0), 0);
	union ll_message message;
	next_message(fd, &message);
	close(fd);
	succeed_if(!victim_is_served(), "loadlined has ended");
}

TEST(names_a_slot_beyond_the_page)
{
	union ll_message message;
	struct user user;
	become(ATTACKER);
	user_begin(&user, &scene.system.world, scene.attacker.id, CARD);
	become(0);
	ll_message_init(&message, LL_MESSAGE_RELEASE);
	message.slot.slot_token = user.token;
	message.slot.slot = UINT32_MAX;
	send_to(user.fd, &message);
	ll_message_init(&message, LL_MESSAGE_WAKE);
	message.slot.slot_token = user.token;
	message.slot.slot = user.slot;
	int rc = ll_message_send(user.fd, &message, NULL, 0);
	assert_true(!rc || ll_client_is_lost(rc)); /* loadlined may have closed it by now */
	succeed_if(!victim_is_served(), "loadlined has ended");
	user_close(&user);
}

/* A text without an end reaches beyond its message. */
TEST(sends_a_text_without_an_end)
{
	struct registration registration;
	registration_init(&registration);
	memset(registration.facts.tenant, 'x', sizeof registration.facts.tenant);
	int rc = attacker_register(&registration);
	succeed_if(!rc, "a row of loadlined has a text that does not end");
	registration_end(&registration);
}
