/* What commands ask of loadlined: cards for a job, limits, what it knows. Each test says what is expected. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "base/process.h"
#include "protocol/client.h"
#include "protocol/words.h"
#include "puppet.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
#define OTHER_CARD "GPU-00000000-0000-0000-0000-000000000001"
#define MIB UINT64_C(0x100000)
enum { LIMIT_MIB = 100, REQUEST_MIB = 40, UNITS_IN_MIB = 2048 };

struct scene {
	struct world world;
	struct job job;
	struct ll_client client;
};

static int begin(void **state)
{
	static struct scene scene;
	world_init(&scene.world);
	scene.world.limits = (struct ll_limits){.memory_bytes = LIMIT_MIB * MIB, .request_bytes = REQUEST_MIB * MIB};
	job_start(&scene.job, &scene.world, "team", NULL);
	assert_int_equal(ll_client_open(&scene.client, &scene.world.place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
					ll_now_ns() + DEADLINE_NS, NULL),
			 0);
	*state = &scene;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;
	ll_client_close(&scene->client);
	job_stop(&scene->job);
	wait_for(world_has_jobs(&scene->world, 0));
	world_fini(&scene->world);
	return 0;
}

TEST_EACH(begin, end);

static int ask(struct scene *scene, union ll_message *message, struct ll_err *err)
{
	return ll_client_request(&scene->client, message, NULL, 0, NULL, ll_now_ns() + DEADLINE_NS, err);
}

static void make_bind(uint64_t job, const char *uuid, uint64_t promisable_mib, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_BIND);
	ret_message->bind.job = job;
	ret_message->bind.promisable_bytes = promisable_mib * MIB;
	ret_message->bind.usable_bytes = 1000 * MIB;
	ll_message_text_set(ret_message->bind.uuid, sizeof ret_message->bind.uuid, uuid);
}

static int bind_card(struct scene *scene, uint64_t job, const char *uuid, uint64_t promisable_mib, struct ll_err *err)
{
	union ll_message message;
	make_bind(job, uuid, promisable_mib, &message);
	return ask(scene, &message, err);
}

static void read_list(struct scene *scene, struct ll_list *ret_list)
{
	assert_int_equal(ll_client_list(&scene->client, ret_list, ll_now_ns() + DEADLINE_NS, NULL), 0);
}

static uint64_t number_of(struct scene *scene, uint64_t id)
{
	struct ll_list list;
	uint64_t number = 0;
	read_list(scene, &list);
	for (size_t i = 0; i < list.job_count; i++) {
		if (list.jobs[i].job.token[0] == id)
			number = list.jobs[i].number;
	}
	ll_list_fini(&list);
	return number;
}

static int set(struct scene *scene, uint64_t job, uint64_t fields, const struct ll_limits *limits, struct ll_err *err)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = number_of(scene, job);
	message.set.fields = fields;
	message.set.limits = *limits;
	return ask(scene, &message, err);
}

TEST_GIVEN(struct scene *scene, requests_on_a_card_are_not_more_than_it_can_promise)
{
	struct ll_err err = {0};
	struct job other;
	job_start(&other, &scene->world, NULL, NULL);
	assert_int_equal(bind_card(scene, scene->job.id, CARD, 70, NULL), 0);
	assert_fails(bind_card(scene, other.id, CARD, 70, &err), -EDQUOT,
		     "40 MiB cannot be promised: of the card's 70 MiB other jobs are promised 40, and 30 are left");
	assert_int_equal(bind_card(scene, other.id, OTHER_CARD, 70, NULL), 0);
	assert_int_equal(bind_card(scene, other.id, CARD, 80, NULL), 0);
	assert_fails(set(scene, other.id, LL_SET_REQUEST, &(struct ll_limits){.request_bytes = 41 * MIB}, &err),
		     -EDQUOT, "41 MiB cannot be promised");
	assert_int_equal(set(scene, other.id, LL_SET_REQUEST | LL_SET_OVERCOMMIT,
			     &(struct ll_limits){.request_bytes = 41 * MIB}, NULL),
			 0);
	assert_int_equal(set(scene, other.id, LL_SET_REQUEST, &(struct ll_limits){.request_bytes = 30 * MIB}, NULL), 0);
	job_stop(&other);
	wait_for(world_has_jobs(&scene->world, 1));
	assert_int_equal(
	    set(scene, scene->job.id, LL_SET_REQUEST, &(struct ll_limits){.request_bytes = 70 * MIB}, NULL), 0);
	assert_fails(bind_card(scene, 4711, CARD, 70, &err), -ESRCH, "no such job");
}

/* Asks by the job's monitor, as `run` does. Returns the kind of the reply. */
static unsigned bind_by_monitor(const struct job *job, uint64_t id, const char *uuid, uint32_t serial)
{
	union ll_message message;
	make_bind(id, uuid, 70, &message);
	message.header.serial = serial;
	assert_int_equal(ll_message_send(job->report_fd, &message, NULL, 0), 0);
	unsigned kind = next_message(job->report_fd, &message);
	assert_int_equal(message.header.serial, serial);
	return kind;
}

