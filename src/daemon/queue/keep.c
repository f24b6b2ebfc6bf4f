/*
 * The state of the queue outlives loadlined: the file queue.json in the folder of the accounts. A thread writes it when
 * something has changed, and each 10 s while jobs run, for their use.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "daemon/queue/state.h"

enum { FILE_MAX = 16 << 20 };
#define USE_NS (10 * LL_NS_PER_S)

static const char file_name[] = "queue.json";

/* The number of a job is told at once, and the state is written by a thread later. So that a loadlined after one that
 * was killed gives no number again, numbers are written ahead, NUMBERS at a time: after a kill some are left out. */
enum { NUMBERS = 64 };
static const char numbers_name[] = "queue.numbers";

struct ll_admission_keeping {
	struct ll_admission *admission;
	uv_work_t work;
	int folder_fd;
	bool is_working;
	uint64_t saved_ns;
	uint64_t numbers;     /* numbers of jobs up to this one may have been given, by what is written */
	bool is_failing;      /* that was logged */
	pthread_mutex_t lock; /* whoever writes the file has it */
	bool is_finished;     /* under the lock: the last state was written */
	char *text;           /* what the thread writes */
	int rc;
};

/* ---- the file ---- */

static int write_text(int folder_fd, const char *name, const char *text)
{
	char next[32];
	snprintf(next, sizeof next, "%s.new", name);
	LL_SCOPE_CLOSE int fd = openat(folder_fd, next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (size_t length = strlen(text); length;) {
		ssize_t n = write(fd, text, length);
		if (n <= 0 && errno != EINTR)
			return n < 0 ? -errno : -EIO;
		length -= n > 0 ? (size_t)n : 0;
		text += n > 0 ? n : 0;
	}
	if (fsync(fd) || renameat(folder_fd, next, folder_fd, name))
		return -errno;
	return 0;
}

/* Returns the text; NULL: there is none, with errno. */
static char *read_text(int folder_fd, const char *name)
{
	LL_SCOPE_CLOSE int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return NULL;
	if (st.st_size > FILE_MAX) {
		errno = EFBIG;
		return NULL;
	}
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t length = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (length < 0) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	return text;
}

/* ---- the thread ---- */

static void work_in_thread(uv_work_t *work)
{
	struct ll_admission_keeping *keeping = work->data;
	LL_SCOPE_LOCK(&keeping->lock);
	if (!keeping->is_finished)
		keeping->rc = write_text(keeping->folder_fd, file_name, keeping->text);
}

static void log_result(struct ll_admission_keeping *keeping, int rc)
{
	if (rc && !keeping->is_failing)
		ll_error("queue: %s cannot be written: %s; a restart of loadlined forgets what is new", file_name,
			 strerror(-rc));
	else if (!rc && keeping->is_failing)
		ll_warn("queue: %s can be written again", file_name);
	keeping->is_failing = rc;
}

static void on_worked(uv_work_t *work, int status)
{
	struct ll_admission_keeping *keeping = work->data;
	(void)status;
	keeping->is_working = false;
	free(keeping->text);
	keeping->text = NULL;
	if (keeping->is_finished)
		return;
	log_result(keeping, keeping->rc);
	keeping->admission->must_save |= keeping->rc != 0;
	ll_admission_save(keeping->admission);
}

void ll_admission_save(struct ll_admission *admission)
{
	struct ll_admission_keeping *keeping = admission->keeping;
	uint64_t now_ns = ll_now_ns();
	if (!keeping)
		admission->must_save = false;
	if (!keeping || keeping->is_working || keeping->is_finished)
		return;
	bool is_due = admission->entries && now_ns - keeping->saved_ns >= USE_NS;
	bool may_retry = !keeping->is_failing || now_ns - keeping->saved_ns >= USE_NS;
	if (!may_retry || (!admission->must_save && !is_due))
		return;
	keeping->text = ll_admission_pack(admission);
	keeping->saved_ns = now_ns;
	if (!keeping->text)
		return;
	keeping->work.data = keeping;
	keeping->rc = 0;
	admission->must_save = false;
	keeping->is_working = uv_queue_work(admission->timer.loop, &keeping->work, work_in_thread, on_worked) == 0;
	if (keeping->is_working)
		return;
	free(keeping->text);
	keeping->text = NULL;
	admission->must_save = true;
}

void ll_admission_keep_change(struct ll_admission *admission)
{
	admission->must_save = true;
	ll_admission_save(admission);
}

static void write_numbers(struct ll_admission_keeping *keeping, uint64_t numbers)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64 "\n", numbers);
	int rc = write_text(keeping->folder_fd, numbers_name, text);
	if (!rc)
		keeping->numbers = numbers;
	else if (!keeping->is_failing)
		ll_error("queue: %s cannot be written: %s; numbers of jobs may be given twice", numbers_name,
			 strerror(-rc));
}

