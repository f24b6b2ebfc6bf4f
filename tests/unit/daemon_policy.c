/* Who is in which tenant, and what a job of a tenant may have: each default and each refusal. */
#include "daemon/policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "protocol/message.h"
#include "test.h"

#define GIB (UINT64_C(1) << 30)

enum { ANN = 1001, BOB = 1002, EVE = 1003, LATER = 1004 };

static const char policy[] = "version: 1\n"
			     "admins: {groups: [gpu-admin]}\n"
			     "operators: {users: [bob]}\n"
			     "cards:\n"
			     "  - {name: whole, cards: \"0-1\", give: card}\n"
			     "  - {name: parts, cards: \"2-3\", give: memory}\n"
			     "tenants:\n"
			     "  - name: serving\n"
			     "    members: {groups: [svc]}\n"
			     "    guarantee: [{of: whole, cards: 1}, {of: parts, memory: 40G, compute: 50%}]\n"
			     "    limit: [{of: whole, cards: 2}, {of: parts, memory: 60G, compute: 80%}]\n"
			     "    classes: [high, normal]\n"
			     "  - name: research\n"
			     "    members: {users: [ann], groups: [research]}\n"
			     "    classes: [normal, low]\n"
			     "    each-user: {cards: 1, memory: 20G, compute: 60%, running: 2}\n"
			     "  - name: course\n"
			     "    members: {users: [ann, bob]}\n"
			     "    classes: [low]\n"
			     "    each-user: {memory: 16G, compute: 25%}\n"
			     "defaults: {memory: 16G, class: normal, evictable: true}\n";

/* An answer as of `loadlined --lookup`. */
static void know(struct ll_department *department, uint32_t uid, const char *texts, size_t length)
{
	struct ll_identity *identity = calloc(1, sizeof *identity);
	assert_non_null(identity);
	*identity = (struct ll_identity){.next = department->identities.first,
					 .uid = uid,
					 .is_known = true,
					 .has_ended = true,
					 .texts = malloc(length),
					 .length = length};
	assert_non_null(identity->texts);
	memcpy(identity->texts, texts, length);
	department->identities.first = identity;
}

#define KNOW(department, uid, texts) know(department, uid, texts, sizeof(texts))

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

struct world {
	char path[64];
	struct ll_department department;
};

static void init_world(struct world *world, const char *text)
{
	*world = (struct world){.path = "/tmp/loadline-department.XXXXXX"};
	int fd = mkstemp(world->path);
	assert_true(fd >= 0);
	close(fd);
	write_file(world->path, text);
	assert_int_equal(ll_department_load(&world->department, world->path, 1000, NULL), 0);
	KNOW(&world->department, ANN, "ann\0users\0svc");
	KNOW(&world->department, BOB, "bob\0users");
	KNOW(&world->department, EVE, "eve\0gpu-admin");
}

static void fini_world(struct world *world)
{
	ll_identities_fini(&world->department.identities);
	ll_department_fini(&world->department);
	unlink(world->path);
}

static const char *tenant_of(const struct world *world, uint32_t uid, const char *wanted, struct ll_err *err)
{
	const struct ll_config_tenant *tenant = ll_department_tenant(&world->department, uid, wanted, err);
	return tenant ? tenant->name : "none";
}

TEST(a_user_gets_the_first_tenant_or_the_named_one_of_the_own_tenants)
{
	struct world world;
	struct ll_err err = {0};
	init_world(&world, policy);
	assert_string_equal(tenant_of(&world, ANN, NULL, NULL), "serving");
	assert_string_equal(tenant_of(&world, ANN, "", NULL), "serving");
	assert_string_equal(tenant_of(&world, ANN, "course", NULL), "course");
	assert_string_equal(tenant_of(&world, BOB, NULL, NULL), "course");
	assert_string_equal(tenant_of(&world, BOB, "research", &err), "none");
	assert_int_equal(err.code, -EACCES);
	assert_string_equal(err.text, "user bob is not in a tenant research, but in course");
	assert_string_equal(tenant_of(&world, EVE, NULL, &err), "none");
	assert_string_equal(err.text, "user eve is in no tenant");
	assert_string_equal(tenant_of(&world, LATER, NULL, &err), "none");
	assert_int_equal(err.code, -EAGAIN);
	fini_world(&world);
}

