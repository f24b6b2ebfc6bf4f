#include "shim/memory/exported_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_limit.h"
#include "base/fork.h"

enum { MOST_ROWS = 16384, EXTRA_ROWS = 16 };

/* A process has the lock for microseconds, but on a busy host it may wait for a processor meanwhile. One that is
 * stopped while it has the lock delays the others so long. */
#define WAIT_NS LL_NS_PER_S

static int lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

static int open_file(const struct ll_device_state *dev, bool is_created)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof path, "%s/%s.exported", ll_device_state_settings()->folder, dev->uuid);
	if (n < 0 || (size_t)n >= sizeof path)
		return -ENAMETOOLONG;
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (is_created ? O_CREAT : 0), 0600);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

/* A forked child must not keep the lock, so it closes the descriptor of the table if it is open. */
static struct ll_fork_item fork_item;
static bool has_fork_item;
static int open_fd = -1;

static void close_in_child(struct ll_fork_item *item)
{
	(void)item;
	if (open_fd >= 0)
		close(open_fd);
	open_fd = -1;
}

static void follow_forks(void)
{
	if (has_fork_item)
		return;
	has_fork_item = true;
	fork_item.in_child = close_in_child;
	ll_fork_add(&fork_item);
}

static void close_file(void)
{
	ll_fork_block();
	close(open_fd);
	open_fd = -1;
	ll_fork_unblock();
}

static int open_locked(const struct ll_device_state *dev, bool is_created)
{
	uint64_t deadline_ns = ll_now_ns() + WAIT_NS;
	follow_forks();
	for (;;) {
		ll_fork_block();
		int fd = open_fd = open_file(dev, is_created);
		ll_fork_unblock();
		int rc = fd < 0 ? fd : lock_file(fd);
		if (rc >= 0)
			return fd;
		if (fd >= 0)
			close_file();
		uint64_t now_ns = ll_now_ns();
		if (fd < 0 || (rc != -EAGAIN && rc != -EACCES))
			return rc;
		if (now_ns >= deadline_ns)
			return -EBUSY;
		ll_sleep_until_ns(now_ns + LL_NS_PER_MS);
	}
}

static int read_rows(struct ll_exported_table *table)
{
	struct stat st;
	if (fstat(table->fd, &st))
		return -errno;
	table->count = (size_t)st.st_size / sizeof *table->rows;
	table->count = table->count < MOST_ROWS ? table->count : MOST_ROWS;
	table->capacity = table->count + EXTRA_ROWS;
	table->rows = calloc(table->capacity, sizeof *table->rows);
	if (!table->rows)
		return -ENOMEM;
	ssize_t wanted = (ssize_t)(table->count * sizeof *table->rows);
	return pread(table->fd, table->rows, (size_t)wanted, 0) == wanted ? 0 : -EIO;
}

int ll_exported_table_open(const struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table)
{
	struct ll_exported_table table = {.fd = open_locked(dev, is_created)};
	if (table.fd < 0) {
		open_fd = -1;
		return table.fd;
	}
	int rc = read_rows(&table);
	if (rc < 0)
		ll_exported_table_close(&table);
	else
		*ret_table = table;
	return rc;
}

void ll_exported_table_close(struct ll_exported_table *table)
{
	free(table->rows);
	close_file();
}

int ll_exported_table_write(struct ll_exported_table *table, const struct ll_exported_row *row)
{
	off_t at = (off_t)((size_t)(row - table->rows) * sizeof *row);
	if (!ll_file_limit_allows((uint64_t)at + sizeof *row))
		return -EFBIG;
	return pwrite(table->fd, row, sizeof *row, at) == (ssize_t)sizeof *row ? 0 : -EIO;
}

int ll_exported_table_add(struct ll_exported_table *table, const struct ll_exported_row *row)
{
	struct ll_exported_row *place = table->rows, *end = table->rows + table->count;
	while (place < end && place->kind != LL_EXPORTED_FREE)
		place++;
	if (place == end && (table->count == table->capacity || table->count == MOST_ROWS))
		return -ENOSPC;
	struct ll_exported_row before = *place;
	*place = *row;
	int rc = ll_exported_table_write(table, place);
	if (rc < 0)
		*place = before;
	else
		table->count += place == end;
	return rc;
}

/* Free rows at the end are cut off from the file. */
void ll_exported_table_free(struct ll_exported_table *table, struct ll_exported_row *row)
{
	*row = (struct ll_exported_row){.kind = LL_EXPORTED_FREE};
	ll_exported_table_write(table, row);
	size_t count = table->count;
	while (count && table->rows[count - 1].kind == LL_EXPORTED_FREE)
		count--;
	if (count < table->count && ftruncate(table->fd, (off_t)(count * sizeof *row)) == 0)
		table->count = count;
}
