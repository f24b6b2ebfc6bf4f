#include "herd.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
enum { HELD = 64, BATCH = 64, PAUSE_US = 300, PATIENCE_MS = 1000 };

/* ---- the pages ---- */

/* Those of the newest job. */
static void map_pages(struct herd *herd)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	int fd = world_connect(herd->world, LL_ROLE_HOLD);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_WATCH);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	while (!herd->orders || herd->orders->token[0] != herd->job.id) {
		ll_page_unmap(herd->page);
		ll_orders_unmap(herd->orders);
		assert_int_equal(next_message_with_fds(fd, &message, fds, &count), LL_MESSAGE_PAGE);
		assert_int_equal(ll_page_map(fds[0], false, &herd->page), 0);
		assert_int_equal(ll_orders_map(fds[1], false, &herd->orders), 0);
		ll_message_close_fds(fds, count);
	}
	close(fd);
}

void herd_start(struct herd *herd, const struct world *world, uint32_t limit)
{
	*herd = (struct herd){.world = world, .limit = limit};
	herd->counts = mmap(NULL, sizeof *herd->counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	job_start(&herd->job, world, NULL, NULL);
	map_pages(herd);
}

void herd_stop(struct herd *herd)
{
	job_stop(&herd->job);
	ll_page_unmap(herd->page);
	ll_orders_unmap(herd->orders);
	munmap(herd->counts, sizeof *herd->counts);
}

uint64_t herd_used(const struct herd *herd)
{
	uint64_t units = herd->orders->cards[0].leaving_bytes / LL_MEMORY_UNIT;
	for (unsigned i = 0; i < herd->orders->slot_end; i++) {
		const struct ll_page_slot *slot = &herd->page->slots[i];
		if (slot->token)
			units += LL_MEMORY_USED(slot->memory);
	}
	return units;
}

void herd_check(struct herd *herd)
{
	for (unsigned i = 0; i < herd->orders->slot_end; i++) {
		uint64_t word = herd->page->slots[i].memory;
		if (herd->page->slots[i].token)
			assert_true(LL_MEMORY_USED(word) <= LL_MEMORY_GRANTED(word));
	}
	/* The daemon goes on: between the two steps in which it ends a slot, that counts twice. */
	uint64_t used = herd_used(herd);
	for (int i = 0; used > herd->limit && i < PATIENCE_MS; i++) {
		usleep(1000);
		used = herd_used(herd);
	}
	if (used > herd->limit)
		fail_msg("%lu of %u units are used", (unsigned long)used, herd->limit);
	herd->most = used > herd->most ? used : herd->most;
}

/* ---- the processes ---- */

static void move_once(struct user *user, const struct herd *herd, uint32_t most, uint32_t held[HELD], int *count)
{
	uint32_t units = 1 + (uint32_t)rand() % most;
	if (*count == HELD || (*count && rand() % 2)) {
		user_release(user, held[--*count]);
		return;
	}
	int rc = user_reserve(user, units);
	if (rc == 0) {
		held[(*count)++] = units;
		atomic_fetch_add(&herd->counts->reserved, 1);
	} else {
		assert_int_equal(rc, -ENOMEM);
		atomic_fetch_add(&herd->counts->refused, 1);
	}
}

static _Noreturn void reserve(const struct herd *herd, uint32_t units, unsigned times)
{
	struct user user;
	uint32_t held[HELD];
	int count = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand((unsigned)getpid());
	user_begin(&user, herd->world, herd->job.id, CARD);
	for (unsigned i = 0; i < times; i++) {
		user_have_no_reserve(&user);
		move_once(&user, herd, units, held, &count);
		if (i % BATCH == 0)
			usleep((unsigned)rand() % PAUSE_US);
	}
	while (count)
		user_release(&user, held[--count]);
	user_say(&user, LL_MESSAGE_RELEASE);
	_exit(0);
}

pid_t herd_fork(const struct herd *herd, uint32_t units, unsigned times)
{
	pid_t pid = fork();
	if (pid == 0)
		reserve(herd, units, times);
	assert_true(pid > 1);
	return pid;
}

bool herd_stop_process(pid_t pid)
{
	int status;
	kill_process(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status))
		return true;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("a process has failed: see above");
	return false;
}
