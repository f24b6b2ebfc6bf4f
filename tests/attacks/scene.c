#include "attack.h"

#include <ftw.h>

enum { REPLY_S = 3, REMOVE_FDS = 8, MOST_FDS = 1024 };

struct scene scene;

/* loadlined is started. */
static int begin_jobs(void)
{
	struct ll_list list;
	scene.system.world.limits = (struct ll_limits){
	    .memory_bytes = VICTIM_MIB * MIB, .request_bytes = VICTIM_MIB * MIB, .flags = LL_LIMIT_EVICTABLE};
	job_start_as(&scene.victim, &scene.system, VICTIM, "team");
	scene.system.world.limits = (struct ll_limits){
	    .memory_bytes = ATTACKER_MIB * MIB, .request_bytes = ATTACKER_MIB * MIB, .flags = LL_LIMIT_EVICTABLE};
	job_start_as(&scene.attacker, &scene.system, ATTACKER, "team");
	list_as(&list, &scene.system, 0);
	for (size_t i = 0; i < list.job_count; i++) {
		if (list.jobs[i].job.token[0] == scene.victim.id)
			scene.victim_number = list.jobs[i].number;
		if (list.jobs[i].job.token[0] == scene.attacker.id)
			scene.attacker_number = list.jobs[i].number;
	}
	ll_list_fini(&list);
	assert_true(scene.victim_number && scene.attacker_number);
	return 0;
}

int scene_begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof scene);
	system_world_init(&scene.system, 0);
	return begin_jobs();
}

int scene_begin_files(void **state, unsigned files)
{
	(void)state;
	memset(&scene, 0, sizeof scene);
	system_world_init(&scene.system, files);
	return begin_jobs();
}

int scene_begin_small(void **state)
{
	return scene_begin_files(state, SMALL_FILES);
}

int scene_begin_with(const char *config)
{
	memset(&scene, 0, sizeof scene);
	system_world_init_with(&scene.system, config);
	return begin_jobs();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void remove_world(void)
{
	kill(scene.system.daemon, SIGKILL);
	waitpid(scene.system.daemon, NULL, 0);
	if (scene.system.config)
		unlink(scene.system.config);
	nftw(scene.system.folder, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
}

/* Attacks leave jobs and connections, so loadlined is killed first. */
int scene_end(void **state)
{
	(void)state;
	become(0);
	remove_world();
	job_stop(&scene.victim);
	job_stop(&scene.attacker);
	return 0;
}

TESTS_OF_ROOT;
TEST_EACH(scene_begin, scene_end);

void succeed_if(bool is_so, const char *what)
{
	if (!is_so)
		return;
	become(0);
	printf("ATTACK SUCCEEDED: %s\n", what);
	fflush(stdout);
	if (scene.system.daemon > 1)
		remove_world();
	_exit(ATTACK_SUCCEEDED);
}

/* ---- the victim's view ---- */

static int list_for(uid_t uid, struct ll_list *ret_list)
{
	struct ll_client client;
	uint64_t end_ns = ll_now_ns() + REPLY_S * LL_NS_PER_S;
	*ret_list = (struct ll_list){0};
	become(uid);
	int rc = ll_client_open(&client, &scene.system.world.place, LL_CLIENT_COMMAND(LOADLINE_VERSION), end_ns, NULL);
	become(0);
	if (!rc)
		rc = ll_client_list(&client, ret_list, end_ns, NULL);
	ll_client_close(&client);
	return rc;
}

bool victim_is_served(void)
{
	struct ll_list list;
	bool is_there = waitpid(scene.system.daemon, NULL, WNOHANG) == 0 && list_for(VICTIM, &list) == 0;
	if (is_there)
		ll_list_fini(&list);
	return is_there;
}

void victim_list(struct ll_list *list)
{
	assert_int_equal(list_for(VICTIM, list), 0);
}

const struct ll_message_job_row *row_of(const struct ll_list *list, uid_t uid)
{
	for (size_t i = 0; i < list->job_count; i++) {
		if (list->jobs[i].job.uid == uid)
			return &list->jobs[i];
	}
	return NULL;
}

size_t count_jobs_of(uid_t uid)
{
	struct ll_list list;
	size_t count = 0;
	victim_list(&list);
	for (size_t i = 0; i < list.job_count; i++)
		count += list.jobs[i].job.uid == uid;
	ll_list_fini(&list);
	return count;
}

static int request_as(uid_t uid, union ll_message *message, const int *fds, size_t fd_count)
{
	struct ll_client client;
	open_as(&client, &scene.system, uid);
	int rc = ll_client_request(&client, message, fds, fd_count, NULL, ll_now_ns() + REPLY_S * LL_NS_PER_S, NULL);
	ll_client_close(&client);
	return rc;
}

int victim_request(union ll_message *message, const int *fds, size_t fd_count)
{
	return request_as(VICTIM, message, fds, fd_count);
}

void victim_puppet(struct puppet *puppet)
{
	become(VICTIM);
	puppet_start(puppet, &scene.system.world, scene.victim.id, CARD);
	become(0);
}

/* ---- the attacker ---- */

int attacker_request(union ll_message *message, const int *fds, size_t fd_count)
{
	return request_as(ATTACKER, message, fds, fd_count);
}

int connect_as(uid_t uid, uint32_t role, int process_fd)
{
	union ll_message message;
	int fd;
	become(uid);
	int rc = ll_place_connect_by(&scene.system.world.place, ll_now_ns() + DEADLINE_NS, &fd, NULL);
	become(0);
	if (rc)
		return -1;
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = role;
	ll_message_send(fd, &message, &process_fd, process_fd >= 0);
	if (next_message(fd, &message) == LL_MESSAGE_WELCOME)
		return fd;
	close(fd);
	return -1;
}

int attacker_connect(uint32_t role, int process_fd)
{
	return connect_as(ATTACKER, role, process_fd);
}

void discard_reply(int fd)
{
	char bytes[LL_MESSAGE_MAX];
	if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, REPLY_S * 1000) > 0)
		recv(fd, bytes, sizeof bytes, MSG_DONTWAIT); /* without room for descriptors they are closed */
}

