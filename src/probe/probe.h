/*
 * probe.h - the measurements of loadline probe: what kernels write down, what follows from it, the experiments, and the
 * processes that do them.
 */
#ifndef LOADLINE_PROBE_PROBE_H
#define LOADLINE_PROBE_PROBE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "driver/cards.h"

struct ll_err;
struct ll_probe_crew;

/* ---- trace ---- */

/*
 * What a kernel of the probe writes down about itself, and the account of it that everything else works with.
 *
 * All times are the card's own clock (%globaltimer, nanoseconds of an unspecified epoch), so kernels of different
 * processes can be compared. The clock's step is 32 ns on an H200 (doc/facts.md) and up to 1 us on other cards: the
 * smallest step that a kernel saw is in its account.
 *
 * Every block writes its start, its end and its SM. Of each round of blocks, which is as many as fit on the card at
 * once, the first also lists its gaps: holes between two reads of the clock in which it was not on the card.
 */

enum {
	LL_PROBE_GAPS = 256, /* listed; more are only counted */
	LL_PROBE_SMS = 512,  /* that can be told apart */
	LL_PROBE_AWAY_US =
	    10, /* a longer hole is time away. Full SMs see holes of 2 us, a switch takes 130 (facts.md) */
};

/* ---- as kernels/timeline.ptx writes them ---- */

struct ll_probe_gap {
	uint64_t at_ns;
	uint64_t length_ns;
};

struct ll_probe_trace {
	uint64_t max_gap_ns; /* the largest hole, listed or not */
	uint64_t step_ns;    /* the smallest step of the clock */
	uint32_t gap_count;
	uint32_t unused;
	struct ll_probe_gap gaps[LL_PROBE_GAPS];
};

struct ll_probe_block {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t sm;
	uint32_t is_done;
};

_Static_assert(offsetof(struct ll_probe_trace, gaps) == 24 && sizeof(struct ll_probe_gap) == 16 &&
		   sizeof(struct ll_probe_block) == 24 && sizeof(struct ll_probe_trace) == 4120,
	       "the kernels write this layout");

/* ---- the account ---- */

/* Time between a kernel's start and its end in which no block of it was on the card. */
struct ll_probe_hole {
	uint64_t at_ns;
	uint64_t length_ns;
	bool is_cut; /* blocks were interrupted; else those that had run had ended, and the next had not begun */
};

struct ll_probe_kernel {
	uint32_t party; /* who launched it: a stream, a thread or a process */
	uint32_t blocks;
	uint64_t start_ns; /* of its first block */
	uint64_t end_ns;   /* of its last */
	uint64_t max_gap_ns;
	uint64_t step_ns;
	uint32_t hole_count; /* may be more than are listed */
	uint32_t sm_count;   /* different SMs that its blocks were on */
	uint64_t sms[LL_PROBE_SMS / 64];
	struct ll_probe_hole holes[LL_PROBE_GAPS];
};

/* Returns how many of the kernel's holes are listed. */
static inline uint32_t ll_probe_listed(const struct ll_probe_kernel *kernel)
{
	return kernel->hole_count < LL_PROBE_GAPS ? kernel->hole_count : LL_PROBE_GAPS;
}

/* What the card wrote: a trace for each round of blocks, a record for each block. */
struct ll_probe_records {
	const struct ll_probe_trace *traces;
	const struct ll_probe_block *blocks;
	uint32_t trace_count, block_count;
};

/* Makes the account of a kernel from its records. -EIO: a block has written nothing, or impossible values. -ENOMEM. */
int ll_probe_kernel_read(const struct ll_probe_records *records, uint32_t party, struct ll_probe_kernel *ret_kernel,
			 struct ll_err *err);

/* ---- spread ---- */

/* Median and scatter of a value that was measured many times. Pure. */

/* Zeroed before first use. */
struct ll_samples {
	double *values;
	size_t count, capacity;
	bool failed; /* memory ran out, and some values are missing */
};

/* Adds a value. */
void ll_samples_add(struct ll_samples *samples, double value);

struct ll_spread {
	size_t count; /* 0: nothing was measured, and all other fields are 0 */
	double median;
	double low, high; /* the 5th and 95th percentile */
	double min, max;
};

/* Returns the spread of the samples, and frees them. Percentiles are interpolated between the two nearest samples. */
struct ll_spread ll_spread_of(struct ll_samples *samples);

