/*
 * local.h - what libcuda.so.1 keeps in the process that uses it: handles, the current context, host memory, and
 * for each queued operation what is to be done here when the model says that it has happened.
 *
 * One lock (sim_cuda.lock) guards it. The world's lock is taken inside it, for as short as possible.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_H
#define LOADLINE_SIM_CUDA_LOCAL_H

#include <pthread.h>

#include "abi/cuda.h"
#include "abi/cuda_copy.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_memory.h"
#include "card/world.h"
#include "cuda/ptx.h"

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

/* A set of nodes: what a node, a captured stream or a captured event depends on. */
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
	struct ll_cu_green_context *green; /* that it was made in, or NULL */
	unsigned waiting;                  /* threads, for room in it */
	struct ll_cu_stream *next;
	struct sim_capture *capture; /* the one it takes part in (cuda/capture.h) */
	struct sim_nodes tail;       /* what the next captured operation depends on */
	struct ll_cu_graph_edge_data *edges;
	union ll_cu_launch_attribute_value sync_policy, access_window, memory_domain, memory_domain_map;
};

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
	struct ll_cu_context *whole; /* of a green one's: the primary context, whose part it is (cuda/green.c) */
	pthread_t thread;            /* where a green one's is current */
	unsigned uses;
	unsigned attaches; /* uses by cuCtxAttach */
	size_t printf_bytes, heap_bytes;
	struct ll_cu_stream legacy;
	struct ll_cu_stream *streams;
	struct ll_cu_module *modules;
	struct ll_cu_context *next;
};

struct ll_cu_event {
	uint32_t magic;
	uint32_t flags;
	unsigned references; /* the program's handle, and queued records */
	struct ll_cu_context *context;
	bool is_recorded; /* ever */
	bool is_done;     /* its last record has happened, at done_ns */
	uint64_t done_ns;
	uint32_t stream_slot, stream_generation;
	uint64_t position;
	bool is_shared; /* the last record is what the world says */
	uint32_t shared_slot;
	uint64_t capture_id; /* last recorded in this capture; 0: in none */
	struct sim_nodes captured;
	struct ll_cu_event *next, **link; /* all of them, so that a leak checker finds what a program has left */
};

/* What cuParamSet* and cuFuncSetBlockShape have said, for cuLaunch and its like. */
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

/* A kernel of a library: a function in each context where it is used. */
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
	struct ll_cu_library *library; /* that it was loaded for, or NULL */
	struct sim_ptx ptx;
	struct ll_cu_function *functions;
	struct ll_cu_module *next;
};

enum sim_memory_kind { SIM_MEMORY_DEVICE, SIM_MEMORY_HOST, SIM_MEMORY_REGISTERED };

/* How device memory came about: that decides who frees it. */
enum sim_memory_origin {
	SIM_ORIGIN_PLAIN,    /* cuMemAlloc */
	SIM_ORIGIN_GLOBAL,   /* a module's variable: not the program's to free */
	SIM_ORIGIN_MANAGED,  /* cuMemAllocManaged: the host's, too */
	SIM_ORIGIN_POOL,     /* cuMemAllocAsync */
	SIM_ORIGIN_GRAPH,    /* a graph's node; not charged to it (cuda/graph.h) */
	SIM_ORIGIN_MAPPED,   /* cuMemMap */
	SIM_ORIGIN_ARRAY,    /* not to be found by address */
	SIM_ORIGIN_IPC,      /* another process's */
	SIM_ORIGIN_EXTERNAL, /* another interface's */
};

/* A range of addresses that the card can reach. bytes_at is where its bytes are in this process. */
struct sim_memory {
	uint64_t address;
	uint64_t bytes;
	uint64_t charged_bytes;
	char *bytes_at;
	enum sim_memory_kind kind;
	bool is_small;
	enum sim_memory_origin origin;
	unsigned flags;
	struct ll_cu_context *context; /* NULL: a process's own, not a context's */
	uint32_t card;
	uint64_t offset;               /* in the arena (cuda/arena.h), or SIM_NEVER: bytes of another's */
	struct ll_cu_mem_pool *pool;   /* POOL */
	struct sim_physical *physical; /* MAPPED */
	uint64_t whole_address;        /* of what it is a part of: a pool's chunks, a reservation */
	uint64_t whole_bytes;
	bool is_blocked;                /* MAPPED: nobody has been given access */
	struct sim_graph_memory *graph; /* GRAPH */
};

enum sim_action_kind {
	SIM_ACTION_NONE,
	SIM_ACTION_RECORD,  /* a kernel's account of itself */
	SIM_ACTION_TRACE,   /* the same, of the probe's kernel (cuda/timeline.h) */
	SIM_ACTION_INDEXES, /* what the classic first kernel writes */
	SIM_ACTION_COPY,
	SIM_ACTION_FILL,
	SIM_ACTION_WRITE, /* a value */
	SIM_ACTION_VALUE, /* a wait for one */
	SIM_ACTION_EVENT,
	SIM_ACTION_HOST,
	SIM_ACTION_FREE, /* memory freed in the stream's order */
};

