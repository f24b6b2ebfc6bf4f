#include "probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

/* ---- first ---- */

extern const unsigned char ll_first_ptx[];

struct first_run {
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	ll_cu_deviceptr numbers;
};

static ll_cu_result launch_blocks(const struct first_run *run, uint32_t blocks, int32_t numbers[LL_FIRST_NUMBERS])
{
	const struct ll_cuda *cuda = run->cuda;
	ll_cu_deviceptr out = run->numbers;
	void *params[] = {&out};
	ll_cu_result status = cuda->cuMemsetD32(run->numbers, (unsigned)LL_FIRST_UNTOUCHED, LL_FIRST_NUMBERS);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuLaunchKernel(run->kernel, blocks, 1, 1, LL_FIRST_THREADS, 1, 1, 0, NULL, params, NULL);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxSynchronize();
	return status == LL_CUDA_SUCCESS ? cuda->cuMemcpyDtoH(numbers, run->numbers, LL_FIRST_NUMBERS * sizeof *numbers)
					 : status;
}

static int prepare_run(struct first_run *run, const struct ll_card *card, struct ll_err *err)
{
	ll_cu_device device;
	struct ll_cu_module *module;
	int rc = ll_card_cuda_device(card, &run->cuda, &device, err);
	if (rc < 0)
		return rc;
	ll_cu_result status = run->cuda->cuCtxCreate(&run->context, LL_CU_CTX_SCHED_BLOCKING_SYNC, device);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(run->cuda, status, err, "card %s: make a context", card->label);
	status = run->cuda->cuModuleLoadData(&module, ll_first_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = run->cuda->cuModuleGetFunction(&run->kernel, module, "write_index");
	if (status == LL_CUDA_SUCCESS)
		status = run->cuda->cuMemAlloc(&run->numbers, LL_FIRST_NUMBERS * sizeof(int32_t));
	return status == LL_CUDA_SUCCESS
		   ? 0
		   : ll_cuda_fail(run->cuda, status, err, "card %s: the first kernel", card->label);
}

int ll_probe_first_run(const struct ll_card *card, struct ll_probe_first *ret_first, struct ll_err *err)
{
	struct first_run run = {0};
	struct ll_probe_first first = {
	    .blocks = LL_FIRST_BLOCKS,
	    .threads = LL_FIRST_THREADS,
	    .enough_blocks = LL_FIRST_NUMBERS / LL_FIRST_THREADS,
	};
	int rc = prepare_run(&run, card, err);
	if (rc == 0) {
		ll_cu_result status = launch_blocks(&run, first.blocks, first.numbers);
		if (status == LL_CUDA_SUCCESS)
			status = launch_blocks(&run, first.enough_blocks, first.enough);
		if (status != LL_CUDA_SUCCESS)
			rc = ll_cuda_fail(run.cuda, status, err, "card %s: the first kernel", card->label);
	}
	if (run.context)
		run.cuda->cuCtxDestroy(run.context);
	if (rc == 0)
		*ret_first = first;
	return rc;
}

size_t ll_probe_first_written(const int32_t numbers[LL_FIRST_NUMBERS])
{
	size_t count = 0;
	for (size_t i = 0; i < LL_FIRST_NUMBERS; i++)
		count += numbers[i] != LL_FIRST_UNTOUCHED;
	return count;
}

int ll_probe_first_is_in_order(const int32_t numbers[LL_FIRST_NUMBERS])
{
	size_t written = ll_probe_first_written(numbers);
	for (size_t i = 0; i < written; i++) {
		if (numbers[i] != (int32_t)i)
			return 0;
	}
	return 1;
}

/* ---- experiments ---- */

/* Six slices of an H200, so that five of each process lie between two switches. */
#define SLICED_NS (12 * LL_NS_PER_MS)
#define IDLE_KERNEL_NS (500 * LL_NS_PER_US)

enum { CONNECTIONS = 8, IDLE_KERNELS = 16 };

static const struct ll_probe_under plain = {.manner = LL_PROBE_DEFAULT};

static void copy_why(char why[LL_PROBE_WHY_SIZE], const char *text)
{
	snprintf(why, LL_PROBE_WHY_SIZE, "%.*s", LL_PROBE_WHY_SIZE - 1, text);
}

/*
 * A crew without MPS. 0 with *ret_crew NULL: it cannot be had, and why is filled.
 */
static int open_crew(const struct ll_card *card, const struct ll_probe_host *host, uint32_t workers,
		     char why[LL_PROBE_WHY_SIZE], struct ll_probe_crew **ret_crew, struct ll_err *err)
{
	struct ll_probe_crew_config config = {.card = card, .signal_fd = host->signal_fd};
	struct ll_err reason = {0};
	struct ll_probe_crew *crew = NULL;
	*ret_crew = NULL;
	int rc = host->arrange(host->user, plain, CONNECTIONS, &config.environment, &reason);
	if (rc == -EOPNOTSUPP) {
		copy_why(why, reason.text);
		return 0;
	}
	if (rc < 0 && err)
		*err = reason;
	if (rc == 0)
		rc = ll_probe_crew_open(&config, &crew, err);
	while (rc == 0 && ll_probe_crew_count(crew) < workers)
		rc = ll_probe_crew_add(crew, err);
	const char *refusal = rc == 0 ? ll_probe_crew_refusal(crew, workers) : NULL;
	if (refusal)
		copy_why(why, refusal);
	if (rc < 0 || refusal) {
		ll_probe_crew_close(crew);
		return rc;
	}
	*ret_crew = crew;
	return 0;
}

/* ---- slices ---- */

struct slicing_sums {
	struct ll_samples slice, switching, lost;
};

static int run_slicing(struct ll_probe_crew *crew, const struct ll_probe_order *order, struct slicing_sums *sums,
		       struct ll_err *err)
{
	const struct ll_probe_kernel *kernels;
	struct ll_verdict verdict;
	int rc = ll_probe_crew_run(crew, order, &kernels, err);
	if (rc < 0)
		return rc;
	if (ll_verdict_make(kernels, order->launch_count, order->party_count, &verdict) < 0)
		return ll_err_set(err, -ENOMEM, "slices: %s", strerror(ENOMEM));
	if (verdict.slice_ns.count)
		ll_samples_add(&sums->slice, verdict.slice_ns.median);
	if (verdict.slice_ns.count && verdict.switch_ns.count)
		ll_samples_add(&sums->switching, verdict.switch_ns.median);
	ll_samples_add(&sums->lost, 1 - (double)verdict.busy_ns / (double)verdict.window_ns);
	return 0;
}

int ll_probe_slicing_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			     struct ll_probe_slicing *ret_slicing, struct ll_err *err)
{
	const struct ll_probe_cell cell = {.parallel = LL_PROBE_PROCESSES, .connections = CONNECTIONS};
	const struct ll_probe_load load = {.parties = 2, .kernels = 1, .length_ns = SLICED_NS};
	struct ll_probe_slicing slicing = {.runs = runs};
	struct slicing_sums sums = {0};
	struct ll_probe_crew *crew;
	struct ll_probe_order order;
	ll_probe_order_cell(&cell, &load, &order);
	int rc = open_crew(card, host, 2, slicing.why, &crew, err);
	for (size_t i = 0; rc == 0 && crew && i < runs; i++)
		rc = run_slicing(crew, &order, &sums, err);
	slicing.is_known = rc == 0 && crew;
	ll_probe_crew_close(crew);
	slicing.slice_ns = ll_spread_of(&sums.slice);
	slicing.switch_ns = ll_spread_of(&sums.switching);
	slicing.lost = ll_spread_of(&sums.lost);
	if (rc == 0)
		*ret_slicing = slicing;
	return rc;
}

