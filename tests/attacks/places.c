/* Names, sockets and folders that the victim trusts, and that the attacker has taken first. */
#include "attack.h"

#include <sys/resource.h>
#include <sys/un.h>

#include "advice/advice.h"
#include "base/runtime_folder.h"
#include "mps/mps.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"
#include "shim/link/link.h"

enum { PATH_SIZE = 60 };

/* Runs the function as that user, who is nobody else, in a process of its own. Returns what it returns. */
static bool is_so_for(uid_t uid, bool (*function)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		close_all_but(-1);
		_exit(setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? 2 : function(path));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

/* A socket of the attacker, which listens. */
static int listen_as_attacker(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(name, &address);
	become(ATTACKER);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(fd, 1), 0);
	if (name[0] == '/')
		assert_int_equal(chmod(name, 0666), 0);
	become(0);
	return fd;
}

/* ---- the place of the victim's own loadlined ---- */

static bool connects(const char *name)
{
	struct ll_place place;
	int fd;
	return ll_place_read(name, &place) == 0 && ll_place_connect(&place, &fd, NULL) == 0;
}

static bool library_trusts(const char *name)
{
	struct ll_place place;
	uid_t uid;
	int fd;
	return ll_place_read(name, &place) == 0 && ll_place_connect_any(&place, &fd) == 0 &&
	       ll_place_uid_check(name, fd, &uid) == 0;
}

static void name_users_place(char ret_name[PATH_SIZE])
{
	snprintf(ret_name, PATH_SIZE, "loadline/%d/%x", VICTIM, (unsigned)getpid());
}

TEST(binds_the_name_of_anothers_loadlined)
{
	char name[PATH_SIZE];
	name_users_place(name);
	int fd = listen_as_attacker(name);
	succeed_if(is_so_for(VICTIM, connects, name), "the victim's commands talk to the attacker");
	close(fd);
}

TEST(binds_the_name_before_the_library_connects)
{
	char name[PATH_SIZE];
	name_users_place(name);
	int fd = listen_as_attacker(name);
	succeed_if(is_so_for(VICTIM, library_trusts, name), "the victim's programs obey the attacker");
	close(fd);
}

/* ---- the place of the system's loadlined ---- */

struct folder {
	char path[PATH_SIZE], socket[PATH_SIZE];
	int fd;
};