void close_all_but(int one)
{
	for (int fd = STDERR_FILENO + 1; fd < MOST_FDS; fd++) {
		if (fd != one)
			close(fd);
	}
}

pid_t sleeper_start(uid_t uid)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) || write(ready[1], "", 1) != 1)
			_exit(1);
		close_all_but(-1);
		for (;;)
			pause();
	}
	assert_true(pid > 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

void sleeper_end(pid_t pid)
{
	kill_process(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

void registration_init(struct registration *registration)
{
	static uint64_t number;
	*registration = (struct registration){.process_fd = -1, .lifeline_fd = -1, .fd = -1, .stop_fd = -1};
	struct ll_job_facts *facts = &registration->facts;
	facts->token[0] = 0x5eed0000 + ++number;
	facts->token[1] = 1;
	facts->state = LL_JOB_RUNNING;
	ll_message_text_set(facts->tenant, sizeof facts->tenant, "mine");
	ll_message_text_set(facts->command, sizeof facts->command, "python");
}

static int wait_for_reply(struct registration *registration)
{
	union ll_message message;
	switch (next_message_with_fds(registration->fd, &message, registration->fds, &registration->fd_count)) {
	case LL_MESSAGE_ACCEPTED:
		return 0;
	case LL_MESSAGE_REFUSED:
		return message.refused.code;
	default:
		return -EPROTO;
	}
}

int attacker_register(struct registration *registration)
{
	union ll_message message;
	int lifeline[2] = {-1, -1}, process_fd = registration->process_fd;
	ll_message_init(&message, LL_MESSAGE_JOB);
	message.job.job = registration->facts;
	memcpy(message.job.program_name, registration->program_name, sizeof message.job.program_name);
	memcpy(message.job.project, registration->project, sizeof message.job.project);
	message.job.program = 1;
	if (registration->lifeline_fd < 0) {
		assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
		registration->stop_fd = lifeline[1];
	}
	if (process_fd < 0) {
		registration->sleeper = sleeper_start(ATTACKER);
		process_fd = ll_process_open(registration->sleeper);
	}
	if (registration->fd < 0)
		registration->fd = attacker_connect(LL_ROLE_MONITOR, -1);
	if (registration->fd < 0)
		return -ECONNREFUSED;
	const int *pages = registration->page_fds;
	const int fds[] = {process_fd, lifeline[0] >= 0 ? lifeline[0] : registration->lifeline_fd,
			   pages ? pages[0] : -1, pages ? pages[1] : -1};
	ll_message_send(registration->fd, &message, fds, pages ? 4 : 2);
	if (registration->process_fd < 0)
		close(process_fd);
	if (lifeline[0] >= 0)
		close(lifeline[0]);
	return wait_for_reply(registration);
}

void registration_end(struct registration *registration)
{
	ll_message_close_fds(registration->fds, registration->fd_count);
	if (registration->fd >= 0)
		close(registration->fd);
	if (registration->stop_fd >= 0)
		close(registration->stop_fd);
	if (registration->sleeper > 1)
		sleeper_end(registration->sleeper);
}

void attacker_make_pages(const struct registration *registration, int ret_fds[2], struct ll_page **ret_page,
			 struct ll_orders **ret_orders)
{
	become(ATTACKER);
	assert_int_equal(ll_page_make(&ret_fds[0]), 0);
	assert_int_equal(ll_orders_make(registration->facts.token, &ret_fds[1]), 0);
	become(0);
	assert_int_equal(ll_page_map(ret_fds[0], true, ret_page), 0);
	assert_int_equal(ll_orders_map(ret_fds[1], true, ret_orders), 0);
}

int attacker_register_spoilt(struct registration *registration, void (*spoil)(struct ll_page *, struct ll_orders *))
{
	int pages[2];
	struct ll_page *page;
	struct ll_orders *orders;
	registration_init(registration);
	attacker_make_pages(registration, pages, &page, &orders);
	spoil(page, orders);
	registration->page_fds = pages;
	int rc = attacker_register(registration);
	ll_page_unmap(page);
	ll_orders_unmap(orders);
	ll_message_close_fds(pages, 2);
	return rc;
}
