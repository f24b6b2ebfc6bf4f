#include "trace/trace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LAST_FLUSH_S = 2 };

static struct {
	pthread_once_t once;
	pthread_mutex_t flushing;
	struct ll_trace_writer *writer;
	pid_t pid;                      /* the process that called begin_trace; a child has another id */
	_Atomic bool is_on;             /* CUPTI's records are being written */
	_Atomic(void (*)(void)) others; /* the function that ends libloadline-events.so, and the process that set it */
	_Atomic pid_t others_pid;
} state = {.once = PTHREAD_ONCE_INIT, .flushing = PTHREAD_MUTEX_INITIALIZER};

static bool is_ours(void)
{
	return atomic_load(&state.is_on) && getpid() == state.pid;
}

/* The last flush waits for a flush that is under way, but only LAST_FLUSH_S: the other may be this thread's own,
 * interrupted by a signal whose handler ends the program. */
static bool wait_for_flush(void)
{
	struct timespec deadline;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += LAST_FLUSH_S;
	return pthread_mutex_timedlock(&state.flushing, &deadline) == 0;
}

static void flush_records(bool is_last)
{
	if (is_last ? !wait_for_flush() : pthread_mutex_trylock(&state.flushing) != 0)
		return;
	if (is_ours())
		ll_activity_flush(is_last);
	if (is_last) /* no flush comes after the last one, because the driver may be gone */
		atomic_store(&state.is_on, false);
	pthread_mutex_unlock(&state.flushing);
}

static void at_end(void)
{
	if (is_ours())
		flush_records(true);
}

static void *flush_now_and_then(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "ll-trace");
	while (is_ours()) {
		ll_sleep_until_ns(ll_now_ns() + LL_INJECT_FLUSH_NS);
		flush_records(false);
	}
	return NULL;
}

/* Starts the thread with all signals blocked, so that the program's threads receive them. */
static void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, &attr, flush_now_and_then, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

/* A child cannot use the driver that its parent has initialised, so it is not traced. The open file is the parent's. */
static void reset_trace_in_child(void)
{
	atomic_store(&state.is_on, false);
	pthread_mutex_init(&state.flushing, NULL);
	if (state.writer)
		ll_trace_writer_forget(state.writer);
	state.writer = NULL;
}

static void begin_trace(void)
{
	const char *by = getenv(LL_TRACE_BY), *path = getenv(LL_TRACE_CUPTI);
	char reason[160] = "no libcupti was found";
	uint32_t version = 0;
	if ((by && strcmp(by, "events") == 0) || ll_trace_writer_open(LL_TRACE_SOURCE_CUPTI, &state.writer) < 0)
		return;
	pthread_atfork(NULL, NULL, reset_trace_in_child);
	state.pid = getpid();
	if (!path || !*path || !ll_activity_begin(path, state.writer, &version, reason, sizeof reason)) {
		ll_trace_writer_refuse(state.writer, version, reason);
		return;
	}
	ll_trace_writer_note_version(state.writer, version);
	atomic_store(&state.is_on, true);
	atexit(at_end);
	start_thread();
}

int InitializeInjection(void)
{
	pthread_once(&state.once, begin_trace);
	return 1;
}

void loadline_trace_at_end(void (*fn)(void))
{
	atomic_store(&state.others_pid, getpid());
	atomic_store(&state.others, fn);
}

int loadline_trace_is_by_cupti(void)
{
	return is_ours();
}

__attribute__((destructor)) static void on_unload(void)
{
	at_end();
}

/* libc's functions behind _exit, _Exit and quick_exit below. They are looked up when the library is loaded, because the
 * child of a vfork, which uses its parent's memory, must not call the loader. */
static void (*next_exit)(int), (*next_exit_iso)(int), (*next_quick_exit)(int);

static void find_next(const char *name, void (**ret_next)(int))
{
	void *address = dlsym(RTLD_NEXT, name);
	memcpy(ret_next, &address, sizeof address);
}

__attribute__((constructor)) static void on_load(void)
{
	find_next("_exit", &next_exit);
	find_next("_Exit", &next_exit_iso);
	find_next("quick_exit", &next_quick_exit);
}

static void end_process(void (*next)(int), int status) __attribute__((noreturn));

static void end_process(void (*next)(int), int status)
{
	void (*others)(void) = atomic_load(&state.others);
	at_end();
	if (others && getpid() == atomic_load(&state.others_pid))
		others();
	if (next)
		next(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"))) void _exit(int status)
{
	end_process(next_exit, status);
}

__attribute__((visibility("default"))) void _Exit(int status)
{
	end_process(next_exit_iso, status);
}

__attribute__((visibility("default"))) void quick_exit(int status)
{
	end_process(next_quick_exit, status);
}