/* ---- arrival ---- */

static int run_arrivals(struct ll_probe_crew *crew, bool has_priorities, size_t runs, struct ll_samples *waits,
			struct ll_samples *rounds, struct ll_err *err)
{
	struct ll_probe_order order;
	const struct ll_probe_kernel *kernels;
	int rc = 0;
	ll_probe_order_arrival(has_priorities, &order);
	for (size_t i = 0; rc == 0 && i < runs; i++) {
		rc = ll_probe_crew_run(crew, &order, &kernels, err);
		if (rc < 0)
			break;
		ll_samples_add(waits, (double)ll_probe_arrival_wait_ns(kernels));
		ll_samples_add(rounds, (double)ll_probe_arrival_round_ns(kernels));
	}
	return rc;
}

int ll_probe_arrival_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			     struct ll_probe_arrival *ret_arrival, struct ll_err *err)
{
	struct ll_probe_arrival arrival = {.runs = runs};
	struct ll_samples high = {0}, equal = {0}, rounds = {0};
	struct ll_probe_crew *crew;
	int rc = open_crew(card, host, 1, arrival.why, &crew, err);
	if (rc == 0 && crew)
		rc = run_arrivals(crew, true, runs, &high, &rounds, err);
	if (rc == 0 && crew)
		rc = run_arrivals(crew, false, runs, &equal, &rounds, err);
	arrival.is_known = rc == 0 && crew;
	ll_probe_crew_close(crew);
	arrival.high_wait_ns = ll_spread_of(&high);
	arrival.equal_wait_ns = ll_spread_of(&equal);
	arrival.round_ns = ll_spread_of(&rounds);
	if (rc == 0)
		*ret_arrival = arrival;
	return rc;
}

