/*
 * shares.h - memory that can be moved, shared with other governed programs by the driver's legacy IPC
 * (cuIpcGetMemHandle). The driver cannot share mapped memory in this way, so the library shares it through loadlined.
 *
 * The program gets a handle that the library made: a letter with a key. The thread of the link sends descriptors of the
 * allocation to loadlined (protocol/message.h, SHARE). Another program of the same user under `loadline run` gets
 * copies of the descriptors from loadlined, and maps them. Any other process gets an error of the driver, which does
 * not know the letter. While a program shares memory, nothing of the program moves (obstacles.h). Memory that the
 * exporter frees stays on the card until all programs that opened it have closed it. memory/exported.h has the rules of
 * charging.
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
