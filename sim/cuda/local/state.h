/*
 * state.h - the state of libcuda.so.1 in its process: handles, memory, and for each queued operation the action that
 * the process carries out when the operation is done in the model.
 *
 * One lock (sim_cuda.lock, the local lock) guards all of it. Functions of this folder are called with the local lock
 * held, unless they say otherwise. The world's lock is taken inside the local lock, for as short a time as possible.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_STATE_H
#define LOADLINE_SIM_CUDA_LOCAL_STATE_H

#include <pthread.h>

#include "abi/cuda.h"
#include "abi/cuda_copy.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_memory.h"
#include "card/world.h"
#include "cuda/local/ptx.h"
#include "cuda/local/rm.h"

struct ll_err;
struct sim_activity;
struct sim_capture;
struct sim_graph_memory;

enum {
	SIM_MAGIC_CONTEXT = 0x43747831,
	SIM_MAGIC_STREAM = 0x53747231,
	SIM_MAGIC_EVENT = 0x45767431,
	SIM_MAGIC_MODULE = 0x4d6f6431,
	SIM_MAGIC_FUNCTION = 0x46756e31,
	SIM_MAGIC_KERNEL = 0x4b65726e,
	SIM_MAGIC_LIBRARY = 0x4c696272,
	SIM_MAGIC_GRAPH = 0x47726131,
	SIM_MAGIC_NODE = 0x4e6f6431,
	SIM_MAGIC_EXEC = 0x45786531,
	SIM_BLOCK_THREADS = 1024,
	SIM_SM_SHARED_BYTES = 233472,
	SIM_CONTEXT_STACK = 64, /* contexts pushed in one thread */
};

/* A set of nodes: the dependencies of a node, a captured stream or a captured event. */
struct sim_nodes {
	struct ll_cu_graph_node **at;
	size_t count, capacity;
};

struct ll_cu_stream {
	uint32_t magic;
	uint32_t slot; /* in the world */
	uint32_t generation;
	uint32_t flags;
	int32_t priority;
	pthread_t thread; /* of a per-thread stream */
	bool is_per_thread;
	struct ll_cu_context *context;
	struct ll_cu_green_context *green; /* the green context in which it was made, or NULL */
	unsigned waiting;                  /* threads that wait for room in it */
	struct ll_cu_stream *next;
	struct sim_capture *capture; /* the capture to which it belongs (capture.h) */
	struct sim_nodes tail;       /* the dependencies of the next captured operation */
	struct ll_cu_graph_edge_data *edges;
	union ll_cu_launch_attribute_value sync_policy, access_window, memory_domain, memory_domain_map;
};

enum { SIM_CONTEXT_PEERS = 16 };

struct ll_cu_context {
	uint32_t magic;
	uint32_t slot;
	uint32_t generation;
	uint32_t card;
	ll_cu_device device;
	unsigned flags;
	unsigned long long id;       /* for cuCtxGetId */
	unsigned primary_references; /* of a primary context */
	bool is_primary;
	struct ll_cu_context *whole; /* of a green context: its primary context (cuda/green.c) */
	pthread_t thread;            /* of a green context: the thread in which it is current */
	unsigned uses;
	unsigned attaches; /* uses by cuCtxAttach */
	size_t printf_bytes, heap_bytes;
	unsigned long long peers[SIM_CONTEXT_PEERS]; /* ids of contexts whose memory it may access */
	unsigned peer_count;
	struct sim_rm_groups groups; /* that it has in the kernel driver */
	struct ll_cu_stream legacy;
	struct ll_cu_stream *streams;
	struct ll_cu_module *modules;
	struct ll_cu_context *next;
};

/* A part of a card's SMs. Functions that take a context accept the handle of `view` for it (cuda/green.c). */
struct ll_cu_green_context {
	struct ll_cu_context view;
	unsigned sm_count;
	struct ll_cu_green_context *next;
};

