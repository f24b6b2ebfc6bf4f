/* Descriptors of shared memory that the mover keeps and hands out (mover/shares.h). */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "mover/shares.h"

/* Two programs; nothing of them is looked at. */
static const char one, two;
#define PROGRAM(which) ((const struct ll_mover_program *)(const void *)&(which))

static struct ll_mover_shares shares;
static int sockets[2];

static int set_up(void **state)
{
	(void)state;
	shares.first = NULL;
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets);
}

static int tear_down(void **state)
{
	(void)state;
	ll_mover_shares_end(&shares, NULL);
	close(sockets[0]);
	return close(sockets[1]);
}

static struct ll_mover_message message_of(uint64_t number, uint32_t first, uint32_t count)
{
	struct ll_mover_message message = {.number = number, .value = 7, .batch = first, .count = count, .bytes = 100};
	for (uint32_t i = 0; i < count; i++)
		message.handle_bytes[i] = 1;
	return message;
}

static int open_null(void)
{
	int fd = open("/dev/null", O_RDONLY);
	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* So many handles of one byte. Returns the last descriptor. */
static int add(const struct ll_mover_program *program, uint64_t number, uint32_t first, uint32_t count)
{
	int fds[LL_MOVER_BATCH_HANDLES];
	struct ll_mover_message message = message_of(number, first, count);
	for (uint32_t i = 0; i < count; i++)
		fds[i] = open_null();
	ll_mover_shares_add(&shares, program, &message, fds, count);
	return fds[count - 1];
}

/* What is answered to OPEN, and with how many descriptors. */
static size_t ask(uint64_t number, uint32_t first, struct ll_mover_message *ret_answer)
{
	int fds[LL_MOVER_BATCH_HANDLES];
	size_t fd_count = 0;
	struct ll_mover_message message = message_of(number, first, 0);
	assert_int_equal(ll_mover_shares_answer(&shares, &message, sockets[0]), 0);
	assert_int_equal(ll_packet_receive(sockets[1], false, ret_answer, sizeof *ret_answer, fds,
					   LL_MOVER_BATCH_HANDLES, &fd_count),
			 0);
	for (size_t i = 0; i < fd_count; i++)
		close(fds[i]);
	return fd_count;
}

static int refuse(uint64_t number)
{
	struct ll_mover_message message = message_of(number, 0, 0);
	return ll_mover_shares_answer(&shares, &message, sockets[0]);
}

static void test_a_large_allocation_comes_and_goes_in_several_packets(void **state)
{
	(void)state;
	struct ll_mover_message answer;
	add(PROGRAM(one), 1, 0, 64);
	assert_int_equal(refuse(1), -ENOENT); /* the rest is on its way */
	add(PROGRAM(one), 1, 64, 36);
	assert_int_equal(ask(1, 0, &answer), 64);
	assert_true(answer.value == 0 && answer.count == 64 && answer.bytes == 100 && answer.handle_bytes[63] == 1);
	assert_int_equal(ask(1, 64, &answer), 36);
	assert_int_equal(answer.count, 36);
	assert_int_equal(ask(1, 100, &answer), 0);
	assert_int_equal(answer.value, EINVAL);
}

static void test_packets_that_do_not_fit_are_let_go(void **state)
{
	(void)state;
	assert_false(is_open(add(PROGRAM(one), 1, 3, 1))); /* it is not the first */
	assert_true(is_open(add(PROGRAM(one), 1, 0, 64)));
	assert_false(is_open(add(PROGRAM(one), 1, 0, 36)));  /* it was there */
	assert_false(is_open(add(PROGRAM(two), 1, 64, 36))); /* another program's key */
	struct ll_mover_message without = message_of(1, 64, 36);
	ll_mover_shares_add(&shares, PROGRAM(one), &without, NULL, 0); /* the mover had no descriptors */
	assert_int_equal(refuse(1), -ENOENT);
	assert_true(is_open(add(PROGRAM(one), 1, 64, 36)));
	assert_int_equal(refuse(2), -ENOENT);
}

static void test_who_shares_ends_it_and_its_end_does_so_too(void **state)
{
	(void)state;
	struct ll_mover_message message = message_of(1, 0, 0), answer;
	int fd = add(PROGRAM(one), 1, 0, 50);
	add(PROGRAM(one), 1, 50, 50);
	int other = add(PROGRAM(two), 2, 0, 1);
	ll_mover_shares_remove(&shares, PROGRAM(two), &message);
	assert_int_equal(ask(1, 0, &answer), 64);
	ll_mover_shares_remove(&shares, PROGRAM(one), &message);
	assert_false(is_open(fd));
	assert_int_equal(refuse(1), -ENOENT);
	fd = add(PROGRAM(one), 3, 0, 64);
	ll_mover_shares_end(&shares, PROGRAM(one));
	assert_false(is_open(fd));
	assert_true(is_open(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_a_large_allocation_comes_and_goes_in_several_packets, set_up,
					    tear_down),
	    cmocka_unit_test_setup_teardown(test_packets_that_do_not_fit_are_let_go, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_who_shares_ends_it_and_its_end_does_so_too, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("mover_shares", tests, NULL, NULL);
}
