#include "hold/command/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/scope.h"
#include "hold_events.h"

static char reply[64 * 1024];

/* The whole reply to one request on a connection of its own. */
static const char *ask(unsigned port, const char *method, const char *url)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	char request[256];
	int length =
	    snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, url);
	assert_int_equal(send(fd, request, (size_t)length, MSG_NOSIGNAL), length);
	size_t got = 0;
	ssize_t n;
	while (got < sizeof reply - 1 && (n = recv(fd, reply + got, sizeof reply - 1 - got, 0)) > 0)
		got += (size_t)n;
	reply[got] = '\0';
	close(fd);
	return reply;
}

static struct ll_metrics *new_metrics(enum ll_metric metric, size_t count)
{
	struct ll_metrics *metrics = NULL;
	assert_int_equal(ll_metrics_new("127.0.0.1:0", metric, test_cards, count, &metrics, NULL), 0);
	return metrics;
}

TEST(metrics_are_the_last_event_s)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_UTIL, 1);
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	event.status.yields = 3;
	ll_metrics_event(metrics, &event, 0);
	const char *text = ask(ll_metrics_port(metrics), "GET", "/metrics");
	assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
	assert_contains(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
#define LABELS "{gpu=\"0\",uuid=\"GPU-11111111-2222-3333-4444-555555555555\",name=\"NVIDIA H200\"}"
	assert_contains(text, "# HELP loadline_util_ratio ");
	assert_contains(text, "\n# TYPE loadline_util_ratio gauge\nloadline_util_ratio" LABELS " 0.5\n");
	assert_contains(text, "\nloadline_own_util_ratio" LABELS " 0.4975\n");
	assert_contains(text, "\nloadline_target_ratio" LABELS " 0.5\n");
	assert_contains(text, "\nloadline_power_watts" LABELS " 121.2\n");
	assert_contains(text, "\nloadline_temperature_celsius" LABELS " 45\n");
	assert_contains(text, "\nloadline_memory_bytes" LABELS " 52428800\n");
	assert_contains(text, "\nloadline_holding" LABELS " 1\n");
	assert_contains(text, "\n# TYPE loadline_yields_total counter\nloadline_yields_total" LABELS " 3\n");
	assert_contains(text, "\nloadline_synthetic_busy_seconds_total" LABELS " 0.6\n");
	assert_contains(text, "\nloadline_synthetic_joules_total" LABELS " 72.5\n");
	assert_contains(text, "\nloadline_energy_joules_total" LABELS " 145\n");
	assert_contains(text, ",state=\"holding\"} 1\n");
	assert_contains(text, ",state=\"yielded\"} 0\n");
	assert_contains(text, "\nloadline_build_info{version=\"");
	assert_lacks(text, "loadline_sm_ratio");
	assert_lacks(text, "loadline_target_watts");
	assert_lacks(text, "nan");
	ll_metrics_free(metrics);
}

TEST(a_simulated_card_has_its_label_in_every_series)
{
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	struct ll_metrics_card cards[] = {
	    {.card = &test_card, .has_event = true, .status = event.status},
	    {.card = &test_slice, .has_event = true, .status = event.status, .is_simulated = true},
	};
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_metrics_text(&text, cards, 2);
	unsigned simulated = 0, real = 0;
	for (const char *line = text.buf; *line; line = strchr(line, '\n') + 1) {
		LL_SCOPE_FREE char *copy = strndup(line, strcspn(line, "\n"));
		assert_true(copy != NULL);
		if (!copy || copy[0] == '#' || !strstr(copy, "gpu="))
			continue;
		bool is_simulated = strstr(copy, "simulated=\"true\"") != NULL;
		assert_int_equal(is_simulated, strstr(copy, "gpu=\"1:2\"") != NULL);
		*(is_simulated ? &simulated : &real) += 1;
	}
	assert_true(simulated > 10 && simulated == real);
}

TEST(power_has_its_target_in_watts)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_POWER, 1);
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	event.status.target = 200;
	ll_metrics_event(metrics, &event, 0);
	const char *text = ask(ll_metrics_port(metrics), "GET", "/metrics");
	assert_contains(text, "\nloadline_target_watts" LABELS " 200\n");
	assert_lacks(text, "loadline_target_ratio");
	ll_metrics_free(metrics);
}

TEST(gpm_readings_have_a_family_each)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_DRAM, 1);
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	event.status.tensor = 0.125;
	event.status.dram = 0.4;
	ll_metrics_event(metrics, &event, 0);
	const char *text = ask(ll_metrics_port(metrics), "GET", "/metrics");
	assert_contains(text, "\nloadline_tensor_ratio" LABELS " 0.125\n");
	assert_contains(text, "\nloadline_dram_ratio" LABELS " 0.4\n");
	ll_metrics_free(metrics);
}

TEST(labels_are_escaped)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_UTIL, 2);
	const char *text = ask(ll_metrics_port(metrics), "GET", "/metrics");
	assert_contains(text, "{gpu=\"1:2\",uuid=\"MIG-1\",name=\"say \\\"A100\\\"\\\\1g\\n\",state=\"released\"} 1\n");
	assert_lacks(text, "loadline_util_ratio"); /* no event yet */
	ll_metrics_free(metrics);
}

