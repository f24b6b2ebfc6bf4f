#include "hearing.h"

#include <string.h>
#include <unistd.h>

#include "../sim/process.h"

static int saved_stderr;
static FILE *said;

void begin_hearing(void)
{
	said = tmpfile();
	CHECK(said != NULL);
	saved_stderr = dup(STDERR_FILENO);
	CHECK(dup2(fileno(said), STDERR_FILENO) == STDERR_FILENO);
}

bool has_said(const char *text)
{
	char all[4096];
	ssize_t length = pread(fileno(said), all, sizeof all - 1, 0);
	all[length < 0 ? 0 : length] = '\0';
	return strstr(all, text);
}

FILE *end_hearing(void)
{
	CHECK(dup2(saved_stderr, STDERR_FILENO) == STDERR_FILENO);
	close(saved_stderr);
	return said;
}