/* ---- parties ---- */

enum {
	LL_PROBE_PARTIES = 16,
	LL_PROBE_LAUNCHES = 128, /* of all parties in one run */
};

/* ---- verdict ---- */

/*
 * One word for how parties shared the card, from their kernels' times alone. Pure.
 *
 *   concurrent   at least half of what could run at once did
 *   time-sliced  not at once, and the card switched contexts between them: kernels were interrupted while another party
 *                ran, or the card was empty between two parties for longer than the fastest switch takes
 *   serialised   not at once, and one followed the other without such a gap: a kernel waited for the end of another
 *   refused      the driver did not let all of them start; its error says why
 *
 * An H200 goes from one kernel to the next in 1.4 us within a context, and in 130 us between contexts (doc/facts.md).
 * The limit is 30 us.
 */

#define LL_PROBE_SWITCH_NS 30000.0
#define LL_PROBE_CONCURRENT 0.5

enum ll_probe_word {
	LL_PROBE_SERIALISED,
	LL_PROBE_TIME_SLICED,
	LL_PROBE_CONCURRENT_WORD,
	LL_PROBE_REFUSED,
	LL_PROBE_WORDS,
};

/* "serialised", "time-sliced", "concurrent", "refused". */
const char *ll_probe_word_text(enum ll_probe_word word);

/* The verdict on one run. Times are ns, shares 0 to 1. */
struct ll_verdict {
	enum ll_probe_word word;
	double overlap;
	uint64_t window_ns; /* from the first start to the last end */
	uint64_t busy_ns;   /* the part of it with a kernel on the card */
	uint64_t idle_ns;   /* the longest gap in it */
	double share;       /* of the first party while all parties wanted the card */
	size_t cuts, handovers;
	struct ll_spread slice_ns, switch_ns; /* of this run; count 0 where there was none */
};

/* Makes the verdict. With one party everything but the word is right. -ENOMEM. */
int ll_verdict_make(const struct ll_probe_kernel *kernels, size_t count, size_t parties,
		    struct ll_verdict *ret_verdict);

/* Returns the most frequent word of the verdicts, and in *ret_agreeing how many have it. Of two that are equally
 * frequent the first in the enum is returned. */
enum ll_probe_word ll_verdicts_word(const struct ll_verdict *verdicts, size_t count, size_t *ret_agreeing);

/* ---- page ---- */

/*
 * The memory that the probe and its processes share: an order in, accounts of kernels out.
 *
 * The probe starts each worker (probe.h) with the page and two eventfds. The probe calls a worker by the worker's own
 * eventfd. All workers answer on the other one. An order says which worker has which parties, and has the launches in
 * the order in which each party makes them. All parties of all workers begin at the same moment.
 *
 * Times are CLOCK_MONOTONIC, except those of the card's own clock.
 */

enum { LL_PROBE_TEXT_SIZE = 400 };

enum ll_probe_stream_kind {
	LL_PROBE_OWN_STREAM,
	LL_PROBE_DEFAULT_STREAM, /* the thread's own */
	LL_PROBE_LEGACY_STREAM,  /* the context's one default stream */
};

enum ll_probe_priority { LL_PROBE_PRIORITY_DEFAULT, LL_PROBE_PRIORITY_HIGH, LL_PROBE_PRIORITY_LOW };

struct ll_probe_party {
	uint32_t worker;
	uint32_t has_thread; /* the party has a thread of its own; else the worker's first thread launches for it */
	uint32_t stream;     /* enum ll_probe_stream_kind */
	uint32_t priority;   /* enum ll_probe_priority */
};

/* How many blocks a kernel has. */
enum ll_probe_size {
	LL_PROBE_SIZE_TINY,  /* one block of one warp */
	LL_PROBE_SIZE_BLOCK, /* one block of LL_PROBE_FULL_THREADS */
	LL_PROBE_SIZE_FULL,  /* `rounds` times as many blocks of LL_PROBE_FULL_THREADS as fit on the card at once */
};

enum { LL_PROBE_FULL_THREADS = 512 };

struct ll_probe_launch {
	uint32_t party;
	uint32_t size;   /* enum ll_probe_size */
	uint32_t rounds; /* of a full kernel, at least 1 */
	uint32_t unused;
	uint64_t length_ns; /* that each block needs on the card */
};

