/*
 * The hold socket of a card: one process has it, each program that connects gets its report at once, and none can block
 * the reports of others.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "hold/hold.h"
#include "protocol/place.h"
#include "skipped.h"
#include "wait_for.h"

static char world[] = "/tmp/ll-hold_socket-XXXXXX";
static const struct ll_card first = {.label = "0", .uuid = "GPU-first"}, second = {.label = "1", .uuid = "GPU-second"};
static const struct ll_card *const cards[] = {&first, &second};
static struct ll_hold_sockets *sockets;
static struct ll_err err;

static int take(void **state)
{
	(void)state;
	return ll_hold_sockets_bind(cards, 2, world, &sockets, NULL);
}

static int leave(void **state)
{
	(void)state;
	ll_hold_sockets_free(sockets);
	sockets = NULL;
	return 0;
}

TEST_EACH(take, leave);

static struct ll_hold_owner ask(const struct ll_card *card)
{
	struct ll_hold_owner owner = {0};
	assert_int_equal(ll_hold_query(card, world, &owner, NULL, NULL), 0);
	return owner;
}

TEST(test_says_who_has_it_and_what_he_reports)
{
	struct ll_hold_socket *hold_socket = ll_hold_sockets_at(sockets, 1);
	struct ll_hold_owner seen = ask(&second);
	assert_int_equal(seen.pid, getpid());
	assert_int_equal(seen.uid, geteuid());
	assert_true(seen.has_report);
	assert_int_equal(seen.report.state, LL_CLAIM_STARTING);
	ll_hold_socket_set_state(hold_socket, LL_CLAIM_YIELDED, "foreign work");
	ll_hold_socket_set_target(hold_socket, "power", 0, 400);
	ll_hold_socket_set_target(hold_socket, "occupancy of all", 300, 0);
	ll_hold_socket_set_payload(hold_socket, "vulkan");
	ll_hold_socket_add_yield(hold_socket);
	ll_hold_socket_account(hold_socket, 5, 7, 100);
	ll_hold_socket_account(hold_socket, 6, 8, 200);
	seen = ask(&second);
	assert_int_equal(seen.report.state, LL_CLAIM_YIELDED);
	assert_string_equal(seen.report.note, "foreign work");
	assert_string_equal(seen.report.metric, "occupancy of al");
	assert_string_equal(seen.report.payload, "vulkan");
	assert_int_equal(seen.report.target_permille, 300);
	assert_int_equal(seen.report.target_watts, 0);
	assert_int_equal(seen.report.yields, 1);
	assert_int_equal(seen.report.synthetic_busy_ns, 11);
	assert_int_equal(seen.report.gpu_time_ns, 11);
	assert_int_equal(seen.report.energy_mj, 15);
	assert_int_equal(seen.report.memory_bytes, 200);
	assert_true(seen.report.beat_age_ns <= seen.report.taken_age_ns);
	assert_int_equal(ask(&first).report.yields, 0);
}

TEST(test_worlds_have_sockets_of_their_own)
{
	struct ll_hold_sockets *others;
	struct ll_hold_owner seen;
	assert_int_equal(ll_hold_query(&first, "/", &seen, NULL, NULL), -ENOENT);
	assert_int_equal(ll_hold_sockets_bind(cards, 2, "/", &others, NULL), 0);
	ll_hold_sockets_free(others);
	assert_fails(ll_hold_query(&first, "/nowhere", &seen, NULL, &err), -ENOENT, "/nowhere");
	struct ll_card wordy = {.label = "0"};
	memset(wordy.uuid, 'x', sizeof wordy.uuid - 1);
	assert_fails(ll_hold_query(&wordy, world, &seen, NULL, &err), -ENAMETOOLONG, "too long");
}

/* ---- who asks badly ---- */

