#include "card/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "card/defaults.h"
#include "card/engine.h"
#include "card/namespace.h"
#include "card/scenario.h"

static const char world_magic[8] = "LLSIM\0\0";

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_world *attached;
static int attached_fd = -1;
static dev_t attached_device;
static ino_t attached_inode;
static char folder[PATH_MAX];
enum { NOBODY = 65534 }; /* the kernel's overflow uid */
static bool is_of_all_users;
static _Atomic(const char *) settled_folder; /* readable without the lock, because the thread that forks has the lock */

/* Writes the folder's name, and a hint how to choose another one. */
static int name_folder(char text[PATH_MAX], const char **ret_hint, struct ll_err *err)
{
	const char *dir = getenv("LOADLINE_SIM_DIR");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;
	*ret_hint = "set LOADLINE_SIM_DIR to a folder of your own";
	if (dir && dir[0]) {
		n = snprintf(text, PATH_MAX, "%s", dir);
	} else if (runtime && runtime[0] == '/') {
		n = snprintf(text, PATH_MAX, "%s/loadline-sim", runtime);
		*ret_hint = "set XDG_RUNTIME_DIR to a folder of your own, or unset it";
	} else {
		n = snprintf(text, PATH_MAX, "/tmp/loadline-sim-%u", (unsigned)getuid());
	}
	if (n < 0 || n >= PATH_MAX)
		return ll_err_set(err, -ENAMETOOLONG, "simulated world: its folder's name is too long");
	return 0;
}

/* Root makes a world for all users with a folder that all may write to. In a user namespace without root it is
 * nobody's. */
static bool is_shared(const struct stat *folder_stat)
{
	return (folder_stat->st_uid == 0 || folder_stat->st_uid == NOBODY) && (folder_stat->st_mode & 0777) == 0777;
}

int sim_world_open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0 && is_of_all_users && flags & O_CREAT)
		fchmod(fd, 0666); /* only the owner, who made the file, can do this */
	return fd;
}

/* Finds the world's folder, once. Called with attach_lock held. */
static int find_folder(struct ll_err *err)
{
	char text[sizeof folder];
	const char *hint;
	struct stat st;
	if (folder[0])
		return 0;
	int rc = name_folder(text, &hint, err);
	if (rc < 0)
		return rc;
	if (mkdir(text, 0700) < 0 && errno != EEXIST)
		rc = ll_err_set(err, -errno, "simulated world: make %s: %s", text, strerror(errno));
	else if (lstat(text, &st) < 0 || !realpath(text, folder))
		rc = ll_err_set(err, -errno, "simulated world: %s: %s", text, strerror(errno));
	else if (!S_ISDIR(st.st_mode) || (!is_shared(&st) && (st.st_uid != geteuid() || (st.st_mode & 022))))
		rc = ll_err_set(err, -EPERM, "simulated world: %s: not a folder that only this user may write", text);
	else
		is_of_all_users = is_shared(&st);
	if (rc < 0) {
		folder[0] = '\0';
		ll_err_hint(err, "%s", hint);
	}
	if (rc == 0)
		settled_folder = folder;
	return rc;
}

const char *sim_world_folder(void)
{
	if (settled_folder)
		return settled_folder;
	LL_SCOPE_LOCK(&attach_lock);
	return find_folder(NULL) < 0 ? NULL : folder;
}

