#include "serve/http.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "test.h"

static atomic_uint texts;
static atomic_bool is_well = true, has_memory = true;

static bool make_metrics(void *data, struct ll_strbuf *text)
{
	(void)data;
	atomic_fetch_add(&texts, 1);
	ll_strbuf_adds(text, "metric 1\n");
	return has_memory;
}

static bool make_health(void *data, struct ll_strbuf *text)
{
	(void)data;
	atomic_fetch_add(&texts, 1);
	ll_strbuf_adds(text, "health\n");
	return is_well;
}

static struct ll_http *start(const char *address, uint64_t keep_ns)
{
	struct ll_http *http = NULL;
	struct ll_http_config config = {.address = address,
					.metrics = make_metrics,
					.health = make_health,
					.most_connections = 8,
					.keep_ns = keep_ns};
	assert_int_equal(ll_http_new(&config, &http, NULL), 0);
	return http;
}

static void address_of(const struct ll_http *http, char *address, size_t size)
{
	snprintf(address, size, "127.0.0.1:%u", ll_http_port(http));
}

TEST(statuses_are_those_of_the_path_and_of_the_health)
{
	char address[64];
	struct ll_http *http = start("127.0.0.1:0", 0);
	address_of(http, address, sizeof address);
	assert_int_equal(ll_http_ask(address, "/metrics", NULL), 200);
	assert_int_equal(ll_http_ask(address, "/healthz", NULL), 200);
	is_well = false;
	assert_int_equal(ll_http_ask(address, "/healthz", NULL), 503);
	is_well = true;
	assert_int_equal(ll_http_ask(address, "/other", NULL), 404);
	ll_http_free(http);
	assert_int_equal(ll_http_ask(address, "/metrics", NULL), -ECONNREFUSED);
}

static void count_texts(uint64_t keep_ns, const char *path, int status, unsigned expected)
{
	char address[64];
	struct ll_http *http = start("127.0.0.1:0", keep_ns);
	address_of(http, address, sizeof address);
	texts = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(ll_http_ask(address, path, NULL), status);
	assert_int_equal(texts, expected);
	ll_http_free(http);
}

TEST(metrics_are_served_again_for_the_time_that_they_are_kept_and_health_is_not)
{
	const uint64_t minute_ns = UINT64_C(60000000000);
	count_texts(minute_ns, "/metrics", 200, 1);
	count_texts(minute_ns, "/healthz", 200, 3);
	count_texts(0, "/metrics", 200, 3);
	is_well = false;
	count_texts(minute_ns, "/healthz", 503, 3);
	is_well = true;
}

TEST(without_memory_for_a_text_the_connection_is_closed_and_the_next_one_is_served)
{
	char address[64];
	struct ll_http *http = start("127.0.0.1:0", UINT64_C(60000000000));
	address_of(http, address, sizeof address);
	has_memory = false;
	assert_true(ll_http_ask(address, "/metrics", NULL) < 0);
	has_memory = true;
	assert_int_equal(ll_http_ask(address, "/metrics", NULL), 200);
	ll_http_free(http);
}

TEST(a_socket_file_is_served_and_removed)
{
	char address[64];
	snprintf(address, sizeof address, "unix:/tmp/serve_http.%d", (int)getpid());
	struct ll_http *http = start(address, 0);
	assert_int_equal(ll_http_port(http), 0);
	assert_int_equal(ll_http_ask(address, "/metrics", NULL), 200);
	ll_http_free(http);
	assert_int_equal(access(ll_listen_path(address), F_OK), -1);
	assert_int_equal(ll_http_ask(address, "/metrics", NULL), -ENOENT);
}

TEST(what_replies_and_is_no_server_of_http_is_told)
{
	char address[64];
	int fd = -1;
	assert_int_equal(ll_listen("127.0.0.1:0", &fd, NULL), 0);
	snprintf(address, sizeof address, "127.0.0.1:%u", ll_listen_port(fd));
	assert_int_equal(ll_http_ask(address, "/metrics", NULL), -ETIMEDOUT); /* nobody accepts */
	close(fd);
	assert_int_equal(ll_http_ask("127.0.0.1:nonsense", "/metrics", NULL), -EINVAL);
}
