#include "mover/neighbours.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/log.h"
#include "base/scope.h"
#include "driver/readings.h"

/* Nobody's, such as what the driver has for itself. A context takes 250 MiB and more. */
#define QUIET_BYTES UINT64_C(0x8000000)
/* Left alone on a neighbour: what the driver keeps, and what a program needs to begin. */
#define SPARE_BYTES UINT64_C(0x80000000)

enum { LOOKS = 2 };

struct ll_neighbour {
	const struct ll_transfer_engine *engine;
	const struct ll_card *card;
	struct ll_mover_books *books;
	ll_cu_device device;
	uint64_t bytes;      /* in blocks */
	unsigned busy_looks; /* in a row, at which it was not free */
	struct ll_neighbour *next;
};

struct ll_neighbours {
	struct ll_neighbour *first;
};

static struct ll_process_list processes; /* kept for the next look */

/* ---- the cards ---- */

static bool can_be_used(const struct ll_transfer_engine *engine, const struct ll_card *card, ll_cu_device *ret_device)
{
	struct ll_err err = {0};
	int can = 0;
	if (card->fault || card->has_slices || card->is_mig || !engine->cuda->cuDeviceCanAccessPeer ||
	    ll_card_cuda_device(card, NULL, ret_device, &err))
		return false;
	return engine->cuda->cuDeviceCanAccessPeer(&can, engine->device, *ret_device) == LL_CUDA_SUCCESS && can;
}

static void add_neighbour(struct ll_neighbours *neighbours, const struct ll_neighbour *model)
{
	struct ll_neighbour *neighbour = malloc(sizeof *neighbour);
	if (!neighbour)
		return;
	*neighbour = *model;
	neighbour->next = neighbours->first;
	neighbours->first = neighbour;
	ll_debug("card %s is a neighbour: memory may go there", model->card->label);
}

struct ll_neighbours *ll_neighbours_new(const struct ll_transfer_engine *engine, const struct ll_card *card,
					struct ll_mover_books *books)
{
	const struct ll_card *cards;
	struct ll_neighbours *neighbours = calloc(1, sizeof *neighbours);
	if (!neighbours)
		return NULL;
	size_t count = ll_driver_cards(card->driver, &cards);
	for (size_t i = count; i-- > 0;) {
		struct ll_neighbour model = {.engine = engine, .card = &cards[i], .books = books};
		if (&cards[i] != card && !card->is_mig && can_be_used(engine, &cards[i], &model.device))
			add_neighbour(neighbours, &model);
	}
	return neighbours;
}

void ll_neighbours_free(struct ll_neighbours *neighbours)
{
	while (neighbours && neighbours->first) {
		struct ll_neighbour *next = neighbours->first->next;
		free(neighbours->first);
		neighbours->first = next;
	}
	ll_process_list_fini(&processes);
	free(neighbours);
}

const char *ll_neighbour_label(const struct ll_neighbour *neighbour)
{
	return neighbour->card->label;
}

/* ---- who uses them ---- */

/* Whether the process is a mover or a hold. */
static bool is_loadline(pid_t pid)
{
	char path[32], name[32] = "";
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	return file && fgets(name, sizeof name, file) && strncmp(name, "loadline", strlen("loadline")) == 0;
}

/* Memory of the card's own mover, and of holds. The driver names no processes outside of this PID namespace. */
static uint64_t count_own_bytes(const struct ll_neighbour *neighbour)
{
	struct ll_err err = {0};
	uint64_t bytes = 0;
	if (ll_read_processes(neighbour->card, LL_PROCESS_COMPUTE | LL_PROCESS_GRAPHICS, &processes, &err))
		return 0;
	for (size_t i = 0; i < processes.count; i++) {
		if (processes.items[i].memory_bytes != LL_MEMORY_UNKNOWN && is_loadline(processes.items[i].pid))
			bytes += processes.items[i].memory_bytes;
	}
	return bytes;
}

