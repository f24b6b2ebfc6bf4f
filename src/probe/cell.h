/*
 * cell.h - the matrix of experiments: which parties, under what, at which priority, how large, over how many hardware
 * queues. Pure.
 */
#ifndef LOADLINE_PROBE_CELL_H
#define LOADLINE_PROBE_CELL_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
