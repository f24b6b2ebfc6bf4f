#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/words.h"

enum { PATH_SIZE = 40 };

static int map_pages(struct ll_job_pages *pages)
{
	int rc = ll_page_map(pages->page_fd, true, &pages->page);
	return rc ? rc : ll_orders_map(pages->orders_fd, true, &pages->orders);
}

int ll_pages_make(struct ll_job_pages *pages, const struct ll_job_facts *facts)
{
	*pages = (struct ll_job_pages){.page_fd = -1, .orders_fd = -1};
	int rc = ll_page_make(&pages->page_fd);
	if (!rc)
		rc = ll_orders_make(facts->token, &pages->orders_fd);
	if (!rc)
		rc = map_pages(pages);
	if (rc) {
		ll_pages_close(pages);
		return rc;
	}
	ll_orders_write_limits(pages->orders, &facts->limits);
	for (unsigned i = 0; i < LL_PAGE_CARDS; i++)
		atomic_store(&pages->page->card_words[i], LL_VISIT_WORD_OPEN);
	return 0;
}

/* Checks the file: if another process could shorten it, an access would end this process. A file of a third user is not
 * trusted. */
static bool is_believed(int fd, uid_t uid)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (fstat(fd, &st) || (st.st_mode & 0777) != 0600)
		return false;
	bool is_ours = st.st_uid == geteuid();
	bool is_sealed = seals >= 0 && seals & F_SEAL_SHRINK;
	return (is_ours && seals < 0) || (is_sealed && (is_ours || st.st_uid == uid));
}

/* The monitor of another user's job has a read-only descriptor. The file belongs to this user then (is_believed), so it
 * can be reopened. */
static int open_orders(int fd)
{
	char path[PATH_SIZE];
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

int ll_pages_read_limits(const int fds[2], uint32_t uid, struct ll_limits *ret_limits)
{
	struct ll_orders *orders;
	struct ll_limits limits;
	if (!is_believed(fds[1], uid))
		return -EBADMSG;
	int rc = ll_orders_map(fds[1], false, &orders);
	if (rc)
		return rc;
	ll_orders_read_limits(orders, &limits);
	ll_orders_unmap(orders);
	if (!ll_limits_are_valid(&limits))
		return -EBADMSG;
	*ret_limits = limits;
	return 0;
}

int ll_pages_adopt(struct ll_job_pages *pages, const int fds[2], struct ll_job_facts *facts)
{
	if (!is_believed(fds[0], facts->uid) || !is_believed(fds[1], facts->uid))
		return -EBADMSG;
	*pages = (struct ll_job_pages){.page_fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0), .orders_fd = open_orders(fds[1])};
	int rc = pages->page_fd < 0 || pages->orders_fd < 0 ? -errno : map_pages(pages);
	if (!rc && memcmp(pages->orders->token, facts->token, sizeof facts->token) != 0)
		rc = -EBADMSG;
	struct ll_limits limits;
	if (!rc)
		ll_orders_read_limits(pages->orders, &limits);
	if (!rc && !ll_limits_are_valid(&limits))
		rc = -EBADMSG;
	if (rc) {
		ll_pages_close(pages);
		return rc;
	}
	facts->limits = limits;
	return 0;
}

void ll_pages_announce(const struct ll_job_pages *pages, uint64_t instance)
{
	atomic_store(&pages->orders->instance, instance);
	ll_page_wake(&pages->orders->wake_count);
}

int ll_pages_share(const struct ll_job_pages *pages, bool is_page_writable, int ret_fds[2])
{
	int rc = 0;
	if (is_page_writable)
		ret_fds[0] = fcntl(pages->page_fd, F_DUPFD_CLOEXEC, 0);
	else
		rc = ll_page_reopen_read_only(pages->page_fd, &ret_fds[0]);
	if (rc || ret_fds[0] < 0)
		return rc ? rc : -errno;
	rc = ll_page_reopen_read_only(pages->orders_fd, &ret_fds[1]);
	if (rc)
		close(ret_fds[0]);
	return rc;
}

void ll_pages_write_limits(const struct ll_job_pages *pages, const struct ll_limits *limits)
{
	ll_orders_write_limits(pages->orders, limits);
	ll_page_wake(&pages->orders->wake_count);
}

static int detach_pages(void *memory, size_t bytes, int fd)
{
	void *copy = mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
	return copy == MAP_FAILED ? -errno : 0;
}

int ll_pages_detach(struct ll_job_pages *pages)
{
	int rc = detach_pages(pages->page, sizeof *pages->page, pages->page_fd);
	return rc ? rc : detach_pages(pages->orders, sizeof *pages->orders, pages->orders_fd);
}

void ll_pages_close(struct ll_job_pages *pages)
{
	ll_page_unmap(pages->page);
	ll_orders_unmap(pages->orders);
	if (pages->page_fd >= 0)
		close(pages->page_fd);
	if (pages->orders_fd >= 0)
		close(pages->orders_fd);
	*pages = (struct ll_job_pages){.page_fd = -1, .orders_fd = -1};
}
