#include "shim/time/flow_state.h"

#include <sys/mman.h>
#include <unistd.h>

#include "shim/interpose/real.h"
#include "shim/link/port.h"

/* Maps the page a second time and keeps the old mapping. mremap does this if the old length is 0 and the mapping is
 * shared. */
static char *map_again(char *page, size_t bytes)
{
	void *mapped = mremap(page, 0, bytes, MREMAP_MAYMOVE);
	return mapped == MAP_FAILED ? NULL : mapped;
}

/* The card only reads the page, so the page is registered as read-only. The Linux kernel does not let a device write to
 * a page of a file on a disk (ext4). A driver before 11.1 cannot register a page as read-only. */
static bool register_page(char *page, size_t bytes)
{
	const unsigned flags = LL_CU_MEMHOSTREGISTER_DEVICEMAP;
	return ll_real()->cuMemHostRegister_v2(page, bytes, flags | LL_CU_MEMHOSTREGISTER_READ_ONLY) ==
		   LL_CUDA_SUCCESS ||
	       ll_real()->cuMemHostRegister_v2(page, bytes, flags) == LL_CUDA_SUCCESS;
}

static bool register_word(struct ll_card_gate *gate, _Atomic uint32_t *word)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t offset = (uintptr_t)word % bytes;
	if (!LL_REAL_HAS(cuStreamWaitValue32_v2) || !LL_REAL_HAS(cuMemHostRegister_v2) ||
	    !LL_REAL_HAS(cuMemHostGetDevicePointer_v2))
		return false;
	char *page = map_again((char *)word - offset, bytes);
	if (!page)
		return false;
	ll_cu_deviceptr on_card;
	if (!register_page(page, bytes)) {
		munmap(page, bytes);
		return false;
	}
	if (ll_real()->cuMemHostGetDevicePointer_v2(&on_card, page, 0) != LL_CUDA_SUCCESS)
		return false;
	gate->address = on_card + offset;
	gate->word = (_Atomic uint32_t *)(void *)(page + offset);
	return true;
}

bool ll_card_gate_prepare(struct ll_card_gate *gate, _Atomic uint32_t *word)
{
	if (gate->state == LL_CARD_GATE_NEW)
		gate->state = word && register_word(gate, word) ? LL_CARD_GATE_READY : LL_CARD_GATE_NONE;
	return gate->state == LL_CARD_GATE_READY;
}

bool ll_card_gate_wait(const struct ll_card_gate *gate, struct ll_cu_stream *stream)
{
	return ll_real()->cuStreamWaitValue32_v2(stream, gate->address, LL_VISIT_WORD_OPEN,
						 LL_CU_STREAM_WAIT_VALUE_AND) == LL_CUDA_SUCCESS;
}

void ll_card_gate_leave(struct ll_card_gate *gate)
{
	if (gate->state != LL_CARD_GATE_READY)
		return;
	atomic_fetch_or(gate->word, LL_VISIT_WORD_OPEN);
	gate->state = LL_CARD_GATE_NEW;
}
