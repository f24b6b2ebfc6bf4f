/*
 * world.h - the simulated machine: one file in shared memory, which several processes map.
 *
 * The file has the whole state of the cards: contexts, streams with their queues, time slices, memory, meters, faults.
 * It has no pointers into any process. All of it is read and changed under one lock (sim_lock), and all of it is a
 * function of time. A process that holds the lock brings the world up to now (engine.h) before it reads.
 *
 * A process may be killed at any instruction. So the lock is a robust mutex, and every change begins with SIM_EDIT,
 * which saves the old bytes in an undo log inside the file. sim_commit empties the log when the world is consistent. A
 * process that gets the lock from a dead owner restores the old bytes. So each step is done completely or not at all.
 */
#ifndef LOADLINE_SIM_CARD_WORLD_H
#define LOADLINE_SIM_CARD_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct ll_err;

enum {
	SIM_CARDS = 64, /* physical cards and MIG slices together */
	SIM_PROCS = 512,
	SIM_CONTEXTS = 512,
	SIM_CARD_CONTEXTS = 256,
	SIM_CONTEXT_STREAMS = 128,
	SIM_STREAMS = 2048,
	SIM_RING = 1024, /* operations queued in a stream; a launch waits when the queue is full, as on a real card */
	SIM_MODULES = 2048,
	SIM_EVENTS = 128, /* timed scenario commands that have not run yet */
	SIM_FAULTS = 32,  /* functions that fail or hang */
	SIM_XIDS = 64,    /* last Xid reports */
	SIM_SAMPLES = 70, /* number of 200 ms windows that NVML keeps (doc/facts.md) */
	SIM_KERNEL_RULES = 64,
	SIM_HIDDEN = 32,
	SIM_SHARES = 512,        /* memory that is or was exported */
	SIM_SHARED_EVENTS = 256, /* events of several processes */
	SIM_GAPS = 512,          /* last interruptions of a stream's kernels */
	SIM_MPS_SERVERS = 16,
	SIM_MPS_PARTITIONS = 32, /* of all MPS daemons together */
	SIM_RM_FILES = 512,
	SIM_RM_OBJECTS = 16384,
	SIM_TRACES = 32,
	SIM_TRACE_NOTES = 2048, /* that wait for their delivery */
	SIM_UNDO_BYTES = 1 << 18,
};

#define SIM_NEVER UINT64_MAX
#define SIM_NONE UINT32_MAX /* no card, no context and so on */

enum sim_op_kind {
	SIM_OP_KERNEL, /* needs the card's SMs: kernels, memsets, copies on the card */
	SIM_OP_COPY,   /* a copy engine: host to card or back */
	SIM_OP_MARK,   /* done when it is reached: event records, 32-bit writes */
	SIM_OP_WAIT,   /* waits for an operation of another stream */
	SIM_OP_VALUE,  /* waits for a 32-bit value in memory; only its owner can read it */
	SIM_OP_HOST,   /* a host function: only its owner can run it */
};

enum sim_op_state {
	SIM_OP_QUEUED,
	SIM_OP_ARRIVED, /* a kernel that waits for its context's turn or for room on the SMs */
	SIM_OP_RUNNING, /* resident; it progresses while its context has the card. A host function: it may be run */
	SIM_OP_DONE,
	SIM_OP_DROPPED, /* its context was lost before it was done */
};

/* As in src/hold/payload.h, which the simulator must not include. */
enum sim_record_flags {
	SIM_RECORD_LATE = 1,
	SIM_RECORD_GAP = 2,
	SIM_RECORD_STOPPED = 4,
};

struct sim_op {
	uint64_t id;     /* rises over the whole world, in the order of submission */
	uint64_t cookie; /* the address of the owner's action for its end */
	uint32_t kind;
	uint32_t state;
	uint64_t submit_ns;
	uint64_t start_ns;
	uint64_t end_ns; /* planned while running, final when done */
	uint64_t done_sequence;