void ll_admission_keep_number(struct ll_admission *admission, uint64_t number)
{
	struct ll_admission_keeping *keeping = admission->keeping;
	if (keeping && number > keeping->numbers)
		write_numbers(keeping, number + NUMBERS - 1);
}

void ll_admission_save_last(struct ll_admission *admission)
{
	struct ll_admission_keeping *keeping = admission ? admission->keeping : NULL;
	if (!keeping)
		return;
	LL_SCOPE_FREE char *text = ll_admission_pack(admission);
	LL_SCOPE_LOCK(&keeping->lock);
	if (text)
		log_result(keeping, write_text(keeping->folder_fd, file_name, text));
	write_numbers(keeping, admission->books->last_job);
	keeping->is_finished = true;
}

/* ---- start ---- */

static void restore_state(struct ll_admission *admission, int folder_fd)
{
	LL_SCOPE_FREE char *text = read_text(folder_fd, file_name);
	if (!text && errno == ENOENT)
		return;
	int rc = text ? ll_admission_unpack(admission, text) : -errno;
	if (!rc)
		return;
	renameat(folder_fd, file_name, folder_fd, "queue.json.damaged");
	ll_error("queue: %s cannot be used (%s), and is queue.json.damaged now: drained cards are in use, and use "
		 "begins at 0",
		 file_name, strerror(-rc));
}

int ll_admission_keep(struct ll_admission *admission, const char *folder)
{
	struct ll_admission_keeping *keeping = calloc(1, sizeof *keeping);
	if (!keeping)
		return -ENOMEM;
	keeping->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (keeping->folder_fd < 0) {
		ll_error("queue: %s: %s; a restart of loadlined forgets drained cards and use", folder,
			 strerror(errno));
		free(keeping);
		return 0;
	}
	keeping->admission = admission;
	pthread_mutex_init(&keeping->lock, NULL);
	admission->keeping = keeping;
	restore_state(admission, keeping->folder_fd);
	struct ll_books *books = admission->books;
	LL_SCOPE_FREE char *text = read_text(keeping->folder_fd, numbers_name);
	uint64_t numbers = text ? strtoull(text, NULL, 10) : 0;
	books->last_job = numbers > books->last_job && numbers < INT64_MAX ? numbers : books->last_job;
	keeping->numbers = books->last_job;
	ll_admission_wake(admission);
	return 0;
}

void ll_admission_keep_fini(struct ll_admission *admission)
{
	struct ll_admission_keeping *keeping = admission->keeping;
	if (!keeping)
		return;
	close(keeping->folder_fd);
	pthread_mutex_destroy(&keeping->lock);
	free(keeping->text);
	free(keeping);
	admission->keeping = NULL;
}

/* What a former loadlined knew: its waiting jobs, which ask again, and the use of users. */

/* For so long after the first look no job starts while waiting jobs of the former loadlined have not asked again: they
 * try each 0.5 s. Those that do not come in the second time are gone. */
#define HOLD_NS (2 * LL_NS_PER_S)
#define GONE_NS (10 * LL_NS_PER_S)