TEST(a_user_is_named_by_the_uid_too)
{
	struct world world;
	char text[128];
	snprintf(text, sizeof text, "version: 1\ntenants: [{name: guest, members: {users: [\"%d\"]}}]\n", BOB);
	init_world(&world, text);
	assert_string_equal(tenant_of(&world, BOB, NULL, NULL), "guest");
	assert_string_equal(tenant_of(&world, ANN, NULL, NULL), "none");
	fini_world(&world);
}

TEST(everybody_is_a_star_and_nobody_is_in_a_tenant_without_a_configuration)
{
	struct world world;
	struct ll_err err = {0};
	init_world(&world, "version: 1\ntenants: [{name: guest, members: {users: [\"*\"]}}]\n");
	assert_string_equal(tenant_of(&world, BOB, NULL, NULL), "guest");
	assert_string_equal(tenant_of(&world, LATER, NULL, &err),
			    "none"); /* who it is may be a fault of the directory */
	struct ll_department empty = {0};
	assert_null(ll_department_tenant(&empty, BOB, NULL, &err));
	assert_int_equal(err.code, -ENOENT);
	assert_null(ll_department_policy(&empty));
	fini_world(&world);
}

TEST(admins_and_operators_are_who_the_configuration_says)
{
	struct world world;
	init_world(&world, policy);
	assert_true(ll_department_is_admin(&world.department, 0) && ll_department_is_admin(&world.department, EVE));
	assert_false(ll_department_is_admin(&world.department, BOB) ||
		     ll_department_is_admin(&world.department, LATER));
	assert_true(ll_department_is_operator(&world.department, BOB) &&
		    ll_department_is_operator(&world.department, EVE));
	assert_false(ll_department_is_operator(&world.department, ANN));
	fini_world(&world);
}

TEST(a_file_with_faults_leaves_the_former_configuration_in_force)
{
	struct world world;
	struct ll_err err = {0};
	char expected[128];
	init_world(&world, policy);
	uint64_t number = world.department.number;
	write_file(world.path, "version: 1\ntenats: []\n");
	assert_int_equal(ll_department_load(&world.department, world.path, 2000, &err), -EINVAL);
	snprintf(expected, sizeof expected, "%s:2:1: ", world.path);
	assert_memory_equal(err.text, expected, strlen(expected));
	assert_memory_equal(world.department.fault, expected, strlen(expected));
	assert_int_equal(world.department.refused_s, 2000);
	assert_int_equal(world.department.since_s, 1000);
	assert_int_equal(world.department.number, number);
	assert_string_equal(tenant_of(&world, BOB, NULL, NULL), "course");
	/* It is not in force since the first of several attempts. */
	assert_int_equal(ll_department_load(&world.department, world.path, 2500, NULL), -EINVAL);
	assert_int_equal(world.department.refused_s, 2000);
	unlink(world.path);
	assert_int_equal(ll_department_load(&world.department, world.path, 2600, &err), -EINVAL);
	write_file(world.path, policy);
	assert_int_equal(ll_department_load(&world.department, world.path, 3000, NULL), 0);
	assert_int_equal(world.department.refused_s, 0);
	assert_int_equal(world.department.since_s, 3000);
	assert_string_equal(world.department.fault, "");
	fini_world(&world);
}

/* ---- what a job may have ---- */

static const struct ll_config_tenant *find(const struct world *world, const char *name)
{
	const struct ll_config_tenant *tenant = ll_department_find(&world->department, name);
	assert_non_null(tenant);
	return tenant;
}

static struct ll_limits complete(const struct world *world, const char *tenant, struct ll_job_sum user, uint64_t said,
				 struct ll_limits limits)
{
	ll_allowance_complete(ll_department_policy(&world->department), find(world, tenant), &user, said, &limits);
	return limits;
}

