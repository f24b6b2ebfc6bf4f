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
#include "base/service.h"
#include "protocol/client.h"
#include "protocol/place.h"
#include "sensor/sensor.h"

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

struct options {
	uint64_t every_ns;
	const char *trial; /* NULL: no trial */
};

struct sensor {
	struct ll_place place;
	struct ll_client client;
	struct ll_sense *sense;
	bool is_connected;
	uint64_t connected_ns;
	uint64_t every_ns;
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

static uint64_t again_ns(const struct sensor *sensor)
{
	return sensor->every_ns < AGAIN_NS ? sensor->every_ns : AGAIN_NS;
}

/* A restarted loadlined has no queue until the sensor has reported. So the end of the connection ends the wait, and
 * without a loadlined the waits are short. */
static void run_round(struct ll_service *service)
{
	struct sensor *sensor = service->data;
	struct ll_err err = {0};
	uint64_t now_ns = ll_now_ns();
	sensor->next_ns += sensor->every_ns;
	if (sensor->next_ns < now_ns || !sensor->is_connected)
		sensor->next_ns = now_ns + sensor->every_ns;
	int rc = connect_sensor(sensor) ? ll_sense_round(sensor->sense, give_message, sensor, &err) : 0;
	if (rc)
		disconnect(sensor, rc, err.text);
	service->watched_fd = sensor->is_connected ? sensor->client.fd : -1;
	service->tick_ns = sensor->is_connected ? sensor->next_ns : ll_now_ns() + again_ns(sensor);
}

/* A connection that is closed at once was refused, and would be again. */
static void end_connection(struct ll_service *service)
{
	struct sensor *sensor = service->data;
	uint64_t now_ns = ll_now_ns();
	disconnect(sensor, -EPIPE, "loadlined has closed the connection");
	service->watched_fd = -1;
	service->tick_ns = now_ns < sensor->connected_ns + again_ns(sensor) ? sensor->next_ns : now_ns;
}

/* No signal is taken: a driver that hangs would keep SIGTERM waiting. */
static int run_sensor(uint64_t every_ns, struct ll_err *err)
{
	struct sensor sensor = {.client.fd = -1, .every_ns = every_ns};
	struct ll_service service = {.data = &sensor,
				     .listen_fd = -1,
				     .watched_fd = -1,
				     .events = POLLRDHUP,
				     .on_watched = end_connection,
				     .on_tick = run_round};
	int rc = ll_place_of_system(getenv("LOADLINE_SIM_DIR"), &sensor.place);
	if (!rc)
		rc = ll_sense_new(&sensor.sense);
	if (!rc)
		rc = ll_service_init(&service);
	if (!rc)
		rc = ll_service_run(&service);
	return rc ? ll_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

static int run_trial(const char *uuid, struct ll_err *err)
{
	struct ll_trial_result result;
	int rc = ll_trial_run(uuid, &result, err);
	if (rc)
		return rc;
	printf("{\"slices\":%s,\"needs_commit\":%s,\"off\":%s,\"ratio\":%.2f,\"card_was_full\":%s,\"set_us\":%.0f,"
	       "\"off_us\":%"
	       ".0f,"
	       "\"on_us\":%.0f,\"kernels\":%" PRIu64 ",\"wrong\":%" PRIu64 "}\n",
	       result.levers & LL_TRIAL_SLICES ? "true" : "false", result.levers & LL_TRIAL_COMMITS ? "true" : "false",
	       result.levers & LL_TRIAL_OFF ? "true" : "false", result.ratio, result.was_full ? "true" : "false",
	       (double)result.set_ns / 1e3, (double)result.off_ns / 1e3, (double)result.on_ns / 1e3, result.kernels,
	       result.wrong);
	return LL_EXIT_OK;
}

static int run_program(void *data, struct ll_err *err)
{
	const struct options *options = data;
	return options->trial ? run_trial(options->trial, err) : run_sensor(options->every_ns, err);
}

static bool read_options(int argc, char **argv, void *ret_options)
{
	struct options *options = ret_options;
	if (argc == 3 && strcmp(argv[1], "--every") == 0)
		options->every_ns = ll_program_seconds(argv[2], SECONDS_MAX);
	else if (argc == 3 && strcmp(argv[1], "--trial") == 0)
		options->trial = argv[2];
	else if (argc != 1)
		return false;
	return options->every_ns;
}

int main(int argc, char **argv)
{
	static const struct ll_program program = {"loadline-sensor", LOADLINE_VERSION, help, read_options, run_program};
	struct options options = {.every_ns = ROUND_NS};
	signal(SIGPIPE, SIG_IGN);
	return ll_program_main(&program, argc, argv, &options);
}