/* ---- an idle context ---- */

static int run_row(struct ll_probe_crew *crew, size_t runs, struct ll_samples *windows, struct ll_err *err)
{
	const struct ll_probe_cell cell = {.parallel = LL_PROBE_STREAMS};
	const struct ll_probe_load load = {.parties = 1, .kernels = IDLE_KERNELS, .length_ns = IDLE_KERNEL_NS};
	struct ll_probe_order order;
	const struct ll_probe_kernel *kernels;
	int rc = 0;
	ll_probe_order_cell(&cell, &load, &order);
	for (size_t i = 0; rc == 0 && i < runs; i++) {
		rc = ll_probe_crew_run(crew, &order, &kernels, err);
		if (rc == 0)
			ll_samples_add(windows, (double)(kernels[IDLE_KERNELS - 1].end_ns - kernels[0].start_ns));
	}
	return rc;
}

static int run_idling(struct ll_probe_crew *crew, const struct ll_card *card, struct ll_probe_idling *idling,
		      struct ll_samples *alone, struct ll_samples *beside, struct ll_err *err)
{
	int rc = run_row(crew, idling->runs, alone, err);
	uint64_t before_bytes = ll_probe_used_bytes(card);
	if (rc == 0)
		rc = ll_probe_crew_add(crew, err);
	const char *refusal = rc == 0 ? ll_probe_crew_refusal(crew, 2) : NULL;
	if (refusal)
		copy_why(idling->why, refusal);
	if (rc < 0 || refusal)
		return rc;
	uint64_t after_bytes = ll_probe_used_bytes(card);
	idling->memory_bytes = after_bytes > before_bytes ? after_bytes - before_bytes : 0;
	rc = run_row(crew, idling->runs, beside, err);
	idling->is_known = rc == 0;
	return rc;
}

int ll_probe_idling_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			    struct ll_probe_idling *ret_idling, struct ll_err *err)
{
	struct ll_probe_idling idling = {.runs = runs};
	struct ll_samples alone = {0}, beside = {0};
	struct ll_probe_crew *crew;
	int rc = open_crew(card, host, 1, idling.why, &crew, err);
	if (rc == 0 && crew)
		rc = run_idling(crew, card, &idling, &alone, &beside, err);
	ll_probe_crew_close(crew);
	idling.alone_ns = ll_spread_of(&alone);
	idling.beside_ns = ll_spread_of(&beside);
	if (rc == 0)
		*ret_idling = idling;
	return rc;
}
