/*
 * forge_load.c - the algorithm of forge_load, a GPU holder of 2018, to compare `loadline hold` with.
 *
 *     forge_load --target 50 --seconds 170 >original.csv
 *
 * From the original (github.com/yandili/forge_load, gpu_load/main.py): utilisation is read once a second and the last
 * five readings, zeros at first, are averaged; after five seconds of watching it repeats rounds: where the largest of
 * the five is over 1.1 of the target, also by its own load, it idles for 5 s; else it launches for 10 s without ever
 * synchronising, then multiplies its intensity by 1.2 where the average is under 0.9 of the target and divides it
 * by 1.5 where it is over 1.2 of it. The intensity starts at 1000 and means blocks in the grid of a trivial kernel.
 *
 * Assumed, because the original launches as fast as a Python interpreter of that day could, and its load depends on
 * that and on the card: how much an intensity loads the card. The log its author published gives the load at eleven
 * intensities, from 12.4 % at 1000 to 54.8 % at 7430; 6 % + 6.6 % for each 1000 fits them to about two points. Here a
 * launch is made each millisecond and its kernel lasts for that share of it, so the curve has the original's course
 * but not the noise of its machine, and idles less often than it did.
 *
 * Every NVML sample (200 ms) becomes a row: time_s (from the start of the watching), util_percent, intensity, doing.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "driver/readings.h"
#include "hold/payload.h"

enum { READINGS = 5 };

#define LAUNCH_EVERY_NS LL_NS_PER_MS
#define READ_EVERY_NS LL_NS_PER_S
#define PRINT_EVERY_NS (200 * LL_NS_PER_MS)
#define WATCH_NS (5 * LL_NS_PER_S)
#define ROUND_NS (10 * LL_NS_PER_S)
#define IDLE_NS (5 * LL_NS_PER_S)

struct forge {
	const struct ll_card *card;
	struct ll_payload *payload;
	struct ll_util_reader reader;
	double target; /* percent, as everything here */
	double intensity;
	double readings[READINGS];
	unsigned reading_count;
	uint32_t sequence;
	uint64_t start_ns, end_ns;
	uint64_t read_due_ns, print_due_ns;
};

/* ---- the monitor ---- */

static int read_load(struct forge *forge, struct ll_err *err)
{
	return ll_read_util(forge->card, &forge->readings[forge->reading_count++ % READINGS], err);
}

static double average(const struct forge *forge)
{
	double sum = 0;
	for (int i = 0; i < READINGS; i++)
		sum += forge->readings[i];
	return sum / READINGS;
}

static double largest(const struct forge *forge)
{
	double most = 0;
	for (int i = 0; i < READINGS; i++)
		most = forge->readings[i] > most ? forge->readings[i] : most;
	return most;
}

static int print_samples(struct forge *forge, const char *doing, struct ll_err *err)
{
	struct ll_util_sample samples[32];
	size_t count = 0;
	int rc = ll_util_reader_next(&forge->reader, samples, 32, &count, err);
	if (rc < 0)
		return rc;
	uint64_t start_wall_ns = ll_wall_ns() - (ll_now_ns() - forge->start_ns);
	for (size_t i = 0; i < count; i++)
		printf("%.3f,%.0f,%.0f,%s\n", (double)(int64_t)(samples[i].end_wall_ns - start_wall_ns) / 1e9,
		       samples[i].percent, forge->intensity, doing);
	fflush(stdout);
	return 0;
}

/* ---- the worker ---- */

static int launch(struct forge *forge, struct ll_err *err)
{
	double share = 0.06 + 0.066 * forge->intensity / 1000;
	const struct ll_payload_launch launch = {
	    .kernel = LL_KERNEL_SPIN,
	    .blocks = 1,
	    .threads = 32,
	    .length_ns = (uint64_t)(share * (double)LAUNCH_EVERY_NS),
	    .epoch = 1, /* nothing stops it: no kernel of this epoch looks for strangers */
	    .sequence = ++forge->sequence,
	};
	return forge->payload->ops->launch(forge->payload, &launch, err);
}

