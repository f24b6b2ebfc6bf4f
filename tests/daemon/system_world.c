#include "system_world.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "test.h"
#include "wait_for.h"

enum { NOBODY = 65534, FIRST_FD = 3, FDS = 200 };

void become(uid_t uid)
{
	assert_int_equal(setresuid(uid, uid, 0), 0);
}

/* ---- what systemd does ---- */

static void open_sockets(struct system_world *system)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[LL_PLACE_SIZE];
	snprintf(folder, sizeof folder, "%s/system", system->folder);
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	system->listen_fd = fcntl(fd, F_DUPFD_CLOEXEC, FDS); /* out of the way of those that the daemon gets */
	close(fd);
	system->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", system->folder);
	assert_int_equal(bind(system->notify_fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(chmod(address.sun_path, 0666), 0);
	socklen_t length = ll_place_address(system->world.place.name, &address);
	assert_int_equal(bind(system->listen_fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(chmod(address.sun_path, 0666), 0);
	assert_int_equal(chown(address.sun_path, NOBODY, NOBODY), 0);
	assert_int_equal(listen(system->listen_fd, FDS), 0);
}

/* In the daemon's process, before it is the daemon. */
static void be_kept(const struct system_world *system)
{
	char names[KEPT_MOST * KEPT_NAME_SIZE] = "socket", number[20], path[80];
	size_t length = strlen(names);
	dup2(system->listen_fd, FIRST_FD);
	for (size_t i = 0; i < system->kept; i++) {
		dup2(system->kept_fds[i], FIRST_FD + 1 + (int)i);
		length += (size_t)snprintf(names + length, sizeof names - length, ":%s", system->kept_names[i]);
	}
	snprintf(number, sizeof number, "%zu", 1 + system->kept);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof number, "%d", (int)getpid());
	setenv("LISTEN_PID", number, 1);
	snprintf(path, sizeof path, "%s/notify", system->folder);
	setenv("NOTIFY_SOCKET", path, 1);
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(1);
	execl(system->world.programs.daemon, "loadlined", "--system", (char *)NULL);
	_exit(1);
}

static void keep(struct system_world *system, int fd, const char *name)
{
	assert_true(system->kept < KEPT_MOST);
	snprintf(system->kept_names[system->kept], KEPT_NAME_SIZE, "%s", name);
	system->kept_fds[system->kept] = fcntl(fd, F_DUPFD_CLOEXEC, FDS);
	assert_true(system->kept_fds[system->kept++] >= 0);
	close(fd);
}

static void drop(struct system_world *system, const char *name)
{
	size_t left = 0;
	for (size_t i = 0; i < system->kept; i++) {
		if (strcmp(system->kept_names[i], name) == 0) {
			close(system->kept_fds[i]);
			continue;
		}
		system->kept_fds[left] = system->kept_fds[i];
		memmove(system->kept_names[left++], system->kept_names[i], KEPT_NAME_SIZE);
	}
	system->kept = left;
}

size_t system_world_read(struct system_world *system)
{
	char text[200];
	int fds[LL_PACKET_FDS];
	size_t length, count;
	while (ll_packet_receive_up_to(system->notify_fd, MSG_DONTWAIT, text, sizeof text - 1, &length, fds,
				       LL_PACKET_FDS, &count) == 0) {
		text[length] = '\0';
		const char *name = strstr(text, "FDNAME=");
		name = name ? name + strlen("FDNAME=") : "";
		for (size_t i = 0; i < count; i++)
			keep(system, fds[i], name);
		if (strncmp(text, "FDSTOREREMOVE=1", strlen("FDSTOREREMOVE=1")) == 0)
			drop(system, name);
		system->is_ready |= strcmp(text, "READY=1") == 0;
	}
	return system->kept;
}

/* ---- the daemon ---- */

static void start_daemon(struct system_world *system, unsigned files)
{
	int fd;
	system->daemon = fork();
	if (system->daemon == 0) {
		int null_fd = open("/dev/null", O_RDWR); /* the test's output ends with the test */
		dup2(null_fd, STDOUT_FILENO);
		dup2(null_fd, STDERR_FILENO);
		if (files)
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files});
		setenv("LOADLINE_SIM_DIR", system->folder, 1);
		if (system->is_blind && (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
					 mount("proc", "/proc", "proc", 0, "hidepid=2")))
			_exit(1);
		if (system->is_kept)
			be_kept(system);
		execl(system->world.programs.daemon, "loadlined", "--system", "--user", "nobody",
		      system->config ? "--config" : (char *)NULL, system->config, (char *)NULL);
		_exit(1);
	}
	assert_true(system->daemon > 1);
	wait_for(ll_place_connect(&system->world.place, &fd, NULL) == 0);
	close(fd);
}

static void kill_daemon(struct system_world *system)
{
	kill_process(system->daemon, SIGKILL);
	assert_int_equal(waitpid(system->daemon, NULL, 0), system->daemon);
}

static void make_world(struct system_world *system)
{
	*system = (struct system_world){.listen_fd = -1, .notify_fd = -1};
	world_init(&system->world);
	snprintf(system->folder, sizeof system->folder, "/tmp/ll-system-XXXXXX");
	assert_non_null(mkdtemp(system->folder));
	assert_int_equal(chmod(system->folder, 0755), 0);
	assert_int_equal(ll_place_of_system(system->folder, &system->world.place), 0);
}

void system_world_init(struct system_world *system, unsigned files)
{
	make_world(system);
	start_daemon(system, files);
}

void system_world_init_with(struct system_world *system, const char *config)
{
	make_world(system);
	system->config = config;
	start_daemon(system, 0);
}

void system_world_init_kept(struct system_world *system)
{
	make_world(system);
	system->is_kept = true;
	open_sockets(system);
	start_daemon(system, 0);
}

void system_world_restart(struct system_world *system)
{
	kill_daemon(system);
	if (system->is_kept)
		system_world_read(system);
	start_daemon(system, 0);
}

void system_world_fini(struct system_world *system)
{
	char path[LL_PLACE_SIZE];
	kill_daemon(system);
	if (system->is_kept) {
		system_world_read(system);
		assert_int_equal(system->kept, 0);
		close(system->listen_fd);
		close(system->notify_fd);
		snprintf(path, sizeof path, "%s/notify", system->folder);
		unlink(path);
	}
	unlink(system->world.place.name);
	snprintf(path, sizeof path, "%s/system", system->folder);
	rmdir(path);
	snprintf(path, sizeof path, "%s/loadlined.log", system->folder);
	unlink(path);
	assert_int_equal(rmdir(system->folder), 0);
}

void job_start_as(struct job *job, const struct system_world *system, uid_t uid, const char *name)
{
	become(uid);
	job_start(job, &system->world, name, NULL);
	become(0);
}

void open_as(struct ll_client *client, const struct system_world *system, uid_t uid)
{
	struct ll_err err = {0};
	become(uid);
	if (ll_client_open(client, &system->world.place, LL_CLIENT_COMMAND(LOADLINE_VERSION), ll_now_ns() + DEADLINE_NS,
			   &err))
		fail_msg("%s", err.text);
	become(0);
}

void list_as(struct ll_list *list, const struct system_world *system, uid_t uid)
{
	struct ll_client client;
	open_as(&client, system, uid);
	assert_int_equal(ll_client_list(&client, list, ll_now_ns() + DEADLINE_NS, NULL), 0);
	ll_client_close(&client);
}
