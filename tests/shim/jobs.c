#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../sim/process.h"
#include "base/err.h"
#include "base/process.h"
#include "base/process_id.h"
#include "protocol/start.h"

enum { ANSWER_MS = 30000, JOBS = 16 };

/* ---- loadlined ---- */

static const char *program(const char *variable)
{
	const char *path = getenv(variable);
	if (!path)
		give_up(__FILE__, __LINE__, variable);
	return path;
}

void jobs_find_place(struct ll_place *ret_place)
{
	struct ll_err err = {0};
	struct ll_programs programs = {program("LOADLINED"), program("LOADLINE_JOB")};
	CHECK(getenv("LOADLINE_SIM_DIR"));
	CHECK_EQUAL(ll_place_find(getenv("LOADLINE_SIM_DIR"), ret_place, &err), 0);
	int rc = ll_daemon_start(ret_place, &programs, &err);
	if (rc && rc != -EADDRINUSE)
		give_up(__FILE__, __LINE__, err.text);
}

static unsigned receive(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_count)
{
	CHECK(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ANSWER_MS) > 0);
	CHECK_EQUAL(ll_message_receive(fd, ret_message, ret_fds, ret_count), 0);
	return ret_message->header.kind;
}

/* A loadlined that nobody comes to ends after a while, which a busy host may need to come to it. */
static int connect_to_daemon(void)
{
	struct ll_place place;
	int fd, rc;
	CHECK_EQUAL(ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, NULL), 0);
	while ((rc = ll_place_connect(&place, &fd, NULL)) == -ECONNREFUSED)
		jobs_find_place(&place);
	CHECK_EQUAL(rc, 0);
	return fd;
}

static int open_connection(enum ll_message_role role)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	int fd = connect_to_daemon();
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = role;
	int self = ll_process_open(getpid());
	CHECK_EQUAL(ll_message_send(fd, &message, &self, 1), 0);
	close(self);
	CHECK_EQUAL(receive(fd, &message, fds, &count), LL_MESSAGE_WELCOME);
	return fd;
}

pid_t jobs_daemon(void)
{
	struct ll_place place;
	struct ucred peer = {0};
	socklen_t length = sizeof peer;
	int fd;
	CHECK_EQUAL(ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, NULL), 0);
	if (ll_place_connect(&place, &fd, NULL))
		return 0;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	close(fd);
	return peer.pid;
}

/* ---- this process's job ---- */

enum ll_limit_sharing jobs_sharing;

static struct {
	pid_t pid; /* of the process that registered it */
	int fd;
	uint64_t token[2];
	union ll_message message; /* LL_MESSAGE_JOB */
	int page_fds[2];          /* the page, the orders */
} own;

static void tell_end(void)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_JOB_ENDED);
	memcpy(message.job_ended.token, own.token, sizeof own.token);
	ll_message_send(own.fd, &message, NULL, 0);
}

static bool has_others(void)
{
	const struct jobs_pages *pages = jobs_pages(own.token[0]);
	for (unsigned i = 0; pages && i < LL_PAGE_SLOTS; i++) {
		if (pages->page->slots[i].token && pages->page->slots[i].pid != getpid())
			return true;
	}
	return false;
}

/* Without it loadlined starts a monitor, which sees whether there is more of the job. */
static void end_job(void)
{
	if (own.pid == getpid() && !has_others())
		tell_end();
}

static bool knows(uint64_t id);

void jobs_end(void)
{
	CHECK_EQUAL(own.pid, getpid());
	tell_end();
	WAIT_FOR(!knows(own.token[0]));
	close(own.fd);
	own.pid = 0;
}

static void write_facts(const struct ll_run_settings *settings, struct ll_job_facts *facts)
{
	facts->token[0] = settings->id;
	CHECK_EQUAL(getrandom(&facts->token[1], sizeof facts->token[1], 0), sizeof facts->token[1]);
	facts->uid = geteuid();
	facts->pid = (uint32_t)getpid();
	facts->state = LL_JOB_RUNNING;
	facts->limits = (struct ll_limits){
	    .memory_bytes = settings->memory_limit_bytes,
	    .request_bytes = settings->memory_request_bytes,
	    .max_kernel_ns = settings->max_kernel_ns,
	    .compute_permille = settings->compute_cap_permille,
	    .space_permille = settings->space_permille,
	    .weight_permille = settings->weight_permille,
	    .priority = settings->priority == LL_PRIORITY_HIGH  ? LL_LIMIT_CLASS_HIGH
			: settings->priority == LL_PRIORITY_LOW ? LL_LIMIT_CLASS_LOW
								: LL_LIMIT_CLASS_NORMAL,
	    .sharing = (uint16_t)jobs_sharing,
	    .flags = (settings->is_evictable ? LL_LIMIT_EVICTABLE : 0U) | (settings->is_strict ? LL_LIMIT_STRICT : 0U) |
		     (settings->counts_context ? LL_LIMIT_COUNTS_CONTEXT : 0U),
	};
	ll_message_text_set(facts->tenant, sizeof facts->tenant, settings->tenant);
	ll_message_text_set(facts->command, sizeof facts->command, "test");
}

