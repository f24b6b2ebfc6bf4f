/*
 * measure.h - the matrix, measured: the chosen cells on one card, one after the other.
 *
 * Cells that need the same environment share their processes. The caller arranges what is outside of a process, such as
 * an MPS daemon or the card's mode: it is asked for the environment of each group of cells.
 */
#ifndef LOADLINE_PROBE_MEASURE_H
#define LOADLINE_PROBE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cards.h"
#include "probe/cell.h"
#include "probe/orders.h"
#include "probe/verdict.h"

struct ll_err;

enum { LL_PROBE_WHY_SIZE = 300, LL_PROBE_ENVIRONMENT = 16 };

/* A cell's outcome over all its runs. Spreads are over the runs, each with one value. */
struct ll_probe_result {
	struct ll_probe_cell cell;
	struct ll_probe_load load;
	bool is_skipped; /* it could not be arranged: why says what is missing; nothing else counts then */
	enum ll_probe_word word;
	size_t runs, agreeing;       /* so many runs say that word */
	char why[LL_PROBE_WHY_SIZE]; /* refused: the driver's words; skipped: ours */
	struct ll_spread overlap;    /* 0 to 1 */
	struct ll_spread share;      /* of the first party while all wanted the card, 0 to 1 */
	struct ll_spread window_ns;  /* from the first start to the last end */
	struct ll_spread lost;       /* part of the window in which nothing ran, 0 to 1 */
	struct ll_spread slice_ns;   /* medians of the runs; count: runs that had one */
	struct ll_spread switch_ns;
	uint64_t idle_ns;      /* the longest hole of any run */
	uint64_t step_ns;      /* of the card's clock */
	uint32_t card_sms;     /* of the card, as its processes see it */
	uint32_t sm_count;     /* most SMs that one kernel was on */
	uint32_t sms_together; /* that all parties' kernels were on */
	size_t kernel_count;   /* of the last run, in the order of their launches; the result's */
	struct ll_probe_kernel *kernels;
};

void ll_probe_result_fini(struct ll_probe_result *result);

/* What processes take of the card's memory, by NVML. Unknown figures are 0. */
struct ll_probe_memory {
	bool is_known;
	struct ll_probe_under under;
	uint64_t first_bytes; /* the first process, with what comes along (a server, the driver's own) */
	uint64_t each_bytes;  /* each further one */
};

struct ll_probe_host {
	void *user;
	int signal_fd; /* as in crew.h */
	/*
	 * The environment for processes under that, as in crew.h, valid until the next call. -EOPNOTSUPP: it cannot be
	 * arranged here, err says why and the cells are skipped; any other error ends the measuring.
	 */
	int (*arrange)(void *user, struct ll_probe_under under, unsigned connections,
		       const char *const **ret_environment, struct ll_err *err);
	/* Told of each cell when it is done; an error ends the measuring. */
	int (*tell)(void *user, const struct ll_probe_result *result, struct ll_err *err);
};

struct ll_probe_plan {
	const struct ll_card *card;
	struct ll_probe_load load;
	size_t runs; /* of each cell */
	const struct ll_probe_cell *cells;
	size_t count;
};

/*
 * Fills results, one for each cell of the plan, all zero before; the caller frees each. memories has room for
 * LL_PROBE_CHOICES: one for each under that had processes. -EINTR: the signal came; cells that were not measured are
 * all zero but skipped.
 */
int ll_probe_measure(const struct ll_probe_plan *plan, const struct ll_probe_host *host,
		     struct ll_probe_result *results, struct ll_probe_memory *memories, struct ll_err *err);

#endif
