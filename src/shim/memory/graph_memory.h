/*
 * graph_memory.h - charges the memory of graphs that allocate. The driver reports one sum of this memory for each card.
 *
 * The driver allocates the memory at a launch, or at an upload before it. It does not report how much one graph will
 * take. A graph takes at most the sum of its allocating nodes' address ranges, each range rounded up to 32 MiB. The
 * library computes this sum when the graph is instantiated, and reserves it around each launch (growth.h).
 *
 * A graph that was launched before has its memory and takes no new memory, if four conditions hold: it is launched in
 * the same stream, the driver has returned no graph memory to the card, no graph has moved to another stream, and no
 * graph has kept an allocation after its end. Otherwise the driver may need other memory (CUDA Programming Guide,
 * "Graph Memory Nodes"). If the four conditions hold, the launch reserves nothing.
 *
 * If the limit refuses the reserve, pools and graphs give up the memory that they keep, and the library tries again. If
 * the limit refuses again, the launch is refused.
 */
#ifndef LOADLINE_SHIM_MEMORY_GRAPH_MEMORY_H
#define LOADLINE_SHIM_MEMORY_GRAPH_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_graph.h"
#include "shim/device_state.h"
#include "shim/memory/stream_place.h"

struct ll_graph_memory;

/* True if the process has graphs that allocate. One load. */
extern _Atomic bool ll_graph_memory_is_used;

/* Notes that the program has added a node that allocates `bytes` to a graph. */
void ll_graph_memory_expect(uint64_t bytes);

/* Returns the memory that an executable graph made from this graph will need. NULL: none, or there is no memory for the
 * object. */
struct ll_graph_memory *ll_graph_memory_of(struct ll_cu_graph *graph);
void ll_graph_memory_free(struct ll_graph_memory **memory);

/* Call it when the driver has made or changed the executable graph. Takes ownership of *memory and sets it to NULL. If
 * there is no memory to keep it, *memory stays the caller's. */
void ll_graph_memory_keep(const struct ll_cu_graph_exec *exec, struct ll_graph_memory **memory);

/* Call it before the executable graph is destroyed, because a later one may get its handle. */
void ll_graph_memory_forget(const struct ll_cu_graph_exec *exec);

/* The reservation around a launch or an upload. */
struct ll_graph_cover {
	struct ll_graph_memory *memory; /* NULL: nothing is reserved */
	struct ll_stream_place place;
	size_t entered;    /* number of cards in the driver's call */
	uint64_t reserved; /* one bit for each card with a reservation */
	bool is_certain;   /* the launch takes no new memory */
	bool is_refused;   /* the driver must not be called */
	bool is_over;      /* set at the end: graphs have more memory than was reserved and than the limit allows */
};
struct ll_graph_cover ll_graph_memory_begin(struct ll_graph_memory *memory, struct ll_cu_stream *stream);

/* Returns the memory that the executable graph needs, for ll_graph_memory_begin. */
struct ll_graph_memory *ll_graph_memory_find(const struct ll_cu_graph_exec *exec);

/* Notes that the driver has accepted the launch, or the upload if is_launched is false. */
void ll_graph_memory_note(struct ll_graph_cover *cover, bool is_launched);

/* Ends the reservation. Called when the scope is left in any way. */
void ll_graph_memory_end(struct ll_graph_cover *cover);

/* Correct the charge of the graphs of one card, and of all cards. */
void ll_graph_memory_true_up(struct ll_device_state *dev);
void ll_graph_memory_true_up_all(void);

/* Gives up the memory that the card's graphs keep. Returns true if the charge has become less. */
bool ll_graph_memory_release(struct ll_device_state *dev);

/* Does cuDeviceGraphMemTrim for the program. */
ll_cu_result ll_graph_memory_trim(ll_cu_device device);

#endif
