#include "keeper/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "base/strbuf.h"

/* The status names all groups of the user. */
enum { PATH_SIZE = 128, UIDS = 4, MOST_BYTES = 4 << 20 };

static int read_file(const char *proc, pid_t pid, const char *file, struct ll_strbuf *text)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "%.80s/%d/%s", proc, (int)pid, file);
	int rc = ll_strbuf_add_file(text, AT_FDCWD, path, MOST_BYTES);
	return rc == -ENOENT ? -ESRCH : rc;
}

/* The name of the process is in the first line, where a line break is escaped. */
static int read_uids(const char *proc, struct ll_subject *subject)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = read_file(proc, subject->pid, "status", &text);
	if (rc)
		return rc;
	const char *line = strstr(text.buf, "\nUid:");
	uint32_t *uids = subject->uids;
	int count = line ? sscanf(line + strlen("\nUid:"), "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32, &uids[0],
				  &uids[1], &uids[2], &uids[3])
			 : 0;
	return count == UIDS ? 0 : -EIO;
}

int ll_subject_read_group(const char *proc, struct ll_subject *subject)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = read_file(proc, subject->pid, "cgroup", &text);
	if (!rc)
		rc = ll_group_in_text(text.buf, subject->group);
	if (!rc && ll_process_has_ended(subject->pidfd))
		rc = -ESRCH;
	return rc;
}

int ll_subject_read(const char *proc, int pidfd, pid_t pid, struct ll_subject *ret_subject)
{
	struct ll_subject subject = {.pidfd = pidfd, .pid = pid};
	if (!ll_process_is_pidfd(pidfd))
		return -EBADF;
	pid_t own = ll_process_id_of_fd(pidfd);
	if (!own)
		return -ESRCH;
	if (own != pid)
		return -ESTALE;
	int rc = read_uids(proc, &subject);
	if (!rc)
		rc = ll_subject_read_group(proc, &subject);
	if (!rc)
		*ret_subject = subject;
	return rc;
}

bool ll_subject_is_of(const struct ll_subject *subject, uint32_t uid)
{
	for (int i = 0; i < UIDS; i++) {
		if (subject->uids[i] != uid)
			return false;
	}
	return true;
}
