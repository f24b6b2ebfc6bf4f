#include "fence/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

enum { FOLDER_MODE = 0755, FILE_MODE = 0644, CHUNK = 4096 };

static void write_paths(char folder[PATH_MAX], char file[PATH_MAX], char next[PATH_MAX])
{
	const char *sim_folder = getenv("LOADLINE_SIM_DIR");
	if (sim_folder)
		snprintf(folder, PATH_MAX, "%.3000s/fence", sim_folder);
	else
		snprintf(folder, PATH_MAX, "/run/loadline-fence");
	snprintf(file, PATH_MAX, "%.3500s/state", folder);
	snprintf(next, PATH_MAX, "%.3500s/state.next", folder);
}

int ll_fence_state_read(struct ll_strbuf *text, struct ll_err *err)
{
	char folder[PATH_MAX], file[PATH_MAX], next[PATH_MAX], chunk[CHUNK];
	write_paths(folder, file, next);
	LL_SCOPE_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ll_err_set(err, -errno, "%s: %s", file, strerror(errno));
	for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0;)
		ll_strbuf_add(text, chunk, (size_t)n);
	return text->failed ? ll_err_set(err, -ENOMEM, "%s: %s", file, strerror(ENOMEM)) : 0;
}

static int write_all(int fd, const struct ll_strbuf *text)
{
	for (size_t done = 0; done < text->length;) {
		ssize_t n = write(fd, text->buf + done, text->length - done);
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int ll_fence_state_write(const struct ll_strbuf *text, struct ll_err *err)
{
	char folder[PATH_MAX], file[PATH_MAX], next[PATH_MAX];
	write_paths(folder, file, next);
	if (text->failed)
		return ll_err_set(err, -ENOMEM, "%s: %s", file, strerror(ENOMEM));
	if (mkdir(folder, FOLDER_MODE) && errno != EEXIST)
		return ll_err_set(err, -errno, "%s: %s", folder, strerror(errno));
	LL_SCOPE_CLOSE int fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	int rc = fd < 0 ? -errno : fchmod(fd, FILE_MODE) ? -errno : write_all(fd, text);
	if (!rc && rename(next, file))
		rc = -errno;
	return rc ? ll_err_set(err, rc, "%s: %s", file, strerror(-rc)) : 0;
}

void ll_fence_state_remove(void)
{
	char folder[PATH_MAX], file[PATH_MAX], next[PATH_MAX];
	write_paths(folder, file, next);
	unlink(file);
	unlink(next);
	rmdir(folder);
}

const char *ll_fence_state_line(const char **next, const char *word)
{
	size_t length = strlen(word);
	while (**next) {
		const char *line = *next;
		*next += strcspn(line, "\n");
		*next += **next == '\n';
		if (strncmp(line, word, length) == 0 && line[length] == ' ')
			return line + length + 1;
	}
	return NULL;
}
