/* The sums over the jobs in the books, and what the configuration says of a job that registers, gets a card, or other
 * limits. The cards have the UUIDs "card-0" to "card-3". */
#include "daemon/policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "test.h"

#define GIB (UINT64_C(1) << 30)

enum { ANN = 1001, BOB = 1002 };

static const char policy[] = "version: 1\n"
			     "cards:\n"
			     "  - {name: whole, cards: \"0-1\", give: card}\n"
			     "  - {name: parts, cards: \"2-3\", give: memory}\n"
			     "tenants:\n"
			     "  - name: lab\n"
			     "    members: {users: [ann, bob]}\n"
			     "    guarantee: [{of: parts, memory: 10G}]\n"
			     "    limit: [{of: whole, cards: 1}, {of: parts, memory: 30G}]\n"
			     "    classes: [high, normal, low]\n"
			     "    each-user: {memory: 20G, running: 3, cards: 1}\n"
			     "  - name: guest\n"
			     "    members: {users: [\"*\"]}\n"
			     "defaults: {memory: 4G}\n";

struct world {
	char path[64];
	struct ll_server server;
	uint64_t tokens;
};

static bool find_card(const struct ll_server *server, const char *uuid, struct ll_config_card *ret_card)
{
	(void)server;
	if (strncmp(uuid, "card-", strlen("card-")) != 0)
		return false;
	*ret_card = (struct ll_config_card){(unsigned)atoi(uuid + strlen("card-")), -1};
	return true;
}

static void know(struct ll_department *department, uint32_t uid, const char *name)
{
	struct ll_identity *identity = calloc(1, sizeof *identity);
	assert_non_null(identity);
	*identity = (struct ll_identity){.next = department->identities.first,
					 .uid = uid,
					 .is_known = true,
					 .has_ended = true,
					 .texts = strdup(name),
					 .length = strlen(name) + 1};
	department->identities.first = identity;
}

static void init_world(struct world *world, bool has_cards)
{
	*world = (struct world){.path = "/tmp/loadline-department.XXXXXX"};
	int fd = mkstemp(world->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, policy, strlen(policy)), (ssize_t)strlen(policy));
	close(fd);
	struct ll_department *department = &world->server.department;
	assert_int_equal(ll_department_load(department, world->path, 1000, NULL), 0);
	department->find_card = has_cards ? find_card : NULL;
	know(department, ANN, "ann");
	know(department, BOB, "bob");
	world->server.born_ns = ll_now_ns();
}

static void fini_world(struct world *world)
{
	for (struct ll_job *job = world->server.books.jobs; job; job = job->next) {
		for (unsigned i = 0; i < job->claims->card_count; i++)
			free(job->claims->cards[i]);
		free(job->claims);
	}
	ll_books_fini(&world->server.books);
	ll_identities_fini(&world->server.department.identities);
	ll_department_fini(&world->server.department);
	unlink(world->path);
}

static void give_card(struct ll_job *job, const char *uuid)
{
	struct ll_job_card *card = calloc(1, sizeof *card);
	assert_non_null(card);
	card->job = job;
	snprintf(card->uuid, sizeof card->uuid, "%s", uuid);
	job->claims->cards[job->claims->card_count++] = card;
}

