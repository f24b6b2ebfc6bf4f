#include "mps/record_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

/* FNV-1a: a file name of a fixed length for any path. */
static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH])
{
	snprintf(ret_path, LL_MPS_RECORD_PATH, "%s/%016" PRIx64 LL_MPS_RECORD_SUFFIX, folder, hash(pipe));
}

static bool is_record(const char *name)
{
	size_t length = strlen(name);
	size_t suffix = strlen(LL_MPS_RECORD_SUFFIX);
	return length > suffix && strcmp(name + length - suffix, LL_MPS_RECORD_SUFFIX) == 0;
}

static int add(const char *path, struct ll_mps_record **records, size_t *count, struct ll_err *err)
{
	struct ll_mps_record *more = realloc(*records, (*count + 1) * sizeof *more);
	if (!more)
		return ll_err_set(err, -ENOMEM, "MPS: records: %s", strerror(ENOMEM));
	*records = more;
	struct ll_err why = {0};
	int rc = ll_mps_record_read_file(path, &more[*count], &why);
	if (rc == 0)
		++*count;
	if (rc == 0 || rc == -ENOENT)
		return 0;
	if (err)
		*err = why;
	return rc;
}

int ll_mps_record_list(const char *folder, struct ll_mps_record **ret_records, size_t *ret_count, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	int rc = 0;
	DIR *files = opendir(folder);
	if (!files && errno != ENOENT)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", folder, strerror(errno));
	struct dirent *entry;
	while (files && !rc && (entry = readdir(files))) {
		char path[LL_MPS_PATH_SIZE + 300];
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (is_record(entry->d_name))
			rc = add(path, &records, &count, err);
	}
	if (files)
		closedir(files);
	if (rc)
		return rc;
	*ret_records = records;
	*ret_count = count;
	records = NULL;
	return 0;
}
