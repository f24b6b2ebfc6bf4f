/* Texts that a terminal would obey. The victim sees them in `loadline status`. */
#include "attack.h"

#define ESCAPE "\033]0;owned\a"

static bool has_escape(const char *text)
{
	return strchr(text, '\033') != NULL;
}

/* Registers a job with those facts. Returns whether the victim's list has an escape, or cannot be read for it. */
static bool victim_sees(struct registration *registration)
{
	struct ll_list list;
	bool is_seen = false;
	int rc = attacker_register(registration);
	if (!victim_is_served())
		return true;
	victim_list(&list);
	for (size_t i = 0; i < list.job_count; i++)
		is_seen |= has_escape(list.jobs[i].job.tenant) || has_escape(list.jobs[i].job.command) ||
			   has_escape(list.jobs[i].job.cgroup);
	ll_list_fini(&list);
	registration_end(registration);
	return is_seen || !rc;
}

TEST(escapes_in_the_tenant)
{
	struct registration registration;
	registration_init(&registration);
	snprintf(registration.facts.tenant, sizeof registration.facts.tenant, ESCAPE);
	succeed_if(victim_sees(&registration), "the tenant's name has an escape sequence");
}

TEST(escapes_in_the_command)
{
	struct registration registration;
	registration_init(&registration);
	snprintf(registration.facts.command, sizeof registration.facts.command, ESCAPE);
	succeed_if(victim_sees(&registration), "the command has an escape sequence");
}

TEST(escapes_in_the_cgroup)
{
	struct registration registration;
	registration_init(&registration);
	snprintf(registration.facts.cgroup, sizeof registration.facts.cgroup, ESCAPE);
	succeed_if(victim_sees(&registration), "the control group has an escape sequence");
}

TEST(escapes_in_a_card)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = scene.attacker.id;
	snprintf(message.bind.uuid, sizeof message.bind.uuid, ESCAPE);
	int fd = attacker_connect(LL_ROLE_COMMAND, -1);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	next_message(fd, &message);
	close(fd);
	succeed_if(!victim_is_served(),
		   "the victim cannot read the list, because a card's name has an escape sequence");
}

TEST(escapes_in_a_note)
{
	struct user user;
	become(ATTACKER);
	user_begin(&user, &scene.system.world, scene.attacker.id, CARD);
	become(0);
	ll_page_write_note(user_slot(&user), ESCAPE);
	succeed_if(!victim_is_served(), "the victim cannot read the list, because a note has an escape sequence");
	user_close(&user);
}
