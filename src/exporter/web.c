#include "exporter/web.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"

#define DATA "data.js"
#define BEFORE_DATA "loadline_data = "

/* Embedded by tools/embed.py. */
#define PARTS(row)                                                                                                     \
	row("index.html", ll_web_index_html) row("page.css", ll_web_page_css) row("page.js", ll_web_page_js)           \
	    row("uPlot.css", ll_web_uplot_css) row("uPlot.iife.js", ll_web_uplot_js)                                   \
		row("uPlot.LICENSE", ll_web_uplot_license)
#define DECLARE_PART(name, symbol)                                                                                     \
	extern const unsigned char symbol[];                                                                           \
	extern const size_t symbol##_bytes;
PARTS(DECLARE_PART)

/* ---- files ---- */

static int write_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t written = write(fd, data, length);
		if (written < 0 && errno != EINTR)
			return -errno;
		data += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}

/* It is not synchronized with the disk: after a crash of the machine the next writing is 10 s away. */
int ll_web_put(int folder_fd, const char *name, const void *data, size_t length, struct ll_err *err)
{
	char other[64];
	snprintf(other, sizeof other, ".%s.new", name);
	unlinkat(folder_fd, other, 0); /* of an exporter that was killed */
	int fd = openat(folder_fd, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int rc = fd < 0 ? -errno : 0;
	if (!rc && fchmod(fd, 0644))
		rc = -errno;
	if (!rc)
		rc = write_all(fd, data, length);
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	if (!rc && renameat(folder_fd, other, folder_fd, name))
		rc = -errno;
	if (!rc)
		return 0;
	if (fd >= 0)
		unlinkat(folder_fd, other, 0);
	return ll_err_set(err, rc, "%s: %s", name, strerror(-rc));
}

/* Makes the folder if its parent is there, for everybody to read. */
static int open_folder(const char *folder, int *ret_fd, struct ll_err *err)
{
	enum { HOW = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
	int fd = open(folder, HOW);
	if (fd < 0 && errno == ENOENT && mkdir(folder, 0755) == 0) {
		fd = open(folder, HOW);
		if (fd >= 0 && fchmod(fd, 0755)) /* whatever the umask */
			ll_warn("%s: %s", folder, strerror(errno));
	}
	if (fd < 0)
		return ll_err_set(err, -errno, "%s",
				  errno == ENOTDIR || errno == ELOOP ? "no folder, or a symbolic link"
								     : strerror(errno));
	*ret_fd = fd;
	return 0;
}

/* The history of what this user wrote before. */
static void read_history(struct ll_web *web, int folder_fd, int64_t now_s)
{
	struct stat st;
	LL_SCOPE_CLOSE int fd = openat(folder_fd, DATA, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    lseek(fd, (off_t)strlen(BEFORE_DATA), SEEK_SET) < 0)
		return;
	json_t *json = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
	ll_web_history_read(&web->history, json_object_get(json, "history"), now_s);
	json_decref(json);
}

static int write_parts(struct ll_web *web, int folder_fd, int64_t now_s, struct ll_err *err)
{
#define ROW_OF_PART(name, symbol) {name, symbol, &symbol##_bytes},
	static const struct {
		const char *name;
		const unsigned char *data;
		const size_t *bytes;
	} parts[] = {PARTS(ROW_OF_PART)};
	int rc = 0;
	if (!web->history.count)
		read_history(web, folder_fd, now_s);
	for (size_t i = 0; i < sizeof parts / sizeof *parts && !rc; i++)
		rc = ll_web_put(folder_fd, parts[i].name, parts[i].data, *parts[i].bytes, err);
	web->has_parts = !rc;
	return rc;
}

/* ---- the page ---- */

static int write_data(int folder_fd, json_t *json, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	/* Without characters beyond ASCII the file means the same in each encoding that a server may say. */
	LL_SCOPE_FREE char *dump =
	    json ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)) : NULL;
	ll_strbuf_adds(&text, BEFORE_DATA);
	ll_strbuf_adds(&text, dump ? dump : "");
	ll_strbuf_adds(&text, ";\n");
	if (!dump || text.failed)
		return ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	return ll_web_put(folder_fd, DATA, text.buf, text.length, err);
}

/* Reads all or nothing. As an operator it would be told what users are not. */
static int read_as_anybody(struct ll_figures *figures, const struct ll_place *place, struct ll_err *err)
{
	int rc = ll_figures_read(figures, place, true, err);
	if (!rc && figures->welcome.is_operator)
		rc = ll_err_set(err, -EPERM,
				"loadline-exporter runs as an operator, who sees more than others may; start it as an "
				"ordinary user");
	if (rc) {
		ll_figures_fini(figures);
		*figures = (struct ll_figures){.sensed.end.silent_ns = UINT64_MAX};
	}
	return rc;
}

void ll_web_write(struct ll_web *web, const struct ll_place *place)
{
	struct ll_figures figures = {0};
	struct ll_err why = {0}, err = {0};
	int64_t now_s = (int64_t)time(NULL);
	LL_SCOPE_CLOSE int folder_fd = -1;
	int rc = open_folder(web->folder, &folder_fd, &err);
	if (!rc && !web->has_parts)
		rc = write_parts(web, folder_fd, now_s, &err);
	if (!rc) {
		int unread = read_as_anybody(&figures, place, &why);
		ll_exporter_history_add(&web->readings, &figures.sensed);
		json_t *json = ll_web_data(&figures, &web->readings, &web->history, unread ? why.text : NULL, now_s);
		rc = write_data(folder_fd, json, &err);
		json_decref(json);
		ll_figures_fini(&figures);
	}
	const char *text = rc ? err.text : why.text;
	if (*text && !web->has_said)
		ll_warn("the page in %s: %s", web->folder, text);
	else if (!*text && web->has_said)
		ll_info("the page in %s is written", web->folder);
	web->has_said = *text;
}

int ll_web_move(struct ll_web *web, const char *folder)
{
	if (folder && web->folder && strcmp(folder, web->folder) == 0)
		return 0;
	char *copy = folder ? strdup(folder) : NULL;
	if (folder && !copy)
		return -ENOMEM;
	free(web->folder);
	web->folder = copy;
	web->has_parts = web->has_said = false;
	if (folder)
		ll_info("writes the page into %s", folder);
	else
		ll_info("serve.page is not configured; no page is written");
	return 0;
}

void ll_web_fini(struct ll_web *web)
{
	ll_exporter_history_fini(&web->readings);
	free(web->folder);
	web->folder = NULL;
}
