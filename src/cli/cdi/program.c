#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/cdi/cdi.h"
#include "cli/run/run.h"

enum { SCRIPTS_MAX = 5, LINE_SIZE = 512, WORD_MAX = 64, OWN_PATH_SIZE = 32 };

/* ---- the container's files ---- */

/* Before the container's first process has its own root, its files are in this folder of its mounts. */
static int open_root(const struct ll_cdi_container *container, bool with_mounts)
{
	char path[2 * PATH_MAX + OWN_PATH_SIZE], folder[PATH_MAX], *real;
	const char *root = json_string_value(json_object_get(json_object_get(container->config, "root"), "path"));
	snprintf(path, sizeof path, "%s%s%s", root && *root == '/' ? "" : container->bundle,
		 root && *root == '/' ? "" : "/", root ? root : "");
	real = realpath(path, folder);
	snprintf(path, sizeof path, "/proc/%d/root%s", (int)container->pid, real ? folder : "");
	int fd = real && with_mounts ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	return fd < 0 && real ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : fd;
}

/* A link of the image does not lead out of it. */
static int open_inside(int root_fd, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_IN_ROOT};
	return (int)syscall(__NR_openat2, root_fd, path, &how, sizeof how);
}

static bool is_file(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int open_word(int root_fd, const char *word, const char *folders)
{
	char path[PATH_MAX];
	if (strchr(word, '/'))
		return open_inside(root_fd, word);
	for (const char *folder = folders; *folder; folder += strspn(folder, ":")) {
		size_t length = strcspn(folder, ":");
		snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, word);
		int fd = open_inside(root_fd, path);
		if (is_file(fd))
			return fd;
		if (fd >= 0)
			close(fd);
		folder += length;
	}
	return -1;
}

/* ---- which program it is ---- */

/* Programs that only start the container's own and wait for it. Many are static. */
static bool is_init(const char *word)
{
	static const char *const names[] = {"podman-init", "docker-init", "tini", "tini-static",
					    "catatonit",   "dumb-init",   NULL};
	const char *slash = strrchr(word, '/');
	for (const char *const *name = names; *name; name++) {
		if (strcmp(slash ? slash + 1 : word, *name) == 0)
			return true;
	}
	return false;
}

static const char *find_word(const json_t *words)
{
	size_t at = 0;
	const char *word = json_string_value(json_array_get(words, 0));
	while (word && is_init(word)) {
		do
			word = json_string_value(json_array_get(words, ++at));
		while (word && word[0] == '-');
	}
	return word;
}

static const char *find_path(const json_t *variables)
{
	for (size_t i = 0; i < json_array_size(variables); i++) {
		const char *variable = json_string_value(json_array_get(variables, i));
		if (variable && strncmp(variable, "PATH=", 5) == 0)
			return variable + 5;
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

/* ---- whether the library will be in it ---- */

/* *ret_next: the interpreter, if the file is a script. */
static int check_file(int fd, const char *name, char ret_next[LINE_SIZE], const char **ret_why, struct ll_err *err)
{
	char line[LINE_SIZE] = "", path[OWN_PATH_SIZE];
	struct ll_elf_kind kind;
	*ret_next = '\0';
	if (pread(fd, line, sizeof line - 1, 0) >= 2 && line[0] == '#' && line[1] == '!') {
		sscanf(line + 2, " %500s", ret_next);
		return 0;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (ll_elf_kind_read(path, &kind) || !kind.is_elf || kind.is_damaged || !kind.is_readable_here)
		return 0;
	if (!kind.has_loader) {
		ll_err_set(err, -EPERM, "%.100s is a static program: no library can be put into it", name);
		return ll_err_hint(
		    err, "give it without the device, or with the annotation loadline.dev/allow-ungoverned=true");
	}
	if (strstr(kind.loader, "ld-musl"))
		*ret_why = _("the program has musl, and NVIDIA's driver needs glibc: the library is not put into it");
	return 0;
}

/* The file that is mounted hides the image's. */
static int check_preload(int root_fd, struct ll_err *err)
{
	char text[LINE_SIZE] = "";
	LL_SCOPE_CLOSE int fd = open_inside(root_fd, "/etc/ld.so.preload");
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	const char *first = text + strspn(text, " \t\n");
	if (length <= 0 || !*first || strstr(text, LL_CONTAINER_FOLDER))
		return 0;
	ll_err_set(err, -EEXIST, "the image has an /etc/ld.so.preload of its own, which loadline's would hide");
	return ll_err_hint(err,
			   "name its libraries in LD_PRELOAD inside the container, and take the file out of the image");
}

int ll_cdi_check_program(const struct ll_cdi_container *container, const char **ret_why, struct ll_err *err)
{
	const json_t *process = json_object_get(container->config, "process");
	const char *word = find_word(json_object_get(process, "args"));
	char name[LINE_SIZE], next[LINE_SIZE];
	LL_SCOPE_CLOSE int bare_fd = open_root(container, false);
	LL_SCOPE_CLOSE int root_fd = open_root(container, true);
	int rc = bare_fd < 0 ? 0 : check_preload(bare_fd, err);
	snprintf(name, sizeof name, "%s", word ? word : "");
	for (int i = 0; !rc && *name && root_fd >= 0 && i < SCRIPTS_MAX; i++) {
		LL_SCOPE_CLOSE int fd = open_word(root_fd, name, find_path(json_object_get(process, "env")));
		if (!is_file(fd))
			return 0;
		rc = check_file(fd, name, next, ret_why, err);
		memcpy(name, next, sizeof name);
	}
	return rc;
}