	/* kernels */
	uint64_t length_ns;
	uint64_t left_ns;       /* rest of a kernel that needs time on the card, not time on the clock */
	uint64_t resumed_ns;    /* since when it has been progressing */
	uint64_t paused_ns;     /* since when it is paused, or 0 */
	uint64_t gap_ns;        /* the largest pause */
	uint64_t late_after_ns; /* the card's clock; 0: never late */
	uint64_t gap_limit_ns;
	uint32_t is_timed; /* ends by the clock, as a spin kernel does */
	uint32_t epoch;    /* 0: the kernel does not stop others, and is not stopped by them */
	uint32_t flags;    /* enum sim_record_flags */
	uint32_t module;
	uint32_t blocks;
	uint32_t threads; /* per block */
	uint32_t is_fma;
	uint32_t is_tensor;
	uint32_t is_dram;
	uint32_t has_yielded; /* off the SMs between two waves of blocks, for a kernel of higher priority */
	uint64_t wave_ns;     /* duration of one wave of its blocks; 0: there is one wave */
	uint32_t is_traced;   /* its interruptions are stored (timeline.h) */
	uint32_t direction;   /* of copies: 0 to the card, 1 from it */

	/* 0: none. The kernel progresses only while another card runs the kernel with the same number */
	uint64_t meeting;

	/* waits */
	uint32_t on_stream;
	uint32_t on_generation;
	uint64_t on_position;
};

struct sim_stream {
	uint32_t is_used;
	uint32_t generation; /* rises when the slot is given to a new stream */
	uint32_t context;
	int32_t priority; /* smaller runs first */
	uint32_t is_legacy;
	uint32_t is_blocking; /* it and the legacy stream wait for each other */
	uint32_t is_closing;  /* destroyed; the slot is free when its queue is empty */
	uint32_t queue;       /* its hardware queue, which every CUDA_DEVICE_MAX_CONNECTIONSth stream shares */
	/* positions in the queue, which only rise; slot = position % SIM_RING. reaped <= done <= submitted */
	uint64_t submitted;
	uint64_t done;
	uint64_t reaped; /* its owner has handled it */
	uint64_t last_end_ns;
};

/* A period in which a kernel that had begun was not on the card. */
struct sim_gap {
	uint64_t op_id;
	uint64_t at_ns;
	uint64_t length_ns;
};

struct sim_gap_ring {
	uint64_t next; /* only rises; slot = next % SIM_GAPS */
	struct sim_gap gaps[SIM_GAPS];
};

struct sim_context {
	uint32_t is_used;
	uint32_t generation;
	uint32_t card;
	uint32_t proc;
	uint32_t error; /* sticky: every call returns it */
	uint32_t stream_count;
	/* The owner of turns on the card: the context's own index, or for an MPS client SIM_CONTEXTS + the slot of its
	 * server */
	uint32_t tenant;
	uint32_t sm_limit;       /* SMs that its kernels may use */
	uint32_t partition;      /* 1 + the static partition of MPS that has these SMs; 0: none */
	int32_t client_priority; /* of an MPS client; smaller runs first */
	uint32_t connections;    /* hardware queues; 0: one for each stream */
	uint32_t next_queue;     /* number of streams made so far */
	uint32_t has_shared_queues;
	uint32_t off_channels; /* of its compute channels, one bit for each (turn.h) */
	uint32_t cid;          /* of one of its compute channels; 0: it has none */
	uint32_t unused;
	uint64_t stack_bytes;
	uint64_t own_bytes;   /* memory of the context itself */
	uint64_t saved_bytes; /* memory that it saves compared with other contexts */
	uint64_t large_bytes; /* allocations with blocks of their own */
	uint64_t small_bytes; /* allocations that share 2 MiB blocks */
	uint64_t card_ns;     /* time in which it had the card with kernels running */
	uint64_t slice_ns;    /* 0: the card's */
	uint16_t streams[SIM_CONTEXT_STREAMS];
};

enum sim_role { SIM_ROLE_CUDA, SIM_ROLE_MPS_SERVER, SIM_ROLE_MPS_CONTROL };

/* The process as a client of MPS (mps.h). It is set when the process starts, and does not change. */
struct sim_mps_client {
	uint32_t server;    /* slot + 1; 0: no server */
	uint32_t error;     /* the status that making a context returns after the process has lost all its contexts */
	uint32_t number;    /* the ID that its server gave it */
	uint32_t permille;  /* of the card's threads: ten times the active thread percentage */
	uint32_t partition; /* slot + 1 */
	int32_t priority;
	uint64_t limit_bytes[SIM_CARDS]; /* of device memory; 0: none */
};

