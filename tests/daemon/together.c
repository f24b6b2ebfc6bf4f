/*
 * Evictable processes of two jobs on two cards, and loadlined: who is told what, and when. The test plays the processes
 * and the driver, which has as much free as the test says.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "test.h"
#include "user.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
#define OTHER_CARD "GPU-00000000-0000-0000-0000-000000000001"
#define GIB (UINT64_C(1) << 30)

enum { JOBS = 2, CARDS = 2, HEARD = 16 };

static const char *const uuids[CARDS] = {CARD, OTHER_CARD};

/* A process of a job on a card, and what it was told. */
struct part {
	pid_t pid; /* it has the claim, and does nothing else */
	uint64_t job, token;
	uint32_t slot;
	int fd; /* of EVICTABLE, which is the test's */
	union ll_message heard[HEARD];
	size_t first, count;
};

struct scene {
	struct world world;
	struct job jobs[JOBS];
	struct part parts[JOBS][CARDS];
	uint64_t free_bytes[CARDS];
	unsigned asked; /* so often how much is free */
};

static void say(const struct part *part, enum ll_message_kind kind, uint64_t bytes, uint64_t away_bytes,
		uint64_t free_bytes)
{
	union ll_message message;
	ll_message_init(&message, kind);
	message.move.bytes = bytes;
	message.move.away_bytes = away_bytes;
	message.move.free_bytes = free_bytes;
	assert_int_equal(ll_message_send(part->fd, &message, NULL, 0), 0);
}

/* EVICTABLE, on a connection of its own. */
static void join(struct scene *scene, struct part *part, enum ll_move_state state, uint64_t bytes, uint32_t flags)
{
	union ll_message message;
	int process_fd = ll_process_open(getpid());
	assert_int_equal(ll_place_connect_any(&scene->world.place, &part->fd), 0);
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_PROCESS;
	assert_int_equal(ll_message_send(part->fd, &message, &process_fd, 1), 0);
	close(process_fd);
	assert_int_equal(next_message(part->fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_EVICTABLE);
	message.move.job = part->job;
	message.move.slot = part->slot;
	message.move.slot_token = part->token;
	message.move.value = state;
	message.move.bytes = bytes;
	message.move.away_bytes = state == LL_MOVE_AWAY || state == LL_MOVE_RESUMING ? bytes : 0;
	message.move.flags = flags;
	assert_int_equal(ll_message_send(part->fd, &message, NULL, 0), 0);
}

/* ---- what they hear ---- */

static void answer_measure(const struct part *part, const union ll_message *question, uint64_t free_bytes)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_MEASURED);
	message.move.free_bytes = free_bytes;
	message.move.value = question->move.value;
	assert_int_equal(ll_message_send(part->fd, &message, NULL, 0), 0);
}

static void take_one(struct scene *scene, struct part *part, unsigned card)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	struct pollfd poll_fd = {.fd = part->fd, .events = POLLIN};
	while (poll(&poll_fd, 1, 0) > 0 && ll_message_receive(part->fd, &message, fds, &count) == 0) {
		if (message.header.kind == LL_MESSAGE_MEASURE) {
			scene->asked++;
			answer_measure(part, &message, scene->free_bytes[card]);
			continue;
		}
		assert_true(part->count < HEARD);
		part->heard[part->count++] = message;
	}
}

/* Answers all that ask how much is free. */
static void listen_to_all(struct scene *scene)
{
	for (unsigned job = 0; job < JOBS; job++) {
		for (unsigned card = 0; card < CARDS; card++)
			take_one(scene, &scene->parts[job][card], card);
	}
}

static bool has_heard(struct scene *scene, const struct part *part)
{
	listen_to_all(scene);
	return part->first < part->count;
}

#define assert_hears(scene, part, wanted_kind, wanted_flags)                                                           \
	do {                                                                                                           \
		wait_for(has_heard(scene, part));                                                                      \
		assert_int_equal((part)->heard[(part)->first].header.kind, wanted_kind);                               \
		assert_int_equal((part)->heard[(part)->first++].move.flags, wanted_flags);                             \
	} while (0)

/* loadlined has done all that it was told before. */
static void catch_up(const struct scene *scene)
{
	union ll_message message;
	int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	close(fd);
}

static void assert_hears_nothing(struct scene *scene, const struct part *part)
{
	catch_up(scene);
	if (has_heard(scene, part))
		fail_msg("it has heard %u", part->heard[part->first].header.kind);
}

/* ---- scenes ---- */

/* Another process, with a claim. */
static void start_part(const struct scene *scene, struct part *part, uint64_t job, const char *uuid)
{
	int pipe_fds[2];
	struct part told = {.job = job};
	assert_int_equal(pipe(pipe_fds), 0);
	part->pid = fork();
	assert_true(part->pid >= 0);
	if (part->pid == 0) {
		struct user user;
		user_begin(&user, &scene->world, job, uuid);
		told.slot = user.slot;
		told.token = user.token;
		_exit(write(pipe_fds[1], &told, sizeof told) == (ssize_t)sizeof told ? pause() : 1);
	}
	assert_int_equal(read(pipe_fds[0], &told, sizeof told), sizeof told);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	told.pid = part->pid;
	*part = told;
}

