#include "cli/common/older.h"

#include <stdio.h>
#include <string.h>

#include "base/scope.h"

enum { PATH_SIZE = 64, LINE_SIZE = 4352 };

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool ll_process_is_of_older(pid_t pid)
{
	char path[PATH_SIZE], line[LINE_SIZE];
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		if (ends_with(line, ".ledger"))
			return true;
	}
	return false;
}
