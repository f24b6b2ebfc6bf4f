#include "cli/common/stalling.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/scope.h"

/* A read of one process. Its thread and who waits for it share it; who comes last frees it. */
struct reading {
	struct reading *next; /* in `left` */
	pid_t pid;
	ll_stalling_fn read;
	bool is_done, is_left;
	max_align_t result[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct reading *left; /* those that nobody waits for any more, and have not ended */

static void init_once(void)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&done, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void forget(struct reading *reading)
{
	struct reading **at = &left;
	while (*at && *at != reading)
		at = &(*at)->next;
	if (*at)
		*at = reading->next;
	free(reading);
}

static void *run_reading(void *data)
{
	struct reading *reading = data;
	reading->read(reading->pid, reading->result);
	pthread_mutex_lock(&lock);
	reading->is_done = true;
	if (reading->is_left)
		forget(reading);
	pthread_cond_broadcast(&done);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static bool is_left(pid_t pid, ll_stalling_fn read)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (const struct reading *reading = left; reading; reading = reading->next)
		found |= reading->pid == pid && reading->read == read;
	pthread_mutex_unlock(&lock);
	return found;
}

/* NULL: it could not be begun. */
static struct reading *begin_reading(pid_t pid, ll_stalling_fn read, size_t size)
{
	pthread_t thread;
	struct reading *reading = is_left(pid, read) ? NULL : calloc(1, sizeof *reading + size);
	if (!reading)
		return NULL;
	reading->pid = pid;
	reading->read = read;
	if (pthread_create(&thread, NULL, run_reading, reading) == 0) {
		pthread_detach(thread);
		return reading;
	}
	free(reading);
	return NULL;
}

/* Returns whether it has ended in time. Otherwise its thread frees it. The caller has the lock. */
static bool wait_for_reading(struct reading *reading, const struct timespec *deadline)
{
	int rc = 0;
	while (!reading->is_done && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&done, &lock, deadline);
	if (reading->is_done)
		return true;
	reading->is_left = true;
	reading->next = left;
	left = reading;
	return false;
}

void ll_stalling_read(const pid_t *pids, size_t count, ll_stalling_fn read, size_t size, void *ret_results,
		      bool *ret_is_read)
{
	LL_SCOPE_FREE struct reading **readings = calloc(count + 1, sizeof(struct reading *));
	uint64_t deadline_ns = ll_now_ns() + LL_STALLING_NS;
	struct timespec deadline = {(time_t)(deadline_ns / LL_NS_PER_S), (long)(deadline_ns % LL_NS_PER_S)};
	pthread_once(&once, init_once);
	for (size_t i = 0; readings && i < count; i++)
		readings[i] = begin_reading(pids[i], read, size);
	if (count)
		memset(ret_results, 0, count * size);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++) {
		struct reading *reading = readings ? readings[i] : NULL;
		ret_is_read[i] = reading && wait_for_reading(reading, &deadline);
		if (!ret_is_read[i])
			continue;
		memcpy((char *)ret_results + i * size, reading->result, size);
		free(reading);
	}
	pthread_mutex_unlock(&lock);
}

enum { PATH_SIZE = 64, LINE_SIZE = 4352 };

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool ll_process_is_of_older(pid_t pid)
{
	char path[PATH_SIZE], line[LINE_SIZE];
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		if (ends_with(line, ".ledger"))
			return true;
	}
	return false;
}