/* Sends the job, with the pages that a former loadlined made, or without. The lifeline stays open in this process and
 * all that come from it. */
static void send_job(const int *page_fds, size_t page_count)
{
	union ll_message answer;
	int lifeline[2], fds[LL_MESSAGE_FDS];
	size_t count;
	own.fd = open_connection(LL_ROLE_MONITOR);
	CHECK_EQUAL(pipe(lifeline), 0);
	fds[0] = ll_process_open(getpid());
	fds[1] = lifeline[0];
	for (size_t i = 0; i < page_count; i++)
		fds[2 + i] = page_fds[i];
	CHECK_EQUAL(ll_message_send(own.fd, &own.message, fds, 2 + page_count), 0);
	ll_message_close_fds(fds, 2);
	CHECK_EQUAL(receive(own.fd, &answer, fds, &count), LL_MESSAGE_ACCEPTED);
	if (page_count)
		ll_message_close_fds(fds, count);
	else
		memcpy(own.page_fds, fds, sizeof own.page_fds);
}

static void register_job(const struct ll_run_settings *settings)
{
	static bool is_to_end;
	ll_message_init(&own.message, LL_MESSAGE_JOB);
	write_facts(settings, &own.message.job.job);
	memcpy(own.token, own.message.job.job.token, sizeof own.token);
	send_job(NULL, 0);
	own.pid = getpid();
	if (!is_to_end)
		atexit(end_job);
	is_to_end = true;
}

void jobs_restart(void)
{
	struct ll_place place;
	close(own.fd);
	jobs_find_place(&place);
	send_job(own.page_fds, 2);
}

/* The first process of the job; 0: it has ended, and the job is about to. */
static pid_t first_process(uint64_t id);

/* One process of the world at a time. */
static int lock_world(void)
{
	char path[400];
	snprintf(path, sizeof path, "%s/jobs.lock", getenv("LOADLINE_SIM_DIR"));
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
	return fd;
}

static void register_or_join(const struct ll_run_settings *settings)
{
	int lock_fd = lock_world();
	WAIT_FOR(!knows(settings->id) || first_process(settings->id));
	if (!knows(settings->id))
		register_job(settings);
	close(lock_fd);
}

static void complete(struct ll_run_settings *settings, const struct ll_place *place)
{
	if (!settings->priority)
		settings->priority = LL_PRIORITY_NORMAL;
	snprintf(settings->place, sizeof settings->place, "%s", place->name);
	snprintf(settings->folder, sizeof settings->folder, "%s", getenv("LOADLINE_SIM_DIR"));
}

static void write_environment(const struct ll_run_settings *settings)
{
	char text[LL_RUN_TEXT_SIZE];
	CHECK_EQUAL(ll_run_settings_write(settings, text), 0);
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
}

void jobs_set_environment(struct ll_run_settings settings, const struct ll_place *place)
{
	complete(&settings, place);
	write_environment(&settings);
}

void jobs_register(struct ll_run_settings settings)
{
	struct ll_place place;
	jobs_find_place(&place);
	complete(&settings, &place);
	write_environment(&settings);
	register_or_join(&settings);
}

/* ---- pages ---- */

struct known {
	uint64_t id;
	ino_t inode; /* of the page */
	struct jobs_pages pages;
};

/* A job that was registered again has other pages. False: there is no such job. */
static bool ask_for_pages(uint64_t id, struct known *known)
{
	union ll_message message;
	struct stat st;
	int fds[LL_MESSAGE_FDS], fd = open_connection(LL_ROLE_PROCESS);
	size_t count;
	struct ll_orders *orders;
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = id;
	CHECK_EQUAL(ll_message_send(fd, &message, NULL, 0), 0);
	unsigned kind = receive(fd, &message, fds, &count);
	close(fd);
	if (kind != LL_MESSAGE_CLAIMED)
		return false;
	CHECK_EQUAL(fstat(fds[0], &st), 0);
	if (known->inode != st.st_ino) {
		CHECK_EQUAL(ll_page_map(fds[0], true, &known->pages.page), 0);
		CHECK_EQUAL(ll_orders_map(fds[1], false, &orders), 0);
		known->pages.orders = orders;
		known->inode = st.st_ino;
	}
	ll_message_close_fds(fds, count);
	return true;
}

static bool has_slots(const struct ll_page *page)
{
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++) {
		if (page->slots[i].token)
			return true;
	}
	return false;
}

/* While nobody of the job has a slot in the pages that are known, it may have other ones. */
const struct jobs_pages *jobs_pages(uint64_t id)
{
	static struct known known[JOBS];
	size_t i = 0;
	while (i < JOBS - 1 && known[i].id && known[i].id != id)
		i++;
	CHECK(!known[i].id || known[i].id == id);
	bool is_good = known[i].id && has_slots(known[i].pages.page);
	if (!is_good && !ask_for_pages(id, &known[i]))
		return NULL;
	known[i].id = id;
	return &known[i].pages;
}

