#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/strbuf.h"

int ll_strbuf_add_file(struct ll_strbuf *sb, int folder_fd, const char *name, size_t most)
{
	char part[4096];
	size_t length = 0;
	ssize_t n;
	LL_SCOPE_CLOSE int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, part, sizeof part)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		length += (size_t)n;
		if (length > most)
			return -E2BIG;
		ll_strbuf_add(sb, part, (size_t)n);
	}
	return sb->failed ? -ENOMEM : 0;
}