/* The state that another process has set by the checkpoint API (checkpoint.h), in the driver's order. */
enum sim_stop {
	SIM_STOP_NONE,
	SIM_STOP_LOCKED,       /* its calls wait */
	SIM_STOP_CHECKPOINTED, /* its calls wait, and it has no memory on any card */
};

struct sim_proc {
	uint32_t is_used;
	int32_t pid;            /* in its own PID namespace */
	uint64_t start_ticks;   /* of /proc/PID/stat; with the pid it identifies a process of a namespace */
	uint64_t pid_namespace; /* namespace.h; 0: unknown */
	uint32_t is_present;    /* it has its slot's lock (presence.h) */
	uint32_t role;          /* enum sim_role */
	uint32_t stop;          /* enum sim_stop; atomic: its calls read it first */
	uint32_t uid;
	struct sim_mps_client mps;
	uint64_t cards; /* bit i: it has initialised CUDA while card i was visible, which takes memory there */
	uint64_t held_bytes[SIM_CARDS]; /* outside of contexts: holding.h */
};

/* Memory that a process has exported. It stays on its card until it has no holder. */
struct sim_share {
	uint32_t is_used;
	uint32_t generation; /* rises when the slot is given to new memory */
	uint32_t card;
	uint32_t has_descriptors; /* it was exported as descriptors, which are holders while they are open */
	uint32_t lender;          /* proc + 1 of the process whose own memory includes it; 0: it counts by itself */
	uint32_t unused;
	uint64_t bytes;
	uint64_t holders[SIM_PROCS / 64]; /* one bit for each process */
};

/* The last record of an event that several processes share. */
struct sim_shared_event {
	uint32_t is_used;
	uint32_t generation; /* rises when the slot is given to a new event */
	uint32_t is_recorded;
	uint32_t stream_slot;
	uint32_t stream_generation;
	uint32_t unused;
	uint64_t position;
	uint64_t holders[SIM_PROCS / 64]; /* one bit for each process */
};

/* An open /dev/nvidiactl (rm.h). */
struct sim_rm_file {
	uint32_t is_used;
	uint32_t proc;          /* that opened it */
	uint64_t device, inode; /* of the file in memory that stands for it */
	uint32_t first;         /* its last made object, or SIM_NONE */
	uint32_t unused;
};

/* What a program has made by ioctl on it. */
struct sim_rm_object {
	uint32_t next;  /* of the same file, or SIM_NONE */
	uint32_t class; /* 0: the slot is free */
	uint32_t client, handle, parent;
	uint32_t card;
	uint32_t context, generation; /* that a channel group governs; SIM_NONE: none */
	uint32_t number;              /* of a channel in its group */
	uint32_t cid;                 /* of a channel: no other has it while the world lives */
	uint32_t off_count;           /* of a channel: how often it must be put on to be on */
	uint32_t trace;               /* of an event buffer */
	uint64_t slice_us;            /* of a group: as it was asked for */
};

/* A tenant's state has come on the card, or gone (trace.h). */
struct sim_switch {
	uint64_t at_ns;
	uint32_t tag; /* enum ll_rm_switch_tag */
	uint32_t cid; /* of the context */
	int32_t pid;
	uint32_t uid;
	uint32_t is_hidden; /* the trace's user may not know whose it is */
	uint32_t unused;
};

struct sim_trace {
	uint32_t is_used;
	uint32_t is_enabled;
	uint32_t card; /* SIM_NONE: it is not bound */
	uint32_t uid;
	uint32_t has_all_users;
	uint32_t header, records; /* numbers of memories */
	uint32_t count;           /* of records for which there is room */
	uint32_t get, put;        /* of the next record to read, and to write */
	uint64_t dropped;
	uint64_t delivered_ns;
	uint64_t noted_count, delivered_count; /* only rise; slot = number % SIM_TRACE_NOTES */
	struct sim_switch noted[SIM_TRACE_NOTES];
};

