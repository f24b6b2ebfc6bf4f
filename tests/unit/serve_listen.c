#include "serve/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

static struct sockaddr_storage bound(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	return address;
}

TEST(port_alone_is_this_machine_only)
{
	int fd = -1;
	assert_int_equal(ll_listen("0", &fd, NULL), 0);
	struct sockaddr_storage address = bound(fd);
	assert_int_equal(address.ss_family, AF_INET);
	assert_int_equal(ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_not_equal(ll_listen_port(fd), 0);
	close(fd);
}

TEST(empty_host_is_every_address)
{
	int fd = -1;
	assert_int_equal(ll_listen(":0", &fd, NULL), 0);
	struct sockaddr_storage address = bound(fd);
	if (address.ss_family == AF_INET6)
		assert_memory_equal(&((struct sockaddr_in6 *)&address)->sin6_addr, &in6addr_any, sizeof in6addr_any);
	else
		assert_int_equal(((struct sockaddr_in *)&address)->sin_addr.s_addr, INADDR_ANY);
	close(fd);
}

TEST(host_and_port_are_taken)
{
	int fd = -1;
	assert_int_equal(ll_listen("localhost:0", &fd, NULL), 0);
	close(fd);
	struct ll_err err;
	int rc = ll_listen("[::1]:0", &fd, &err);
	if (rc == 0)
		close(fd);
	else /* a container without IPv6 */
		assert_true(rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT);
}

TEST(malformed_address_is_bad_usage)
{
	static const char *const bad[] = {
	    "",         ":",     "x",    "host:",  "host:x", "host:-1", "127.0.0.1:65536",
	    "::1:9409", "[::1]", "[]:1", "[::1:1", "[a]b:1",
	};
	struct ll_err err;
	int fd = -1;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_fails(ll_listen(bad[i], &fd, &err), -EINVAL, "'");
	assert_fails(ll_listen("127.0.0.1.9:9409", &fd, &err), -EINVAL, "'127.0.0.1.9:9409': ");
	assert_int_equal(fd, -1);
}

TEST(port_in_use_is_told_with_the_address)
{
	struct ll_err err;
	char address[32];
	int fd = -1;
	int second_fd = -1;
	assert_int_equal(ll_listen("127.0.0.1:0", &fd, NULL), 0);
	snprintf(address, sizeof address, "127.0.0.1:%u", ll_listen_port(fd));
	assert_fails(ll_listen(address, &second_fd, &err), -EADDRINUSE, ": address already in use");
	assert_int_equal(strncmp(err.text, address, strlen(address)), 0);
	assert_int_equal(ll_err_exit_code(err.code), LL_EXIT_FAILED);
	snprintf(address, sizeof address, ":%u", ll_listen_port(fd));
	assert_fails(ll_listen(address, &second_fd, &err), -EADDRINUSE, "address already in use");
	close(fd);
}

TEST(address_of_another_machine_is_refused)
{
	struct ll_err err;
	int fd = -1;
	assert_fails(ll_listen("192.0.2.1:0", &fd, &err), -EADDRNOTAVAIL, "192.0.2.1:0: ");
}

static void path_in(char *path, size_t size, const char *name)
{
	snprintf(path, size, "unix:/tmp/serve_listen.%d.%s", (int)getpid(), name);
}

TEST(a_socket_file_is_made_and_one_that_was_left_is_replaced)
{
	char address[64];
	int fd = -1, again = -1;
	path_in(address, sizeof address, "file");
	const char *path = ll_listen_path(address);
	assert_non_null(path);
	assert_int_equal(ll_listen(address, &fd, NULL), 0);
	assert_int_equal(ll_listen_port(fd), 0);
	assert_int_equal(ll_listen(address, &again, NULL), -EADDRINUSE); /* somebody listens */
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(ll_listen(address, &fd, NULL), 0);
	close(fd);
	unlink(path);
}

TEST(a_file_that_is_no_socket_stays)
{
	char address[64];
	int fd = -1;
	path_in(address, sizeof address, "text");
	FILE *file = fopen(ll_listen_path(address), "we");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(ll_listen(address, &fd, NULL), -EADDRINUSE);
	assert_int_equal(access(ll_listen_path(address), F_OK), 0);
	unlink(ll_listen_path(address));
	assert_int_equal(ll_listen("unix:relative", &fd, NULL), -EINVAL);
	assert_null(ll_listen_path("127.0.0.1:9409"));
}