static int begin(void **state)
{
	static struct scene scene;
	memset(&scene, 0, sizeof scene);
	world_init(&scene.world);
	scene.world.limits.flags |= LL_LIMIT_EVICTABLE;
	for (unsigned job = 0; job < JOBS; job++) {
		job_start(&scene.jobs[job], &scene.world, NULL, NULL);
		for (unsigned card = 0; card < CARDS; card++)
			start_part(&scene, &scene.parts[job][card], scene.jobs[job].id, uuids[card]);
	}
	*state = &scene;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;
	for (unsigned i = 0; i < JOBS * CARDS; i++) { /* all of them: each has what the test had when it began */
		const struct part *part = &scene->parts[i / CARDS][i % CARDS];
		close(part->fd);
		kill_process(part->pid, SIGKILL);
		waitpid(part->pid, NULL, 0);
	}
	for (unsigned job = 0; job < JOBS; job++)
		job_stop(&scene->jobs[job]);
	wait_for(world_has_jobs(&scene->world, 0));
	world_fini(&scene->world);
	return 0;
}

TEST_EACH(begin, end);

/* The first job has 6 GiB on the first card, and something on the other one; 1 GiB of each is free. The second is away,
 * with 4 GiB for each. */
static void join_all(struct scene *scene, uint64_t first_on_other_card)
{
	for (unsigned card = 0; card < CARDS; card++) {
		scene->free_bytes[card] = GIB;
		join(scene, &scene->parts[0][card], LL_MOVE_HERE, card ? first_on_other_card : 6 * GIB, 0);
		join(scene, &scene->parts[1][card], LL_MOVE_AWAY, 4 * GIB, 0);
	}
}

static void make_first_leave(struct scene *scene)
{
	say(&scene->parts[1][0], LL_MESSAGE_WANT, 0, 0, 0);
	for (unsigned card = 0; card < CARDS; card++)
		assert_hears(scene, &scene->parts[0][card], LL_MESSAGE_EVICT, LL_MOVE_HOLD);
	say(&scene->parts[0][1], LL_MESSAGE_QUIET, 6 * GIB, 0, 0);
	assert_hears_nothing(scene, &scene->parts[0][1]);
	say(&scene->parts[0][0], LL_MESSAGE_QUIET, 6 * GIB, 0, 0);
	for (unsigned card = 0; card < CARDS; card++) {
		assert_hears(scene, &scene->parts[0][card], LL_MESSAGE_EVICT, 0);
		say(&scene->parts[0][card], LL_MESSAGE_QUIET, 6 * GIB, 0, 0);
	}
}

/* It lacks room on both cards, and wants to return because of one. */
TEST_GIVEN(struct scene *scene, a_job_leaves_both_cards_for_one_that_returns_to_both)
{
	struct part *second = scene->parts[1];
	join_all(scene, 6 * GIB);
	make_first_leave(scene);
	for (unsigned card = 0; card < CARDS; card++) {
		scene->free_bytes[card] = 7 * GIB;
		say(&scene->parts[0][card], LL_MESSAGE_AWAY, 6 * GIB, 6 * GIB, 7 * GIB);
	}
	for (unsigned card = 0; card < CARDS; card++)
		assert_hears(scene, &second[card], LL_MESSAGE_RESUME, LL_MOVE_HOLD);
	say(&second[0], LL_MESSAGE_COPIED, 4 * GIB, 0, 0);
	say(&second[1], LL_MESSAGE_COPIED, 4 * GIB, GIB, 0);
	assert_hears_nothing(scene, &second[0]);
	say(&second[1], LL_MESSAGE_COPIED, 4 * GIB, 0, 0);
	for (unsigned card = 0; card < CARDS; card++) {
		assert_hears(scene, &second[card], LL_MESSAGE_RESUME, 0);
		say(&second[card], LL_MESSAGE_BACK, 4 * GIB, 0, 0);
	}
}

/* The next question of another number than `before`. */
static void take_question(const struct part *part, uint64_t before, union ll_message *ret_question)
{
	do
		assert_int_equal(next_message(part->fd, ret_question), LL_MESSAGE_MEASURE);
	while (ret_question->move.value == before);
}

/* It was measured before the first one was back on the card, and said after that. */
TEST_GIVEN(struct scene *scene, an_answer_that_comes_late_is_no_room)
{
	struct part *first = &scene->parts[0][0], *second = &scene->parts[1][0];
	union ll_message early, late;
	join(scene, first, LL_MOVE_RESUMING, 4 * GIB, 0);
	join(scene, second, LL_MOVE_AWAY, 4 * GIB, LL_MOVE_WANTS);
	take_question(second, 0, &early);
	say(first, LL_MESSAGE_BACK, 4 * GIB, 0, 0);
	take_question(second, early.move.value, &late);
	answer_measure(second, &early, 5 * GIB);
	catch_up(scene);
	scene->free_bytes[0] = GIB;
	answer_measure(second, &late, GIB);
	assert_hears_nothing(scene, second);
	assert_hears(scene, first, LL_MESSAGE_EVICT, 0); /* its turn has ended */
}