/* What a card does when the slice of a channel group is set. */
enum sim_slices {
	SIM_SLICES_OBEY,
	SIM_SLICES_IGNORE,
	SIM_SLICES_COMMIT, /* it counts after the group's next PREEMPT */
};

/* What taking channels off the card does: what it says, an error, or nothing. */
enum sim_off { SIM_OFF_YES, SIM_OFF_NO, SIM_OFF_IGNORE };

enum sim_mps_state { SIM_MPS_INITIALIZING, SIM_MPS_ACTIVE, SIM_MPS_FAULT };

/* An MPS server, from its start by the daemon until its process has ended. */
struct sim_mps_server {
	uint32_t is_used;
	uint32_t generation; /* rises when the slot is given to a new server */
	uint32_t state;      /* enum sim_mps_state */
	uint32_t is_closing; /* it accepts no new clients, and ends with its last client */
	uint32_t control;    /* the daemon: slot of its process */
	uint32_t proc;       /* SIM_NONE until it has joined the world */
	int32_t pid;
	uint32_t unused;
	uint64_t fault_until_ns; /* it stays in FAULT at least until then */
	uint32_t uid;            /* the user that it serves */
	uint32_t permille;       /* limit of new clients: ten times the active thread percentage */
	int32_t priority;
	uint32_t is_partitioned; /* its daemon was started for static partitions */
	uint32_t next_number;    /* of clients */
	uint32_t card_count;
	uint32_t cards[SIM_CARDS];       /* by the daemon's ordinal */
	uint64_t limit_bytes[SIM_CARDS]; /* by card; 0: none */
};

/* SMs of a card that are reserved for clients of one daemon. */
struct sim_mps_partition {
	uint32_t is_used;
	uint32_t control; /* the daemon: slot of its process */
	uint32_t card;
	uint32_t chunks;
	uint64_t id; /* never reused */
};

/* Which tenant has the card. */
struct sim_turn {
	uint32_t tenant;   /* the tenant that has the turn, or SIM_NONE */
	uint32_t resident; /* the tenant whose state is on the card: its next turn needs no switch */
	uint32_t stay;     /* the same for the trace, where a tenant that is off has gone; or SIM_NONE */
	uint64_t slice_end_ns;
	uint64_t switch_until_ns; /* no kernel runs before */
	bool is_ending; /* its queue became empty while another tenant waited: it starts nothing more in this turn */
	uint64_t copy_free_ns[2]; /* when each copy engine is free */
};

struct sim_meter {
	uint64_t window_start_ns; /* of the present 200 ms window */
	uint64_t window_busy_ns;
	uint64_t bucket_start_ns; /* of the present 100 ms of power */
	double bucket_joules;
	double power_ring_watts[10]; /* the last second */
	uint32_t power_ring_next;
	uint32_t sample_count; /* windows closed so far */
	double joules;
	double celsius;
	/* integrals over time, for GPM: seconds, weighted by the share */
	double busy_s;
	double sm_s;
	double occupancy_s;
	double fp32_s;
	double tensor_s;
	double dram_s;
	double bytes_to_card;
	double bytes_from_card;
	/* for tests of accounts; those of ended contexts too: seconds in which contexts had the card with kernels
	 * running, added up, and their memory times seconds */
	double context_s;
	double kernel_s; /* of context_s: without the switches between contexts */
	double memory_byte_s;
};

struct sim_sample {
	uint64_t wall_us;
	uint32_t util_percent;
	uint32_t memory_percent;
	uint32_t power_mw;
	uint32_t sm_mhz;
	uint32_t memory_mhz;
	uint32_t unused;
};