struct ll_probe_order {
	uint32_t party_count, launch_count;
	struct ll_probe_party parties[LL_PROBE_PARTIES];
	struct ll_probe_launch launches[LL_PROBE_LAUNCHES];
};

enum ll_probe_call { LL_PROBE_CALL_NONE, LL_PROBE_CALL_RUN, LL_PROBE_CALL_END };

enum ll_probe_state {
	LL_PROBE_STARTING,
	LL_PROBE_READY,      /* has a context and no order */
	LL_PROBE_NO_CONTEXT, /* the driver gave the worker no context; text says why */
	LL_PROBE_BUSY,
	LL_PROBE_FAILED, /* the last order failed; text says why */
};

/* What a worker answers, and what the probe calls it to do. */
struct ll_probe_slot {
	_Atomic uint32_t state; /* enum ll_probe_state */
	_Atomic uint32_t call;  /* enum ll_probe_call */
	int32_t code;           /* -errno of a failure */
	uint32_t sm_count;
	uint32_t full_blocks; /* of LL_PROBE_FULL_THREADS that fit on the card at once */
	char text[LL_PROBE_TEXT_SIZE];
};

struct ll_probe_page {
	pid_t parent;
	char card_uuid[96];
	pthread_barrier_t start; /* made anew for each order, for as many threads as launch */
	_Atomic uint64_t go_ns;  /* when all threads begin; 0 until the first of them has set it */
	struct ll_probe_order order;
	struct ll_probe_slot slots[LL_PROBE_PARTIES];
	struct ll_probe_kernel kernels[LL_PROBE_LAUNCHES]; /* of the order's launches, in its order */
};

/* Returns how many threads launch. All parties of a worker that have no thread of their own share one. */
static inline unsigned ll_probe_order_threads(const struct ll_probe_order *order)
{
	uint64_t firsts = 0;
	unsigned threads = 0;
	for (uint32_t i = 0; i < order->party_count; i++) {
		const struct ll_probe_party *party = &order->parties[i];
		bool counts = party->has_thread || !(firsts >> party->worker & 1);
		threads += counts;
		if (!party->has_thread)
			firsts |= UINT64_C(1) << party->worker;
	}
	return threads;
}

/* ---- cell ---- */

/*
 * The matrix of experiments: which parties, under what, at which priority, how large, over how many hardware
 * queues. Pure.
 */

enum ll_probe_parallel {
	LL_PROBE_STREAMS,    /* one process, one thread, a stream for each party */
	LL_PROBE_THREADS,    /* one process, a thread with a stream of its own for each */
	LL_PROBE_PER_THREAD, /* the same, in the thread's own default stream */
	LL_PROBE_LEGACY,     /* the same, all in the one legacy default stream */
	LL_PROBE_PROCESSES,  /* a process for each */
	LL_PROBE_PARALLELS,
};

enum ll_probe_manner {
	LL_PROBE_DEFAULT,   /* no MPS, the card in its default compute mode */
	LL_PROBE_MPS,       /* clients of an MPS daemon, without limits or with a share of the threads */
	LL_PROBE_EXCLUSIVE, /* no MPS, the card in exclusive-process mode */
};

struct ll_probe_under {
	enum ll_probe_manner manner;
	unsigned percent; /* MPS: of the card's threads that each client may use; 0: no limit */
};

struct ll_probe_cell {
	enum ll_probe_parallel parallel;
	struct ll_probe_under under;
	bool has_priorities;  /* the first party's priority is the highest, the others' the lowest; else all alike */
	bool is_full;         /* blocks that fill the card; else one warp on one SM */
	unsigned connections; /* CUDA_DEVICE_MAX_CONNECTIONS */
};

enum { LL_PROBE_CHOICES = 8 };

/* A choice along each side of the matrix. */
struct ll_probe_choice {
	bool parallel[LL_PROBE_PARALLELS];
	struct ll_probe_under unders[LL_PROBE_CHOICES];
	size_t under_count;
	bool equal, different;
	bool tiny, full;
	unsigned connections[LL_PROBE_CHOICES];
	size_t connections_count;
};

/*
 * Gives the chosen cells in the order in which they are measured: cells that need the same environment are together.
 * Default streams have no priorities, so their cells exist with equal priorities only. Fills cells, which may be NULL,
 * up to capacity. Returns the number of cells.
 */
size_t ll_probe_cells(const struct ll_probe_choice *choice, struct ll_probe_cell *cells, size_t capacity);

