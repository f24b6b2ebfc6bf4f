/* A job for which memory is missing, at each place where a registration asks for some: it is not in the books, and the
 * caller still owns what it has passed. */
#include "daemon/core/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "test.h"

#ifndef LL_HAS_SANITIZER
extern void *__libc_calloc(size_t count, size_t size);

static bool fails;
static unsigned calls_left; /* until the one that fails */

/* The C library's otherwise. */
void *calloc(size_t count, size_t size) /* NOLINT: the C library's own names begin with underscores */
{
	if (fails && calls_left-- == 0) {
		fails = false;
		return NULL;
	}
	return __libc_calloc(count, size);
}
#endif

TEST(a_job_that_is_refused_for_want_of_memory_owns_nothing)
{
#ifdef LL_HAS_SANITIZER
	SKIP_TEST("a sanitizer has the allocator");
#else
	enum { MOST = 64 };
	struct ll_server server = {0};
	struct ll_job_facts facts = {.token = {0x77, 1}, .uid = geteuid(), .state = LL_JOB_RUNNING};
	struct ll_job *job = NULL;
	int ends[2], rc = -ENOMEM;
	unsigned refused = 0;
	assert_int_equal(uv_loop_init(&server.loop), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct ll_job_call call = {.facts = &facts,
				   .department_tenant = "",
				   .project = "",
				   .name = "",
				   .monitor_fd = ll_process_open(getpid()),
				   .process_fd = ll_process_open(getpid()),
				   .lifeline_fd = ends[0]};
	for (; rc && refused < MOST; refused++) {
		calls_left = refused;
		fails = true;
		rc = ll_job_register(&server, &call, &job);
		fails = false;
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_true(!rc || !server.books.jobs);
		assert_true(fcntl(call.monitor_fd, F_GETFD) >= 0);
		assert_true(fcntl(call.process_fd, F_GETFD) >= 0);
		assert_true(fcntl(call.lifeline_fd, F_GETFD) >= 0);
		uv_run(&server.loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(rc, 0);
	assert_true(refused > 3); /* the watch, the job, its tenant and its upkeep */
	assert_ptr_equal(server.books.jobs, job);
#endif
}