/* Does one thing for a while, reading and printing when it is time. */
static int go_on(struct forge *forge, const char *doing, uint64_t for_ns, struct ll_err *err)
{
	uint64_t begin_ns = ll_now_ns(), until_ns = begin_ns + for_ns;
	int rc = 0;
	for (uint64_t due_ns = begin_ns; rc == 0 && due_ns < until_ns && due_ns < forge->end_ns;
	     due_ns += LAUNCH_EVERY_NS) {
		ll_sleep_until_ns(due_ns);
		if (strcmp(doing, "run") == 0)
			rc = launch(forge, err);
		if (rc == 0 && due_ns >= forge->read_due_ns) {
			forge->read_due_ns += READ_EVERY_NS;
			rc = read_load(forge, err);
		}
		if (rc == 0 && due_ns >= forge->print_due_ns) {
			forge->print_due_ns += PRINT_EVERY_NS;
			rc = print_samples(forge, doing, err);
		}
	}
	return rc;
}

static void adjust(struct forge *forge)
{
	double load = average(forge);
	if (load < forge->target * 0.9)
		forge->intensity *= 1.2;
	else if (load > forge->target * 1.2)
		forge->intensity /= 1.5;
}

static int work(struct forge *forge, uint64_t for_ns, struct ll_err *err)
{
	forge->start_ns = forge->read_due_ns = forge->print_due_ns = ll_now_ns();
	forge->end_ns = forge->start_ns + for_ns;
	ll_util_reader_init(&forge->reader, forge->card);
	puts("time_s,util_percent,intensity,doing");
	int rc = go_on(forge, "watch", WATCH_NS, err);
	while (rc == 0 && ll_now_ns() + LAUNCH_EVERY_NS < forge->end_ns) {
		if (largest(forge) > forge->target * 1.1) {
			rc = go_on(forge, "idle", IDLE_NS, err);
			continue;
		}
		rc = go_on(forge, "run", ROUND_NS, err);
		adjust(forge);
	}
	return rc;
}

static int run(const char *card, double target, uint64_t seconds, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count;
	struct forge forge = {.target = target, .intensity = 1000};
	const struct ll_payload_config config = {0};
	int rc = ll_driver_open(&driver, err);
	if (rc == 0)
		rc = ll_cards_select(driver, card, &cards, &count, err);
	if (rc == 0) {
		forge.card = cards[0];
		rc = ll_payload_cuda.open(forge.card, &config, &forge.payload, err);
	}
	if (rc == 0)
		rc = work(&forge, seconds * LL_NS_PER_S, err);
	ll_payload_cuda.close(forge.payload);
	ll_driver_close(driver);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option table[] = {
	    {"card", required_argument, NULL, 'i'},
	    {"target", required_argument, NULL, 't'},
	    {"seconds", required_argument, NULL, 's'},
	    {NULL, 0, NULL, 0},
	};
	const char *card = "0";
	double target = 50;
	uint64_t seconds = 170;
	struct ll_err err = {0};
	int rc = 0, letter;
	while (rc == 0 && (letter = getopt_long(argc, argv, "i:", table, NULL)) != -1) {
		if (letter == 'i')
			card = optarg;
		else if (letter == 't')
			rc = ll_parse_percent(optarg, &target, &err);
		else if (letter == 's')
			rc = ll_parse_uint(optarg, 1, 86400, &seconds, &err);
		else
			rc = ll_err_set(&err, -EINVAL, "options: --card 0 --target 50 --seconds 170");
	}
	if (rc == 0)
		rc = run(card, target, seconds, &err);
	if (rc == 0)
		return LL_EXIT_OK;
	fprintf(stderr, "forge_load: %s%s%s\n", err.text, err.hint[0] ? "; " : "", err.hint);
	return ll_err_exit_code(rc);
}
