/*
 * residency.h - memory of an evictable program that leaves the card and returns. move.h is the inside of this room.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_RESIDENCY_H
#define LOADLINE_SHIM_RESIDENCY_RESIDENCY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/cuda.h"
#include "abi/cuda_memory.h"
#include "protocol/message.h"
#include "shim/device_state.h"
#include "shim/link/port.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"

/* ---- why memory must stay ---- */

/*
 * Reasons why memory of a program must stay on the card.
 *
 * Some memory never moves. It is pinned, and `loadline status` counts it: contexts, some pools (allocate.c), arrays,
 * managed memory, memory of graphs, allocations with a pitch, what another API made, and memory by cuMemCreate that
 * others can see (memory/physical.c). The rest of the program moves all the same. Here are the cases in which nothing
 * of the program may move, because another device or process would go on using the memory by the card's own addresses:
 *
 *     DMA buffers       the program has exported a plain allocation by cuMemGetHandleForAddressRange, and not freed it
 *     legacy IPC        the same by cuIpcGetMemHandle (shares.c)
 *     devices for RDMA  the program has a device open by which it may have registered memory of the card
 *
 * A program also cannot be evicted while its work on the card does not end. A frequent cause is a stream that waits for
 * a value which the program itself must write. So the library notes that the program has such waits.
 */

/* Whether nothing of the program on this card may move now. True: why says the reason, as a part of a sentence about
 * the program. Reads /proc/self/fd. */
bool ll_obstacles_find(const struct ll_device_state *dev, char *why, size_t why_size);

/* Whether one of the descriptors in the folder, which is like /proc/self/fd, is of a device by which others use the
 * card's memory. True: ret_path is its name, cut to the size. False also if the descriptors cannot be listed. */
bool ll_obstacles_find_device(const char *folder_path, char *ret_path, size_t path_size);

/* Why the program's work on the card has not ended in time, as far as is known. Never NULL. */
const char *ll_obstacles_of_work(void);

/* The program has a stream wait for a value, or may have (a batch of memory operations). */
extern _Atomic bool ll_obstacles_has_waits;
static inline void ll_obstacles_note_wait(void)
{
	if (!atomic_load_explicit(&ll_obstacles_has_waits, memory_order_relaxed))
		atomic_store_explicit(&ll_obstacles_has_waits, true, memory_order_relaxed);
}

/* ---- host functions that run now ---- */

/*
 * The host functions of the program's streams (cuLaunchHostFunc, cuStreamAddCallback) that run now.
 *
 * A host function may need a lock that a thread holds around its launches, as Python's callbacks need the
 * interpreter's. If that thread is stopped at its next launch (shim/time/driver_calls.h), the host function never ends,
 * and neither does the stream's work. So whoever stops the program looks here, and lets it go on for a moment.
 *
 * Only an evictable program is stopped, so only its host functions are seen. Host functions in graphs are not.
 */

/* A host function that was given to the driver: one of the two members is set. */
struct ll_host_function {
	ll_cu_host_fn function;
	ll_cu_stream_callback callback;
	void *user;
};

/* Returns a copy, which the driver gets in place of `user`, with ll_host_function_run or ll_host_callback_run in place
 * of the function. NULL: the program's own words are to be passed on. If the driver refuses, the copy is lost. */
struct ll_host_function *ll_host_function_new(struct ll_cu_stream *stream, struct ll_host_function function);

/* Call the function, and free the copy. In a thread of the driver. */
void ll_host_function_run(void *function);
void ll_host_callback_run(struct ll_cu_stream *stream, ll_cu_result status, void *function);

/* ---- the link to loadlined ---- */

/*
 * An evictable program's connection to loadlined (protocol/message.h, EVICTABLE), and the thread that serves
 * it and moves the program's memory.
 *
 * loadlined decides when the memory of the program on that card is evicted and resumed (move.h). A process has one link
 * for each card on which it is evictable. If loadlined ends, a running move goes on, and the link reports its state to
 * the next loadlined. If none answers for 5 s, memory that is away is resumed as soon as the card has room for all of
 * it, and one line on the standard error stream says so.
 *
 * A forked child begins without a link: its copies of the descriptors are closed. The child gets a link of its own with
 * its first context.
 */

/* The program has a context on this card: connects to loadlined, if the program is evictable. */
void ll_residency_link_join(ll_cu_device device);

/*
 * Whether plain allocations on this card shall be made so that they can be moved (memory/backing.c). The first call for
 * a card connects to loadlined. If the driver or the card cannot map memory, one line on the standard error stream says
 * so, and the program's memory stays on the card. dev may be NULL. Later calls cost two loads.
 */
bool ll_residency_backs(struct ll_device_state *dev);

/* Whether loadlined decides for the card, as far as is known. */
bool ll_residency_is_served(struct ll_device_state *dev);

/*
 * An allocation of so many bytes failed because the card has no memory for it. Requests room from loadlined and waits
 * for the reply. The reply may come only after the turns of other programs, so LL_RESIDENCY_ROOM_NS is long. If
 * loadlined ends meanwhile, the request goes to the next loadlined, which must appear within LL_RESIDENCY_DAEMON_NS.
 * waits_by_chunk: the allocation can wait for each chunk of its memory. One allocation gets room at most
 * LL_RESIDENCY_GRANTS times, because the driver may refuse it for another reason. grants: 0 at its first call.
 */
#define LL_RESIDENCY_ROOM_NS UINT64_C(3600000000000)
#define LL_RESIDENCY_DAEMON_NS UINT64_C(10000000000)
#define LL_RESIDENCY_GRANTS 100
enum ll_move_room ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes, bool waits_by_chunk,
					 unsigned *grants);