TEST_GIVEN(struct scene *scene, a_monitor_passes_on_what_run_asks_also_to_the_next_daemon)
{
	struct job job;
	union ll_message message;
	job_launch(&job, &scene->world, NULL, NULL);
	assert_int_equal(next_message(job.report_fd, &message), LL_MESSAGE_ACCEPTED);
	assert_int_equal(bind_by_monitor(&job, job.id, CARD, 1), LL_MESSAGE_ACCEPTED);
	kill_process(world_daemon(&scene->world), SIGKILL);
	assert_int_equal(bind_by_monitor(&job, job.id, OTHER_CARD, 2), LL_MESSAGE_ACCEPTED);
	assert_int_equal(bind_by_monitor(&job, 4711, CARD, 3), LL_MESSAGE_REFUSED);
	assert_int_equal(bind_by_monitor(&job, job.id, CARD, 4), LL_MESSAGE_ACCEPTED);
	job_stop(&job);
	wait_for(world_has_jobs(&scene->world, 1));
}

/* Expected: a limit that is lowered below what is used lets nobody grow, and a higher one is there at once. */
TEST_GIVEN(struct scene *scene, limits_that_are_set_hold_at_once_and_for_the_next_daemon)
{
	struct puppet one, other;
	struct ll_limits limits = {.memory_bytes = 50 * MIB, .weight_permille = 3000};
	struct ll_list list;
	puppet_start(&one, &scene->world, scene->job.id, CARD);
	puppet_start(&other, &scene->world, scene->job.id, CARD);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 60 * UNITS_IN_MIB), 0);
	assert_int_equal(set(scene, scene->job.id, LL_SET_MEMORY | LL_SET_WEIGHT, &limits, NULL), 0);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&one, PUPPET_RELEASE, 20 * UNITS_IN_MIB), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 10 * UNITS_IN_MIB), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	kill_process(world_daemon(&scene->world), SIGKILL);
	ll_client_close(&scene->client);
	wait_for(world_has_jobs(&scene->world, 1));
	assert_int_equal(ll_client_open(&scene->client, &scene->world.place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
					ll_now_ns() + DEADLINE_NS, NULL),
			 0);
	read_list(scene, &list);
	assert_int_equal(list.jobs[0].job.limits.memory_bytes, 50 * MIB);
	assert_int_equal(list.jobs[0].job.limits.request_bytes, REQUEST_MIB * MIB);
	assert_int_equal(list.tenants[0].limits.weight_permille, 3000);
	ll_list_fini(&list);
	assert_int_equal(puppet_do(&other, PUPPET_COME_BACK, 0), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	limits.memory_bytes = 0;
	assert_int_equal(set(scene, scene->job.id, LL_SET_MEMORY, &limits, NULL), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1000 * UNITS_IN_MIB), 0);
	puppet_kill(&one);
	puppet_kill(&other);
}

