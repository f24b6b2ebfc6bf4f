/*
 * payload.h - the synthetic load: kernels that keep the card busy for a given time, by one of two back ends.
 *
 * A back end makes a context on the card and launches kernels that last a given time. Each kernel writes what it saw on
 * the card's own clock into a record, which the host reads without a driver call. The kernels watch for foreign work
 * themselves: if a kernel starts later than late_after_ns, or finds a gap longer than gap_limit_ns between two reads of
 * the clock, another program had the card in between, and the kernel ends at once.
 *
 * A payload is used by one thread at a time. Only open and close may block.
 *
 * The card's clock counts nanoseconds from an unspecified epoch: %globaltimer in CUDA, the device clock of
 * VK_KHR_shader_clock in Vulkan. On NVIDIA cards both are the same counter (doc/facts.md).
 */
#ifndef LOADLINE_HOLD_PAYLOAD_H
#define LOADLINE_HOLD_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct ll_card;
struct ll_err;
struct ll_payload;

/* What the user asks for. */
enum ll_payload_choice {
	LL_PAYLOAD_AUTO, /* Vulkan, which takes a fifth of CUDA's memory on the card; CUDA where Vulkan cannot work */
	LL_PAYLOAD_VULKAN,
	LL_PAYLOAD_CUDA,
};

enum ll_kernel {
	LL_KERNEL_SPIN,   /* reads the clock and nothing else: takes time on the card at the lowest power */
	LL_KERNEL_FMA,    /* fused multiply-adds on registers, for the power metric */
	LL_KERNEL_TENSOR, /* products of zero matrices on the tensor cores; CUDA only */
	LL_KERNEL_DRAM,   /* reads of a buffer larger than the L2 cache; CUDA only */
};

enum {
	LL_RECORD_SLOTS = 64, /* launches that may be outstanding; a power of two */
};

/* Byte offset in the page of the records. There the CUDA kernels keep the epoch that is stopped (kernels/spin.ptx). */
enum { LL_STOP_WORD_OFFSET = 4032 };

enum ll_record_flags {
	LL_RECORD_LATE = 1,    /* the kernel started after late_after_ns, and ended at once */
	LL_RECORD_GAP = 2,     /* it met a gap over gap_limit_ns, and ended at once */
	LL_RECORD_STOPPED = 4, /* an earlier kernel had stopped its epoch; it ended at once */
};

/*
 * What one kernel saw. Its first thread writes it into host-visible memory, sequence last: when sequence equals the
 * launch's sequence number, the rest is valid. Times are the card's clock.
 */
struct ll_record {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns; /* the largest difference between two successive clock reads */
	uint32_t flags;
	uint32_t sequence;
};

_Static_assert(sizeof(struct ll_record) == 32, "the kernels write this layout");

struct ll_payload_launch {
	enum ll_kernel kernel;
	uint32_t blocks;        /* >= 1 */
	uint32_t threads;       /* per block: 32 or 1024 */
	uint64_t length_ns;     /* how long the kernel stays, counted from its own start */
	uint64_t late_after_ns; /* card's clock; 0: never late */
	uint64_t gap_limit_ns;  /* 0: no gap is too long */
	uint32_t epoch;         /* never 0; a kernel that ends GAP or LATE stops all later kernels of its epoch */
	uint32_t sequence;      /* never 0, one more each launch; its record is records[sequence % LL_RECORD_SLOTS] */
};

struct ll_payload_config {
	bool as_mps_client;        /* CUDA only: join a running MPS server at 1 % of the SMs; false: keep out of MPS */
	bool needs_fma;            /* LL_KERNEL_FMA will be launched */
	bool needs_wide;           /* kernels of more than one block will be launched */
	bool needs_tensor;         /* LL_KERNEL_TENSOR will be launched */
	bool needs_dram;           /* LL_KERNEL_DRAM will be launched: open takes its buffer, four times the L2 cache */
	bool is_translated;        /* errors are for a person, in the language of the environment */
	uint64_t max_memory_bytes; /* open fails with -EDQUOT if the card's used memory grew by more; 0: no limit */
};

struct ll_payload_ops {
	const char *name; /* "cuda", "vulkan" */

	/* The driver's own threads wake all the time, even while nothing is launched. Its process is worth stopping
	 * (pacer.h). */
	bool is_restless;

	/* Makes a context on the card; card is NULL only in tests. The caller closes *ret_payload. -ENODEV or -ENOSYS:
	 * this back end cannot work on that card at all, another one may. -ENOMEM: the card has no memory left for it.
	 * -EBUSY: the card's compute mode refuses it. -EDQUOT: over max_memory_bytes. May take seconds. */
	int (*open)(const struct ll_card *card, const struct ll_payload_config *config, struct ll_payload **ret_payload,
		    struct ll_err *err);

	/* Queues one kernel and does not wait for it. -EAGAIN: the kernel that used the same slot has not ended.
	 * -EIO: the context is lost (Xid, reset, card gone). */
	int (*launch)(struct ll_payload *payload, const struct ll_payload_launch *launch, struct ll_err *err);

	/* Returns 0 while the context is sound, -EIO when it is lost. Never blocks; called a few times a second. */
	int (*check)(struct ll_payload *payload, struct ll_err *err);

	/* Waits for queued kernels, which takes some ms at most, destroys the context and frees. NULL is fine. */
	void (*close)(struct ll_payload *payload);
};

/* The first member of each back end's own struct. */
struct ll_payload {
	const struct ll_payload_ops *ops;
	const volatile struct ll_record *records; /* LL_RECORD_SLOTS of them; valid until close */
	uint32_t sm_count;                        /* 0: unknown */
	bool has_card_clock; /* false: times are estimates of a calibrated loop, and gaps are unknown */
};

extern const struct ll_payload_ops ll_payload_cuda;
extern const struct ll_payload_ops ll_payload_vulkan;

/* All back ends and "auto", NULL-ended. A worker finds its payload here by name. */
extern const struct ll_payload_ops *const ll_payloads[];

/* Returns the ops for the user's choice. After "auto" has opened, the payload's own ops name the back end it became. */
const struct ll_payload_ops *ll_payload_choose(enum ll_payload_choice choice);

/* Whether that choice opens Vulkan on this card, or tries to. auto does not try for an MPS client, on a MIG slice and
 * on a simulated card. */
bool ll_payload_may_be_vulkan(enum ll_payload_choice choice, bool as_mps_client, const struct ll_card *card);

/*
 * Sets the environment of this process for CUDA: one hardware queue, and MPS as a client at 1 % of the SMs or not at
 * all. A running MPS server would otherwise hide from the load that its kernels come late. libcuda reads the
 * environment once, in cuInit, so call this before CUDA is first opened and before any thread starts.
 */
void ll_payload_cuda_prepare(bool as_mps_client);

#endif