static void folder_make(struct folder *folder, uid_t owner, mode_t mode)
{
	snprintf(folder->path, sizeof folder->path, "/tmp/ll-attack-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	assert_int_equal(chmod(folder->path, mode), 0);
	assert_int_equal(chown(folder->path, owner, owner), 0);
	assert_int_equal(chmod(folder->path, mode), 0);
	snprintf(folder->socket, sizeof folder->socket, "%.40s/socket", folder->path);
	folder->fd = listen_as_attacker(folder->socket);
}

static void folder_remove(const struct folder *folder)
{
	close(folder->fd);
	unlink(folder->socket);
	assert_int_equal(rmdir(folder->path), 0);
}

TEST(makes_the_folder_of_the_socket)
{
	struct folder folder;
	folder_make(&folder, ATTACKER, 0755);
	bool is_so = is_so_for(VICTIM, connects, folder.socket);
	folder_remove(&folder);
	succeed_if(is_so, "the victim's commands talk to the attacker");
}

TEST(replaces_the_socket_in_a_folder_of_all)
{
	struct folder folder;
	folder_make(&folder, 0, 0777);
	bool is_so = is_so_for(VICTIM, connects, folder.socket);
	folder_remove(&folder);
	succeed_if(is_so, "the victim's commands talk to the attacker");
}

/* ---- folders of a user ---- */

static bool opens_runtime_folder(const char *path)
{
	int fd;
	return ll_runtime_folder_open(path, &fd, NULL) == 0;
}

TEST(makes_the_runtime_folder)
{
	char path[] = "/tmp/ll-attack-XXXXXX";
	assert_non_null(mkdtemp(path));
	assert_int_equal(chown(path, ATTACKER, ATTACKER) | chmod(path, 0755), 0);
	bool is_so = is_so_for(VICTIM, opens_runtime_folder, path);
	assert_int_equal(rmdir(path), 0);
	succeed_if(is_so, "the victim's files are in a folder of the attacker");
}

TEST(links_the_runtime_folder)
{
	char path[] = "/tmp/ll-attack-XXXXXX", link[PATH_SIZE];
	assert_non_null(mkdtemp(path));
	assert_int_equal(chown(path, VICTIM, VICTIM), 0);
	snprintf(link, sizeof link, "%s-link", path);
	become(ATTACKER);
	assert_int_equal(symlink(path, link), 0);
	become(0);
	/* As where the kernel does not protect links in /tmp (fs.protected_symlinks). */
	char folder[] = "/tmp/ll-attack-XXXXXX", moved[PATH_SIZE];
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(moved, sizeof moved, "%s/link", folder);
	assert_int_equal(rename(link, moved), 0);
	bool is_so = is_so_for(VICTIM, opens_runtime_folder, moved);
	unlink(moved);
	assert_int_equal(rmdir(folder) | rmdir(path), 0);
	succeed_if(is_so, "the victim's runtime folder is where the attacker wants it");
}

static bool opens_state_folder(const char *path)
{
	int fd;
	return ll_earlier_folder_open(path, &fd, NULL) == 0;
}

/* Root with the attacker's HOME: sudo may keep it. */
TEST(leads_root_to_its_state_folder)
{
	char path[] = "/tmp/ll-attack-XXXXXX";
	assert_non_null(mkdtemp(path));
	assert_int_equal(chown(path, ATTACKER, ATTACKER), 0);
	bool is_so = is_so_for(0, opens_state_folder, path);
	assert_int_equal(rmdir(path), 0);
	succeed_if(is_so, "root writes in a folder of the attacker");
}

static bool chooses_mps_folder(const char *path)
{
	char folder[LL_MPS_PATH_SIZE];
	(void)path;
	unsetenv("XDG_RUNTIME_DIR");
	return ll_mps_state_folder(NULL, folder, NULL) == 0;
}

/* The owner of a folder may replace what others made in it: the sockets of the victim's MPS daemon. */
TEST(makes_the_folder_of_mps)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/tmp/loadline-%d", VICTIM);
	become(ATTACKER);
	bool is_made = mkdir(path, 0777) == 0;
	become(0);
	if (!is_made)
		SKIP_TEST("the folder is there");
	bool is_so = is_so_for(VICTIM, chooses_mps_folder, NULL);
	assert_int_equal(rmdir(path), 0);
	succeed_if(is_so, "the victim's MPS daemon is in a folder of the attacker");
}

/* ---- settings that a program inherits ---- */

/* The child of a program of the attacker. It waits until the parent has executed the program. */
static _Noreturn void be_child(const int started[2], int report_fd)
{
	struct ll_run_settings settings;
	char byte;
	close(started[1]);
	bool has_started = read(started[0], &byte, 1) == 0;
	byte = (char)(has_started && ll_run_settings_find(&settings) == 0);
	_exit(write(report_fd, &byte, 1) == 1 ? 0 : 1);
}

/* A program of root that the attacker started, as sudo does: its parent has settings in its environment. */
TEST(gives_settings_to_a_child_of_another_user)
{
	char text[LL_RUN_TEXT_SIZE], is_found;
	int started[2], report[2];
	struct ll_run_settings settings = {.id = 1, .priority = LL_PRIORITY_NORMAL};
	snprintf(settings.place, sizeof settings.place, "loadline/%d", ATTACKER);
	snprintf(settings.tenant, sizeof settings.tenant, "mine");
	snprintf(settings.folder, sizeof settings.folder, "/tmp");
	assert_int_equal(ll_run_settings_write(&settings, text), 0);
	assert_int_equal(ll_run_settings_read(text, &settings), 0);
	assert_int_equal(pipe2(started, O_CLOEXEC) | pipe2(report, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (parent == 0) {
		if (fork() == 0)
			be_child(started, report[1]);
		if (setresgid(ATTACKER, ATTACKER, ATTACKER) || setresuid(ATTACKER, ATTACKER, ATTACKER))
			_exit(1);
		setenv(LL_RUN_VARIABLE, text, 1);
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	ll_message_close_fds(started, 2);
	assert_int_equal(read(report[0], &is_found, 1), 1);
	ll_message_close_fds(report, 2);
	sleeper_end(parent);
	succeed_if(is_found, "root's program obeys the limits and the loadlined that the attacker names");
}
