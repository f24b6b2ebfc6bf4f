#include "ledger/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file_limit.h"
#include "base/fork.h"
#include "base/scope.h"
#include "ledger/handle.h"
#include "ledger/layout.h"
#include "ledger/liveness.h"

enum { MAKE_WAIT_MS = 5000, MAKE_TRIES = 100, NAME_SIZE = 128 };

/* The fields before reserved_fixed, as they are in the file. */
struct fixed_header {
	uint64_t magic;
	uint32_t version, slot_count, slot_bytes, file_bytes;
	char uuid[96];
};

_Static_assert(sizeof(struct fixed_header) == 120, "ledger version 1");

static int fail_file(struct ll_err *err, int code, const char *path, const char *why)
{
	return ll_err_set(err, code, "ledger %s: %s", path, why);
}

static int fail_file_remove(struct ll_err *err, int code, const char *path, const char *why)
{
	fail_file(err, code, path, why);
	ll_err_hint(err, "end the loadline programs of this card, then remove the file: it is made anew");
	return code;
}

static int check_owner(const struct stat *st, const char *path, struct ll_err *err)
{
	if (!S_ISREG(st->st_mode))
		return fail_file_remove(err, -EPERM, path, "is not a plain file");
	if (st->st_uid != geteuid())
		return fail_file_remove(err, -EPERM, path, "belongs to another user");
	if (st->st_mode & (S_IRWXG | S_IRWXO))
		return fail_file_remove(err, -EPERM, path, "is open to other users");
	return 0;
}

static int check_header(const struct fixed_header *header, const struct stat *st, const char *path, const char *uuid,
			struct ll_err *err)
{
	if (header->magic != LL_LEDGER_MAGIC)
		return fail_file_remove(err, -EBADMSG, path, "is not a ledger, or corrupt");
	if (header->version != LL_LEDGER_VERSION) {
		ll_err_set(err, -EPROTO, "ledger %s: is of version %u, this program knows version %d", path,
			   header->version, LL_LEDGER_VERSION);
		ll_err_hint(err, "end the loadline programs of the other version: then it is made anew");
		return -EPROTO;
	}
	if (st->st_size < LL_LEDGER_FILE_BYTES)
		return fail_file_remove(err, -EBADMSG, path, "is truncated");
	if (st->st_size != LL_LEDGER_FILE_BYTES || header->slot_count != LL_LEDGER_CLAIMS ||
	    header->slot_bytes != LL_LEDGER_SLOT_BYTES || header->file_bytes != LL_LEDGER_FILE_BYTES)
		return fail_file_remove(err, -EBADMSG, path, "is corrupt");
	if (strncmp(header->uuid, uuid, sizeof header->uuid) != 0)
		return fail_file_remove(err, -EBADMSG, path, "is of another card, or corrupt");
	return 0;
}

static int check_file(int fd, const char *path, const char *uuid, struct ll_err *err)
{
	struct stat st;
	struct fixed_header header;
	if (fstat(fd, &st))
		return fail_file(err, -errno, path, strerror(errno));
	int rc = check_owner(&st, path, err);
	if (rc)
		return rc;
	if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
		return fail_file_remove(err, -EBADMSG, path, "is truncated");
	return check_header(&header, &st, path, uuid, err);
}