static void read_boot_id(char *text, size_t size)
{
	LL_SCOPE_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static int path_in_folder(char *path, size_t size, const char *name)
{
	int n = snprintf(path, size, "%s/%s", folder, name);
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static struct sim_world *map_world(int fd)
{
	void *p = mmap(NULL, sizeof(struct sim_world), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Whether this version made the world, since this boot. The rest of the contents is not checked. */
static bool is_valid(int fd, const char *boot_id, uint64_t *ret_hash)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != sizeof(struct sim_world))
		return false;
	struct sim_world *w = map_world(fd);
	if (!w)
		return false;
	bool is_ours = memcmp(w->magic, world_magic, sizeof world_magic) == 0 && w->layout == sizeof *w &&
		       strcmp(w->boot_id, boot_id) == 0;
	*ret_hash = w->scenario_hash;
	munmap(w, sizeof *w);
	return is_ours;
}

static int init_lock(struct sim_world *w)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	int rc = pthread_mutex_init(&w->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -rc;
}

/* Writes a new world to a temporary file and renames it, so that no process sees an incomplete world. */
static int make_world(const char *path, const struct sim_scenario *scenario, const char *boot_id, int *ret_fd,
		      struct ll_err *err)
{
	char temporary[PATH_MAX];
	if (path_in_folder(temporary, sizeof temporary, "world.new") < 0)
		return ll_err_set(err, -ENAMETOOLONG, "simulated world: name too long");
	LL_SCOPE_CLOSE int fd = sim_world_open_file(temporary, O_RDWR | O_CREAT | O_TRUNC);
	if (fd < 0 || ftruncate(fd, (off_t)sizeof(struct sim_world)) < 0)
		return ll_err_set(err, -errno, "simulated world: %s: %s", temporary, strerror(errno));
	struct sim_world *w = map_world(fd);
	if (!w)
		return ll_err_set(err, -errno, "simulated world: mmap: %s", strerror(errno));
	sim_world_init(w, ll_now_ns(), sim_wall_offset_ns());
	int rc = init_lock(w);
	if (rc == 0)
		rc = sim_scenario_apply(scenario, w, err);
	sim_commit(w);
	snprintf(w->boot_id, sizeof w->boot_id, "%s", boot_id);
	w->time_namespace = sim_namespace_of_time();
	w->scenario_hash = scenario->hash;
	w->layout = sizeof *w;
	memcpy(w->magic, world_magic, sizeof world_magic);
	munmap(w, sizeof *w);
	if (rc < 0)
		return rc;
	if (rename(temporary, path) < 0)
		return ll_err_set(err, -errno, "simulated world: %s: %s", path, strerror(errno));
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Opens or makes the world file. Every process in a world has a shared flock on it, so an exclusive flock means that
 * the world has no process. */
static int open_world(const struct sim_scenario *scenario, bool anew, int *ret_fd, struct ll_err *err)
{
	char path[PATH_MAX], boot_id[40];
	if (path_in_folder(path, sizeof path, "world") < 0)
		return ll_err_set(err, -ENAMETOOLONG, "simulated world: name too long");
	read_boot_id(boot_id, sizeof boot_id);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !anew) {
		uint64_t hash = 0;
		bool fits = is_valid(fd, boot_id, &hash);
		if (fits && (!scenario->is_named || hash == scenario->hash)) {
			*ret_fd = fd;
			return 0;
		}
		if (fits && flock(fd, LOCK_EX | LOCK_NB) < 0) {
			close(fd);
			ll_err_set(err, -EBUSY, "simulated world %s: in use with another scenario", folder);
			ll_err_hint(err, "end its programs, or choose another world with LOADLINE_SIM_DIR");
			return -EBUSY;
		}
	}
	if (fd >= 0)
		close(fd);
	return make_world(path, scenario, boot_id, ret_fd, err);
}

static void before_fork(void)
{
	pthread_mutex_lock(&attach_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&attach_lock);
}

__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

int sim_world_fd(void)
{
	struct stat st;
	bool is_open =
	    attached && !fstat(attached_fd, &st) && st.st_dev == attached_device && st.st_ino == attached_inode;
	return is_open ? attached_fd : -1;
}

/* The clock of another time namespace may differ. */
static int check_clock(const struct sim_world *w, struct ll_err *err)
{
	if (w->time_namespace == sim_namespace_of_time())
		return 0;
	ll_err_set(err, -EXDEV, "simulated world %s: its programs are in another time namespace", folder);
	return ll_err_hint(err, "choose another world with LOADLINE_SIM_DIR");
}

static int attach_world(bool anew, struct ll_err *err)
{
	struct sim_scenario scenario;
	int rc = sim_scenario_load(getenv("LOADLINE_SIM_SCENARIO"), &scenario, err);
	if (rc < 0)
		return rc;
	char path[PATH_MAX];
	LL_SCOPE_CLOSE int setup = -1;
	int fd = -1;
	rc = path_in_folder(path, sizeof path, "setup.lock");
	if (rc == 0) {
		setup = sim_world_open_file(path, O_RDWR | O_CREAT);
		if (setup < 0 || flock(setup, LOCK_EX) < 0)
			rc = ll_err_set(err, -errno, "simulated world: %s: %s", path, strerror(errno));
	}
	if (rc == 0)
		rc = open_world(&scenario, anew, &fd, err);
	sim_scenario_fini(&scenario);
	if (rc < 0)
		return rc;
	struct sim_world *w = map_world(fd);
	struct stat st = {0};
	if (!w || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
		rc = ll_err_set(err, -errno, "simulated world: %s", strerror(errno));
	else
		rc = check_clock(w, err);
	if (rc < 0) {
		if (w)
			munmap(w, sizeof *w);
		close(fd);
		return rc;
	}
	attached = w;
	attached_fd = fd;
	attached_device = st.st_dev;
	attached_inode = st.st_ino;
	return 0;
}

int sim_world_attach(struct sim_world **ret_world, struct ll_err *err)
{
	LL_SCOPE_LOCK(&attach_lock);
	int rc = find_folder(err);
	if (rc == 0 && !attached)
		rc = attach_world(false, err);
	if (rc == 0)
		*ret_world = attached;
	return rc;
}

const char *sim_world_trouble(const char **ret_hint)
{
	static struct ll_err trouble;
	struct ll_err err = {0};
	struct sim_world *world;
	if (sim_world_attach(&world, &err) == 0)
		return NULL;
	LL_SCOPE_LOCK(&attach_lock);
	trouble = err;
	*ret_hint = trouble.hint;
	return trouble.text;
}

int sim_world_reset(struct ll_err *err)
{
	LL_SCOPE_LOCK(&attach_lock);
	int rc = find_folder(err);
	if (rc < 0)
		return rc;
	if (attached) {
		munmap(attached, sizeof *attached);
		close(attached_fd);
		attached = NULL;
	}
	return attach_world(true, err);
}
