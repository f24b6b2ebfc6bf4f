#include "puppet.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_id.h"
#include "test.h"
#include "wait_for.h"

struct order {
	enum puppet_act act;
	uint32_t units;
};

static _Noreturn void give_for_ever(struct user *user, uint32_t units)
{
	struct ll_page_slot *slot = user_slot(user);
	for (;;) {
		uint32_t asked = slot->reserve_asked;
		if (asked != slot->reserve_given) {
			user_release(user, units);
			slot->reserve_given = asked;
			user_say(user, LL_MESSAGE_WAKE);
			units = 0;
		}
		usleep(1000);
	}
}

/* The process that exits slowly. */
static struct exiting {
	int fd;
	struct user *user;
} exiting;

static void *close_after_first_thread(void *unused)
{
	struct ll_process_stat stat = {0};
	int answer = 0;
	(void)unused;
	while (!stat.is_exiting)
		answer = ll_process_read_stat("self", &stat);
	user_slot(exiting.user)->life |= LL_LIFE_ENDED;
	close(exiting.user->fd);
	if (write(exiting.fd, &answer, sizeof answer) == sizeof answer)
		pause();
	return NULL;
}

static _Noreturn void exit_slowly(int fd, struct user *user)
{
	pthread_t thread;
	exiting = (struct exiting){fd, user};
	if (pthread_create(&thread, NULL, close_after_first_thread, NULL))
		_exit(1);
	syscall(SYS_exit, 0);
	_exit(1);
}

static void scribble(struct user *user)
{
	enum { TIMES = 2000, WORDS = 500 };
	volatile uint64_t *words = (volatile uint64_t *)user->page;
	for (int i = 0; i < TIMES; i++) {
		for (int k = 0; k < WORDS; k++) {
			uint64_t value = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ (uint64_t)rand();
			/* Its own slot most of all. */
			size_t at =
			    k % 2 ? (size_t)((char *)user_slot(user) - (char *)user->page) / 8 + (size_t)rand() % 64
				  : (size_t)rand() % (sizeof *user->page / 8);
			words[at] = rand() % 3 ? value : value % 5;
		}
		user_say(user, LL_MESSAGE_WAKE);
	}
}

static int pose(struct user *user, uint32_t pid)
{
	char name[16];
	struct ll_process_stat other;
	snprintf(name, sizeof name, "%u", pid);
	if (ll_process_read_stat(name, &other))
		return -ESRCH;
	user_slot(user)->pid = other.pid;
	user_slot(user)->start_ticks = other.start_ticks;
	return 0;
}

static int do_as_told(struct user *user, const struct order *order)
{
	struct user former = *user;
	switch (order->act) {
	case PUPPET_CLAIM:
		return user_connect(user, former.world, former.job, former.uuid) ? user_claim(user) : -1;
	case PUPPET_RESERVE:
		return user_reserve(user, order->units);
	case PUPPET_RELEASE:
		user_release(user, order->units);
		return 0;
	case PUPPET_CHARGE:
		user_charge(user, order->units);
		return 0;
	case PUPPET_RING:
		user_say(user, LL_MESSAGE_WAKE);
		return 0;
	case PUPPET_LEAVE:
		user_say(user, LL_MESSAGE_RELEASE);
		return 0;
	case PUPPET_HANG_UP:
		close(user->fd);
		user->fd = -1;
		return 0;
	case PUPPET_COME_BACK:
		user_come_back(user);
		return 0;
	case PUPPET_EXEC:
		user_begin(user, former.world, former.job, former.uuid);
		return 0;
	case PUPPET_SPOIL:
		user_slot(user)->memory = LL_MEMORY_WORD(order->units, LL_MEMORY_USED(user_slot(user)->memory));
		user_say(user, LL_MESSAGE_WAKE);
		return 0;
	case PUPPET_SCRIBBLE:
		scribble(user);
		return 0;
	case PUPPET_POSE:
		return pose(user, order->units);
	case PUPPET_HAS_SLOT:
		return user_has_slot(user);
	case PUPPET_EXIT_SLOWLY:
	case PUPPET_GIVE:
		break;
	}
	return -1;
}

static _Noreturn void be_puppet(int fd, struct user *user)
{
	struct order order;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &order, sizeof order) == sizeof order) {
		if (order.act == PUPPET_EXIT_SLOWLY)
			exit_slowly(fd, user);
		int answer = order.act == PUPPET_GIVE ? 0 : do_as_told(user, &order);
		if (write(fd, &answer, sizeof answer) != sizeof answer)
			break;
		if (order.act == PUPPET_GIVE)
			give_for_ever(user, order.units);
	}
	_exit(0);
}

void puppet_make(struct puppet *puppet, const struct world *world, uint64_t job, const char *uuid)
{
	int ends[2];
	struct user user = {.world = world, .job = job, .fd = -1};
	ll_message_text_set(user.uuid, sizeof user.uuid, uuid);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	puppet->pid = fork();
	if (puppet->pid == 0) {
		close(ends[0]);
		be_puppet(ends[1], &user);
	}
	assert_true(puppet->pid > 1);
	close(ends[1]);
	puppet->fd = ends[0];
}

void puppet_start(struct puppet *puppet, const struct world *world, uint64_t job, const char *uuid)
{
	puppet_make(puppet, world, job, uuid);
	assert_int_equal(puppet_do(puppet, PUPPET_CLAIM, 0), 0);
}

void puppet_tell(const struct puppet *puppet, enum puppet_act act, uint32_t units)
{
	struct order order = {act, units};
	assert_int_equal(write(puppet->fd, &order, sizeof order), sizeof order);
}

bool puppet_has_answer(const struct puppet *puppet)
{
	return poll(&(struct pollfd){.fd = puppet->fd, .events = POLLIN}, 1, 0) > 0;
}

int puppet_answer(const struct puppet *puppet)
{
	int answer;
	wait_for(puppet_has_answer(puppet));
	if (read(puppet->fd, &answer, sizeof answer) != sizeof answer)
		fail_msg("the puppet has ended");
	return answer;
}

int puppet_do(const struct puppet *puppet, enum puppet_act act, uint32_t units)
{
	puppet_tell(puppet, act, units);
	return puppet_answer(puppet);
}

void puppet_kill(struct puppet *puppet)
{
	kill_process(puppet->pid, SIGKILL);
	assert_int_equal(waitpid(puppet->pid, NULL, 0), puppet->pid);
	close(puppet->fd);
}
