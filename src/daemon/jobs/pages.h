/*
 * pages.h - the daemon's side of the two files that a job shares with it (protocol/page.h).
 *
 * The daemon makes the files when the job registers. The job's monitor keeps descriptors of them too. A later daemon
 * gets the files from the monitor, and adopts them unchanged.
 */
#ifndef LOADLINE_DAEMON_JOBS_PAGES_H
#define LOADLINE_DAEMON_JOBS_PAGES_H

#include <stdint.h>

#include "protocol/message.h"
#include "protocol/page.h"

struct ll_job_pages {
	int page_fd, orders_fd; /* both are writable */
	struct ll_page *page;   /* NULL: there are no files */
	struct ll_orders *orders;
};

/* Makes both files, with the limits of the facts. Returns -errno. */
int ll_pages_make(struct ll_job_pages *pages, const struct ll_job_facts *facts);

/*
 * Adopts the files that another daemon made: the page, the orders. The caller keeps its descriptors. The facts get the
 * limits that the orders have. facts.uid: the job's user. The files must belong to this process's user or to the job's
 * user; the job's own loadlined made the latter, before it made room for the system's. -EBADMSG: the files are not this
 * job's, have another version, or have impossible contents. Other errors: -errno.
 */
int ll_pages_adopt(struct ll_job_pages *pages, const int fds[2], struct ll_job_facts *facts);

/* Reads the limits of such files, before they are adopted. Errors as above. The user may be able to write them. */
int ll_pages_read_limits(const int fds[2], uint32_t uid, struct ll_limits *ret_limits);

/* Writes which daemon serves now, and wakes the threads that sleep on that. */
void ll_pages_announce(const struct ll_job_pages *pages, uint64_t instance);

/* Opens descriptors to pass on: the page as is_page_writable says, the orders read-only. The caller closes them.
 * Returns -errno. */
int ll_pages_share(const struct ll_job_pages *pages, bool is_page_writable, int ret_fds[2]);

/* Writes changed limits into the orders, and wakes the threads that sleep on them. */
void ll_pages_write_limits(const struct ll_job_pages *pages, const struct ll_limits *limits);

/* This daemon ends, and the job continues. The mappings become private copies, so later writes do not reach the job.
 * Returns -errno. */
int ll_pages_detach(struct ll_job_pages *pages);

/* Accepts pages that were never made. */
void ll_pages_close(struct ll_job_pages *pages);

#endif