TEST(what_a_job_does_not_say_comes_from_the_defaults_and_what_is_left)
{
	struct world world;
	init_world(&world, policy);
	const struct ll_job_sum none = {0}, some = {.jobs = 1, .memory_bytes = GIB, .compute_permille = 200};
	struct ll_limits limits = complete(&world, "research", none, 0, (struct ll_limits){0});
	assert_true(limits.memory_bytes == 16 * GIB && limits.compute_permille == 600);
	assert_int_equal(limits.priority, LL_LIMIT_CLASS_NORMAL);
	assert_int_equal(limits.flags, LL_LIMIT_EVICTABLE);
	limits = complete(&world, "research", some, 0, (struct ll_limits){0});
	assert_true(limits.memory_bytes == 16 * GIB && limits.compute_permille == 400);
	/* The default class is not allowed there. */
	assert_int_equal(complete(&world, "course", none, 0, (struct ll_limits){0}).priority, LL_LIMIT_CLASS_LOW);
	assert_int_equal(complete(&world, "serving", none, 0, (struct ll_limits){0}).compute_permille, 0);
	/* What was said stays. */
	limits = complete(&world, "course", none, LL_SET_MEMORY | LL_SET_PRIORITY | LL_SET_COMPUTE,
			  (struct ll_limits){.memory_bytes = 2 * GIB, .compute_permille = 100});
	assert_true(limits.memory_bytes == 2 * GIB && limits.compute_permille == 100);
	assert_int_equal(limits.priority, LL_LIMIT_CLASS_NORMAL);
	/* A request is within the limit. */
	assert_true(complete(&world, "research", none, LL_SET_REQUEST, (struct ll_limits){.request_bytes = 18 * GIB})
			.memory_bytes == 18 * GIB);
	fini_world(&world);
}

static const char *refusal(const struct world *world, const char *tenant, struct ll_job_sum user, uint64_t cards,
			   struct ll_limits limits)
{
	static struct ll_err err;
	err = (struct ll_err){0};
	int rc = ll_allowance_check(find(world, tenant), &user, cards, &limits, &err);
	assert_true(rc == 0 || rc == -EACCES);
	return rc ? err.text : "allowed";
}

TEST(each_limit_of_a_user_is_checked_at_its_border)
{
	struct world world;
	init_world(&world, policy);
	const struct ll_job_sum none = {0};
	const struct ll_job_sum some = {.jobs = 1, .memory_bytes = 12 * GIB, .compute_permille = 350};
	const struct ll_job_sum two = {.jobs = 2};
	const struct ll_limits fits = {.memory_bytes = 8 * GIB, .compute_permille = 250};
	struct ll_limits limits = fits;
	assert_string_equal(refusal(&world, "research", some, 1, fits), "allowed");
	limits.memory_bytes++;
	assert_string_equal(refusal(&world, "research", some, 1, limits),
			    "memory: 8 GiB asked for, 20 GiB allowed for each user, 12 GiB in use");
	assert_string_equal(refusal(&world, "research", none, 2, limits), "allowed");
	assert_string_equal(refusal(&world, "research", none, 3, limits),
			    "memory: 24 GiB asked for, 20 GiB allowed for each user, 0 GiB in use");
	limits = fits;
	limits.compute_permille++;
	assert_string_equal(refusal(&world, "research", some, 1, limits),
			    "compute: 25.1% asked for, 60% allowed for each user, 35% in use");
	assert_string_equal(refusal(&world, "research", two, 1, fits), "running: 2 jobs allowed for each user, 2 run");
	limits = fits;
	limits.memory_bytes = 0;
	assert_string_equal(refusal(&world, "research", none, 1, limits),
			    "memory: no limit asked for, and each user has one");
	limits = fits;
	limits.compute_permille = 0;
	assert_string_equal(refusal(&world, "research", none, 1, limits),
			    "compute: no limit asked for, and each user has one");
	limits.space_permille = 600;
	assert_string_equal(refusal(&world, "research", none, 1, limits), "allowed");
	limits.space_permille = 601;
	assert_string_equal(refusal(&world, "research", none, 1, limits),
			    "compute: 60.1% asked for, 60% allowed for each user, 0% in use");
	assert_string_equal(refusal(&world, "serving", two, 9, (struct ll_limits){0}), "allowed");
	fini_world(&world);
}