struct ll_cu_event {
	uint32_t magic;
	uint32_t flags;
	unsigned references; /* the program's handle, and queued records */
	struct ll_cu_context *context;
	bool is_recorded; /* it was recorded at least once */
	bool is_done;     /* its last record is done, at done_ns */
	uint64_t done_ns;
	uint32_t stream_slot, stream_generation;
	uint64_t position;
	bool is_shared; /* the world has the last record */
	uint32_t shared_slot;
	uint64_t capture_id; /* last recorded in this capture; 0: in none */
	struct sim_nodes captured;
	struct ll_cu_event *next,
	    **link; /* a list of all events, so that a leak checker finds the events that a program has not freed */
};

/* The arguments of cuParamSet* and cuFuncSetBlockShape, for cuLaunch and similar calls. */
struct sim_old_arguments {
	unsigned block_x, block_y, block_z, shared_bytes;
	size_t size;
	char bytes[4096];
};

struct ll_cu_function {
	uint32_t magic;
	int max_dynamic_shared_bytes;
	struct ll_cu_module *module;
	const struct sim_ptx_entry *entry;
	struct sim_old_arguments *old_arguments;
	struct ll_cu_function *next;
};

/* A kernel of a library. It is a function in each context that uses it. */
struct ll_cu_kernel {
	uint32_t magic;
	int max_dynamic_shared_bytes;
	struct ll_cu_library *library;
	const struct sim_ptx_entry *entry;
	struct ll_cu_kernel *next;
};

struct ll_cu_library {
	uint32_t magic;
	char *text;
	struct sim_ptx ptx;
	struct ll_cu_kernel *kernels;
	struct ll_cu_library *next;
};

struct ll_cu_module {
	uint32_t magic;
	uint32_t slot; /* of its stop word */
	struct ll_cu_context *context;
	struct ll_cu_library *library; /* the library for which it was loaded, or NULL */
	struct sim_ptx ptx;
	struct ll_cu_function *functions;
	struct ll_cu_module *next;
};

enum sim_memory_kind { SIM_MEMORY_DEVICE, SIM_MEMORY_HOST, SIM_MEMORY_REGISTERED };

/* The origin of device memory, which decides who frees it. */
enum sim_memory_origin {
	SIM_ORIGIN_PLAIN,    /* cuMemAlloc */
	SIM_ORIGIN_GLOBAL,   /* a module's variable; the program may not free it */
	SIM_ORIGIN_MANAGED,  /* cuMemAllocManaged; the host can access it too */
	SIM_ORIGIN_POOL,     /* cuMemAllocAsync */
	SIM_ORIGIN_GRAPH,    /* a graph's node; not charged here (graph_memory.h) */
	SIM_ORIGIN_MAPPED,   /* cuMemMap */
	SIM_ORIGIN_ARRAY,    /* it cannot be found by address */
	SIM_ORIGIN_IPC,      /* of another process */
	SIM_ORIGIN_EXTERNAL, /* of another interface */
};

/* A range of addresses that the card can access. bytes_at is where its bytes are in this process. */
struct sim_memory {
	uint64_t address;
	uint64_t bytes;
	uint64_t charged_bytes;
	char *bytes_at;
	enum sim_memory_kind kind;
	bool is_small;
	enum sim_memory_origin origin;
	unsigned flags;
	struct ll_cu_context *context; /* NULL: it belongs to the process, not to a context */
	uint32_t card;
	uint64_t offset;               /* in the arena (arena.h), or SIM_NEVER: the bytes belong to another object */
	struct ll_cu_mem_pool *pool;   /* POOL */
	struct sim_physical *physical; /* MAPPED */
	uint64_t whole_address;        /* of the whole that contains it: a pool's chunks, a reservation */
	uint64_t whole_bytes;
	bool is_blocked;                /* MAPPED: its own card has no access */
	uint64_t peers;                 /* MAPPED: other cards that have access, one bit for each */
	bool is_synced;                 /* synchronous operations on it wait, as the program requested */
	uint64_t id;                    /* unique in this process, never reused */
	struct sim_graph_memory *graph; /* GRAPH */
	/* 1 + its share in the world, of which this process is the lender or a holder; 0: none */
	uint32_t share_number;
	unsigned uses; /* IPC: number of opens after the first */
};