bool ll_probe_under_same(struct ll_probe_under a, struct ll_probe_under b);

/* "streams", "threads", "per-thread", "legacy", "processes". */
const char *ll_probe_parallel_text(enum ll_probe_parallel parallel);

enum { LL_PROBE_UNDER_SIZE = 16 };

/* "default", "mps", "mps:50%", "exclusive". Writes to text, which it returns. */
const char *ll_probe_under_text(struct ll_probe_under under, char text[LL_PROBE_UNDER_SIZE]);

/* ---- orders ---- */

/* The scripts of the probe's experiments. Pure. */

/* What each party does: it launches so many kernels, one right after the other, and each needs so long on the card. */
struct ll_probe_load {
	uint32_t parties; /* 1 to LL_PROBE_PARTIES */
	uint32_t kernels; /* of each party; parties * kernels is at most LL_PROBE_LAUNCHES */
	uint64_t length_ns;
};

/* Full kernels have blocks for so many rounds, as most kernels have more blocks than fit at once: between two rounds a
 * kernel of higher priority may go first. */
enum { LL_PROBE_ROUNDS = 4 };

/* Writes the order of a cell. If the parties are processes, party i belongs to worker i; else all belong to worker 0.
 * If one thread launches for several parties, it launches all kernels of one party before those of the next. */
void ll_probe_order_cell(const struct ll_probe_cell *cell, const struct ll_probe_load *load,
			 struct ll_probe_order *ret_order);

/* Returns how many workers a cell's order needs. */
uint32_t ll_probe_order_workers(const struct ll_probe_cell *cell, uint32_t parties);

/*
 * The order of a kernel that arrives while another one fills the card. It has two streams of one process. The first
 * stream has a short kernel of one block (launch 0) and then the arriving kernel (launch 2), which is ready when the
 * short one has ended; the card's own clock tells when. The second stream's kernel (launch 1) has ARRIVAL_ROUNDS rounds
 * of blocks, and each block stays for ARRIVAL_BLOCK_NS. The arriving kernel is ready half way through the first round.
 */
#define LL_PROBE_ARRIVAL_BLOCK_NS UINT64_C(1000000)
enum { LL_PROBE_ARRIVAL_ROUNDS = 4, LL_PROBE_ARRIVAL_LAUNCHES = 3 };

/* has_priorities: the arriving kernel's stream has the highest priority, the other the lowest. */
void ll_probe_order_arrival(bool has_priorities, struct ll_probe_order *ret_order);

/* Returns the time from the end of the short kernel to the start of the arriving one. */
uint64_t ll_probe_arrival_wait_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES]);

/* Returns the time from the end of the short kernel to the end of the first round; 0: the round had ended before. */
uint64_t ll_probe_arrival_round_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES]);

/* ---- crew ---- */

/*
 * The processes that do the probe's work: starts them, gives them orders, waits for them and ends them.
 *
 * Every wait has a deadline: a worker that dies, hangs or cannot start ends the wait with an error. Closing the crew
 * asks every process to end, and then kills it. Only the thread that opened a crew may use it. The workers are killed
 * when that thread ends.
 */

struct ll_probe_crew_config {
	const struct ll_card *card;
	const char *const *environment; /* "NAME=value" sets, "NAME" removes; NULL-ended; for all workers */
	int signal_fd;                  /* readable when the probe is to end: waits then return -EINTR; -1: none */
	uint64_t order_within_ns; /* for an order, and for the end; 0: the order's own time and a minute, and 3 s */
};

/* Makes a crew without processes. config is copied; what it points to must outlive the crew. */
int ll_probe_crew_open(const struct ll_probe_crew_config *config, struct ll_probe_crew **ret_crew, struct ll_err *err);
void ll_probe_crew_close(struct ll_probe_crew *crew); /* NULL is fine */

/*
 * Starts one more worker, and waits until it has a context or the driver has refused it one; ll_probe_crew_refusal then
 * has the driver's words. -EIO: the worker died or did not answer in time.
 */
int ll_probe_crew_add(struct ll_probe_crew *crew, struct ll_err *err);
/* Returns the number of workers. */
size_t ll_probe_crew_count(const struct ll_probe_crew *crew);

/* Returns why the first refused worker among the first count was refused: "make a context:
 * CUDA_ERROR_DEVICE_UNAVAILABLE (46)". NULL: none was. The text is the crew's. */