void ll_admission_former_return(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t again)
{
	struct ll_admission_entry **at = &admission->former;
	while (*at && (((*at)->token != entry->token && (*at)->queued.number != again) || (*at)->uid != entry->uid))
		at = &(*at)->next;
	struct ll_admission_entry *former = *at;
	if (!former)
		return;
	*at = former->next;
	entry->queued.number = former->queued.number;
	entry->queued.position = former->queued.position;
	entry->came_s = former->came_s;
	entry->is_paused = former->is_paused;
	entry->pause_is_operators = former->pause_is_operators;
	if (former->has_end && entry->has_end && former->queued.duration_ns > entry->queued.duration_ns)
		entry->queued.duration_ns = former->queued.duration_ns; /* it was given more time */
	entry->wait_until_ns =
	    former->wait_until_ns < entry->wait_until_ns ? former->wait_until_ns : entry->wait_until_ns;
	entry->loan.recalls = former->loan.recalls;
	entry->loan.since_ns = former->loan.since_ns;
	free(former);
	admission->must_arrange = true;
}

void ll_admission_former_keep(struct ll_admission *admission, struct ll_admission_entry *entry)
{
	uint64_t now_ns = ll_now_ns();
	struct ll_admission_entry **at = &admission->former;
	entry->uuid_count = 0;
	entry->job_number = entry->begin_ns = entry->after = 0;
	entry->has_end = entry->has_run = entry->has_status = entry->is_past = entry->tells_status = false;
	entry->stop = (struct ll_job_stop){0};
	entry->limits.priority = ll_lending_class(entry);
	entry->queued.is_lent = entry->queued.is_asleep = false;
	entry->loan = (struct ll_loan){.recalls = entry->loan.recalls, .since_ns = now_ns, .is_requeued = true};
	entry->wait_until_ns = LL_QUEUE_NONE;
	entry->register_until_ns = now_ns + LL_ADMISSION_RETURN_NS;
	ll_message_text_set(entry->left_why, sizeof entry->left_why, "it was stopped, and was not started again");
	while (*at && (*at)->queued.number < entry->queued.number)
		at = &(*at)->next;
	entry->next = *at;
	*at = entry;
}

const struct ll_admission_entry *ll_admission_former_find(const struct ll_admission *admission, uint64_t number)
{
	const struct ll_admission_entry *former = admission->former;
	while (former && former->queued.number != number)
		former = former->next;
	return former;
}

bool ll_admission_former_holds(struct ll_admission *admission, uint64_t now_ns)
{
	bool is_any_waited_for = false;
	if (!admission->former)
		return false;
	if (!admission->first_look_ns)
		admission->first_look_ns = now_ns;
	for (struct ll_admission_entry **at = &admission->former, *former; (former = *at);) {
		uint64_t own_ns = former->register_until_ns;
		if (own_ns ? now_ns < own_ns : now_ns - admission->first_look_ns < GONE_NS) {
			is_any_waited_for |= !own_ns;
			at = &former->next;
			continue;
		}
		*at = former->next;
		former->told_ns = now_ns;
		former->loan.is_requeued = false;
		ll_admission_note_end(admission, former);
		free(former);
	}
	return is_any_waited_for && now_ns - admission->first_look_ns < HOLD_NS;
}

/* A tenant that the configuration does not have any more has no use. */
void ll_admission_former_count(struct ll_admission *admission, uint64_t half_life_ns)
{
	struct ll_queue *queue = &admission->queue;
	bool never_halves = half_life_ns == LL_QUEUE_NONE || !half_life_ns;
	double age_ns = (double)admission->former_use_age_s * (double)LL_NS_PER_S;
	double left = never_halves ? 1 : exp2(-age_ns / (double)half_life_ns);
	if (!queue->charged_ns)
		queue->charged_ns = admission->former_use_ns ? admission->former_use_ns : ll_now_ns();
	for (size_t i = 0; i < admission->former_use_count; i++) {
		const struct ll_admission_use *use = &admission->former_use[i];
		for (uint32_t tenant = 0; tenant + 1 < admission->described.machine.tenant_count; tenant++) {
			if (strcmp(admission->described.names[tenant], use->tenant) != 0)
				continue;
			ll_queue_add_use(queue, tenant, use->uid, left * use->use_ns);
			queue->tenant_use_ns[tenant] += left * use->use_ns;
		}
	}
	free(admission->former_use);
	admission->former_use = NULL;
	admission->former_use_count = 0;
}

void ll_admission_former_fini(struct ll_admission *admission)
{
	while (admission->former) {
		struct ll_admission_entry *next = admission->former->next;
		free(admission->former);
		admission->former = next;
	}
	free(admission->former_use);
}