/* ---- plain allocations ---- */

/*
 * Makes memory that can be moved (memory/backing.c). If the card has no room, the process gives up the reserve of its
 * pools; then the thread requests room from loadlined, and waits.
 */
ll_cu_result ll_plain_make(struct ll_device_state *dev, size_t bytes, ll_cu_deviceptr *ret_address,
			   uint32_t *ret_serial);

/* cuMemFree of an allocation with is_backed, whose extent was taken out of the map. Waits first. */
ll_cu_result ll_plain_free(const struct ll_extent *plain);

/* ---- allocations in the order of a stream ---- */

/*
 * Memory that is allocated and freed in the order of a stream (cuMemAllocAsync, cuMemFreeAsync), made so
 * that it can be moved (memory/movable_pool.c).
 *
 * These stay with the driver, and are pinned: pools of managed memory and of the host, pools that can be exported,
 * pools of other processes, allocations in a stream that is being captured, and in a stream of a green context.
 *
 * New physical memory can be used at once, so an allocation usually puts nothing into its stream. If the limit or the
 * card has no room, the allocation gets a block that another stream frees but has not reached yet. Then its stream
 * waits for that free.
 */

/*
 * Returns the movable pool of an allocation, and its stream. handle NULL: the pool that dev's streams use. The
 * stream is as the driver's function without _ptsz takes it. NULL: the driver has to make the allocation.
 */
struct ll_movable_pool *ll_ordered_pool(struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
					struct ll_cu_stream *stream, struct ll_stream_place *ret_place);

/* Allocates a block, charges it, and adds it to the map of extents. If the card has no room, the thread requests room
 * from loadlined, and waits. */
ll_cu_result ll_ordered_allocate(struct ll_movable_pool *pool, const struct ll_stream_place *place,
				 ll_cu_deviceptr *ret_address, size_t bytes);

/* cuMemFreeAsync of a block or a plain allocation with is_backed, whose extent was taken out of the map. Puts it back
 * on an error. In a stream of a green context it waits for the stream. */
ll_cu_result ll_ordered_free(struct ll_extent *block, struct ll_cu_stream *stream);

/* cuMemFree of a block with is_backed, the same. Waits as the driver does; then any stream may have the block. */
ll_cu_result ll_ordered_free_now(const struct ll_extent *block);

/* The program has waited for a stream, or for more than one. Gives back what pools need not keep. `function` is the
 * driver's that waited: giving back counts as a call of it (time/driver_calls.h). */
void ll_ordered_waited_for_stream(const char *function, struct ll_cu_stream *stream);
void ll_ordered_waited(const char *function);

/* ---- the connection ---- */

/*
 * The connection of an evictable process to loadlined, for one card. The connection for claims is
 * another one (link/link.h), because a move takes long, and the thread of the move is inside the driver
 * meanwhile.
 *
 * A program may close descriptors that are not its own. Then its next file gets the same number. So the connection is
 * identified by the inode of its socket. One thread opens, receives and closes; any thread may send.
 */

struct ll_line {
	_Atomic int fd; /* -1: none */
	dev_t device;
	ino_t inode;
	uint64_t token;       /* of the slot of the process */
	pthread_mutex_t lock; /* held by threads while they send, and while fd changes */
};

/* Sends a message, and never waits. -errno: it was not sent. Descriptors stay the caller's. */
int ll_line_say(struct ll_line *line, const union ll_message *message, const int *fds, size_t fd_count);

/* ---- memory shared by legacy IPC ---- */

/*
 * Memory that can be moved, shared with other governed programs by the driver's legacy IPC
 * (cuIpcGetMemHandle). The driver cannot share mapped memory in this way, so the library shares it through loadlined.
 *
 * The program gets a handle that the library made: a letter with a key. The thread of the link sends descriptors of the
 * allocation to loadlined (protocol/message.h, SHARE). Another program of the same user under `loadline run` gets
 * copies of the descriptors from loadlined, and maps them. Any other process gets an error of the driver, which does
 * not know the letter. While a program shares memory, nothing of the program moves (obstacles.c). Memory that the
 * exporter frees stays on the card until all programs that opened it have closed it. memory/exported.c has the rules of
 * charging.
 */

/* Writes the letter of a backed allocation. LL_CUDA_ERROR_OUT_OF_MEMORY: the process has none. */
ll_cu_result ll_shares_export(const struct ll_extent *plain, struct ll_cu_ipc_mem_handle *ret_handle);

/* Whether the handle is a letter. */
bool ll_shares_is_letter(const struct ll_cu_ipc_mem_handle *handle);

/*
 * As cuIpcOpenMemHandle, of a letter. Opened twice it has the same address, and is to be closed twice. Waits for
 * loadlined 5 s at most. LL_CUDA_ERROR_INVALID_CONTEXT: it is this process's own; LL_CUDA_ERROR_INVALID_VALUE: nobody
 * shares it, or loadlined does not answer: then one line on the standard error stream says so.
 */
ll_cu_result ll_shares_import(const struct ll_cu_ipc_mem_handle *handle, unsigned flags, ll_cu_deviceptr *ret_address);

/* As cuIpcCloseMemHandle. False: the address is not of a letter. */
bool ll_shares_close(ll_cu_deviceptr address, ll_cu_result *ret_status);

/* For the link's thread: reports which allocations are shared and which no longer are. is_new: this loadlined has no
 * report yet.
 * 0, or -errno: the socket is broken. */
int ll_shares_tell(const struct ll_device_state *dev, struct ll_line *line, bool is_new);

#endif