static int connect_to(const struct ll_card *card)
{
	LL_SCOPE_FREE struct ll_place *places = NULL;
	size_t count;
	int fd;
	assert_int_equal(ll_places_of_holds(card->uuid, world, &places, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ll_place_connect_any(&places[0], &fd), 0);
	return fd;
}

TEST(test_who_never_reads_holds_up_nobody)
{
	enum { ASKERS = 200 };
	int fds[ASKERS];
	for (int i = 0; i < ASKERS; i++) {
		fds[i] = connect_to(&first);
		if (i % 2)
			send(fds[i], "end", 3, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	assert_true(ask(&first).has_report);
	assert_true(ask(&second).has_report);
	for (int i = 0; i < ASKERS; i++)
		close(fds[i]);
}

/* ---- how it ends ---- */

/* Takes the sockets in a child, which then does nothing. They answer already while the child still looks whether others
 * have them. */
static pid_t start_child(void)
{
	int ends[2];
	char has_taken = 0;
	leave(NULL);
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (take(NULL) || write(ends[1], "t", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &has_taken, 1), 1);
	close(ends[0]);
	struct ll_hold_owner seen = ask(&second);
	assert_int_equal(seen.pid, pid);
	return pid;
}

TEST(test_two_cannot_have_it_and_none_keeps_half)
{
	static const struct ll_card third = {.label = "2", .uuid = "GPU-third"};
	const struct ll_card *const others[] = {&third, &first};
	struct ll_hold_sockets *more;
	struct ll_hold_owner seen;
	char text[64];
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	pid_t pid = start_child();
	snprintf(text, sizeof text, "card 0: pid %d already holds it", (int)pid);
	assert_fails(ll_hold_sockets_bind(others, 2, world, &more, &err), -EBUSY, text);
	assert_fails(ll_hold_query(&third, world, &seen, NULL, &err), -ENOENT, "card 2");
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_fails(ll_hold_query(&first, world, &seen, NULL, &err), -ENOENT, "card 0");
	assert_int_equal(ll_hold_sockets_bind(others, 2, world, &sockets, NULL), 0);
}

TEST(test_a_killed_hold_leaves_nothing)
{
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	for (int i = 0; i < 20; i++) {
		pid_t pid = start_child();
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(take(NULL), 0);
	}
}

TEST(test_a_stopped_hold_is_known_and_says_nothing)
{
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	pid_t pid = start_child();
	char text[64];
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	struct ll_hold_owner seen = ask(&first);
	assert_int_equal(seen.pid, pid);
	assert_false(seen.has_report);
	snprintf(text, sizeof text, "card 0: pid %d already holds it", (int)pid);
	assert_fails(ll_hold_sockets_bind(cards, 2, world, &sockets, &err), -EBUSY, text);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_true(ask(&first).has_report);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Returns what the child finds as another user: it asks for the first card, and tries to take it. */
static int be_another_user(void)
{
	struct ll_hold_owner seen;
	struct ll_hold_sockets *more;
	struct ll_err why = {0};
	if (setgid(65534) || setuid(65534))
		return 77;
	if (ll_hold_query(&first, world, &seen, NULL, NULL) || !seen.has_report || seen.uid != 0 ||
	    seen.pid != getppid())
		return 1;
	return ll_hold_sockets_bind(cards, 2, world, &more, &why) == -EBUSY && strstr(why.text, "already holds it") ? 0
														    : 2;
}

TEST(test_another_user_sees_it_and_cannot_have_it)
{
	int status;
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(be_another_user());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP_TEST("this user cannot become another one");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void limit_descriptors(pid_t pid, rlim_t count)
{
	struct rlimit limit;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = count;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

TEST(test_a_hold_without_descriptors_answers_later)
{
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	pid_t pid = start_child();
	limit_descriptors(pid, 0);
	assert_false(ask(&first).has_report);
	limit_descriptors(pid, 256);
	assert_true(ask(&first).has_report);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Who has a name of the card's holds and is none: packets of junk, or silence. He is no hold, and he hinders none. */
static void sit(bool sends_junk)
{
	struct ll_place place;
	struct ll_hold_owner seen;
	struct ll_hold_sitter sitter;
	int listen_fd;
	assert_int_equal(ll_place_of_hold(first.uuid, world, &place, NULL), 0);
	assert_int_equal(ll_place_listen(&place, &listen_fd), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fcntl(listen_fd, F_SETFL, 0);
		char junk[184];
		memset(junk, 0xff, sizeof junk);
		for (;;) {
			int fd = accept(listen_fd, NULL, NULL);
			if (fd < 0 || (sends_junk && send(fd, junk, sizeof junk, MSG_NOSIGNAL) < 0))
				_exit(1);
			if (sends_junk)
				close(fd);
		}
	}
	if (sends_junk) {
		assert_int_equal(ll_hold_query(&first, world, &seen, &sitter, NULL), -ENOENT);
		assert_int_equal(sitter.kind, LL_HOLD_DOES_NOT_ANSWER);
		assert_int_equal(sitter.pid, getpid()); /* who listens */
		assert_int_equal(take(NULL), 0);
	} else {
		assert_int_equal(ll_hold_query(&first, world, &seen, &sitter, NULL), 0);
		assert_false(seen.has_report); /* where NVML tells nothing, an own process may be a stopped hold */
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(listen_fd);
	leave(NULL);
}

TEST(test_what_is_no_hold_is_not_believed)
{
	SKIP_UNDER_THREAD_SANITIZER("it does not let a fork of a program that has threads make one");
	leave(NULL);
	sit(true);
	sit(false);
}

/* ---- all at once ---- */

static atomic_bool is_over;

static void *report_on(void *arg)
{
	for (unsigned i = 0; !is_over; i++) {
		ll_hold_socket_set_state(arg, i % 2 ? LL_CLAIM_YIELDED : LL_CLAIM_RUNNING, i % 2 ? "odd" : "even");
		ll_hold_socket_account(arg, 1, 1, i);
	}
	return NULL;
}

TEST(test_a_report_is_whole)
{
	pthread_t thread;
	is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, report_on, ll_hold_sockets_at(sockets, 0)), 0);
	wait_for(ask(&first).report.state != LL_CLAIM_STARTING);
	for (int i = 0; i < 300; i++) {
		struct ll_hold_report report = ask(&first).report;
		assert_string_equal(report.note, report.state == LL_CLAIM_YIELDED ? "odd" : "even");
		assert_int_equal(report.synthetic_busy_ns, report.energy_mj);
	}
	is_over = true;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (!mkdtemp(world))
		return 1;
	int failed = tests_run(argc, argv);
	return rmdir(world) || failed;
}