TEST(yielded_time_is_the_summary_s)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_UTIL, 1);
	struct ll_event event = test_yield(4);
	event.status.yielded_seconds = 5.5;
	ll_metrics_event(metrics, &event, 0);
	assert_contains(ask(ll_metrics_port(metrics), "GET", "/metrics"),
			"\nloadline_yielded_seconds_total" LABELS " 5.5\n");
	ll_metrics_free(metrics);
}

TEST(healthz_is_ok_until_a_card_ends_with_an_error)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_UTIL, 1);
	const char *text = ask(ll_metrics_port(metrics), "GET", "/healthz");
	assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
	assert_contains(text, "\r\n\r\nok\n");
	struct ll_event event = test_summary(9);
	event.code = -EIO;
	ll_metrics_event(metrics, &event, 0);
	text = ask(ll_metrics_port(metrics), "GET", "/healthz");
	assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
	assert_contains(text, "card 0: ended: ");
	ll_metrics_free(metrics);
}

TEST(health_ends_5_s_after_the_last_event)
{
	struct ll_metrics_card cards[] = {
	    {.card = &test_card, .event_ns = 10 * LL_NS_PER_S},
	    {.card = &test_slice, .event_ns = 12 * LL_NS_PER_S},
	};
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	assert_true(ll_metrics_health(&text, cards, 2, 15 * LL_NS_PER_S - 1));
	assert_string_equal(text.buf, "ok\n");
	ll_strbuf_reset(&text);
	assert_false(ll_metrics_health(&text, cards, 2, 16 * LL_NS_PER_S));
	assert_string_equal(text.buf, "card 0: no report for 6 s\n");
}

TEST(other_urls_and_methods_are_refused)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_UTIL, 1);
	unsigned port = ll_metrics_port(metrics);
	assert_int_equal(strncmp(ask(port, "GET", "/"), "HTTP/1.1 404 ", 13), 0);
	assert_int_equal(strncmp(ask(port, "GET", "/metrics/"), "HTTP/1.1 404 ", 13), 0);
	assert_int_equal(strncmp(ask(port, "POST", "/metrics"), "HTTP/1.1 405 ", 13), 0);
	assert_contains(reply, "Allow: GET, HEAD\r\n");
	assert_int_equal(strncmp(ask(port, "HEAD", "/metrics"), "HTTP/1.1 200 ", 13), 0);
	assert_lacks(reply, "# HELP");
	ll_metrics_free(metrics);
}

TEST(address_faults_name_the_metrics)
{
	struct ll_err err;
	struct ll_metrics *first = new_metrics(LL_METRIC_UTIL, 1);
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = NULL;
	char address[32];
	snprintf(address, sizeof address, "127.0.0.1:%u", ll_metrics_port(first));
	config.metrics_listen = address;
	assert_fails(ll_hold_output_new(&config, &output, &err), -EADDRINUSE, "metrics: 127.0.0.1:");
	assert_contains(err.text, ": address already in use");
	config.metrics_listen = "nonsense";
	assert_fails(ll_hold_output_new(&config, &output, &err), -EINVAL, "metrics: 'nonsense': not ADDR:PORT");
	assert_null(output);
	ll_metrics_free(first);
	ll_metrics_free(NULL);
}

TEST(output_serves_its_events)
{
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = NULL;
	config.metrics_listen = "127.0.0.1:0";
	assert_int_equal(ll_hold_output_new(&config, &output, NULL), 0);
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	ll_hold_output_event(output, &event);
	event.card = &test_slice; /* not held: no line, no crash */
	ll_hold_output_event(output, &event);
	ask(ll_hold_output_port(output), "GET", "/metrics");
	assert_contains(reply, "\nloadline_util_ratio" LABELS " 0.5\n");
	assert_lacks(reply, "MIG-1");
	ll_hold_output_free(output);
}

static void *put_events(void *arg)
{
	struct ll_metrics *metrics = arg;
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	for (int i = 0; i < 20000; i++) {
		event.status.util = event.status.own_util = (i % 101) / 100.0;
		ll_metrics_event(metrics, &event, 0);
	}
	return NULL;
}

/* Under TSan this shows that the lock is where it must be; a torn card would show as two unlike values. */
TEST(scrapes_see_whole_events)
{
	struct ll_metrics *metrics = new_metrics(LL_METRIC_UTIL, 1);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, put_events, metrics), 0);
	for (int i = 0; i < 50; i++) {
		const char *text = ask(ll_metrics_port(metrics), "GET", "/metrics");
		const char *util = strstr(text, "\nloadline_util_ratio" LABELS);
		const char *own = strstr(text, "\nloadline_own_util_ratio" LABELS);
		if (util && own)
			assert_float_equal(atof(strstr(util, "} ") + 2), atof(strstr(own, "} ") + 2), 0);
	}
	pthread_join(thread, NULL);
	ll_metrics_free(metrics);
}
