/* The waits of a governed program's launches: a file of their own, whichever way the launches themselves are traced. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/wait_listener.h"
#include "trace/writer.h"

/* Shorter waits are what asking for a turn costs. */
#define LEAST_WAIT_NS UINT64_C(20000)

enum { CARDS = 64 };

static struct {
	pthread_mutex_t lock; /* guards all of it */
	struct ll_trace_writer *writer;
	bool is_refused, has_fork_handler;
	uint64_t told_cards; /* in the file, a bit each */
} waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The file is the parent's. */
static void in_child(void)
{
	pthread_mutex_init(&waits.lock, NULL);
	if (waits.writer)
		ll_trace_writer_forget(waits.writer);
	waits.writer = NULL;
	waits.told_cards = 0;
	waits.is_refused = false;
}

static bool open_file(void)
{
	if (!waits.has_fork_handler) {
		waits.has_fork_handler = true;
		pthread_atfork(NULL, NULL, in_child);
	}
	if (!waits.writer && !waits.is_refused)
		waits.is_refused = ll_trace_writer_open(LL_TRACE_SOURCE_GATE, &waits.writer) < 0;
	return waits.writer;
}

__attribute__((visibility("default"))) void loadline_launch_waited(int device, const char *uuid, uint64_t start_ns,
								   uint64_t end_ns);

/* It has waited for 20 us at least: a write of 1 us more is nothing to it. */
void loadline_launch_waited(int device, const char *uuid, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns - start_ns < LEAST_WAIT_NS)
		return;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&waits.lock);
	if (!open_file())
		return;
	if (device >= 0 && device < CARDS && !(waits.told_cards >> device & 1)) {
		ll_trace_writer_add_card(waits.writer, (uint32_t)device, uuid);
		waits.told_cards |= UINT64_C(1) << device;
	}
	struct ll_trace_record record = {
	    .head = {.kind = LL_TRACE_GATE},
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .device = (uint32_t)device,
	    .stream = (uint32_t)syscall(SYS_gettid),
	};
	ll_trace_writer_add(waits.writer, &record);
	ll_trace_writer_flush(waits.writer);
}
