#include "mover/mapping.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

ll_cu_result ll_mapping_reserve(struct ll_mapping *mapping, const struct ll_cuda *cuda, uint64_t bytes)
{
	ll_cu_result status = cuda->cuMemAddressReserve(&mapping->address, bytes, 0, 0, 0);
	mapping->bytes = status == LL_CUDA_SUCCESS ? bytes : 0;
	return status;
}

ll_cu_result ll_mapping_add(struct ll_mapping *mapping, const struct ll_cuda *cuda, ll_cu_mem_handle handle,
			    uint64_t bytes)
{
	mapping->handles[mapping->count++] = handle;
	ll_cu_result status = cuda->cuMemMap(mapping->address + mapping->mapped_bytes, bytes, 0, handle, 0);
	if (status == LL_CUDA_SUCCESS)
		mapping->mapped_bytes += bytes;
	return status;
}

ll_cu_result ll_mapping_allow(const struct ll_mapping *mapping, const struct ll_cuda *cuda, ll_cu_device device)
{
	struct ll_cu_mem_access_desc access = {
	    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device},
	    .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	return cuda->cuMemSetAccess(mapping->address, mapping->mapped_bytes, &access, 1);
}

static void let_go(const struct ll_mapping *mapping, const struct ll_cuda *cuda)
{
	if (mapping->mapped_bytes)
		cuda->cuMemUnmap(mapping->address, mapping->mapped_bytes);
	for (uint32_t i = 0; i < mapping->count; i++)
		cuda->cuMemRelease(mapping->handles[i]);
	if (mapping->bytes)
		cuda->cuMemAddressFree(mapping->address, mapping->bytes);
}

/* ---- the releaser ---- */

struct note {
	struct ll_mapping mapping;
	struct note *next;
};

struct ll_releaser {
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct note *first, **end;
	bool is_at_work, is_ending;
};

static void *releaser_main(void *arg)
{
	struct ll_releaser *releaser = arg;
	prctl(PR_SET_TIMERSLACK, 1);
	releaser->cuda->cuCtxSetCurrent(releaser->context);
	pthread_mutex_lock(&releaser->lock);
	while (releaser->first || !releaser->is_ending) {
		struct note *note = releaser->first;
		releaser->is_at_work = note != NULL;
		if (!note) {
			pthread_cond_broadcast(&releaser->changed);
			pthread_cond_wait(&releaser->changed, &releaser->lock);
			continue;
		}
		releaser->first = note->next;
		if (!releaser->first)
			releaser->end = &releaser->first;
		pthread_mutex_unlock(&releaser->lock);
		let_go(&note->mapping, releaser->cuda);
		free(note);
		pthread_mutex_lock(&releaser->lock);
	}
	pthread_mutex_unlock(&releaser->lock);
	return NULL;
}

struct ll_releaser *ll_releaser_new(const struct ll_cuda *cuda, struct ll_cu_context *context)
{
	struct ll_releaser *releaser = calloc(1, sizeof *releaser);
	if (!releaser)
		return NULL;
	*releaser = (struct ll_releaser){.cuda = cuda, .context = context};
	releaser->end = &releaser->first;
	pthread_mutex_init(&releaser->lock, NULL);
	pthread_cond_init(&releaser->changed, NULL);
	if (pthread_create(&releaser->thread, NULL, releaser_main, releaser) == 0)
		return releaser;
	pthread_cond_destroy(&releaser->changed);
	pthread_mutex_destroy(&releaser->lock);
	free(releaser);
	return NULL;
}

void ll_releaser_free(struct ll_releaser *releaser)
{
	if (!releaser)
		return;
	pthread_mutex_lock(&releaser->lock);
	releaser->is_ending = true;
	pthread_cond_broadcast(&releaser->changed);
	pthread_mutex_unlock(&releaser->lock);
	pthread_join(releaser->thread, NULL);
	pthread_cond_destroy(&releaser->changed);
	pthread_mutex_destroy(&releaser->lock);
	free(releaser);
}

void ll_releaser_put(struct ll_releaser *releaser, struct ll_mapping *mapping)
{
	struct note *note = mapping->bytes || mapping->count ? malloc(sizeof *note) : NULL;
	if (note) {
		*note = (struct note){.mapping = *mapping};
		pthread_mutex_lock(&releaser->lock);
		*releaser->end = note;
		releaser->end = &note->next;
		pthread_cond_broadcast(&releaser->changed);
		pthread_mutex_unlock(&releaser->lock);
	} else {
		let_go(mapping, releaser->cuda);
	}
	*mapping = (struct ll_mapping){0};
}

void ll_releaser_wait(struct ll_releaser *releaser)
{
	pthread_mutex_lock(&releaser->lock);
	while (releaser->first || releaser->is_at_work)
		pthread_cond_wait(&releaser->changed, &releaser->lock);
	pthread_mutex_unlock(&releaser->lock);
}