struct sim_card {
	/* properties of the card */
	uint32_t parent; /* of a MIG slice, else SIM_NONE */
	uint32_t slice_count;
	uint32_t slice_index;
	uint32_t gpu_instance_id;
	char name[96];
	char uuid[96];
	uint32_t pci_domain, pci_bus, pci_device;
	uint32_t sm_count;
	uint32_t capability_major, capability_minor;
	uint64_t memory_bytes;   /* the total that CUDA reports */
	uint64_t reserved_bytes; /* the driver's reserve, which the total does not include */
	/* behaviour of the card */
	uint64_t slice_ns;
	uint64_t switch_ns;
	uint64_t save_ns;         /* to save the state of kernels that fill the card, and to restore it */
	uint64_t launch_ns;       /* from the call to the earliest start */
	uint64_t kernel_gap_ns;   /* between two kernels of a stream */
	uint64_t clock_step_ns;   /* the gap that an undisturbed kernel sees */
	uint64_t context_ns;      /* time to make a context */
	uint64_t context_work_ns; /* time that this occupies the SMs */
	double drift_ppm;
	double copy_bytes_per_ns;
	double memory_bytes_per_ns;
	double idle_watts, open_watts, spin_watts, fma_watts, limit_watts;
	double ambient_celsius, celsius_per_watt, thermal_s;
	uint32_t idle_mhz, open_mhz, slow_mhz, memory_mhz;
	uint32_t slowdown_celsius, shutdown_celsius, max_celsius;
	uint32_t has_gpm, has_gpm_tensor, has_gpm_dram;
	uint64_t pool_extra_bytes; /* growth of pools, and of the memory of graphs, beyond their need */
	uint32_t has_dma_buffers;
	uint32_t has_fabric; /* its memory can be exported as handles of bytes */
	uint32_t has_peers;  /* it and other cards that have this reach each other's memory */
	double tensor_reach_percent, dram_reach_percent; /* the most that kernels on all SMs reach */
	uint32_t slices;                                 /* enum sim_slices */
	uint32_t off;                                    /* enum sim_off */
	/* changes by commands */
	uint64_t foreign_bytes; /* memory of processes outside of the simulation */
	uint64_t most_bytes;    /* the largest memory use so far (memory.h) */
	uint32_t compute_mode;  /* enum ll_nvml_compute_mode */
	uint32_t is_gone;
	uint32_t is_slowed;
	uint32_t has_remap_failure, has_remap_pending, ecc_uncorrected, nvlink_errors;
	uint32_t is_heated; /* the temperature was set by a command; it does not follow from the power */
	double heat_from_celsius, heat_to_celsius;
	uint64_t heat_start_ns, heat_end_ns;
	/* present state */
	uint32_t context_count;
	uint16_t contexts[SIM_CARD_CONTEXTS];
	struct sim_turn turn;
	struct sim_meter meter;
	struct sim_sample samples[SIM_SAMPLES];
};

/* A scenario command that has not run yet. command.h runs its text at its time. */
struct sim_event {
	uint64_t at_ns; /* 0: the slot is free */
	char text[120];
};

struct sim_fault {
	uint32_t is_used;
	uint32_t status;   /* the status that the function returns; a hanging function returns it after the hang */
	char function[64]; /* exported name, or a prefix and '*' */
	uint64_t hang_ns;  /* duration of each call before it returns */
	uint64_t until_ns; /* SIM_NEVER: no end */
	uint64_t pass;     /* number of first calls that are not affected */
	uint64_t count;    /* number of affected calls after these */
};

struct sim_xid {
	uint64_t sequence; /* from 1 */
	uint32_t card;
	uint32_t xid;
};

struct sim_kernel_rule {
	char name[64]; /* or a prefix and '*' */
	uint64_t length_ns;
};

struct sim_undo {
	uint32_t used;
	uint8_t bytes[SIM_UNDO_BYTES];
};

