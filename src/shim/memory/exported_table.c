#include "shim/memory/exported_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/say.h"

/* A process has the lock for microseconds, but on a busy host it may wait for a processor meanwhile. One that is
 * stopped while it has the lock delays the others by so many tries, a millisecond apart. Tries and not time: this
 * process may wait for a processor too. */
enum { MOST_ROWS = 16384, EXTRA_ROWS = 16, TRIES = 1000 };

/* type: F_WRLCK or F_UNLCK. Returns -EAGAIN if another process has the lock. */
static int set_lock(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
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
static int open_fd = -1;

static void close_in_child(struct ll_fork_item *item)
{
	(void)item;
	if (open_fd >= 0)
		close(open_fd);
	open_fd = -1;
}

static struct ll_fork_item fork_item = {.in_child = close_in_child};

static int count_rows(int fd, size_t *ret_count)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	size_t count = (size_t)st.st_size / sizeof(struct ll_exported_row);
	*ret_count = count < MOST_ROWS ? count : MOST_ROWS;
	return 0;
}

/* Makes room for the rows while the lock is free. With the lock, the process would wait for its memory map, which a
 * fork or an unmapping of a large program keeps for seconds. The pages are written to, so that the room is there. */
static int make_room(struct ll_exported_table *table)
{
	int rc = count_rows(table->fd, &table->capacity);
	if (rc < 0)
		return rc;
	table->capacity += 2 * EXTRA_ROWS;
	table->rows = malloc(table->capacity * sizeof *table->rows);
	if (!table->rows)
		return -ENOMEM;
	memset(table->rows, 0, table->capacity * sizeof *table->rows);
	return 0;
}

/* Returns -EAGAIN if other processes have added more rows than there is room for. The lock is held. */
static int read_rows(struct ll_exported_table *table)
{
	int rc = count_rows(table->fd, &table->count);
	if (rc < 0)
		return rc;
	if (table->count + EXTRA_ROWS > table->capacity)
		return -EAGAIN;
	ssize_t wanted = (ssize_t)(table->count * sizeof *table->rows);
	return pread(table->fd, table->rows, (size_t)wanted, 0) == wanted ? 0 : -EIO;
}

static int try_to_open(const struct ll_device_state *dev, bool is_created, struct ll_exported_table *table)
{
	*table = (struct ll_exported_table){0};
	ll_fork_block();
	table->fd = open_fd = open_file(dev, is_created);
	ll_fork_unblock();
	if (table->fd < 0)
		return table->fd;
	int rc = make_room(table);
	rc = rc < 0 ? rc : set_lock(table->fd, F_WRLCK);
	rc = rc < 0 ? rc : read_rows(table);
	if (rc < 0)
		ll_exported_table_close(table);
	return rc;
}

int ll_exported_table_open(const struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table)
{
	static atomic_flag is_said = ATOMIC_FLAG_INIT;
	ll_fork_add(&fork_item);
	for (int i = 0; i < TRIES; i++) {
		int rc = try_to_open(dev, is_created, ret_table);
		if (rc != -EAGAIN)
			return rc;
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
	if (!atomic_flag_test_and_set(&is_said))
		ll_say("the table of shared memory of card %d is kept locked by another process of this user: memory "
		       "that processes share may be charged twice",
		       dev->device);
	return -EBUSY;
}

void ll_exported_table_close(struct ll_exported_table *table)
{
	/* Gives the lock back before it waits for forks: children that have the descriptor meanwhile have no lock then.
	 */
	set_lock(open_fd, F_UNLCK);
	ll_fork_block();
	close(open_fd);
	open_fd = -1;
	ll_fork_unblock();
	free(table->rows);
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
