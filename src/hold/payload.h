/*
 * payload.h - what makes the card busy: a timed spin kernel behind one vtable.
 *
 * A back end opens the card, launches kernels that last a given time, and lets each kernel write what it saw
 * on the card's own clock into a record that the host reads without a driver call. The kernels watch for
 * strangers themselves: a start later than late_after_ns, or a hole longer than gap_limit_ns between two
 * reads of the clock, means that somebody else had the card in between, and the kernel ends at once.
 *
 * Back ends are used by one thread at a time. No call but open and close may block.
 *
 * The card's clock is nanoseconds of an unspecified epoch (%globaltimer, and through Vulkan the device
 * clock of VK_KHR_shader_clock, which is the same counter on NVIDIA cards, see doc/facts.md).
 */
#ifndef LOADLINE_HOLD_PAYLOAD_H
#define LOADLINE_HOLD_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct ll_card;
struct ll_err;
struct ll_payload;

enum ll_kernel {
	LL_KERNEL_SPIN,   /* reads the clock, nothing else: time on the card at the lowest power */
	LL_KERNEL_FMA,    /* fused multiply-adds from registers: for the power metric */
	LL_KERNEL_TENSOR, /* products of zero matrices on the tensor cores; cuda only */
	LL_KERNEL_DRAM,   /* reads of a buffer larger than the L2 cache; cuda only */
};

enum {
	LL_RECORD_SLOTS = 64, /* launches that may be outstanding; a power of two */
};

/* Where in the page of the records the CUDA kernels of one block keep the epoch that is over (kernels/spin.ptx). */
enum { LL_STOP_WORD_OFFSET = 4032 };

enum ll_record_flags {
	LL_RECORD_LATE = 1,    /* started after late_after_ns and ended at once */
	LL_RECORD_GAP = 2,     /* met a gap over gap_limit_ns and ended at once */
	LL_RECORD_STOPPED = 4, /* its epoch had been stopped by an earlier kernel: ended at once */
};

/*
 * One kernel's own account, written by its first thread into host-visible memory. sequence is written last: when it
 * equals the launch's sequence number, the rest is valid. Times are the card's clock.
 */
struct ll_record {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns; /* the largest difference between two successive clock reads */
	uint32_t flags;
	uint32_t sequence;
};

_Static_assert(sizeof(struct ll_record) == 32, "the kernels write this layout");

struct ll_launch {
	enum ll_kernel kernel;
	uint32_t blocks;        /* >= 1 */
	uint32_t threads;       /* per block: 32 or 1024 */
	uint64_t length_ns;     /* how long the kernel stays, counted from its own start */
	uint64_t late_after_ns; /* card's clock; 0: never late */
	uint64_t gap_limit_ns;  /* 0: no gap is too long */
	uint32_t epoch;         /* a GAP or LATE kernel stops all later kernels of the same epoch; never 0 */
	uint32_t sequence;      /* its record is records[sequence % LL_RECORD_SLOTS]; never 0, successive */
};

struct ll_payload_config {
	bool as_mps_client; /* cuda only: join a running MPS server at 1 % of the SMs; else keep out of MPS */
	bool needs_fma;     /* LL_KERNEL_FMA will be launched */
	bool needs_wide;    /* kernels of more than one block will be launched */
	bool needs_tensor;  /* LL_KERNEL_TENSOR will be launched */
	bool needs_dram;    /* LL_KERNEL_DRAM will be launched: open takes its buffer, four times the L2 cache */
	/* 0: no limit. Opening fails with -EDQUOT when the card has gained more than this. */
	uint64_t max_memory_bytes;
};

struct ll_payload_ops {
	const char *name; /* "cuda", "vulkan" */

	/* Its driver has threads that wake all the time, even when nothing is asked of it: worth stopping (worker.h).
	 */
	bool is_restless;

	/* Makes a context on the card. Fails with -ENODEV where this back end cannot work there at all (the next one
	 * may), -ENOMEM when the card has no memory left for it, -EBUSY when the card's mode refuses it. May take
	 * seconds. */
	int (*open)(const struct ll_card *card, const struct ll_payload_config *config, struct ll_payload **ret_payload,
		    struct ll_err *err);

	/* Queues one kernel and returns without waiting for it. -EAGAIN: the slot's last kernel has not come back.
	 * -EIO: the context is lost (Xid, reset, card gone). */
	int (*launch)(struct ll_payload *payload, const struct ll_launch *launch, struct ll_err *err);

	/* 0 while the context is sound, -EIO when it is lost. Cheap and never blocks; called a few times a second. */
	int (*check)(struct ll_payload *payload, struct ll_err *err);

	/* Waits for queued kernels (at most some ms: they are timed), destroys the context, frees. NULL is fine. */
	void (*close)(struct ll_payload *payload);
};

/* Back ends embed this first; the records stay valid until close. */
struct ll_payload {
	const struct ll_payload_ops *ops;
	const volatile struct ll_record *records; /* LL_RECORD_SLOTS of them */
	uint32_t sm_count;                        /* SMs (Vulkan: from the CUDA name table or 0 when unknown) */
	bool has_card_clock; /* false: times are estimates of a calibrated loop, gaps are unknown */
};

extern const struct ll_payload_ops ll_payload_cuda;
extern const struct ll_payload_ops ll_payload_vulkan;

#endif