/* A job of which a process lives: the lifeline is open. */
static struct ll_job *add_job(struct world *world, uint32_t uid, const char *tenant, struct ll_limits limits,
			      int *ret_lifeline)
{
	struct ll_job_facts facts = {
	    .token = {++world->tokens, 1}, .uid = uid, .state = LL_JOB_RUNNING, .limits = limits, .tenant = "job"};
	struct ll_job *job;
	int ends[2];
	assert_int_equal(ll_books_add(&world->server.books, &facts, 0, &job), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	job->lifeline_fd = ends[0];
	*ret_lifeline = ends[1];
	job->claims = calloc(1, sizeof *job->claims);
	assert_non_null(job->claims);
	ll_message_text_set(job->department_tenant, sizeof job->department_tenant, tenant);
	return job;
}

static struct ll_job_sum sum_of(const struct world *world, struct ll_department_scope scope)
{
	struct ll_job_sum use;
	ll_department_sum(&world->server, &scope, &use);
	return use;
}

TEST(a_sum_counts_the_cards_of_a_job_and_leaves_out_others_and_what_has_ended)
{
	struct world world;
	int lives[4];
	init_world(&world, true);
	struct ll_job *parts =
	    add_job(&world, ANN, "lab", (struct ll_limits){.memory_bytes = GIB, .compute_permille = 100}, &lives[0]);
	struct ll_job *whole = add_job(&world, BOB, "lab", (struct ll_limits){.memory_bytes = 4 * GIB}, &lives[1]);
	add_job(&world, ANN, "lab", (struct ll_limits){.memory_bytes = 2 * GIB, .priority = LL_LIMIT_CLASS_HIGH},
		&lives[2]);
	add_job(&world, ANN, "guest", (struct ll_limits){.memory_bytes = 8 * GIB}, &lives[3]);
	give_card(parts, "card-2");
	give_card(parts, "card-3");
	give_card(whole, "card-1");
	struct ll_job_sum all = sum_of(&world, (struct ll_department_scope){.tenant = "lab"});
	assert_true(all.jobs == 3 && all.cards == 1 && all.memory_bytes == 4 * GIB && all.compute_permille == 200);
	struct ll_job_sum ann = sum_of(&world, (struct ll_department_scope){"lab", true, ANN, NULL, NULL, false});
	assert_true(ann.jobs == 2 && ann.cards == 0 && ann.memory_bytes == 4 * GIB);
	assert_int_equal(sum_of(&world, (struct ll_department_scope){"lab", true, ANN, parts, NULL, false}).jobs, 1);
	assert_int_equal(sum_of(&world, (struct ll_department_scope){.tenant = "lab", .is_high = true}).jobs, 1);
	const struct ll_config_group *group = ll_department_group(&world.server, "card-3");
	assert_string_equal(group->name, "parts");
	struct ll_job_sum in_group = sum_of(&world, (struct ll_department_scope){.tenant = "lab", .group = group});
	assert_true(in_group.memory_bytes == 2 * GIB && in_group.cards == 0);
	assert_null(ll_department_group(&world.server, "card-9"));
	close(lives[0]);
	assert_int_equal(sum_of(&world, (struct ll_department_scope){.tenant = "lab"}).jobs, 2);
	for (int i = 1; i < 4; i++)
		close(lives[i]);
	fini_world(&world);
}

static int admit(const struct world *world, uint32_t uid, const char *wanted, struct ll_limits *limits, uint64_t said,
		 char ret_tenant[LL_NAME_SIZE], struct ll_err *err)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_JOB);
	message.job.job = (struct ll_job_facts){.token = {99, 9}, .uid = uid, .limits = *limits};
	message.job.job.flags = wanted ? LL_JOB_NAMED : 0;
	ll_message_text_set(message.job.job.tenant, sizeof message.job.job.tenant, wanted ? wanted : "sh-1");
	message.job.said = said;
	*err = (struct ll_err){0};
	int rc = ll_department_admit(&world->server, &message.job, NULL, ret_tenant, err);
	*limits = message.job.job.limits;
	return rc;
}

TEST(a_job_that_registers_gets_its_tenant_and_its_limits_or_is_refused)
{
	struct world world;
	struct ll_err err;
	char tenant[LL_NAME_SIZE];
	int life;
	init_world(&world, false);
	struct ll_limits limits = {0};
	assert_int_equal(admit(&world, ANN, NULL, &limits, 0, tenant, &err), 0);
	assert_string_equal(tenant, "lab");
	assert_true(limits.memory_bytes == 4 * GIB);
	add_job(&world, ANN, "lab", (struct ll_limits){.memory_bytes = 15 * GIB}, &life);
	limits = (struct ll_limits){.memory_bytes = 6 * GIB};
	assert_int_equal(admit(&world, ANN, NULL, &limits, LL_SET_MEMORY, tenant, &err), -EACCES);
	assert_string_equal(err.text,
			    "tenant lab: memory: 6 GiB asked for, 20 GiB allowed for each user, 15 GiB in use");
	assert_int_equal(admit(&world, BOB, NULL, &limits, LL_SET_MEMORY, tenant, &err), 0);
	assert_int_equal(admit(&world, ANN, "guest", &limits, LL_SET_MEMORY, tenant, &err), 0);
	assert_string_equal(tenant, "guest");
	assert_int_equal(admit(&world, ANN, "nobody", &limits, LL_SET_MEMORY, tenant, &err), -EACCES);
	ll_department_fini(&world.server.department);
	assert_int_equal(admit(&world, ANN, "nobody", &limits, LL_SET_MEMORY, tenant, &err), 0);
	assert_string_equal(tenant, "");
	close(life);
	fini_world(&world);
}

TEST(a_card_is_refused_by_its_group_and_by_the_user_s_sum)
{
	struct world world;
	struct ll_err err = {0};
	int lives[3];
	init_world(&world, true);
	struct ll_job *job = add_job(&world, ANN, "lab", (struct ll_limits){.memory_bytes = 8 * GIB}, &lives[0]);
	struct ll_job *high =
	    add_job(&world, BOB, "lab", (struct ll_limits){.memory_bytes = 11 * GIB, .priority = LL_LIMIT_CLASS_HIGH},
		    &lives[1]);
	struct ll_job *other = add_job(&world, BOB, "lab", (struct ll_limits){.memory_bytes = GIB}, &lives[2]);
	assert_int_equal(ll_department_check_card(&world.server, job, "card-2", &err), 0);
	give_card(job, "card-2");
	assert_int_equal(ll_department_check_card(&world.server, job, "card-2", &err), 0); /* it has it */
	assert_int_equal(ll_department_check_card(&world.server, job, "card-3", &err), 0);
	give_card(job, "card-3");
	assert_int_equal(ll_department_check_card(&world.server, job, "unknown", &err), -EACCES);
	assert_string_equal(err.text,
			    "tenant lab: memory: 24 GiB asked for, 20 GiB allowed for each user, 0 GiB in use");
	assert_int_equal(ll_department_check_card(&world.server, high, "card-3", &err), -EACCES);
	assert_string_equal(err.text,
			    "tenant lab: memory: 11 GiB asked for, 10 GiB allowed for class high of tenant lab "
			    "in group parts, 0 GiB in use");
	assert_int_equal(ll_department_check_card(&world.server, job, "card-0", &err), 0);
	give_card(job, "card-0");
	assert_int_equal(ll_department_check_card(&world.server, other, "card-1", &err), -EACCES);
	assert_string_equal(err.text,
			    "tenant lab: cards: 1 asked for, 1 allowed for tenant lab in group whole, 1 in use");
	for (int i = 0; i < 3; i++)
		close(lives[i]);
	fini_world(&world);
}

