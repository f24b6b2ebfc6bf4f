#include "daemon/core/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/core/server.h"
#include "daemon/core/system_socket.h"

enum { NAME_SIZE = 32, FIRST_PASSED_FD = 3, KEPT_FDS = 5 };
#define FACTS_MAGIC UINT64_C(0x4c4f41444641) /* "LOADFA" */

/* The contents of the file of a job's facts. The orders have the limits in force. */
struct kept_facts {
	uint64_t magic;
	struct ll_job_facts facts;
	char department_tenant[LL_NAME_SIZE]; /* an older version did not write this and what follows */
	uint64_t said;
	char project[LL_NAME_SIZE], name[LL_NAME_SIZE];
};

/* ---- sending ---- */

static int open_notify(struct sockaddr_un *ret_address, socklen_t *ret_length)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (length < 2 || length >= sizeof ret_address->sun_path)
		return -1;
	memcpy(ret_address->sun_path, path, length);
	if (path[0] == '@')
		ret_address->sun_path[0] = '\0';
	*ret_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Returns false if there is no systemd, or if it does not read. */
static bool notify_systemd(const struct ll_server *server, const char *text, const int *fds, size_t fd_count)
{
	struct sockaddr_un address;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(KEPT_FDS * sizeof(int))];
	} control = {0};
	struct msghdr message = {
	    .msg_name = &address, .msg_iov = &(struct iovec){(void *)text, strlen(text)}, .msg_iovlen = 1};
	int fd = server->is_system ? open_notify(&address, &message.msg_namelen) : -1;
	if (fd < 0)
		return false;
	if (fd_count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header = (struct cmsghdr){
		    .cmsg_len = CMSG_LEN(fd_count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	bool is_sent = sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
	close(fd);
	return is_sent;
}

/* The name comes from the page's file, which is the same for each daemon. It contains no part of the token, because
 * systemd shows the name to other users. It is short, because all names are in one environment variable, which may have
 * 128 KiB. */
static void name_of(const struct ll_job *job, char ret_name[NAME_SIZE])
{
	struct stat st = {0};
	fstat(job->pages.page_fd, &st);
	snprintf(ret_name, NAME_SIZE, "job-%jx", (uintmax_t)st.st_ino);
}

static int write_facts(const struct ll_job *job)
{
	struct kept_facts kept = {.magic = FACTS_MAGIC, .facts = job->facts, .said = job->said};
	memcpy(kept.department_tenant, job->department_tenant, sizeof kept.department_tenant);
	memcpy(kept.project, job->project, sizeof kept.project);
	memcpy(kept.name, job->name, sizeof kept.name);
	int fd = memfd_create("loadline-facts", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, &kept, sizeof kept) != (ssize_t)sizeof kept) {
		close(fd);
		return -1;
	}
	return fd;
}

void ll_store_add(const struct ll_server *server, const struct ll_job *job)
{
	char name[NAME_SIZE], text[NAME_SIZE + 32];
	if (!server->is_system || !getenv("NOTIFY_SOCKET"))
		return;
	int facts_fd = write_facts(job);
	if (facts_fd < 0)
		return;
	const int fds[KEPT_FDS] = {job->pages.page_fd, job->pages.orders_fd, facts_fd, job->lifeline_fd,
				   job->processes->fd};
	name_of(job, name);
	snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s", name);
	if (!notify_systemd(server, text, fds, KEPT_FDS))
		ll_log(LL_LOG_WARN, "systemd does not take the descriptors of job %s", name);
	close(facts_fd);
}

void ll_store_remove(const struct ll_server *server, const struct ll_job *job)
{
	char name[NAME_SIZE], text[NAME_SIZE + 32];
	name_of(job, name);
	snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_systemd(server, text, NULL, 0);
}

void ll_store_say_ready(const struct ll_server *server)
{
	notify_systemd(server, "READY=1", NULL, 0);
}

/* ---- restoring ---- */

/* The descriptors of one job; -1: missing. systemd closes descriptors whose other side has ended. */
struct kept_job {
	char name[NAME_SIZE];
	int page_fds[2], facts_fd, lifeline_fd, process_fd;
};

static uint64_t magic_of(int fd)
{
	uint64_t magic = 0;
	return pread(fd, &magic, sizeof magic, 0) == sizeof magic ? magic : 0;
}

/* All descriptors of a job have the same name, and come in any order. */
static int *find_role(struct kept_job *job, int fd)
{
	struct stat st;
	uint64_t magic;
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return &job->lifeline_fd;
	if (ll_process_is_valid(fd))
		return &job->process_fd;
	magic = magic_of(fd);
	return magic == LL_PAGE_MAGIC     ? &job->page_fds[0]
	       : magic == LL_ORDERS_MAGIC ? &job->page_fds[1]
	       : magic == FACTS_MAGIC     ? &job->facts_fd
					  : NULL;
}

static void give_role(struct kept_job *job, int fd)
{
	int *role = find_role(job, fd);
	if (role && *role < 0)
		*role = fd;
	else
		close(fd);
}

static void close_kept(const struct kept_job *job)
{
	const int fds[KEPT_FDS] = {job->page_fds[0], job->page_fds[1], job->facts_fd, job->lifeline_fd,
				   job->process_fd};
	for (int i = 0; i < KEPT_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* This program wrote the facts, perhaps in an older version. */
static bool read_facts(int fd, struct kept_facts *ret_kept)
{
	struct kept_facts kept = {0};
	if (pread(fd, &kept, sizeof kept, 0) < (ssize_t)offsetof(struct kept_facts, department_tenant) ||
	    !(kept.facts.token[0] || kept.facts.token[1]))
		return false;
	kept.department_tenant[LL_NAME_SIZE - 1] = kept.project[LL_NAME_SIZE - 1] = '\0';
	kept.name[LL_NAME_SIZE - 1] = '\0';
	*ret_kept = kept;
	return true;
}

static void restore_job(struct ll_server *server, struct kept_job *kept)
{
	struct kept_facts facts;
	if (kept->page_fds[0] < 0 || kept->page_fds[1] < 0 || kept->facts_fd < 0 ||
	    !read_facts(kept->facts_fd, &facts)) {
		close_kept(kept);
		return;
	}
	struct ll_job_call call = {.facts = &facts.facts,
				   .department_tenant = facts.department_tenant,
				   .project = facts.project,
				   .name = facts.name,
				   .said = facts.said,
				   .monitor_fd = -1,
				   .process_fd = kept->process_fd,
				   .lifeline_fd = kept->lifeline_fd,
				   .page_fds = kept->page_fds};
	int rc = ll_job_restore(server, &call);
	if (rc)
		ll_log(LL_LOG_WARN, "%s cannot be taken from systemd: %s", kept->name, strerror(-rc));
	else
		kept->process_fd = kept->lifeline_fd = -1;
	close_kept(kept);
}

/* Colons separate the names. Names of one job need not be adjacent. */
static struct kept_job *find_kept(struct kept_job *jobs, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++) {
		if (strcmp(jobs[i].name, name) == 0)
			return &jobs[i];
	}
	struct kept_job *job = &jobs[(*count)++];
	*job = (struct kept_job){.page_fds = {-1, -1}, .facts_fd = -1, .lifeline_fd = -1, .process_fd = -1};
	snprintf(job->name, sizeof job->name, "%s", name);
	return job;
}

void ll_store_restore(struct ll_server *server)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int passed = ll_system_fds_passed();
	struct kept_job *jobs = names && passed > 0 ? calloc((size_t)passed, sizeof *jobs) : NULL;
	size_t count = 0;
	for (int i = 0; jobs && i < passed && *names; i++) {
		char name[NAME_SIZE];
		size_t length = strcspn(names, ":");
		int fd = FIRST_PASSED_FD + i;
		snprintf(name, sizeof name, "%.*s", (int)length, names);
		names += length + (names[length] == ':');
		if (fd != server->door.listen_fd && strncmp(name, "job-", strlen("job-")) == 0)
			give_role(find_kept(jobs, &count, name), fd);
	}
	for (size_t i = 0; i < count; i++)
		restore_job(server, &jobs[i]);
	free(jobs);
}
