/* Attacks on what a configuration allows and hides. Both users are in tenant team, and the victim alone in research. */
#include "attack.h"

#include <sys/mman.h>

enum { CONFIG_SIZE = 64, EACH_MIB = 512 };
static char config[CONFIG_SIZE];

static int begin_department(const char *others)
{
	snprintf(config, sizeof config, "/tmp/ll-attack-%d.yaml", (int)getpid());
	FILE *file = fopen(config, "we");
	assert_non_null(file);
	fprintf(file,
		"version: 1\n"
		"visibility: {others: %s, commands: own}\n"
		"cards:\n"
		"  - {name: parts, cards: \"0\", give: memory, by: auto}\n"
		"tenants:\n"
		"  - name: team\n"
		"    members: {users: [\"%d\", \"%d\"]}\n"
		"    each-user: {memory: %dM, running: 8}\n"
		"  - name: research\n"
		"    members: {users: [\"%d\"]}\n",
		others, VICTIM, ATTACKER, EACH_MIB, VICTIM);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(config, 0644), 0);
	return scene_begin_with(config);
}

static int begin_open(void **state)
{
	(void)state;
	return begin_department("user-and-share");
}

static int begin_closed(void **state)
{
	(void)state;
	return begin_department("nothing");
}

/* ---- what is hidden ---- */

TEST_WITH(begin_open, scene_end, reads_a_hidden_command)
{
	struct ll_list list;
	list_as(&list, &scene.system, ATTACKER);
	const struct ll_message_job_row *row = row_of(&list, VICTIM);
	assert_non_null(row);
	succeed_if(row->job.command[0], "the attacker sees the victim's command");
	ll_list_fini(&list);
}

TEST_WITH(begin_closed, scene_end, sees_hidden_jobs)
{
	struct ll_list list;
	list_as(&list, &scene.system, ATTACKER);
	succeed_if(row_of(&list, VICTIM), "the attacker sees that the victim has a job");
	ll_list_fini(&list);
}

TEST_WITH(begin_closed, scene_end, counts_hidden_jobs)
{
	struct ll_client client;
	open_as(&client, &scene.system, ATTACKER);
	succeed_if(client.welcome.jobs > 1 || client.welcome.tenants > 1,
		   "the attacker learns how many jobs others have");
	ll_client_close(&client);
}

static int set_as_attacker(uint64_t number, char reason[LL_REASON_SIZE])
{
	union ll_message message;
	struct ll_client client;
	struct ll_err err = {0};
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = number;
	message.set.fields = LL_SET_MEMORY;
	message.set.limits.memory_bytes = MIB;
	open_as(&client, &scene.system, ATTACKER);
	int rc = ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + DEADLINE_NS, &err);
	ll_client_close(&client);
	ll_message_text_set(reason, LL_REASON_SIZE, err.text);
	return rc;
}

TEST_WITH(begin_closed, scene_end, finds_hidden_numbers)
{
	char of_victim[LL_REASON_SIZE], of_nobody[LL_REASON_SIZE];
	int code = set_as_attacker(scene.victim_number, of_victim);
	assert_int_equal(set_as_attacker(scene.victim_number + 1000, of_nobody), -ESRCH);
	succeed_if(code != -ESRCH || strcmp(of_victim, of_nobody) != 0, "the attacker learns which numbers are jobs");
}

TEST_WITH(begin_closed, scene_end, reads_hidden_decisions)
{
	union ll_message message;
	struct puppet puppet;
	victim_puppet(&puppet);
	int fd = attacker_connect(LL_ROLE_COMMAND, -1);
	ll_message_init(&message, LL_MESSAGE_DECISIONS);
	ll_message_text_set(message.decisions.uuid, sizeof message.decisions.uuid, CARD);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	unsigned kind = next_message(fd, &message);
	close(fd);
	succeed_if(kind == LL_MESSAGE_DECISIONS_STATE, "the attacker sees how the victim's card is shared");
	puppet_kill(&puppet);
}

/* ---- what is allowed ---- */

static uint64_t attacker_limit(uint64_t token)
{
	struct ll_list list;
	uint64_t bytes = 0;
	list_as(&list, &scene.system, 0);
	for (size_t i = 0; i < list.job_count; i++) {
		if (list.jobs[i].job.token[0] == token)
			bytes = list.jobs[i].job.limits.memory_bytes;
	}
	ll_list_fini(&list);
	return bytes;
}

TEST_WITH(begin_open, scene_end, takes_a_tenant_of_others)
{
	struct registration registration;
	registration_init(&registration);
	registration.facts.flags = LL_JOB_NAMED;
	registration.facts.limits.memory_bytes = MIB;
	ll_message_text_set(registration.facts.tenant, sizeof registration.facts.tenant, "research");
	int rc = attacker_register(&registration);
	succeed_if(!rc, "the attacker's job has the guarantee of the victim's tenant");
	registration_end(&registration);
}

TEST_WITH(begin_open, scene_end, starts_more_than_each_user_may)
{
	struct registration registration;
	registration_init(&registration);
	registration.facts.limits.memory_bytes = EACH_MIB * MIB;
	int rc = attacker_register(&registration);
	succeed_if(!rc, "the attacker has more memory than each user may");
	registration_end(&registration);
}

TEST_WITH(begin_open, scene_end, sets_more_than_each_user_may)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = scene.attacker_number;
	message.set.fields = LL_SET_MEMORY;
	message.set.limits.memory_bytes = 2 * EACH_MIB * MIB;
	attacker_request(&message, NULL, 0);
	succeed_if(attacker_limit(scene.attacker.id) > EACH_MIB * MIB,
		   "the attacker has more memory than each user may");
}

static void spoil_memory(struct ll_page *page, struct ll_orders *orders)
{
	const struct ll_limits limits = {.memory_bytes = 2 * EACH_MIB * MIB};
	(void)page;
	ll_orders_write_limits(orders, &limits);
}

/* The limits of the message are less. */
TEST_WITH(begin_open, scene_end, brings_more_than_each_user_may)
{
	struct registration registration;
	attacker_register_spoilt(&registration, spoil_memory);
	succeed_if(attacker_limit(registration.facts.token[0]) > EACH_MIB * MIB,
		   "the attacker has more memory than each user may");
	registration_end(&registration);
}
