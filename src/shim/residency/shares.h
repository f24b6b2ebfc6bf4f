/*
 * shares.h - memory that can be moved, shared with other governed programs by the driver's legacy IPC
 * (cuIpcGetMemHandle). The driver shares no mapped memory in that way, so the library does it by loadlined.
 *
 * The handle that the program gets is a letter of ours: a key. The link's thread hands descriptors of the allocation to
 * loadlined (protocol/message.h, SHARE). Another program of the same user that runs under `loadline run` gets copies
 * from it, and maps them. Any other process is refused by the driver, for which the letter is no
 * handle. While a program shares memory nothing of it moves (obstacles.h). Memory that the exporter frees stays on the
 * card until all that opened it have closed it. Who is charged: memory/exported.h.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_SHARES_H
#define LOADLINE_SHIM_RESIDENCY_SHARES_H

#include <stdbool.h>

#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/memory/extents.h"
#include "shim/residency/line.h"

/* Writes the letter of a backed allocation. LL_CUDA_ERROR_OUT_OF_MEMORY: the process has none. */
ll_cu_result ll_shares_export(const struct ll_extent *plain, struct ll_cu_ipc_mem_handle *ret_handle);

/* Whether it is a letter of ours. */
bool ll_shares_is_letter(const struct ll_cu_ipc_mem_handle *handle);

/*
 * As cuIpcOpenMemHandle, of a letter. Opened twice it has the same address, and is to be closed twice. Waits for
 * loadlined 5 s at most. LL_CUDA_ERROR_INVALID_CONTEXT: it is this process's own; LL_CUDA_ERROR_INVALID_VALUE: nobody
 * shares it, or loadlined does not answer: then one line on the standard error stream says so.
 */
ll_cu_result ll_shares_open(const struct ll_cu_ipc_mem_handle *handle, unsigned flags, ll_cu_deviceptr *ret_address);

/* As cuIpcCloseMemHandle. False: the address is not of a letter. */
bool ll_shares_close(ll_cu_deviceptr address, ll_cu_result *ret_status);

/* For the link's thread: says what is shared and what no longer is. is_new: to a loadlined that knows of nothing yet.
 * 0, or -errno: the socket is broken. */
int ll_shares_tell(const struct ll_device_state *dev, struct ll_line *line, bool is_new);

#endif