struct sim_world {
	char magic[8];
	uint64_t layout; /* size of this struct; it differs between versions */
	char boot_id[40];
	uint64_t time_namespace; /* of all processes in it: they share the clock */
	uint64_t scenario_hash;
	pthread_mutex_t lock;
	uint64_t born_ns;        /* CLOCK_MONOTONIC, as all times here */
	uint64_t now_ns;         /* the time up to which the world is simulated */
	uint64_t wall_offset_ns; /* wall clock minus monotonic, of the last process that used the world */
	uint64_t card_epoch_ns;  /* the cards' clock minus monotonic */
	uint64_t suspended_until_ns;
	uint64_t init_ns;   /* duration of cuInit */
	uint64_t reaped_ns; /* when dead processes were last searched for */
	uint64_t next_op_id;
	uint64_t next_done_sequence;
	uint64_t next_xid;
	uint64_t next_partition;
	uint32_t card_count;   /* physical ones, first in cards[] */
	uint32_t slot_count;   /* with slices */
	uint64_t nvml_calls;   /* atomic: of all processes, for tests that limit them */
	uint32_t has_faults;   /* atomic: calls must check faults[] and suspension first */
	uint32_t cuda_version; /* 13000 is 13.0 */
	char driver_version[32];
	uint32_t cuda_order[SIM_CARDS]; /* CUDA's ordinal to card */
	char hidden[SIM_HIDDEN][64];    /* symbols that this driver lacks */
	struct sim_event events[SIM_EVENTS];
	uint64_t first_event_ns; /* the earliest time of them; 0: there are none */
	struct sim_fault faults[SIM_FAULTS];
	struct sim_xid xids[SIM_XIDS];
	struct sim_kernel_rule kernel_rules[SIM_KERNEL_RULES];
	uint32_t stopped_epoch[SIM_MODULES];
	uint32_t module_owner[SIM_MODULES]; /* proc + 1; 0: free */
	struct sim_card cards[SIM_CARDS];
	struct sim_proc procs[SIM_PROCS];
	struct sim_mps_server mps_servers[SIM_MPS_SERVERS];
	struct sim_mps_partition mps_partitions[SIM_MPS_PARTITIONS];
	struct sim_share shares[SIM_SHARES];
	struct sim_shared_event shared_events[SIM_SHARED_EVENTS];
	uint32_t rm_last_cid;
	uint32_t trace_count;
	struct sim_trace traces[SIM_TRACES];
	struct sim_rm_file rm_files[SIM_RM_FILES];
	struct sim_rm_object rm_objects[SIM_RM_OBJECTS];
	struct sim_context contexts[SIM_CONTEXTS];
	struct sim_stream streams[SIM_STREAMS];
	struct sim_gap_ring gaps[SIM_STREAMS];
	struct sim_undo undo;
	struct sim_op ops[SIM_STREAMS][SIM_RING];
};

/* Locks the world. If the owner is dead, restores what the owner had not committed. */
void sim_lock(struct sim_world *w);

/* The same, until a time of CLOCK_REALTIME. False: it gave up. A process that ends uses it, because it may have
 * interrupted its own thread that has the lock. */
bool sim_lock_until(struct sim_world *w, const struct timespec *deadline);

/* Commits, and unlocks the world. */
void sim_unlock(struct sim_world *w);

/* Saves size bytes at p, which will change, in the undo log. It aborts if the log is full. */
void sim_save(struct sim_world *w, const void *p, size_t size);

/* Empties the undo log: the world is consistent here. */
void sim_commit(struct sim_world *w);

/* Restores everything that has changed since the last commit. */
void sim_rollback(struct sim_world *w);

/* Saves an object of the world, and returns it for a change: SIM_EDIT(w, &w->streams[i])->priority = 3; */
#define SIM_EDIT(w, p) ((__typeof__(p))sim_edit((w), (p), sizeof *(p)))
static inline void *sim_edit(struct sim_world *w, void *p, size_t size)
{
	sim_save(w, p, size);
	return p;
}

/* Returns operation `position` of a stream. */
static inline struct sim_op *sim_op_at(struct sim_world *w, uint32_t stream, uint64_t position)
{
	return &w->ops[stream][position % SIM_RING];
}

/* Returns whether a slot holds a context of this card, or of one of its MIG slices. */
bool sim_context_is_on_card(const struct sim_world *w, const struct sim_context *context, uint32_t card);

/* Returns the card's own clock at a time of CLOCK_MONOTONIC, in ns. */
uint64_t sim_card_clock_ns(const struct sim_world *w, uint32_t card, uint64_t now_ns);

/* Returns the length of a kernel by the scenario's rules. If no rule fits, it returns default_ns. */
uint64_t sim_kernel_length_ns(const struct sim_world *w, const char *name, uint64_t default_ns);

/* Returns whether a name equals a pattern, or begins with the part of the pattern before its final '*'. */
bool sim_name_matches(const char *pattern, const char *name);

#endif
