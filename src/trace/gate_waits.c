/* Writes how long launches of a governed program waited, into a file of their own. It does so for both ways to trace
 * launches. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/wait_listener.h"
#include "trace/writer.h"

/* A shorter wait is only the cost of asking for a turn. */
#define LEAST_WAIT_NS UINT64_C(20000)

enum { CARDS = 64 };

static struct {
	pthread_mutex_t lock; /* guards all fields */
	struct ll_trace_writer *writer;
	bool is_refused, has_fork_handler;
	uint64_t written_cards; /* cards that are in the file, one bit for each */
} waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The open file is the parent's. The child opens one of its own at its next wait. */
static void reset_waits_in_child(void)
{
	pthread_mutex_init(&waits.lock, NULL);
	if (waits.writer)
		ll_trace_writer_forget(waits.writer);
	waits.writer = NULL;
	waits.written_cards = 0;
	waits.is_refused = false;
}

static bool open_file(void)
{
	if (!waits.has_fork_handler) {
		waits.has_fork_handler = true;
		pthread_atfork(NULL, NULL, reset_waits_in_child);
	}
	if (!waits.writer && !waits.is_refused)
		waits.is_refused = ll_trace_writer_open(LL_TRACE_SOURCE_GATE, &waits.writer) < 0;
	return waits.writer;
}

__attribute__((visibility("default"))) void loadline_launch_waited(int device, const char *uuid, uint64_t start_ns,
								   uint64_t end_ns);

/* Writing takes 1 us, which is little compared with a wait of 20 us or more. */
void loadline_launch_waited(int device, const char *uuid, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns - start_ns < LEAST_WAIT_NS)
		return;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&waits.lock);
	if (!open_file())
		return;
	if (device >= 0 && device < CARDS && !(waits.written_cards >> device & 1)) {
		ll_trace_writer_add_card(waits.writer, (uint32_t)device, uuid);
		waits.written_cards |= UINT64_C(1) << device;
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