static bool was_asked(struct scene *scene, unsigned times)
{
	listen_to_all(scene);
	return scene->asked >= times;
}

/* One outside has the other card's memory. The first job is idle, and could leave at once. */
TEST_GIVEN(struct scene *scene, nobody_leaves_one_card_for_a_job_that_cannot_return_to_the_other)
{
	join_all(scene, 2 * GIB);
	say(&scene->parts[1][0], LL_MESSAGE_WANT, 0, 0, 0);
	wait_for(was_asked(scene, 40)); /* each process ten times, each 100 ms */
	assert_hears_nothing(scene, &scene->parts[0][0]);
	assert_hears_nothing(scene, &scene->parts[1][0]);
	scene->free_bytes[1] = 3 * GIB;
	for (unsigned card = 0; card < CARDS; card++)
		assert_hears(scene, &scene->parts[0][card], LL_MESSAGE_EVICT, LL_MOVE_HOLD);
}

/* ---- commands ---- */

static int ask(const struct scene *scene, enum ll_message_kind kind, unsigned card, uint64_t batch, uint32_t count)
{
	union ll_message message;
	int fd = world_connect(&scene->world, LL_ROLE_COMMAND);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, kind);
	message.move.job = scene->jobs[0].id;
	message.move.index = 0;
	message.move.slot_token = batch;
	message.move.slot = count;
	ll_message_text_set(message.move.uuid, sizeof message.move.uuid, uuids[card]);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	return fd;
}

static unsigned answer_to(struct scene *scene, int fd, union ll_message *ret_message)
{
	listen_to_all(scene);
	unsigned kind = next_message(fd, ret_message);
	while (kind == LL_MESSAGE_PROGRESS)
		kind = next_message(fd, ret_message);
	return kind;
}

TEST_GIVEN(struct scene *scene, a_command_for_two_begins_when_both_are_asked_and_stops_them_together)
{
	struct part *parts = scene->parts[0];
	union ll_message message;
	int fds[CARDS];
	join_all(scene, 6 * GIB);
	fds[0] = ask(scene, LL_MESSAGE_EVICT, 0, 7, CARDS);
	assert_hears_nothing(scene, &parts[0]);
	fds[1] = ask(scene, LL_MESSAGE_EVICT, 1, 7, CARDS);
	for (unsigned card = 0; card < CARDS; card++) {
		assert_hears(scene, &parts[card], LL_MESSAGE_EVICT, LL_MOVE_HOLD | LL_MOVE_BY_HAND);
		say(&parts[card], LL_MESSAGE_QUIET, 6 * GIB, 0, 0);
	}
	for (unsigned card = 0; card < CARDS; card++) {
		assert_hears(scene, &parts[card], LL_MESSAGE_EVICT, LL_MOVE_BY_HAND);
		say(&parts[card], LL_MESSAGE_QUIET, 6 * GIB, 0, 0);
		say(&parts[card], LL_MESSAGE_AWAY, 6 * GIB, 6 * GIB, 7 * GIB);
		assert_int_equal(answer_to(scene, fds[card], &message), LL_MESSAGE_MOVED);
		close(fds[card]);
	}
}

TEST_GIVEN(struct scene *scene, if_a_person_wants_one_back_meanwhile_the_command_fails_for_both)
{
	struct part *parts = scene->parts[0];
	union ll_message message;
	int fds[CARDS];
	join_all(scene, 6 * GIB);
	for (unsigned card = 0; card < CARDS; card++)
		fds[card] = ask(scene, LL_MESSAGE_EVICT, card, 9, CARDS);
	for (unsigned card = 0; card < CARDS; card++)
		assert_hears(scene, &parts[card], LL_MESSAGE_EVICT, LL_MOVE_HOLD | LL_MOVE_BY_HAND);
	say(&parts[0], LL_MESSAGE_QUIET, 6 * GIB, 0, 0);
	catch_up(scene);
	int resume_fd = ask(scene, LL_MESSAGE_RESUME, 1, 0, 0);
	for (unsigned card = 0; card < CARDS; card++) {
		assert_hears(scene, &parts[card], LL_MESSAGE_RESUME, 0);
		assert_int_equal(answer_to(scene, fds[card], &message), LL_MESSAGE_REFUSED);
		assert_int_equal(message.refused.code, -ECANCELED);
		close(fds[card]);
		say(&parts[card], LL_MESSAGE_BACK, 6 * GIB, 0, 0);
	}
	assert_int_equal(answer_to(scene, resume_fd, &message), LL_MESSAGE_MOVED);
	close(resume_fd);
}