TEST(a_class_that_the_tenant_may_not_use_is_refused)
{
	struct world world;
	init_world(&world, policy);
	const struct ll_job_sum none = {0};
	struct ll_limits limits = {.memory_bytes = GIB, .compute_permille = 100, .priority = LL_LIMIT_CLASS_HIGH};
	assert_string_equal(refusal(&world, "research", none, 1, limits),
			    "class: high asked for, tenant research may use normal, low");
	assert_string_equal(refusal(&world, "serving", none, 1, limits), "allowed");
	limits.priority = LL_LIMIT_CLASS_LOW;
	assert_string_equal(refusal(&world, "serving", none, 1, limits),
			    "class: low asked for, tenant serving may use high, normal");
	fini_world(&world);
}

static const char *group_refusal(const struct world *world, const char *tenant, struct ll_allowance_group ask)
{
	static struct ll_err err;
	err = (struct ll_err){0};
	int rc = ll_allowance_check_group(find(world, tenant), &ask, &err);
	assert_true(rc == 0 || rc == -EACCES);
	return rc ? err.text : "allowed";
}

TEST(the_tenants_limit_and_for_class_high_the_guarantee_are_checked_in_a_group)
{
	struct world world;
	init_world(&world, policy);
	const struct ll_config_policy *config = ll_department_policy(&world.department);
	struct ll_allowance_group whole = {.group = &config->cards.items[0], .tenant.cards = 1, .job.cards = 1};
	assert_string_equal(group_refusal(&world, "serving", whole), "allowed");
	whole.tenant.cards = 2;
	assert_string_equal(group_refusal(&world, "serving", whole),
			    "cards: 1 asked for, 2 allowed for tenant serving in group whole, 2 in use");
	whole.tenant.cards = 0;
	whole.is_high = true;
	assert_string_equal(group_refusal(&world, "serving", whole), "allowed");
	whole.high.cards = 1;
	assert_string_equal(group_refusal(&world, "serving", whole),
			    "cards: 1 asked for, 1 allowed for class high of tenant serving in group whole, 1 in use");
	whole = (struct ll_allowance_group){.group = &config->cards.items[0], .user.cards = 1, .job.cards = 1};
	assert_string_equal(group_refusal(&world, "research", whole),
			    "cards: 1 asked for, 1 allowed for each user, 1 in use");
	struct ll_allowance_group parts = {.group = &config->cards.items[1],
					   .tenant.memory_bytes = 50 * GIB,
					   .job = {.memory_bytes = 10 * GIB, .compute_permille = 800}};
	assert_string_equal(group_refusal(&world, "serving", parts), "allowed");
	parts.job.memory_bytes += GIB;
	assert_string_equal(
	    group_refusal(&world, "serving", parts),
	    "memory: 11 GiB asked for, 60 GiB allowed for tenant serving in group parts, 50 GiB in use");
	parts.job.memory_bytes = GIB;
	parts.tenant.compute_permille = 1;
	assert_string_equal(group_refusal(&world, "serving", parts),
			    "compute: 80% asked for, 80% allowed for tenant serving in group parts, 0.1% in use");
	parts = (struct ll_allowance_group){.group = &config->cards.items[1],
					    .job = {.memory_bytes = 41 * GIB, .compute_permille = 100},
					    .is_high = true};
	assert_string_equal(
	    group_refusal(&world, "serving", parts),
	    "memory: 41 GiB asked for, 40 GiB allowed for class high of tenant serving in group parts, 0 GiB in use");
	parts.job.memory_bytes = 0; /* without a limit of its own */
	assert_string_equal(group_refusal(&world, "serving", parts),
			    "memory: no limit asked for, and tenant serving in group parts has one");
	/* Without a guarantee in the group nothing is within it. */
	parts.job = (struct ll_job_sum){.memory_bytes = 1, .compute_permille = 1};
	assert_string_not_equal(group_refusal(&world, "research", parts), "allowed");
	fini_world(&world);
}
