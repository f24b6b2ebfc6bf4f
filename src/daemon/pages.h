/*
 * pages.h - the two files that a job shares with the daemon (protocol/page.h), as the daemon has them.
 *
 * The daemon makes them when it first hears of the job, and the job's monitor keeps them too. A daemon that comes later
 * gets them from the monitor, and takes them as they are.
 */
#ifndef LOADLINE_DAEMON_PAGES_H
#define LOADLINE_DAEMON_PAGES_H

#include <stdint.h>

#include "protocol/message.h"
#include "protocol/page.h"

struct ll_job_pages {
	int page_fd, orders_fd; /* both may be written */
	struct ll_page *page;   /* NULL: there are none */
	struct ll_orders *orders;
};

/* Makes them, with the limits of the facts. -errno. */
int ll_pages_make(struct ll_job_pages *pages, const struct ll_job_facts *facts);

/*
 * Takes those that another daemon made: the page, the orders. They stay the caller's. The facts get the limits that are
 * in the orders. facts.uid: of the job; pages of this process's user are taken, and of that user's: the job's own
 * loadlined made those, before it made room for the system's. -EBADMSG: they are not those of this job, or not of this
 * version, or what is in them cannot be. Any other -errno.
 */
int ll_pages_adopt(struct ll_job_pages *pages, const int fds[2], struct ll_job_facts *facts);

/* Says which daemon serves now, and wakes who sleeps on that. */
void ll_pages_announce(const struct ll_job_pages *pages, uint64_t instance);

/* Opens descriptors to pass on, the caller's to close: the page as said, the orders for reading alone. -errno. */
int ll_pages_share(const struct ll_job_pages *pages, bool is_page_writable, int ret_fds[2]);

/* Limits that were changed. Wakes who sleeps on them. */
void ll_pages_write_limits(const struct ll_job_pages *pages, const struct ll_limits *limits);

/* This daemon ends, and the job goes on: from here on the mappings are private copies, and what is done to them changes
 * nothing for the job. -errno. */
int ll_pages_detach(struct ll_job_pages *pages);

/* Nothing is fine. */
void ll_pages_close(struct ll_job_pages *pages);

#endif