/* How the rows of a copy or memset lie. All zero: there is one. */
struct sim_rows {
	size_t height, depth;
	size_t to_pitch, to_slice;
	size_t from_pitch, from_slice;
};

/* What to do here when an operation has happened; its address is the operation's cookie. All of them are on a list, for
 * the world is no place that a leak checker looks for pointers in. */
struct sim_action {
	struct sim_action *next, **link;
	enum sim_action_kind kind;
	uint32_t stream_slot;
	uint64_t position;
	uint32_t sequence; /* RECORD */
	uint32_t width;    /* FILL: bytes of the pattern; VALUE: how to compare */
	uint64_t value;    /* FILL, WRITE, VALUE */
	bool is_wide;      /* WRITE, VALUE: 64 bits */
	char *to;
	const char *from;
	char *staged; /* a private copy of `from` */
	size_t bytes; /* of a row */
	struct sim_rows rows;
	struct ll_cu_event *event;
	struct ll_cu_mem_pool *pool;    /* FREE: bytes is the block's token */
	struct sim_graph_memory *graph; /* FREE. Neither: user is a plain address */
	ll_cu_host_fn host;
	ll_cu_stream_callback callback;
	struct ll_cu_stream *stream;
	void *user;
	uint32_t card;
	struct sim_activity *activity; /* for an observer; NULL: there is none */
};

struct sim_cuda {
	pthread_mutex_t lock;
	pthread_cond_t reaped; /* something has happened */
	pthread_cond_t queued; /* for the worker: something was submitted */
	pthread_cond_t host;   /* for the host-function thread */
	struct sim_world *world;
	uint32_t proc;
	bool is_initialised;
	bool is_dead; /* a forked child of a process that used CUDA; or the process is ending */
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
	struct sim_action *actions; /* of everything queued */
	struct sim_memory *memory;  /* sorted by address */
	size_t memory_count, memory_capacity;
};

extern struct sim_cuda sim_cuda;

/* At the head of every exported function that needs cuInit: injected faults, then whether CUDA is usable. */
ll_cu_result sim_cuda_enter(const char *function);
#define SIM_ENTER()                                                                                                    \
	do {                                                                                                           \
		ll_cu_result entered_ = sim_cuda_enter(__func__);                                                      \
		if (entered_)                                                                                          \
			return entered_;                                                                               \
	} while (0)

/* Takes the local lock, brings the world up to now and acts on what has happened. The world is not locked on return. */
void sim_cuda_lock(void);
void sim_cuda_unlock(void);

/* Within the local lock: brings the world to now, acts on what has happened, says when to look again. */
uint64_t sim_cuda_pump(void);

/* This thread's context, sound and locked-for (call within the local lock). */
ll_cu_result sim_current(struct ll_cu_context **ret_context);
ll_cu_result sim_context_status(const struct ll_cu_context *context);

/* In this call NULL means the thread's own default stream (abi/cuda_per_thread.def). */
extern _Thread_local bool sim_null_is_per_thread;

/* The stream that a handle means in a context; NULL and the special values included. */
ll_cu_result sim_stream_of(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream);
/* The same for a call that queues something: refuses what stream capture forbids. stream->capture is set where the work
 * is to be captured. */
ll_cu_result sim_stream_for_work(struct ll_cu_stream *handle, struct ll_cu_stream **ret_stream);
/* A new stream of a context. */
ll_cu_result sim_stream_make(struct ll_cu_context *context, unsigned flags, int priority,
			     struct ll_cu_stream **ret_stream);
/* Frees the local side of a stream that is out of its context's list. */
void sim_stream_forget(struct ll_cu_stream *stream);
/* The context's stream for this thread's per-thread default. */
ll_cu_result sim_stream_per_thread(struct ll_cu_context *context, struct ll_cu_stream **ret_stream);

/* Queues op with an action (copied; may be NULL), waiting while the queue is full. Within the local lock. */
ll_cu_result sim_queue(struct ll_cu_stream *stream, struct sim_op *op, const struct sim_action *action,
		       uint64_t *ret_position);

/* Waits until everything up to and with `position` has been acted on here. The local lock is let go meanwhile. */
ll_cu_result sim_wait(struct ll_cu_stream *stream, uint64_t position);
ll_cu_result sim_wait_all(struct ll_cu_stream *stream);
/* Until nobody waits for room in the stream: who asks about it does, as on a card. */
ll_cu_result sim_wait_for_others(struct ll_cu_stream *stream);
/* Everything submitted to the context so far. */
ll_cu_result sim_wait_context(struct ll_cu_context *context);
/* The same of all contexts on a card. */
void sim_wait_card(uint32_t card);
bool sim_is_reaped(const struct ll_cu_stream *stream, uint64_t position);

