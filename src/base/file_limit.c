#include "base/file_limit.h"

#include <sys/resource.h>

/* With valid arguments getrlimit does not fail, so errno is unchanged. RLIM_INFINITY is the largest number. */
bool ll_file_limit_allows(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) || bytes <= limit.rlim_cur;
}