const char *ll_probe_crew_refusal(const struct ll_probe_crew *crew, size_t count);

/* Returns the number of SMs that the first worker's context sees. */
uint32_t ll_probe_crew_sms(const struct ll_probe_crew *crew);

/*
 * Runs an order. *ret_kernels: what each launch's kernel saw, in the sequence of the order; the crew's, valid until the
 * next order. -EIO: a driver call failed, a worker died, or the deadline passed: the order's own time on the card, one
 * party after the other, and a minute.
 */
int ll_probe_crew_run(struct ll_probe_crew *crew, const struct ll_probe_order *order,
		      const struct ll_probe_kernel **ret_kernels, struct ll_err *err);

/* ---- worker ---- */

/*
 * One of the probe's processes: this program once more, with a context of its own.
 *
 * It is started as
 *
 *     argv[0] "loadline-probe: party 0"   what ps and nvidia-smi show
 *     argv[1] LL_PROBE_WORKER_WORD
 *     argv[2] its slot in the page
 *
 * with the page and two eventfds (probe.h) at the descriptors below. It makes its context, reports READY or why it has
 * none, and then does what it is called for. It dies with the probe. Signals that a terminal sends to all processes are
 * blocked in it, because the probe ends it in order.
 */

#define LL_PROBE_WORKER_WORD "probe-worker"

enum { LL_PROBE_FD_PAGE = 3, LL_PROBE_FD_CALL, LL_PROBE_FD_ANSWER, LL_PROBE_FDS_END };

bool ll_probe_worker_is_asked(int argc, char **argv);

/* Returns when it is told to end. -EINVAL: a user has typed the word. */
int ll_probe_worker_main(int argc, char **argv, struct ll_err *err);

/* ---- measure ---- */

/*
 * The matrix, measured: the chosen cells on one card, one after the other.
 *
 * Cells that need the same environment share their processes. The caller arranges what is outside of a process, such as
 * an MPS daemon or the card's mode: it is asked for the environment of each group of cells.
 */

enum { LL_PROBE_WHY_SIZE = 300 };

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

/* Returns how much of the card's memory is in use; 0: unknown. */
uint64_t ll_probe_used_bytes(const struct ll_card *card);

struct ll_probe_host {
	void *user;
	int signal_fd; /* as in probe.h */
	/*
	 * The environment for processes under that, as in probe.h, valid until the next call. -EOPNOTSUPP: it cannot be
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

/* ---- first ---- */

/*
 * The classic first experiment: a kernel in which every thread writes its own number, launched with fewer
 * threads than there are numbers.
 *
 * Thread t of block b writes b * threads + t at that place. So the number of threads alone decides which numbers are
 * written: 2 blocks of 128 threads reach the first 256 of 512 numbers, however many threads the card could run. The
 * other numbers keep their value.
 */

enum { LL_FIRST_NUMBERS = 512, LL_FIRST_BLOCKS = 2, LL_FIRST_THREADS = 128, LL_FIRST_UNTOUCHED = -1 };

struct ll_probe_first {
	uint32_t blocks, threads;
	int32_t numbers[LL_FIRST_NUMBERS]; /* after the launch; LL_FIRST_UNTOUCHED where nothing was written */
	int32_t enough[LL_FIRST_NUMBERS];  /* after a second launch with enough blocks for all numbers */
	uint32_t enough_blocks;
};

/* Runs the experiment in a context of its own, in this process, on a card that CUDA shows. -EIO, -EBUSY: err has the
 * driver's words. */
int ll_probe_first_run(const struct ll_card *card, struct ll_probe_first *ret_first, struct ll_err *err);

/* Return how many of the numbers were written, and whether these are the first ones, each with its own place in it.
 * Pure. */
size_t ll_probe_first_written(const int32_t numbers[LL_FIRST_NUMBERS]);
int ll_probe_first_is_in_order(const int32_t numbers[LL_FIRST_NUMBERS]);

/* ---- experiments ---- */

/*
 * What is measured besides the matrix: the time slice and the switch between contexts, how long a
 * kernel waits while another one fills the card, and what an idle context costs.
 *
 * Each experiment has processes of its own, without MPS, and takes every value from the card's clock. Each run gives
 * one value, and a spread is over the runs.
 */

/* Two processes run a kernel each that is several slices long. A run's slice is the median of its complete slices. */
struct ll_probe_slicing {
	bool is_known;
	char why[LL_PROBE_WHY_SIZE]; /* why it is not known */
	size_t runs;                 /* slice_ns.count of them were cut into slices */
	struct ll_spread slice_ns;   /* time on the card between two switches */
	struct ll_spread switch_ns;  /* from the end of one context's time to the start of the other's */
	struct ll_spread lost;       /* the part of the time in which neither ran, 0 to 1 */
};

/* A kernel arrives while another one fills the card (probe.h). */
struct ll_probe_arrival {
	bool is_known;
	char why[LL_PROBE_WHY_SIZE];
	size_t runs;
	struct ll_spread high_wait_ns;  /* the arriving kernel has the highest priority, the other one the lowest */
	struct ll_spread equal_wait_ns; /* both have the same priority */
	struct ll_spread round_ns;      /* until the running blocks end by themselves */
};

struct ll_probe_idling {
	bool is_known;
	char why[LL_PROBE_WHY_SIZE];
	size_t runs;
	struct ll_spread alone_ns;  /* a row of kernels of a process alone */
	struct ll_spread beside_ns; /* the same while another process has an idle context */
	uint64_t memory_bytes;      /* that the idle context takes; 0: unknown */
};

/* Measure. An experiment that is not possible here is not known, and no error. -EINTR, -EIO, -ENOMEM. */
int ll_probe_slicing_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			     struct ll_probe_slicing *ret_slicing, struct ll_err *err);
int ll_probe_arrival_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			     struct ll_probe_arrival *ret_arrival, struct ll_err *err);
int ll_probe_idling_measure(const struct ll_card *card, const struct ll_probe_host *host, size_t runs,
			    struct ll_probe_idling *ret_idling, struct ll_err *err);