enum sim_action_kind {
	SIM_ACTION_NONE,
	SIM_ACTION_RECORD,  /* a kernel's record of its run */
	SIM_ACTION_TRACE,   /* the same, for the probe's kernel (timeline.h) */
	SIM_ACTION_INDEXES, /* the output of the usual first kernel of a tutorial */
	SIM_ACTION_COPY,
	SIM_ACTION_FILL,
	SIM_ACTION_WRITE, /* a value */
	SIM_ACTION_VALUE, /* a wait for a value */
	SIM_ACTION_EVENT,
	SIM_ACTION_HOST,
	SIM_ACTION_FREE, /* a free in the stream's order */
};

/* The layout of the rows of a copy or memset. All zero: one row. */
struct sim_rows {
	size_t height, depth;
	size_t to_pitch, to_slice;
	size_t from_pitch, from_slice;
};

/* The action of an operation, carried out here when the operation is done; its address is the operation's cookie. All
 * actions are on a list, because a leak checker does not search the world for pointers. */
struct sim_action {
	struct sim_action *next, **link;
	enum sim_action_kind kind;
	uint32_t stream_slot;
	uint64_t position;
	uint32_t sequence; /* RECORD */
	uint32_t width;    /* FILL: bytes of the pattern; VALUE: the comparison */
	uint64_t value;    /* FILL, WRITE, VALUE */
	bool is_wide;      /* WRITE, VALUE: 64 bits */
	char *to;
	const char *from;
	char *staged; /* a private copy of `from` */
	size_t bytes; /* of a row */
	struct sim_rows rows;
	struct ll_cu_event *event;
	struct ll_cu_mem_pool *pool;    /* FREE: bytes is the block's token */
	struct sim_graph_memory *graph; /* FREE. Without pool and graph, user is a plain address */
	ll_cu_host_fn host;
	ll_cu_stream_callback callback;
	struct ll_cu_stream *stream;
	void *user;
	uint32_t card;
	struct sim_activity *activity; /* for an observer; NULL: there is none */
};

struct sim_cuda {
	pthread_mutex_t lock;
	pthread_cond_t reaped; /* an operation is done */
	pthread_cond_t queued; /* for the worker: an operation was submitted */
	pthread_cond_t host;   /* for the host-function thread */
	struct sim_world *world;
	uint32_t proc;
	bool is_initialised;
	bool is_dead; /* a forked child of a process that used CUDA, or a process that is ending */
	bool has_worker;
	bool has_host_thread;
	unsigned host_waiting; /* host functions queued */
	unsigned value_waiting;
	int device_count;
	uint32_t devices[SIM_CARDS]; /* ordinal to card */
	struct ll_cu_context *contexts;
	unsigned long long last_context_id;
	struct ll_cu_context *primaries[SIM_CARDS];
	unsigned primary_flags[SIM_CARDS];
	struct ll_cu_green_context *greens;
	struct sim_action *actions; /* of all queued operations */
	struct sim_memory *memory;  /* sorted by address */
	size_t memory_count, memory_capacity;
};

extern struct sim_cuda sim_cuda;

/* Whether NULL means the thread's own default stream in the present call of this thread (abi/cuda_per_thread.def). */
extern _Thread_local bool sim_null_is_per_thread;

/* Returns whether a location is a device that can have physical memory. ret_device: its number, or the location's value
 * in its place. It needs no lock. */
bool sim_location_is_device(const struct ll_cu_mem_location *location, ll_cu_device *ret_device);

#endif
