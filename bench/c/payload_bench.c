/*
 * payload_bench.c - what one payload costs and how punctual it is, on a real card, without hold around it.
 *
 *     payload_bench --payload vulkan --period-us 1600 --on-us 800 --seconds 20
 *
 * launches a kernel every period and prints what the launch calls cost, how late kernels started, how long they stayed,
 * the largest gaps they saw, and what the process used. The card is found through NVML, nothing is measured by it.
 * Lateness is against the earliest start of the last 0.8 s (clocks drift); net lateness leaves out the launch call.
 * `--card none` takes Mesa's lavapipe, where the figures say nothing but that it works.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "hold/payload.h"

#define BASELINE_NS (800 * LL_NS_PER_MS)
#define DRAIN_NS (5 * LL_NS_PER_S)

struct options {
	const struct ll_payload_ops *ops;
	const char *card;
	uint64_t period_us, on_us, seconds, blocks, threads, gap_limit_us, linger_s;
	enum ll_kernel kernel;
};

struct sample {
	uint64_t submit_ns; /* host clock */
	uint64_t call_ns;
	struct ll_record record;
};

struct bench {
	struct options options;
	struct ll_payload *payload;
	struct sample *samples;
	size_t capacity, launched, seen;
	uint64_t refused, torn, flagged;
	uint64_t start_ns, start_wall_ns, cpu_ns;
};

static uint64_t process_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * LL_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* "RssAnon:" and its like from /proc/self/status, in MiB. */
static double status_mib(const char *key)
{
	LL_SCOPE_FCLOSE FILE *status = fopen("/proc/self/status", "re");
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, key, strlen(key)) == 0)
			return strtod(line + strlen(key), NULL) / 1024;
	return 0;
}

static void print_process(const char *when)
{
	printf("%-10s RSS anon %.1f MiB, file %.1f MiB, shared %.1f MiB\n", when, status_mib("RssAnon:"),
	       status_mib("RssFile:"), status_mib("RssShmem:"));
	fflush(stdout);
}

/* A record that contradicts itself or the one before it was read half-written. */
static void judge(struct bench *bench, const struct sample *sample, const struct sample *before)
{
	const struct ll_record *record = &sample->record;
	uint64_t stay_ns = record->end_ns - record->start_ns;

	if (record->end_ns < record->start_ns || record->gap_ns > stay_ns ||
	    (before && record->start_ns < before->record.end_ns) ||
	    (record->flags == 0 && stay_ns < bench->options.on_us * LL_NS_PER_US))
		bench->torn++;
	if (record->flags != 0)
		bench->flagged++;
}

static void collect(struct bench *bench)
{
	while (bench->seen < bench->launched) {
		uint32_t sequence = (uint32_t)bench->seen + 1;
		const volatile struct ll_record *record = &bench->payload->records[sequence % LL_RECORD_SLOTS];
		struct sample *sample = &bench->samples[bench->seen];

		if (record->sequence != sequence)
			return;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		sample->record = *record;
		judge(bench, sample, bench->seen > 0 ? sample - 1 : NULL);
		bench->seen++;
	}
}

static int launch_one(struct bench *bench, struct ll_err *err)
{
	struct sample *sample = &bench->samples[bench->launched];
	const struct ll_payload_launch launch = {
	    .kernel = bench->options.kernel,
	    .blocks = (uint32_t)bench->options.blocks,
	    .threads = (uint32_t)bench->options.threads,
	    .length_ns = bench->options.on_us * LL_NS_PER_US,
	    .gap_limit_ns = bench->options.gap_limit_us * LL_NS_PER_US,
	    .epoch = (uint32_t)bench->launched + 1, /* one kernel's gap stops that kernel only */
	    .sequence = (uint32_t)bench->launched + 1,
	};
	int r;

	sample->submit_ns = ll_now_ns();
	r = bench->options.ops->launch(bench->payload, &launch, err);
	sample->call_ns = ll_now_ns() - sample->submit_ns;
	if (r == -EAGAIN) {
		bench->refused++;
		return 0;
	}
	if (r == 0)
		bench->launched++;
	return r;
}