/* What keeps so many bytes more away from the card; NULL: nothing does. */
static const char *find_use(const struct ll_neighbour *neighbour, uint64_t bytes)
{
	struct ll_err err = {0};
	struct ll_memory memory;
	if (ll_read_memory(neighbour->card, &memory, &err))
		return "its memory cannot be read";
	if (memory.used_bytes > neighbour->bytes + count_own_bytes(neighbour) + QUIET_BYTES)
		return "others have memory there";
	if (bytes && (memory.free_bytes < SPARE_BYTES || bytes > memory.free_bytes - SPARE_BYTES))
		return "it has no room";
	return ll_mover_books_is_claimed(neighbour->books, neighbour->card->uuid) ? "a program claims it" : NULL;
}

struct ll_neighbour *ll_neighbours_choose(struct ll_neighbours *neighbours, uint64_t bytes)
{
	if (neighbours->first) /* what is on its way back to the driver is not somebody's */
		ll_releaser_wait(neighbours->first->engine->releaser);
	for (struct ll_neighbour *neighbour = neighbours->first; neighbour; neighbour = neighbour->next) {
		const char *use = neighbour->busy_looks ? "it is wanted" : find_use(neighbour, bytes);
		if (!use)
			return neighbour;
		ll_debug("card %s is left alone: %s", neighbour->card->label, use);
	}
	return NULL;
}

void ll_neighbours_look(struct ll_neighbours *neighbours)
{
	for (struct ll_neighbour *neighbour = neighbours->first; neighbour; neighbour = neighbour->next) {
		bool is_busy = neighbour->bytes && find_use(neighbour, 0);
		bool was_wanted = ll_neighbour_is_wanted(neighbour);
		neighbour->busy_looks = is_busy ? neighbour->busy_looks + 1 : 0;
		if (ll_neighbour_is_wanted(neighbour) && !was_wanted)
			ll_info("card %s is wanted: %" PRIu64 " MiB go on to the host", neighbour->card->label,
				neighbour->bytes >> 20);
	}
}

bool ll_neighbour_is_wanted(const struct ll_neighbour *neighbour)
{
	return neighbour->busy_looks >= LOOKS;
}

void ll_neighbours_describe(const struct ll_neighbours *neighbours, char *text, size_t size)
{
	size_t length = 0;
	*text = '\0';
	for (const struct ll_neighbour *neighbour = neighbours ? neighbours->first : NULL; neighbour && length < size;
	     neighbour = neighbour->next) {
		if (neighbour->bytes)
			length += (size_t)snprintf(text + length, size - length, "%s%" PRIu64 " MiB on card %s",
						   length ? ", " : "", neighbour->bytes >> 20, neighbour->card->label);
	}
}

/* ---- blocks ---- */

static ll_cu_result make_memory(struct ll_neighbour_block *block)
{
	const struct ll_transfer_engine *engine = block->neighbour->engine;
	const struct ll_cuda *cuda = engine->cuda;
	struct ll_cu_mem_allocation_prop prop = {
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
	    .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, block->neighbour->device},
	};
	ll_cu_mem_handle handle;
	ll_cu_result status = cuda->cuMemCreate(&handle, block->bytes, &prop, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_mapping_reserve(&block->memory, cuda, block->bytes);
	if (status != LL_CUDA_SUCCESS) {
		cuda->cuMemRelease(handle);
		return status;
	}
	status = ll_mapping_add(&block->memory, cuda, handle, block->bytes);
	if (status == LL_CUDA_SUCCESS)
		status = ll_mapping_allow(&block->memory, cuda, engine->device);
	/* Last: access to exported memory takes seven times as long (doc/facts.md). */
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemExportToShareableHandle(&block->fd, handle,
							    LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	return status;
}

struct ll_neighbour_block *ll_neighbour_block_new(struct ll_neighbour *neighbour, uint64_t bytes)
{
	struct ll_neighbour_block *block = calloc(1, sizeof *block);
	if (!block)
		return NULL;
	*block = (struct ll_neighbour_block){.neighbour = neighbour, .bytes = bytes, .fd = -1};
	neighbour->bytes += bytes;
	if (make_memory(block) == LL_CUDA_SUCCESS)
		return block;
	ll_neighbour_block_free(block);
	return NULL;
}

void ll_neighbour_block_free(struct ll_neighbour_block *block)
{
	if (!block)
		return;
	if (block->fd >= 0)
		close(block->fd);
	ll_releaser_put(block->neighbour->engine->releaser, &block->memory);
	block->neighbour->bytes -= block->bytes;
	free(block);
}
