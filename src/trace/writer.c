#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "base/utf8.h"

enum { BLOCK_BYTES = 64 * 1024, FIRST_NAMES = 256 };

struct name {
	uint64_t hash; /* 0: free */
	uint32_t number;
};

struct ll_trace_writer {
	pthread_mutex_t lock;
	int fd;
	uint64_t offset; /* position in the file of the block */
	uint64_t records, most;
	struct ll_trace_header header;
	struct name *names; /* a hash table with open addressing, at most half full */
	uint32_t name_count, name_room;
	size_t used;
	_Alignas(8) char block[BLOCK_BYTES];
};

/* Reads the command's words, with blanks between. */
static void read_command(char *text, size_t size)
{
	LL_SCOPE_CLOSE int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
	text[length > 0 ? length : 0] = '\0';
	for (ssize_t i = 0; i + 1 < length; i++) {
		if (text[i] == '\0')
			text[i] = ' ';
	}
}

/* Moves the descriptor to FIRST_FD or above, because programs may rely on low numbers of their own descriptors. */
static int open_file(const char *folder, uint64_t now_ns)
{
	enum { FIRST_FD = 200 };
	char path[4096];
	int n = snprintf(path, sizeof path, "%s/%d-%llu-XXXXXX", folder, (int)getpid(), (unsigned long long)now_ns);
	if (n < 0 || (size_t)n >= sizeof path)
		return -ENAMETOOLONG;
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static bool write_at(int fd, const void *data, size_t bytes, uint64_t offset)
{
	if (!ll_file_limit_allows(offset + bytes))
		return false;
	while (bytes) {
		ssize_t n = pwrite(fd, data, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data = (const char *)data + n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

static void write_header(struct ll_trace_writer *writer)
{
	write_at(writer->fd, &writer->header, sizeof writer->header, 0);
}

int ll_trace_writer_open(enum ll_trace_source source, struct ll_trace_writer **ret_writer)
{
	const char *folder = getenv(LL_TRACE_FOLDER);
	if (!folder || !*folder)
		return -ENOENT;
	struct ll_trace_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return -ENOMEM;
	uint64_t now_ns = ll_now_ns();
	writer->fd = open_file(folder, now_ns);
	if (writer->fd < 0) {
		int rc = writer->fd;
		free(writer);
		return rc;
	}
	pthread_mutex_init(&writer->lock, NULL);
	const char *most = getenv(LL_TRACE_MOST);
	writer->most = most ? strtoull(most, NULL, 10) : 0;
	if (!writer->most)
		writer->most = LL_TRACE_DEFAULT_MOST;
	writer->header = (struct ll_trace_header){
	    .magic = LL_TRACE_MAGIC,
	    .header_bytes = sizeof writer->header,
	    .source = source,
	    .pid = getpid(),
	    .parent = getppid(),
	    .opened_ns = now_ns,
	};
	read_command(writer->header.command, sizeof writer->header.command);
	writer->offset = sizeof writer->header;
	write_header(writer);
	*ret_writer = writer;
	return 0;
}

/* Writes the block, with the lock held. If the write fails, the block is lost. Names may be lost with it; the reader
 * shows records without them. */
static void flush_block(struct ll_trace_writer *writer)
{
	if (!writer->used)
		return;
	if (write_at(writer->fd, writer->block, writer->used, writer->offset))
		writer->offset += writer->used;
	else
		writer->header.dropped_disk += writer->used / sizeof(struct ll_trace_record);
	writer->used = 0;
	write_header(writer);
}

static void put_bytes(struct ll_trace_writer *writer, const void *data, size_t bytes)
{
	if (writer->used + bytes > BLOCK_BYTES)
		flush_block(writer);
	memcpy(writer->block + writer->used, data, bytes);
	writer->used += bytes;
}

static struct name *find_name(struct name *names, uint32_t room, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & (room - 1);
	while (names[i].hash && names[i].hash != hash)
		i = (i + 1) & (room - 1);
	return &names[i];
}

static bool make_room(struct ll_trace_writer *writer)
{
	if (2 * (writer->name_count + 1) <= writer->name_room)
		return true;
	uint32_t room = writer->name_room ? 2 * writer->name_room : FIRST_NAMES;
	struct name *names = calloc(room, sizeof *names);
	if (!names)
		return false;
	for (uint32_t i = 0; i < writer->name_room; i++) {
		if (writer->names[i].hash)
			*find_name(names, room, writer->names[i].hash) = writer->names[i];
	}
	free(writer->names);
	writer->names = names;
	writer->name_room = room;
	return true;
}

static void put_name(struct ll_trace_writer *writer, uint32_t number, const char *text)
{
	_Alignas(8) char record[sizeof(struct ll_trace_name) + LL_TRACE_NAME_LONGEST + 8] = {0};
	size_t length = strnlen(text, LL_TRACE_NAME_LONGEST - 1);
	size_t bytes = (sizeof(struct ll_trace_name) + length + 1 + 7) / 8 * 8;
	struct ll_trace_name name = {.head = {.kind = LL_TRACE_NAME, .bytes = (uint16_t)bytes, .name = number}};
	memcpy(record, &name, sizeof name);
	memcpy(record + sizeof name, text, length);
	put_bytes(writer, record, bytes);
}

static uint32_t number_of(struct ll_trace_writer *writer, const char *text)
{
	if (!text || !make_room(writer))
		return 0;
	uint64_t hash = ll_text_hash(text);
	hash = hash ? hash : 1;
	struct name *name = find_name(writer->names, writer->name_room, hash);
	if (name->hash)
		return name->number;
	*name = (struct name){.hash = hash, .number = ++writer->name_count};
	put_name(writer, name->number, text);
	return name->number;
}

uint32_t ll_trace_writer_name(struct ll_trace_writer *writer, const char *name)
{
	LL_SCOPE_LOCK(&writer->lock);
	return number_of(writer, name);
}

void ll_trace_writer_add(struct ll_trace_writer *writer, const struct ll_trace_record *record)
{
	LL_SCOPE_LOCK(&writer->lock);
	if (writer->records++ >= writer->most) {
		writer->header.dropped_limit++;
		return;
	}
	struct ll_trace_record copy = *record;
	copy.head.bytes = sizeof copy;
	put_bytes(writer, &copy, sizeof copy);
}

void ll_trace_writer_add_card(struct ll_trace_writer *writer, uint32_t device, const char *uuid)
{
	struct ll_trace_record card = {.head = {.kind = LL_TRACE_CARD, .bytes = sizeof card}, .device = device};
	LL_SCOPE_LOCK(&writer->lock);
	card.head.name = number_of(writer, uuid);
	put_bytes(writer, &card, sizeof card);
}

void ll_trace_writer_add_dropped(struct ll_trace_writer *writer, uint64_t count)
{
	LL_SCOPE_LOCK(&writer->lock);
	writer->header.dropped_cupti += count;
	write_header(writer);
}

void ll_trace_writer_refuse(struct ll_trace_writer *writer, uint32_t cupti_version, const char *reason)
{
	LL_SCOPE_LOCK(&writer->lock);
	writer->header.source = LL_TRACE_SOURCE_NONE;
	writer->header.cupti_version = cupti_version;
	snprintf(writer->header.reason, sizeof writer->header.reason, "%s", reason);
	write_header(writer);
}

void ll_trace_writer_note_version(struct ll_trace_writer *writer, uint32_t cupti_version)
{
	LL_SCOPE_LOCK(&writer->lock);
	writer->header.cupti_version = cupti_version;
	write_header(writer);
}

void ll_trace_writer_flush(struct ll_trace_writer *writer)
{
	LL_SCOPE_LOCK(&writer->lock);
	bool had_drops = writer->header.dropped_limit > 0;
	flush_block(writer);
	if (had_drops)
		write_header(writer);
}

void ll_trace_writer_close(struct ll_trace_writer *writer)
{
	ll_trace_writer_flush(writer);
	close(writer->fd);
	pthread_mutex_destroy(&writer->lock);
	free(writer->names);
	free(writer);
}

void ll_trace_writer_forget(struct ll_trace_writer *writer)
{
	close(writer->fd);
}