static int run(struct bench *bench, struct ll_err *err)
{
	const struct options *options = &bench->options;
	uint64_t next_ns = bench->start_ns = ll_now_ns();
	uint64_t cpu_ns = process_cpu_ns(), deadline_ns;
	int r = 0;

	bench->start_wall_ns = ll_wall_ns();
	while (r == 0 && bench->launched < bench->capacity &&
	       next_ns - bench->start_ns < options->seconds * LL_NS_PER_S) {
		r = launch_one(bench, err);
		collect(bench);
		next_ns += options->period_us * LL_NS_PER_US;
		ll_sleep_until_ns(next_ns);
	}
	if (r == 0)
		r = options->ops->check(bench->payload, err);
	bench->cpu_ns = process_cpu_ns() - cpu_ns;
	deadline_ns = ll_now_ns() + DRAIN_NS;
	while (r == 0 && bench->seen < bench->launched && ll_now_ns() < deadline_ns) {
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
		collect(bench);
	}
	return r;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts values, which are ns. */
static void print_spread(const char *what, double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	printf("%-14s p50 %9.2f  p99 %9.2f  p99.9 %9.2f  max %9.2f us\n", what, values[count / 2] / 1e3,
	       values[count * 99 / 100] / 1e3, values[count * 999 / 1000] / 1e3, values[count - 1] / 1e3);
}

static double start_delay(const struct sample *sample)
{
	return (double)(int64_t)(sample->record.start_ns - sample->submit_ns);
}

/* The smallest delay of the launches up to this one within the last BASELINE_NS. */
static double baseline(const struct bench *bench, size_t at)
{
	double least = start_delay(&bench->samples[at]);

	for (size_t i = at; i-- > 0;) {
		if (bench->samples[at].submit_ns - bench->samples[i].submit_ns > BASELINE_NS)
			break;
		if (start_delay(&bench->samples[i]) < least)
			least = start_delay(&bench->samples[i]);
	}
	return least;
}

static double value_of(const struct bench *bench, size_t at, unsigned column)
{
	const struct sample *sample = &bench->samples[at];

	switch (column) {
	case 0:
		return (double)sample->call_ns;
	case 1:
		return start_delay(sample) - baseline(bench, at);
	case 2:
		return start_delay(sample) - baseline(bench, at) - (double)sample->call_ns;
	case 3:
		return (double)(sample->record.end_ns - sample->record.start_ns) -
		       (double)bench->options.on_us * (double)LL_NS_PER_US;
	default:
		return (double)sample->record.gap_ns;
	}
}

static int print_results(const struct bench *bench, struct ll_err *err)
{
	static const char *const columns[] = {"launch call", "lateness", "net lateness", "overstay", "largest gap"};
	LL_SCOPE_FREE double *values = calloc(bench->seen + 1, sizeof(*values));
	double busy_ns = 0, span_ns;

	if (!values)
		return ll_err_set(err, -ENOMEM, "no host memory");
	if (bench->seen < 2)
		return ll_err_set(err, -EIO, "no kernel finished");
	for (size_t i = 0; i < bench->seen; i++)
		busy_ns += (double)(bench->samples[i].record.end_ns - bench->samples[i].record.start_ns);
	span_ns = (double)(bench->samples[bench->seen - 1].record.end_ns - bench->samples[0].record.start_ns);
	printf("launched %zu, finished %zu, refused %llu, contradictory records %llu, flagged %llu\n", bench->launched,
	       bench->seen, (unsigned long long)bench->refused, (unsigned long long)bench->torn,
	       (unsigned long long)bench->flagged);
	printf("card clock minus wall clock at the first launch: %.3f ms\n",
	       ((double)(int64_t)(bench->samples[0].record.start_ns - bench->start_wall_ns)) / 1e6);
	printf("busy %.3f %% of the card's clock, host %.2f %% of a core\n", 100 * busy_ns / span_ns,
	       100 * (double)bench->cpu_ns / (double)(bench->options.seconds * LL_NS_PER_S));
	for (unsigned column = 0; column < sizeof(columns) / sizeof(columns[0]); column++) {
		for (size_t i = 0; i < bench->seen; i++)
			values[i] = value_of(bench, i, column);
		print_spread(columns[column], values, bench->seen);
	}
	return 0;
}

static int bench_card(struct bench *bench, const struct ll_card *card, struct ll_err *err)
{
	const struct ll_payload_config config = {.needs_fma = bench->options.kernel == LL_KERNEL_FMA};
	uint64_t start_ns = ll_now_ns();
	int r = bench->options.ops->open(card, &config, &bench->payload, err);

	if (r < 0)
		return r;
	printf("%s opened in %.0f ms, %u SMs, %s\n", bench->options.ops->name, (double)(ll_now_ns() - start_ns) / 1e6,
	       bench->payload->sm_count, bench->payload->has_card_clock ? "card clock" : "no card clock");
	print_process("opened");
	r = run(bench, err);
	print_process("after run");
	if (r == 0)
		r = print_results(bench, err);
	start_ns = ll_now_ns();
	bench->options.ops->close(bench->payload);
	printf("closed in %.0f ms\n", (double)(ll_now_ns() - start_ns) / 1e6);
	print_process("closed");
	ll_sleep_until_ns(ll_now_ns() + bench->options.linger_s * LL_NS_PER_S);
	return r;
}

static int bench_selected(struct bench *bench, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	LL_SCOPE_FREE void *storage = NULL;
	const struct ll_card **cards;
	size_t count;
	int r;

	if (strcmp(bench->options.card, "none") == 0)
		return bench_card(bench, NULL, err);
	r = ll_driver_open(&driver, err);
	if (r < 0)
		return r;
	r = ll_cards_select(driver, bench->options.card, &cards, &count, err);
	if (r == 0) {
		storage = cards;
		r = bench_card(bench, cards[0], err);
	}
	ll_driver_close(driver);
	return r;
}

static int parse_payload(const char *text, const struct ll_payload_ops **ret_ops, struct ll_err *err)
{
	if (strcmp(text, "vulkan") == 0)
		*ret_ops = &ll_payload_vulkan;
	else if (strcmp(text, "cuda") == 0)
		*ret_ops = &ll_payload_cuda;
	else
		return ll_err_set(err, -EINVAL, "'%s': vulkan or cuda", text);
	return 0;
}

static int parse_kernel(const char *text, enum ll_kernel *ret_kernel, struct ll_err *err)
{
	if (strcmp(text, "spin") != 0 && strcmp(text, "fma") != 0)
		return ll_err_set(err, -EINVAL, "'%s': spin or fma", text);
	*ret_kernel = strcmp(text, "fma") == 0 ? LL_KERNEL_FMA : LL_KERNEL_SPIN;
	return 0;
}

static int parse_options(int argc, char **argv, struct options *options, struct ll_err *err)
{
	static const struct option table[] = {
	    {"payload", required_argument, NULL, 'P'},
	    {"card", required_argument, NULL, 'i'},
	    {"period-us", required_argument, NULL, 'p'},
	    {"on-us", required_argument, NULL, 'o'},
	    {"seconds", required_argument, NULL, 's'},
	    {"blocks", required_argument, NULL, 'b'},
	    {"threads", required_argument, NULL, 't'},
	    {"kernel", required_argument, NULL, 'k'},
	    {"linger-s", required_argument, NULL, 'l'},
	    {"gap-limit-us", required_argument, NULL, 'g'},
	    {NULL, 0, NULL, 0},
	};
	int r = 0, c;

	while (r == 0 && (c = getopt_long(argc, argv, "i:", table, NULL)) != -1) {
		if (c == 'P')
			r = parse_payload(optarg, &options->ops, err);
		else if (c == 'i')
			options->card = optarg;
		else if (c == 'p')
			r = ll_parse_uint(optarg, 10, 1000000, &options->period_us, err);
		else if (c == 'o')
			r = ll_parse_uint(optarg, 0, 1000000, &options->on_us, err);
		else if (c == 's')
			r = ll_parse_uint(optarg, 1, 3600, &options->seconds, err);
		else if (c == 'b')
			r = ll_parse_uint(optarg, 1, 65535, &options->blocks, err);
		else if (c == 't')
			r = ll_parse_uint(optarg, 32, 1024, &options->threads, err);
		else if (c == 'k')
			r = parse_kernel(optarg, &options->kernel, err);
		else if (c == 'g')
			r = ll_parse_uint(optarg, 0, 1000000, &options->gap_limit_us, err);
		else if (c == 'l')
			r = ll_parse_uint(optarg, 0, 3600, &options->linger_s, err);
		else
			r = ll_err_set(err, -EINVAL, "unknown option");
	}
	return r;
}

int main(int argc, char **argv)
{
	struct bench bench = {.options = {.ops = &ll_payload_vulkan,
					  .card = "0",
					  .period_us = 1600,
					  .on_us = 800,
					  .seconds = 10,
					  .blocks = 1,
					  .threads = 32}};
	struct ll_err err = {0};
	int r = parse_options(argc, argv, &bench.options, &err);

	if (r == 0) {
		bench.capacity = bench.options.seconds * 1000000 / bench.options.period_us + 1;
		bench.samples = calloc(bench.capacity, sizeof(*bench.samples));
		r = bench.samples ? bench_selected(&bench, &err) : ll_err_set(&err, -ENOMEM, "no host memory");
	}
	free(bench.samples);
	if (r < 0)
		fprintf(stderr, "payload_bench: %s%s%s\n", err.text, err.hint[0] ? "; " : "", err.hint);
	return ll_err_exit_code(r);
}
