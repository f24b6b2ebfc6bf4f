#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

static int map_file(const char *path, struct ll_trace_file *file, struct ll_err *err)
{
	struct stat st;
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	if ((size_t)st.st_size < sizeof(struct ll_trace_header))
		return ll_err_set(err, -ENODATA, "%.200s: nothing in it yet", path);
	file->map_bytes = (size_t)st.st_size;
	file->map = mmap(NULL, file->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file->map != MAP_FAILED)
		return 0;
	file->map = NULL;
	return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
}

static bool grow_array(const void *items, size_t count, size_t *room, size_t item_bytes, void **ret_items)
{
	enum { FIRST = 1024 };
	if (count < *room) {
		*ret_items = (void *)(uintptr_t)items;
		return true;
	}
	size_t wanted = *room ? 2 * *room : FIRST;
	void *more = realloc((void *)(uintptr_t)items, wanted * item_bytes);
	if (!more)
		return false;
	*ret_items = more;
	*room = wanted;
	return true;
}

struct rooms {
	size_t records, names;
};

static int add_name(struct ll_trace_file *file, struct rooms *rooms, const struct ll_trace_prefix *head)
{
	const char *text = (const char *)head + sizeof(struct ll_trace_name);
	void *names;
	if (head->bytes <= sizeof(struct ll_trace_name) || ((const char *)head)[head->bytes - 1] != '\0' ||
	    head->name != file->name_count)
		return -EBADMSG;
	if (!grow_array(file->names, file->name_count, &rooms->names, sizeof *file->names, &names))
		return -ENOMEM;
	file->names = names;
	file->names[file->name_count++] = text;
	return 0;
}

static int add_record(struct ll_trace_file *file, struct rooms *rooms, const struct ll_trace_record *record)
{
	void *records;
	if (record->head.kind == LL_TRACE_CARD) {
		if (record->device < LL_TRACE_DEVICES)
			file->cards[record->device] = ll_trace_file_name(file, record);
		return 0;
	}
	if (!grow_array(file->records, file->record_count, &rooms->records, sizeof *file->records, &records))
		return -ENOMEM;
	file->records = records;
	file->records[file->record_count++] = record;
	return 0;
}

/* Reads the records up to the first invalid one. */
static int read_records(struct ll_trace_file *file, struct rooms *rooms)
{
	size_t offset = sizeof file->header;
	while (offset + sizeof(struct ll_trace_prefix) <= file->map_bytes) {
		const struct ll_trace_prefix *head = (const void *)((const char *)file->map + offset);
		size_t least =
		    head->kind == LL_TRACE_NAME ? sizeof(struct ll_trace_name) : sizeof(struct ll_trace_record);
		if (head->kind == LL_TRACE_END || head->kind >= LL_TRACE_KINDS || head->bytes < least ||
		    head->bytes % 8 || head->bytes > file->map_bytes - offset)
			return 0;
		int rc = head->kind == LL_TRACE_NAME ? add_name(file, rooms, head)
						     : add_record(file, rooms, (const void *)head);
		if (rc)
			return rc == -EBADMSG ? 0 : rc;
		offset += head->bytes;
	}
	return 0;
}

int ll_trace_file_open(const char *path, struct ll_trace_file *ret_file, struct ll_err *err)
{
	struct ll_trace_file file = {0};
	struct rooms rooms = {0};
	void *names = NULL;
	int rc = map_file(path, &file, err);
	if (!file.map)
		return rc;
	memcpy(&file.header, file.map, sizeof file.header);
	file.header.reason[sizeof file.header.reason - 1] = '\0';
	file.header.command[sizeof file.header.command - 1] = '\0';
	if (memcmp(file.header.magic, LL_TRACE_MAGIC, sizeof file.header.magic) != 0 ||
	    file.header.header_bytes != sizeof file.header)
		rc = ll_err_set(err, -EBADMSG, "%.200s: not a file of records", path);
	else if (!grow_array(NULL, 0, &rooms.names, sizeof *file.names, &names))
		rc = -ENOMEM;
	if (!rc && names) {
		file.names = names;
		file.names[file.name_count++] = "";
		rc = read_records(&file, &rooms);
	}
	if (rc == -ENOMEM)
		ll_err_set(err, rc, "%.200s: %s", path, strerror(ENOMEM));
	if (rc)
		ll_trace_file_fini(&file);
	else
		*ret_file = file;
	return rc;
}

void ll_trace_file_fini(struct ll_trace_file *file)
{
	free(file->records);
	free(file->names);
	if (file->map)
		munmap(file->map, file->map_bytes);
	memset(file, 0, sizeof *file);
}

const char *ll_trace_file_name(const struct ll_trace_file *file, const struct ll_trace_record *record)
{
	return record->head.name < file->name_count ? file->names[record->head.name] : "";
}
