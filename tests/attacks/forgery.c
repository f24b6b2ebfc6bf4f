/* Messages that say something false about their sender. */
#include "attack.h"

#include <sys/mman.h>

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
	registration.lifeline_fd = memfd_create("lifeline", MFD_CLOEXEC);
	int rc = attacker_register(&registration);
	close(registration.lifeline_fd);
	succeed_if(!rc, "a job has a lifeline that never ends");
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
	send_to(user.fd, &message);
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