TEST(limits_may_always_become_less_and_grow_within_what_is_allowed)
{
	struct world world;
	struct ll_err err = {0};
	int lives[2];
	init_world(&world, false);
	struct ll_job *job = add_job(&world, ANN, "lab", (struct ll_limits){.memory_bytes = 8 * GIB}, &lives[0]);
	add_job(&world, ANN, "lab", (struct ll_limits){.memory_bytes = 30 * GIB}, &lives[1]); /* of a former time */
	struct ll_limits limits = {.memory_bytes = 7 * GIB};
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), 0);
	limits.memory_bytes = 8 * GIB + 1;
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), -EACCES);
	limits.memory_bytes = 0; /* without a limit */
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), -EACCES);
	limits = (struct ll_limits){.memory_bytes = 8 * GIB, .weight_permille = 5000};
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), 0);
	for (int i = 0; i < 2; i++)
		close(lives[i]);
	fini_world(&world);
}

TEST(promised_memory_is_within_the_guarantee_of_its_group)
{
	struct world world;
	struct ll_err err = {0};
	int lives[2];
	init_world(&world, true);
	struct ll_limits limits = {.memory_bytes = 8 * GIB, .request_bytes = 6 * GIB};
	struct ll_job *job = add_job(&world, ANN, "lab", limits, &lives[0]);
	struct ll_job *other = add_job(&world, BOB, "lab", limits, &lives[1]);
	assert_int_equal(ll_department_check_card(&world.server, job, "card-2", &err), 0);
	give_card(job, "card-2");
	assert_int_equal(ll_department_check_card(&world.server, other, "card-3", &err), -EACCES);
	assert_string_equal(err.text,
			    "tenant lab: memory: 6 GiB asked for, 10 GiB allowed for requests of tenant lab in "
			    "group parts, 6 GiB in use");
	other->facts.limits.request_bytes = 4 * GIB;
	assert_int_equal(ll_department_check_card(&world.server, other, "card-3", &err), 0);
	give_card(other, "card-3");
	limits.request_bytes = 6 * GIB + 1;
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), -EACCES);
	limits.request_bytes = 6 * GIB;
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), 0);
	/* A tenant without a guarantee is promised nothing. */
	ll_message_text_set(other->department_tenant, sizeof other->department_tenant, "guest");
	assert_int_equal(ll_department_check_card(&world.server, other, "card-2", &err), -EACCES);
	for (int i = 0; i < 2; i++)
		close(lives[i]);
	fini_world(&world);
}

TEST(a_class_and_a_group_s_limit_hold_for_a_change_as_for_a_card)
{
	struct world world;
	struct ll_err err = {0};
	int lives[3];
	init_world(&world, true);
	struct ll_limits limits = {.memory_bytes = 8 * GIB};
	struct ll_job *job = add_job(&world, ANN, "lab", limits, &lives[0]);
	struct ll_job *other = add_job(&world, BOB, "lab", (struct ll_limits){.memory_bytes = 18 * GIB}, &lives[1]);
	struct ll_job *whole = add_job(&world, BOB, "guest", limits, &lives[2]);
	give_card(job, "card-2");
	give_card(other, "card-3");
	give_card(whole, "card-0");
	/* The tenant has 30 GiB of the group. */
	limits.memory_bytes = 12 * GIB;
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), 0);
	limits.memory_bytes = 13 * GIB;
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), -EACCES);
	/* Class high is within the guarantee of 10 GiB. */
	limits = (struct ll_limits){.memory_bytes = 8 * GIB, .priority = LL_LIMIT_CLASS_HIGH};
	assert_int_equal(ll_department_check_limits(&world.server, job, &limits, &err), 0);
	limits.memory_bytes = 18 * GIB;
	assert_int_equal(ll_department_check_limits(&world.server, other, &limits, &err), -EACCES);
	/* Guests may not use it, on a whole card neither. */
	limits.memory_bytes = 8 * GIB;
	assert_int_equal(ll_department_check_limits(&world.server, whole, &limits, &err), -EACCES);
	for (int i = 0; i < 3; i++)
		close(lives[i]);
	fini_world(&world);
}
