/* The table of exported memory, and that no process allocates or frees memory while it has the table's lock: it would
 * wait with the lock for its memory map, which a fork or an unmapping of a large program keeps for seconds. */
#include "shim/memory/exported_table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/say.h"
#include "test.h"

enum { FEW = 3, MANY = 1000 };

static struct ll_run_settings settings;
static struct ll_device_state dev = {.uuid = "GPU-00000000-0000-0000-0000-000000000000"};
static char path[PATH_MAX];
static unsigned locked_count, said_count;
static bool is_size_unknown;
static size_t rows_of_another;

/* ---- what the table calls ---- */

const struct ll_run_settings *ll_device_state_settings(void)
{
	return &settings;
}

void ll_say(const char *format, ...)
{
	(void)format;
	said_count++;
}

/* ---- calls of the C library ---- */

static bool is_locked(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool has_lock = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return has_lock;
}

static void append(size_t count)
{
	struct ll_exported_row row = {.kind = LL_EXPORTED_NAME};
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	for (size_t i = 0; i < count; i++) {
		row.id = i + 1;
		assert_int_equal(write(fd, &row, sizeof row), sizeof row);
	}
	close(fd);
}

/* The linker has the table call these five (--wrap). fstat64 is the symbol of fstat where files may be large. */
void *__real_malloc(size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);
int __real_fstat64(int fd, struct stat *ret_stat);
int __wrap_fstat64(int fd, struct stat *ret_stat);

void *__wrap_malloc(size_t size)
{
	locked_count += is_locked();
	size_t count = rows_of_another;
	rows_of_another = 0;
	if (count)
		append(count);
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *memory = __wrap_malloc(count * size);
	return memory ? memset(memory, 0, count * size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
	(void)memory;
	(void)size;
	abort();
}

void __wrap_free(void *memory)
{
	locked_count += is_locked();
	__real_free(memory);
}

int __wrap_fstat64(int fd, struct stat *ret_stat)
{
	if (!is_size_unknown || !is_locked())
		return __real_fstat64(fd, ret_stat);
	errno = EIO;
	return -1;
}

/* ---- tests ---- */

static int begin(void **state)
{
	(void)state;
	snprintf(settings.folder, sizeof settings.folder, "/tmp/loadline-exported.XXXXXX");
	if (!mkdtemp(settings.folder))
		return -1;
	snprintf(path, sizeof path, "%s/%s.exported", settings.folder, dev.uuid);
	locked_count = 0;
	said_count = 0;
	rows_of_another = 0;
	is_size_unknown = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(settings.folder);
}

TEST_EACH(begin, end);

static void open_as(size_t count, struct ll_exported_table *table)
{
	assert_int_equal(ll_exported_table_open(&dev, true, table), 0);
	assert_true(is_locked());
	assert_int_equal(table->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(table->rows[i].kind, LL_EXPORTED_NAME);
}

static void change(size_t count)
{
	struct ll_exported_table table;
	struct ll_exported_row row = {.kind = LL_EXPORTED_NAME, .id = 1};
	open_as(count, &table);
	assert_int_equal(ll_exported_table_add(&table, &row), 0);
	ll_exported_table_close(&table);
	assert_true(!is_locked());
	open_as(count + 1, &table);
	ll_exported_table_free(&table, &table.rows[count]);
	ll_exported_table_close(&table);
	open_as(count, &table);
	ll_exported_table_close(&table);
	assert_int_equal(locked_count, 0);
}

TEST(memory_is_neither_allocated_nor_freed_under_the_lock)
{
	change(0);
	append(FEW);
	change(FEW);
	append(MANY);
	change(FEW + MANY);
}

TEST(rows_that_came_between_the_allocation_and_the_lock_are_read)
{
	struct ll_exported_table table;
	rows_of_another = FEW;
	open_as(FEW, &table);
	ll_exported_table_close(&table);
	rows_of_another = MANY;
	open_as(FEW + MANY, &table);
	assert_int_equal(ll_exported_table_add(&table, &(struct ll_exported_row){.kind = LL_EXPORTED_NAME}), 0);
	ll_exported_table_close(&table);
	assert_int_equal(locked_count, 0);
}

TEST(a_table_whose_size_is_not_known_is_not_taken_for_empty)
{
	struct ll_exported_table table;
	append(FEW);
	is_size_unknown = true;
	assert_int_equal(ll_exported_table_open(&dev, true, &table), -EIO);
	assert_false(is_locked());
	is_size_unknown = false;
	open_as(FEW, &table);
	ll_exported_table_close(&table);
}

/* As of a fork by the system call itself, after which no handler runs, or a child that waits for a processor. */
TEST(a_child_that_has_the_descriptor_keeps_no_lock)
{
	struct ll_exported_table table;
	open_as(0, &table);
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	ll_exported_table_close(&table);
	bool is_kept = is_locked();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_false(is_kept);
}

TEST(a_table_that_another_keeps_locked_is_busy_and_it_is_said_once)
{
	struct ll_exported_table table;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	append(FEW);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(ll_exported_table_open(&dev, true, &table), -EBUSY);
	assert_int_equal(ll_exported_table_open(&dev, true, &table), -EBUSY);
	assert_int_equal(said_count, 1);
	close(fd);
	open_as(FEW, &table);
	ll_exported_table_close(&table);
}
