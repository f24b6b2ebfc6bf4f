/* Which loadlined governs: the system's, where one serves that can be trusted, else the user's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "protocol/place.h"
#include "test.h"

enum { OTHER_UID = 61234 };

static char world[40], folder[60];
static struct ll_places places;
static int listen_fd;

static int begin(void **state)
{
	struct sockaddr_un address;
	(void)state;
	snprintf(world, sizeof world, "/tmp/ll-place-XXXXXX");
	assert_non_null(mkdtemp(world));
	snprintf(folder, sizeof folder, "%s/system", world);
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(ll_places_find(world, &places, NULL), 0);
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unsigned length = ll_place_address(places.system.name, &address);
	assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listen_fd, 10), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(listen_fd);
	unlink(places.system.name);
	rmdir(folder);
	return rmdir(world);
}

TEST_EACH(begin, end);

static bool is_system_chosen(void)
{
	struct ll_place place;
	assert_int_equal(ll_place_find(world, &place, NULL), 0);
	assert_string_equal(place.name, ll_place_is_system(&place) ? places.system.name : places.user.name);
	assert_string_equal(ll_place_mark(&place), ll_place_is_system(&place) ? "" : "@");
	return ll_place_is_system(&place);
}

TEST(the_systems_is_chosen_while_it_serves)
{
	assert_true(is_system_chosen());
	close(listen_fd);
	assert_false(is_system_chosen());
	unlink(places.system.name);
	assert_false(is_system_chosen());
}

TEST(one_that_is_busy_is_chosen)
{
	int fds[20];
	for (int i = 0; i < 20; i++) {
		fds[i] = -1;
		ll_place_connect(&places.system, &fds[i], NULL);
	}
	assert_int_equal(fds[19], -1);
	assert_true(is_system_chosen());
	for (int i = 0; i < 20 && fds[i] >= 0; i++)
		close(fds[i]);
}

/* ---- a listener whose queue is full ---- */

enum { FULL = 20 };

static void fill_queue(int fds[FULL])
{
	for (int i = 0; i < FULL; i++) {
		fds[i] = -1;
		ll_place_connect(&places.system, &fds[i], NULL);
	}
	assert_int_equal(fds[FULL - 1], -1);
}

static void close_all(const int fds[FULL])
{
	for (int i = 0; i < FULL && fds[i] >= 0; i++)
		close(fds[i]);
}

static void ignore_signal(int number)
{
	(void)number;
}

/* Interrupts each wait, again and again. */
static void ring_each(long every_us)
{
	const struct sigaction action = {.sa_handler = ignore_signal};
	const struct itimerval every = {{0, every_us}, {0, every_us}};
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

TEST(a_place_in_a_full_queue_is_waited_for_until_the_moment_and_signals_change_nothing)
{
	int fds[FULL], fd = -1;
	fill_queue(fds);
	ring_each(1000);
	uint64_t until_ns = ll_now_ns() + 50 * LL_NS_PER_MS;
	assert_int_equal(ll_place_connect_by(&places.system, until_ns, &fd, NULL), -EAGAIN);
	assert_true(ll_now_ns() >= until_ns);
	assert_int_equal(fd, -1);
	ring_each(0);
	close_all(fds);
}

TEST(a_place_that_becomes_free_is_taken_by_who_waits)
{
	int fds[FULL], fd = -1;
	fill_queue(fds);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		accept(listen_fd, NULL, NULL);
		_exit(0);
	}
	ring_each(1000);
	assert_int_equal(ll_place_connect_by(&places.system, ll_now_ns() + 30 * LL_NS_PER_S, &fd, NULL), 0);
	ring_each(0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	close_all(fds);
}

TEST(one_in_a_folder_that_others_may_write_is_not_trusted)
{
	static const mode_t modes[] = {0775, 0757, 01777};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		assert_int_equal(chmod(folder, modes[i]), 0);
		assert_false(is_system_chosen());
	}
	assert_int_equal(chmod(folder, 0755), 0);
	assert_true(is_system_chosen());
}

TEST(one_in_the_folder_of_another_user_is_not_trusted)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(folder, OTHER_UID, OTHER_UID), 0);
	assert_false(is_system_chosen());
}

/* The listener is this process's, and neither root's nor the file's owner's. */
TEST(one_that_serves_as_another_user_than_the_owner_of_the_file_is_not_trusted)
{
	uid_t uid = 0;
	int fd;
	if (geteuid() != 0)
		skip();
	assert_int_equal(setresuid(OTHER_UID, OTHER_UID, 0), 0);
	assert_int_equal(listen(listen_fd, 10), 0);
	assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(ll_place_connect(&places.system, &fd, &uid), -EPERM);
	assert_int_equal(uid, OTHER_UID);
	assert_false(is_system_chosen());
	assert_int_equal(chown(places.system.name, OTHER_UID, OTHER_UID), 0);
	assert_true(is_system_chosen());
}

TEST(the_real_cards_have_their_own)
{
	struct ll_place place;
	assert_int_equal(ll_place_of_system(NULL, &place), 0);
	assert_string_equal(place.name, "/run/loadline/socket");
}

TEST(a_world_whose_path_does_not_fit_has_none)
{
	struct ll_place place;
	char path[LL_PLACE_SIZE];
	memset(path, 'a', sizeof path);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	assert_int_equal(ll_place_of_system(path, &place), -ENAMETOOLONG);
	assert_int_equal(ll_place_of_system("/tmp/a;mem=0", &place), -ENAMETOOLONG);
}

TEST(only_places_are_read)
{
	struct ll_place place;
	static const char *const good[] = {"loadline/1000", "loadline/0/fd01-1f3c-2faf080", "/run/loadline/socket"};
	static const char *const bad[] = {
	    "", "/", "/socket", "loadline", "x/1000", "/run/loadline/sock", "run/socket", "/tmp/a;b/socket"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(ll_place_read(good[i], &place), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ll_place_read(bad[i], &place), -EINVAL);
}