/* Writes everything. It need not be atomic, because no process opens a file by this name. */
static int fill_file(int fd, const char *path, const char *uuid, struct ll_err *err)
{
	struct fixed_header header = {
	    .magic = LL_LEDGER_MAGIC,
	    .version = LL_LEDGER_VERSION,
	    .slot_count = LL_LEDGER_CLAIMS,
	    .slot_bytes = LL_LEDGER_SLOT_BYTES,
	    .file_bytes = LL_LEDGER_FILE_BYTES,
	};
	memcpy(header.uuid, uuid, strlen(uuid));
	if (!ll_file_limit_allows(LL_LEDGER_FILE_BYTES))
		return fail_file(err, -EFBIG, path, strerror(EFBIG));
	if (ftruncate(fd, 0) || fchmod(fd, 0600))
		return fail_file(err, -errno, path, strerror(errno));
	/* With real blocks a full file system is an error here, and no SIGBUS at the first store. */
	int rc = posix_fallocate(fd, 0, LL_LEDGER_FILE_BYTES);
	if (rc)
		return fail_file(err, -rc, path, strerror(rc));
	if (pwrite(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
		return fail_file(err, -EIO, path, "cannot be written");
	return 0;
}

static bool is_named(int folder_fd, const char *name, int fd)
{
	struct stat by_name;
	struct stat by_fd;
	return !fstatat(folder_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &by_fd) &&
	       by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

/*
 * The file gets its name when it is complete. There is one temporary name. The process that holds the lock on the file
 * of that name works on it. If that process is killed, the next one uses the file that it left. -EAGAIN: the file was
 * renamed while we waited.
 */
static int make_file(int folder_fd, const char *name, const char *path, const char *uuid, struct ll_err *err)
{
	char temp[NAME_SIZE + 8];
	snprintf(temp, sizeof temp, ".%s.new", name);
	LL_SCOPE_CLOSE int fd = openat(folder_fd, temp, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_file(err, -errno, path, strerror(errno));
	int rc = ll_lock_wait(fd, LL_LOCK_MAKE, MAKE_WAIT_MS);
	if (rc)
		return fail_file(err, rc, path, "another program is making it, and does not get on");
	if (!is_named(folder_fd, temp, fd))
		return -EAGAIN;
	if (!faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW)) {
		unlinkat(folder_fd, temp, 0);
		return 0;
	}
	rc = fill_file(fd, path, uuid, err);
	if (!rc && renameat(folder_fd, temp, folder_fd, name))
		rc = fail_file(err, -errno, path, strerror(errno));
	if (rc)
		unlinkat(folder_fd, temp, 0);
	return rc;
}

/* Makes the file, unless another process has made it. */
static int ensure_file(int folder_fd, const char *name, const char *path, const char *uuid, struct ll_err *err)
{
	for (int i = 0; i < MAKE_TRIES; i++) {
		int rc = make_file(folder_fd, name, path, uuid, err);
		if (rc != -EAGAIN)
			return rc;
		if (!faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
			return 0;
	}
	return fail_file(err, -EIO, path, "is removed as fast as it is made");
}

/*
 * Removes a file of another version in which no process has a claim, a tenant or a hold. Meanwhile all its locks are
 * held, so that no process begins to use it. The locks lie beyond the data, and begin at the same place in every
 * version.
 */
static bool remove_disused(int folder_fd, const char *name)
{
	struct fixed_header header;
	LL_SCOPE_CLOSE int fd = openat(folder_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || ll_lock_try_all(fd, LL_LOCK_SLOTS) || !is_named(folder_fd, name, fd))
		return false;
	/* Another process may have made the file anew by now. */
	bool is_other = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
			header.magic == LL_LEDGER_MAGIC && header.version != LL_LEDGER_VERSION;
	return is_other && unlinkat(folder_fd, name, 0) == 0;
}

static int open_named(int folder_fd, const char *path, const char *uuid, bool is_created, int *ret_fd,
		      struct ll_err *err)
{
	char name[NAME_SIZE];
	snprintf(name, sizeof name, "%s.ledger", uuid);
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	LL_SCOPE_CLOSE int fd = openat(folder_fd, name, flags);
	if (fd < 0 && errno == ENOENT && is_created) {
		int rc = ensure_file(folder_fd, name, path, uuid, err);
		if (rc)
			return rc;
		fd = openat(folder_fd, name, flags);
	}
	if (fd < 0 && errno == ELOOP)
		return fail_file_remove(err, -EPERM, path, "is a symbolic link");
	if (fd < 0)
		return fail_file(err, -errno, path, strerror(errno));
	int rc = check_file(fd, path, uuid, err);
	if (rc)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int ll_ledger_file_open(int folder_fd, const char *path, const char *uuid, bool is_created, int *ret_fd,
			struct ll_err *err)
{
	char name[NAME_SIZE];
	struct ll_err why = {0};
	int rc = open_named(folder_fd, path, uuid, is_created, ret_fd, &why);
	snprintf(name, sizeof name, "%s.ledger", uuid);
	if (rc == -EPROTO && is_created && remove_disused(folder_fd, name))
		return open_named(folder_fd, path, uuid, is_created, ret_fd, err);
	if (rc && err)
		*err = why;
	return rc;
}

#define SYSTEM_FOLDER "/run/loadline"

static int put_path(char ret_path[LL_FOLDER_SIZE], const char *parent, const char *name, struct ll_err *err)
{
	int n = snprintf(ret_path, LL_FOLDER_SIZE, "%s%s", parent, name);
	if (n < 0 || n >= LL_FOLDER_SIZE)
		return ll_err_set(err, -ENAMETOOLONG, "folder of the ledgers: '%s%s' is too long", parent, name);
	return 0;
}

static bool can_use_system_folder(void)
{
	return geteuid() == 0 && (access(SYSTEM_FOLDER, W_OK) == 0 || access("/run", W_OK) == 0);
}

int ll_ledger_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err)
{
	if (sim_folder && *sim_folder)
		return put_path(ret_path, sim_folder, "", err);
	if (can_use_system_folder())
		return put_path(ret_path, SYSTEM_FOLDER, "", err);
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (runtime && *runtime == '/')
		return put_path(ret_path, runtime, "/loadline", err);
	char name[40];
	snprintf(name, sizeof name, "/tmp/loadline-%lu", (unsigned long)geteuid());
	return put_path(ret_path, name, "", err);
}

static int check_folder(int fd, const char *path, struct ll_err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return ll_err_set(err, -errno, "folder of the ledgers: %s: %s", path, strerror(errno));
	if (st.st_uid != geteuid()) {
		ll_err_set(err, -EPERM, "folder of the ledgers: %s: belongs to user %lu, not to you (%lu)", path,
			   (unsigned long)st.st_uid, (unsigned long)geteuid());
		ll_err_hint(err, "remove it, or set XDG_RUNTIME_DIR to a folder of your own");
		return -EPERM;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		ll_err_set(err, -EPERM, "folder of the ledgers: %s: others may write it (mode %04o)", path,
			   (unsigned)(st.st_mode & 07777));
		ll_err_hint(err, "chmod 0700 %s", path);
		return -EPERM;
	}
	return 0;
}

int ll_ledger_folder_open(const char *path, int *ret_fd, struct ll_err *err)
{
	if (mkdir(path, 0700) && errno != EEXIST) {
		ll_err_set(err, -errno, "folder of the ledgers: make %s: %s", path, strerror(errno));
		return ll_err_hint(err, "set XDG_RUNTIME_DIR to a folder of your own, or unset it");
	}
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		int code = errno == ELOOP || errno == ENOTDIR ? EPERM : errno;
		ll_err_set(err, -code, "folder of the ledgers: %s: %s", path,
			   code == EPERM ? "is not a folder, or a symbolic link" : strerror(code));
		ll_err_hint(err, "remove it, or set XDG_RUNTIME_DIR to a folder of your own");
		return -code;
	}
	int rc = check_folder(fd, path, err);
	if (rc)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

enum { MARK_BASE = 1 << 30 };

struct ll_own_fd ll_own_fd_mark(int fd)
{
	static _Atomic unsigned count;
	off_t mark = (off_t)MARK_BASE + atomic_fetch_add(&count, 1);
	return (struct ll_own_fd){.fd = fd, .mark = lseek(fd, mark, SEEK_SET)};
}

bool ll_own_fd_is_ours(const struct ll_ledger *ledger, const struct ll_own_fd *own)
{
	struct stat st;
	return own->fd >= 0 && lseek(own->fd, 0, SEEK_CUR) == own->mark && !fstat(own->fd, &st) &&
	       st.st_dev == ledger->device && st.st_ino == ledger->inode;
}

void ll_own_fd_close(const struct ll_ledger *ledger, struct ll_own_fd *own)
{
	if (ll_own_fd_is_ours(ledger, own))
		close(own->fd);
	*own = LL_OWN_FD_NONE;
}

static bool is_same_file(const struct ll_ledger *ledger, int fd)
{
	struct stat st;
	return !fstat(fd, &st) && st.st_dev == ledger->device && st.st_ino == ledger->inode;
}

/* Opens the file by a descriptor, because it may have lost its name, or by its name, because the descriptor may be
 * closed. */
int ll_own_fd_open(const struct ll_ledger *ledger, struct ll_own_fd *own)
{
	char by_fd[40];
	snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", ledger->scan.fd);
	int fd = ll_own_fd_is_ours(ledger, &ledger->scan) ? ll_lock_open(by_fd) : -1;
	if (fd < 0)
		fd = ll_lock_open(ledger->path);
	if (fd < 0)
		return fd;
	if (!is_same_file(ledger, fd)) {
		close(fd);
		return -ENOENT;
	}
	*own = ll_own_fd_mark(fd);
	return 0;
}

bool ll_ledger_has_scan(struct ll_ledger *ledger)
{
	if (ll_own_fd_is_ours(ledger, &ledger->scan))
		return true;
	ll_fork_block();
	int rc = ll_own_fd_open(ledger, &ledger->scan);
	ll_fork_unblock();
	return !rc;
}
