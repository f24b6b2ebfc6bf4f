#include "system_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/test.h"
#include "../unit/wait_for.h"

void become(uid_t uid)
{
	assert_int_equal(setresuid(uid, uid, 0), 0);
}

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
		execl(system->world.programs.daemon, "loadlined", "--system", "--user", "nobody", (char *)NULL);
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

void system_world_init(struct system_world *system, unsigned files)
{
	world_init(&system->world);
	snprintf(system->folder, sizeof system->folder, "/tmp/ll-system-XXXXXX");
	assert_non_null(mkdtemp(system->folder));
	assert_int_equal(chmod(system->folder, 0755), 0);
	assert_int_equal(ll_place_of_system(system->folder, &system->world.place), 0);
	start_daemon(system, files);
}

void system_world_restart(struct system_world *system)
{
	kill_daemon(system);
	start_daemon(system, 0);
}

void system_world_fini(struct system_world *system)
{
	char path[LL_PLACE_SIZE];
	kill_daemon(system);
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