static const struct ll_message_claim_row *claim_of(const struct ll_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->claim_count; i++) {
		if (list->claims[i].pid == (uint32_t)pid)
			return &list->claims[i];
	}
	fail_msg("process %d has no claim", (int)pid);
	return NULL;
}

static size_t claims_in_list(struct scene *scene)
{
	struct ll_list list;
	read_list(scene, &list);
	size_t count = list.claim_count;
	ll_list_fini(&list);
	return count;
}

TEST_GIVEN(struct scene *scene, the_list_has_cards_and_claims)
{
	struct puppet one, other;
	struct ll_list list;
	puppet_start(&one, &scene->world, scene->job.id, CARD);
	puppet_start(&other, &scene->world, scene->job.id, OTHER_CARD);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 3 * UNITS_IN_MIB), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 5 * UNITS_IN_MIB), 0);
	read_list(scene, &list);
	assert_int_equal(list.card_count, 2);
	assert_int_equal(list.claim_count, 2);
	assert_int_equal(list.jobs[0].processes, 3); /* the first one and two that use cards */
	assert_int_equal(list.end.processes, 3);
	const struct ll_message_card_row *card = ll_list_card(&list, list.jobs[0].number, OTHER_CARD);
	assert_non_null(card);
	assert_int_equal(card->used_bytes, 5 * MIB);
	assert_int_equal(card->claims, 1);
	const struct ll_message_claim_row *claim = claim_of(&list, one.pid);
	assert_int_equal(claim->used_bytes, 3 * MIB);
	assert_int_equal(claim->granted_bytes, LIMIT_MIB * MIB);
	assert_string_equal(claim->uuid, CARD);
	assert_int_equal(claim->index, 0);
	ll_list_fini(&list);
	puppet_kill(&other);
	wait_for(claims_in_list(scene) == 1);
	puppet_kill(&one);
}

TEST(a_checkpoint_is_said_of_all_claims_of_a_process)
{
	struct scene *scene = *state;
	struct puppet puppet;
	union ll_message message;
	struct ll_list list;
	puppet_start(&puppet, &scene->world, scene->job.id, CARD);
	int fd = ll_process_open(puppet.pid), own = ll_process_open(getpid());
	ll_message_init(&message, LL_MESSAGE_CHECKPOINT);
	message.checkpoint.state = LL_CHECKPOINT_SUSPENDED;
	assert_int_equal(ll_client_request(&scene->client, &message, &fd, 1, NULL, ll_now_ns() + DEADLINE_NS, NULL), 0);
	assert_int_equal(ll_client_request(&scene->client, &message, &own, 1, NULL, ll_now_ns() + DEADLINE_NS, NULL),
			 -ESRCH);
	read_list(scene, &list);
	assert_int_equal(claim_of(&list, puppet.pid)->checkpoint, LL_CHECKPOINT_SUSPENDED);
	ll_list_fini(&list);
	close(fd);
	close(own);
	puppet_kill(&puppet);
}

static unsigned next_of_pages(int fd, uint64_t *ret_number)
{
	union ll_message message;
	unsigned kind = next_message(fd, &message);
	*ret_number = message.page.job_number;
	return kind;
}

TEST_GIVEN(struct scene *scene, who_watches_is_told_of_each_job_that_comes_and_goes)
{
	union ll_message message;
	struct job other;
	uint64_t first, second, gone;
	int fd = world_connect(&scene->world, LL_ROLE_HOLD);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_WATCH);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	assert_int_equal(next_of_pages(fd, &first), LL_MESSAGE_PAGE);
	job_start(&other, &scene->world, NULL, NULL);
	assert_int_equal(next_of_pages(fd, &second), LL_MESSAGE_PAGE);
	assert_true(second > first);
	job_stop(&other);
	assert_int_equal(next_of_pages(fd, &gone), LL_MESSAGE_PAGE_GONE);
	assert_true(gone == second);
	close(fd);
}