unsigned jobs_card(uint64_t id, const char *uuid)
{
	const struct jobs_pages *pages = jobs_pages(id);
	return pages ? ll_orders_find_card(pages->orders, uuid) : LL_PAGE_CARDS;
}

static bool is_slot_of(const struct ll_page_slot *slot, unsigned card)
{
	return slot->token && slot->card == card;
}

struct ll_page_slot *jobs_slot(uint64_t id, const char *uuid)
{
	const struct jobs_pages *pages = jobs_pages(id);
	unsigned card = pages ? ll_orders_find_card(pages->orders, uuid) : LL_PAGE_CARDS;
	for (unsigned i = 0; card < LL_PAGE_CARDS && i < LL_PAGE_SLOTS; i++) {
		if (is_slot_of(&pages->page->slots[i], card))
			return &pages->page->slots[i];
	}
	return NULL;
}

unsigned jobs_count_slots(uint64_t id, const char *uuid)
{
	const struct jobs_pages *pages = jobs_pages(id);
	unsigned card = pages ? ll_orders_find_card(pages->orders, uuid) : LL_PAGE_CARDS, count = 0;
	for (unsigned i = 0; card < LL_PAGE_CARDS && i < LL_PAGE_SLOTS; i++)
		count += is_slot_of(&pages->page->slots[i], card);
	return count;
}

int jobs_connect(void)
{
	return open_connection(LL_ROLE_PROCESS);
}

void jobs_lose_claim(int fd, pid_t pid, uint64_t id, const char *uuid)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	char name[16];
	struct ll_process_stat process;
	snprintf(name, sizeof name, "%d", (int)pid);
	CHECK_EQUAL(ll_process_read_stat(name, &process), 0);
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = id;
	message.claim.pid = pid;
	message.claim.start_ticks = process.start_ticks;
	message.claim.namespaces = ll_process_namespaces();
	snprintf(message.claim.uuid, sizeof message.claim.uuid, "%s", uuid);
	CHECK_EQUAL(ll_message_send(fd, &message, NULL, 0), 0);
	CHECK_EQUAL(receive(fd, &message, fds, &count), LL_MESSAGE_CLAIMED);
	ll_message_close_fds(fds, count);
	close(fd);
}

/* ---- the books ---- */

struct found {
	uint64_t number; /* of the job; 0: there is none */
	pid_t pid;       /* of its first process */
	bool is_on_card;
	struct ll_message_card_row row;
};

/* One connection of each process, as tests ask again and again. */
static int command_connection(void)
{
	static int fd = -1;
	static pid_t pid;
	if (pid != getpid() || poll(&(struct pollfd){.fd = fd}, 1, 0) != 0) {
		fd = open_connection(LL_ROLE_COMMAND);
		pid = getpid();
	}
	return fd;
}

static struct found look_up(uint64_t id, const char *uuid)
{
	struct found found = {0};
	union ll_message message;
	int fds[LL_MESSAGE_FDS], fd = command_connection();
	size_t count;
	ll_message_init(&message, LL_MESSAGE_LIST);
	CHECK_EQUAL(ll_message_send(fd, &message, NULL, 0), 0);
	for (;;) {
		unsigned kind = receive(fd, &message, fds, &count);
		if (kind == LL_MESSAGE_LIST_END)
			break;
		if (kind == LL_MESSAGE_JOB_ROW && message.job_row.job.token[0] == id) {
			found.number = message.job_row.number;
			found.pid = (pid_t)message.job_row.job.pid;
		}
		if (kind != LL_MESSAGE_CARD_ROW || !uuid || message.card_row.job_number != found.number ||
		    strcmp(message.card_row.uuid, uuid) != 0)
			continue;
		found.is_on_card = true;
		found.row = message.card_row;
	}
	return found;
}

bool jobs_card_row(uint64_t id, const char *uuid, struct ll_message_card_row *ret_row)
{
	struct found found = look_up(id, uuid);
	*ret_row = found.row;
	return found.is_on_card;
}

static bool knows(uint64_t id)
{
	return look_up(id, NULL).number;
}

static pid_t first_process(uint64_t id)
{
	pid_t pid = look_up(id, NULL).pid;
	int fd = pid > 0 ? ll_process_open(pid) : -1;
	bool lives = fd >= 0 && !ll_process_has_ended(fd);
	if (fd >= 0)
		close(fd);
	return lives ? pid : 0;
}

void jobs_set(uint64_t id, enum ll_set_field field, const struct ll_limits *limits)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS], fd = command_connection();
	size_t count;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = look_up(id, NULL).number;
	message.set.fields = field;
	message.set.limits = *limits;
	CHECK_EQUAL(ll_message_send(fd, &message, NULL, 0), 0);
	CHECK_EQUAL(receive(fd, &message, fds, &count), LL_MESSAGE_ACCEPTED);
}