void sim_worker_start(void);
void sim_host_thread_start(void);

/* Frees the local side of a context whose world side is gone or going. */
void sim_context_forget(struct ll_cu_context *context);
ll_cu_result sim_context_make(ll_cu_device device, unsigned flags, struct ll_cu_context **ret_context);
/* A use more, or less, of a card's primary context. They take the local lock. */
ll_cu_result sim_primary_retain(struct ll_cu_context **ret_context, ll_cu_device device);
ll_cu_result sim_primary_drop(ll_cu_device device, bool at_once);
/* cuda/green.c: what the driver knows a green context by where it wants a context. */
struct ll_cu_context *sim_green_view(struct ll_cu_green_context *green);
bool sim_green_is_view(const struct ll_cu_context *context);
void sim_module_forget(struct ll_cu_module *module);
/* From PTX; err says what is wrong with it. library: for cuLibrary*, else NULL. */
ll_cu_result sim_module_load(struct ll_cu_context *context, const char *text, struct ll_cu_library *library,
			     struct ll_cu_module **ret_module, struct ll_err *err);
/* Machine code and what is no code at all are refused. */
ll_cu_result sim_module_check_image(const char *text);
ll_cu_result sim_module_function(struct ll_cu_module *module, const char *name, struct ll_cu_function **ret_function);
/* The function that a handle means in a context: itself, or a library's kernel there. */
ll_cu_result sim_function_in(struct ll_cu_context *context, struct ll_cu_function *handle,
			     struct ll_cu_function **ret_function);
bool sim_is_function(const struct ll_cu_function *handle);
/* What functions and libraries' kernels answer about themselves. max_dynamic: what the program has set, or 0. */
ll_cu_result sim_function_attribute(uint32_t card, const struct sim_ptx *ptx, int max_dynamic,
				    enum ll_cu_function_attribute attribute, int *ret_value);
ll_cu_result sim_function_set_attribute(enum ll_cu_function_attribute attribute, int value, int *max_dynamic);
ll_cu_result sim_function_param(const struct sim_ptx_entry *entry, size_t index, size_t *ret_offset, size_t *ret_bytes);
/* Blocks of a kernel that fit on an SM. */
int sim_blocks_per_sm(int block_threads, size_t shared_bytes);

/* allocations.c: the table of addresses. Within the local lock. */
struct sim_memory *sim_memory_find(uint64_t address);
/* The first range that ends after address. */
struct sim_memory *sim_memory_after(uint64_t address);
/* Where bytes [address, address + bytes) of the card are in this process; NULL: no such memory. */
char *sim_memory_at(uint64_t address, uint64_t bytes);
int sim_memory_insert(const struct sim_memory *memory);
void sim_memory_remove(const struct sim_memory *memory);
/* Charges memory->bytes to a context, rounded as the driver does. -ENOMEM: the card is full. Freeing refunds it. */
int sim_memory_charge(const struct ll_cu_context *context, struct sim_memory *memory);
void sim_memory_refund(const struct sim_memory *memory);
/* Device memory charged to a context; is_global: a module's variable. */
ll_cu_result sim_memory_new(struct ll_cu_context *context, size_t bytes, bool is_global, struct sim_memory *ret_memory);
void sim_memory_free(const struct sim_memory *memory);
void sim_memory_free_context(const struct ll_cu_context *context);
/* Device memory of a graph: what it takes of the card is counted apart (cuda/graph.h). */
ll_cu_result sim_memory_new_of_graph(uint32_t card, size_t bytes, struct sim_graph_memory *graph,
				     uint64_t *ret_address);

/* cuda/proc.c: whether a symbol came with a later CUDA than the world's driver has. */
bool sim_cuda_is_newer(const struct sim_world *w, const char *symbol);

/* cuda/managed.c: managed memory moves to the card that uses it. address may be any. */
void sim_managed_touch(uint64_t address);

/* cuda/pool.c: what a stream (NULL: a card) that has been waited for makes room for; and what a queued free does. */
void sim_pools_synchronised(const struct ll_cu_stream *stream);
void sim_freed_in_order(const struct sim_action *action);

/* cuda/array.c: the arrays of a context that goes. */
void sim_arrays_forget(const struct ll_cu_context *context);

/* The prototypes of everything exported. */
#define SIM_EXPORT __attribute__((visibility("default")))
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) SIM_EXPORT ret symbol params;
#include "abi/cuda_functions.def"
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) SIM_EXPORT ret symbol params;
#include "abi/cuda_governed.def"

#endif
