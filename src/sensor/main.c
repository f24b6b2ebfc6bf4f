/* loadline-sensor: reads the cards for the system's loadlined, which opens no driver. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "protocol/client.h"
#include "protocol/place.h"
#include "sensor/sense.h"
#include "sensor/trial.h"

static const char help[] =
    "usage: loadline-sensor [--every SECONDS]\n"
    "       loadline-sensor --trial UUID\n"
    "       loadline-sensor --help | --version\n"
    "\n"
    "Reads the cards and the processes on them from the driver, and reports them to the system's loadlined each\n"
    "5 seconds. loadlined itself opens no driver, so a driver that hangs stops this program alone. systemd starts it\n"
    "with loadlined (loadline-sensor.service). loadlined takes reports from root and from its own user.\n"
    "\n"
    "--trial tries for some 3 seconds whether a program can set its own time on the card with this UUID, which must "
    "be\n"
    "idle, and prints what was measured as JSON.\n";

#define ROUND_NS (5 * LL_NS_PER_S)
#define CONNECT_NS (2 * LL_NS_PER_S)
#define AGAIN_NS LL_NS_PER_S /* without a loadlined */
enum { SECONDS_MAX = 3600 };

struct sensor {
	struct ll_place place;
	struct ll_client client;
	struct ll_sense *sense;
	bool is_connected;
	uint64_t connected_ns;
	uint64_t next_ns; /* of the next round */
	int said;         /* the error that was logged last */
};

/* Logs a state once, not each round. */
static void log_once(struct sensor *sensor, int rc, const char *text)
{
	if (rc != sensor->said && rc)
		ll_warn("%s", text);
	else if (rc != sensor->said)
		ll_info("%s", text);
	sensor->said = rc;
}

static bool connect_sensor(struct sensor *sensor)
{
	struct ll_err err = {0};
	struct ll_client_self self = {.version = LOADLINE_VERSION, .role = LL_ROLE_SENSOR, .process_fd = -1};
	if (sensor->is_connected)
		return true;
	int rc = ll_client_open(&sensor->client, &sensor->place, &self, ll_now_ns() + CONNECT_NS, &err);
	sensor->is_connected = rc == 0;
	sensor->connected_ns = ll_now_ns();
	if (rc)
		ll_client_close(&sensor->client);
	log_once(sensor, rc, rc ? err.text : "reports to loadlined");
	return sensor->is_connected;
}

/* If loadlined does not read, the messages wait in the socket, and then the round ends with -ETIMEDOUT. */
static int give_message(void *data, union ll_message *message, struct ll_err *err)
{
	struct sensor *sensor = data;
	return ll_client_send(&sensor->client, message, ll_now_ns() + CONNECT_NS, err);
}

static void disconnect(struct sensor *sensor, int rc, const char *text)
{
	log_once(sensor, rc, text);
	ll_client_close(&sensor->client);
	sensor->is_connected = false;
}

static void run_round(struct sensor *sensor)
{
	struct ll_err err = {0};
	if (!connect_sensor(sensor))
		return;
	int rc = ll_sense_round(sensor->sense, give_message, sensor, &err);
	if (rc)
		disconnect(sensor, rc, err.text);
}

/* A restarted loadlined has no queue until the sensor has reported. So the end of the connection ends the wait, and
 * without a loadlined the waits are short. A connection that is closed at once was refused, and would be again. */
static void wait_for_round(struct sensor *sensor, uint64_t every_ns)
{
	uint64_t now_ns = ll_now_ns(), again_ns = every_ns < AGAIN_NS ? every_ns : AGAIN_NS;
	struct pollfd polled = {.fd = sensor->client.fd, .events = POLLRDHUP};
	int timeout_ms = now_ns < sensor->next_ns ? (int)((sensor->next_ns - now_ns) / LL_NS_PER_MS) + 1 : 0;
	if (!sensor->is_connected) {
		ll_sleep_until_ns(now_ns + again_ns);
	} else if (poll(&polled, 1, timeout_ms) > 0) {
		disconnect(sensor, -EPIPE, "loadlined has closed the connection");
		if (ll_now_ns() < sensor->connected_ns + again_ns)
			ll_sleep_until_ns(sensor->next_ns);
	}
}

/* Returns 0 if it is not a number in the range. */
static uint64_t read_period(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);
	return end != text && !*end && seconds > 0 && seconds <= SECONDS_MAX ? (uint64_t)(seconds * LL_NS_PER_S) : 0;
}

static int run_sensor(uint64_t every_ns)
{
	struct ll_err err = {0};
	struct sensor sensor = {.client.fd = -1};
	int rc = ll_place_of_system(getenv("LOADLINE_SIM_DIR"), &sensor.place);
	if (!rc)
		rc = ll_sense_new(&sensor.sense);
	if (rc) {
		ll_err_set(&err, rc, "%s", strerror(-rc));
		fprintf(stderr, "loadline-sensor: %s\n", err.text);
		return ll_err_exit_code(rc);
	}
	for (;; wait_for_round(&sensor, every_ns)) {
		uint64_t now_ns = ll_now_ns();
		sensor.next_ns += every_ns;
		if (sensor.next_ns < now_ns || !sensor.is_connected)
			sensor.next_ns = now_ns + every_ns;
		run_round(&sensor);
	}
}

static int run_trial(const char *uuid)
{
	struct ll_err err = {0};
	struct ll_trial_result result;
	int rc = ll_trial_run(uuid, &result, &err);
	if (rc) {
		fprintf(stderr, "loadline-sensor: %s\n", err.text);
		return ll_err_exit_code(rc);
	}
	printf("{\"slices\":%s,\"needs_commit\":%s,\"off\":%s,\"ratio\":%.2f,\"set_us\":%.0f,\"off_us\":%"
	       ".0f,"
	       "\"on_us\":%.0f,\"kernels\":%" PRIu64 ",\"wrong\":%" PRIu64 "}\n",
	       result.levers & LL_TRIAL_SLICES ? "true" : "false", result.levers & LL_TRIAL_COMMITS ? "true" : "false",
	       result.levers & LL_TRIAL_OFF ? "true" : "false", result.ratio, (double)result.set_ns / 1e3,
	       (double)result.off_ns / 1e3, (double)result.on_ns / 1e3, result.kernels, result.wrong);
	return LL_EXIT_OK;
}

int main(int argc, char **argv)
{
	uint64_t every_ns = ROUND_NS;
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("loadline-sensor " LOADLINE_VERSION);
		return LL_EXIT_OK;
	}
	if (argc == 3 && strcmp(argv[1], "--every") == 0)
		every_ns = read_period(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--trial") == 0)
		return run_trial(argv[2]);
	if (every_ns && (argc == 1 || argc == 3))
		return run_sensor(every_ns);
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	fputs(help, is_help ? stdout : stderr);
	return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
}
