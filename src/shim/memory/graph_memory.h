/*
 * graph_memory.h - the memory of graphs that allocate. It has one sum for each card in the driver.
 *
 * A launch takes the memory, or an upload before it. The driver does not tell how much one graph will take. It takes no
 * more than its allocating nodes have addresses, each stretch of them rounded up to 32 MiB. The library computes that
 * when the graph is instantiated, and reserves it around each launch (growth.h).
 *
 * A graph that was launched before has its memory, and takes nothing new, as long as it is launched in the same stream,
 * nothing was given back, no graph has moved to another stream, and no graph has kept an allocation (the driver may
 * have to find other memory then: CUDA Programming Guide, "Graph Memory Nodes"). Such a launch reserves nothing.
 *
 * Otherwise, if the limit refuses the reserve, pools and graphs give up what they keep; if it refuses it then, the
 * launch is refused.
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

/* Whether the process has graphs that allocate. One load. */
extern _Atomic bool ll_graph_memory_is_used;

/* The program has added a node that allocates so many bytes to a graph. */
void ll_graph_memory_expect(uint64_t bytes);

/* What an executable graph made from this graph will need. NULL: nothing, or there is no memory for the answer. */
struct ll_graph_memory *ll_graph_memory_of(struct ll_cu_graph *graph);
void ll_graph_memory_free(struct ll_graph_memory **memory);

/* The driver has made the executable graph, or changed it. *memory is taken over, and is NULL then. */
void ll_graph_memory_keep(const struct ll_cu_graph_exec *exec, struct ll_graph_memory **memory);

/* The executable graph is about to be destroyed. A later one may get its handle. */
void ll_graph_memory_forget(const struct ll_cu_graph_exec *exec);

/* What is reserved around a launch or an upload. */
struct ll_graph_cover {
	struct ll_graph_memory *memory; /* NULL: nothing */
	struct ll_stream_place place;
	size_t entered;    /* cards */
	uint64_t reserved; /* a bit for each of them */
	bool is_certain;   /* it takes nothing new */
	bool is_refused;   /* the driver must not be called */
	bool is_over;      /* once ended: graphs have more than was foreseen, and than the limit has room for */
};
struct ll_graph_cover ll_graph_memory_begin(struct ll_graph_memory *memory, struct ll_cu_stream *stream);

/* Returns what that executable graph needs, for ll_graph_memory_begin. */
struct ll_graph_memory *ll_graph_memory_find(const struct ll_cu_graph_exec *exec);

/* The driver has taken the launch (or the upload: is_launched is false). */
void ll_graph_memory_note(struct ll_graph_cover *cover, bool is_launched);

/* Ends it, in whichever way the scope is left. */
void ll_graph_memory_end(struct ll_graph_cover *cover);

/* Corrects the charge of the card's graphs; of all cards'. */
void ll_graph_memory_true_up(struct ll_device_state *dev);
void ll_graph_memory_true_up_all(void);

/* Gives up what the card's graphs keep. True: the charge has become less. */
bool ll_graph_memory_release(struct ll_device_state *dev);

/* The driver's function of that name, for the program. */
ll_cu_result ll_graph_memory_trim(ll_cu_device device);

#endif