/* ---- report ---- */

/*
 * Everything that was measured on a card, and the statements that follow from it. The table, the JSON lines
 * and the picture are made from it.
 */

enum ll_probe_experiment {
	LL_PROBE_MATRIX = 1,
	LL_PROBE_SLICE = 2,
	LL_PROBE_PREEMPTION = 4,
	LL_PROBE_IDLE = 8,
	LL_PROBE_FIRST = 16,
};

struct ll_probe_report {
	char card_label[16];
	unsigned card_index;
	char card_name[96];
	char card_uuid[96];
	char driver_version[32];
	bool is_simulated;
	uint32_t sm_count; /* 0: unknown */
	unsigned measured; /* enum ll_probe_experiment, or-ed */
	const struct ll_probe_result *results;
	size_t count;
	struct ll_probe_memory memories[LL_PROBE_CHOICES];
	struct ll_probe_slicing slicing;
	struct ll_probe_arrival arrival;
	struct ll_probe_idling idling;
};

/* Returns the smallest step of the card's clock that any kernel saw; 0: no kernel ran. */
uint64_t ll_probe_report_step_ns(const struct ll_probe_report *report);

/* ---- what is true on this card and driver: sentences, each made from measured cells. Pure. A sentence says what was
 * seen, also if that is unusual. If its cells were not measured there is none. ---- */

enum { LL_PROBE_FINDINGS = 12 };

struct ll_probe_finding {
	const char *name;    /* "contexts": what it is about, one word */
	const char *command; /* what measures it again: "loadline probe --parallel processes --under default" */
	struct ll_strbuf text;
};

struct ll_probe_findings {
	struct ll_probe_finding items[LL_PROBE_FINDINGS];
	size_t count;
};

/* Makes the statements. Free with ll_probe_findings_fini. -ENOMEM. */
int ll_probe_findings_make(const struct ll_probe_report *report, struct ll_probe_findings *ret_findings);
void ll_probe_findings_fini(struct ll_probe_findings *findings);

/* ---- svg ---- */

/*
 * A picture of which party was on the card at which time: a panel for each cell, a row for each party, on the
 * card's own clock. Pure.
 *
 * The picture has a title, a legend, an axis and a caption for each panel, and colours for light and for dark
 * backgrounds. Of few cells it has all. Of a whole matrix it has the cells with equal priorities and the middle number
 * of connections.
 */

enum { LL_PROBE_SVG_PANELS = 16 }; /* more cells than that are a whole matrix, and chosen from */

/* Appends the picture. */
void ll_probe_svg(const struct ll_probe_report *report, struct ll_strbuf *out);

#endif
