#include "cli/common/catalogue.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/scope.h"

#define MAGIC UINT32_C(0x950412de)

/* The beginning of the file, in GNU gettext's manual, "The Format of GNU MO Files". */
struct header {
	uint32_t magic, revision, count;
	uint32_t texts, translations; /* where the two tables are: count rows each, the texts in strcmp's order */
};

struct row {
	uint32_t length, offset;
};

static const struct header *header_of(const struct ll_catalogue *catalogue)
{
	return (const void *)catalogue->bytes;
}

/* NULL: the table is not within the file. */
static const struct row *rows_at(const struct ll_catalogue *catalogue, uint32_t offset)
{
	uint64_t end = (uint64_t)offset + (uint64_t)header_of(catalogue)->count * sizeof(struct row);
	return offset % sizeof(uint32_t) == 0 && end <= catalogue->size ? (const void *)(catalogue->bytes + offset)
									: NULL;
}

static bool are_texts_inside(const struct ll_catalogue *catalogue, uint32_t offset)
{
	const struct row *rows = rows_at(catalogue, offset);
	bool is_good = rows;
	for (uint32_t i = 0; is_good && i < header_of(catalogue)->count; i++) {
		uint64_t end = (uint64_t)rows[i].offset + rows[i].length;
		is_good = end < catalogue->size && !catalogue->bytes[end];
	}
	return is_good;
}

static bool is_good(const struct ll_catalogue *catalogue)
{
	const struct header *header = header_of(catalogue);
	return header->magic == MAGIC && header->revision >> 16 == 0 && are_texts_inside(catalogue, header->texts) &&
	       are_texts_inside(catalogue, header->translations);
}

static bool map(struct ll_catalogue *catalogue, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < sizeof(struct header))
		return false;
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	*catalogue = (struct ll_catalogue){.bytes = bytes, .size = (size_t)st.st_size};
	return true;
}

bool ll_catalogue_open(struct ll_catalogue *catalogue, const char *path)
{
	*catalogue = (struct ll_catalogue){.bytes = NULL};
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && map(catalogue, fd) && !is_good(catalogue))
		ll_catalogue_close(catalogue);
	return catalogue->bytes;
}

void ll_catalogue_close(struct ll_catalogue *catalogue)
{
	if (catalogue->bytes)
		munmap((void *)(uintptr_t)catalogue->bytes, catalogue->size);
	*catalogue = (struct ll_catalogue){.bytes = NULL};
}

const char *ll_catalogue_find(const struct ll_catalogue *catalogue, const char *text)
{
	if (!catalogue->bytes)
		return NULL;
	const struct header *header = header_of(catalogue);
	const struct row *texts = rows_at(catalogue, header->texts);
	uint32_t first = 0, end = header->count;
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;
		int order = strcmp(text, catalogue->bytes + texts[middle].offset);
		if (order == 0)
			return catalogue->bytes + rows_at(catalogue, header->translations)[middle].offset;
		if (order < 0)
			end = middle;
		else
			first = middle + 1;
	}
	return NULL;
}
