#include "accounts/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST_ROOM = 64 };

int64_t ll_use_hour_s(int64_t at_s)
{
	const int64_t hour_s = 3600;
	time_t at = at_s;
	struct tm local = {0};
	localtime_r(&at, &local);
	int64_t into_s = (at_s + local.tm_gmtoff) % hour_s;
	return at_s - (into_s < 0 ? into_s + hour_s : into_s);
}

static int make_room(void *array, size_t count, size_t *room, size_t size)
{
	void **at = array;
	if (count < *room)
		return 0;
	size_t more = *room ? 2 * *room : FIRST_ROOM;
	void *grown = reallocarray(*at, more, size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*room = more;
	return 0;
}

int ll_use_batch_add(struct ll_use_batch *batch, const struct ll_use_key *key, const struct ll_use *use,
		     size_t most_rows)
{
	struct ll_use_row *row = NULL;
	for (size_t i = batch->row_count; i-- > 0 && !row;) { /* rows of the present hour are the last ones */
		const struct ll_use_key *one = &batch->rows[i].key;
		if (one->hour_s == key->hour_s && one->uid == key->uid && strcmp(one->job, key->job) == 0 &&
		    strcmp(one->card, key->card) == 0 && strcmp(one->tenant, key->tenant) == 0 &&
		    strcmp(one->project, key->project) == 0)
			row = &batch->rows[i];
	}
	if (!row && batch->row_count >= most_rows)
		return -ENOSPC;
	if (!row) {
		int rc = make_room(&batch->rows, batch->row_count, &batch->row_room, sizeof *batch->rows);
		if (rc)
			return rc;
		row = &batch->rows[batch->row_count++];
		*row = (struct ll_use_row){.key = *key};
	}
	row->use.granted_ns += use->granted_ns;
	row->use.used_ns += use->used_ns;
	row->use.idle_held_ns += use->idle_held_ns;
	row->use.memory_byte_s += use->memory_byte_s;
	row->use.borrowed_ns += use->borrowed_ns;
	row->use.borrowed_byte_s += use->borrowed_byte_s;
	row->use.joules += use->joules;
	row->use.knows_joules |= use->knows_joules;
	return 0;
}

const struct ll_use_counter *ll_use_batch_find_counter(const struct ll_use_batch *batch, const char *job,
						       const char *card)
{
	for (size_t i = 0; i < batch->counter_count; i++) {
		const struct ll_use_counter *counter = &batch->counters[i];
		if (strcmp(counter->job, job) == 0 && strcmp(counter->card, card) == 0)
			return counter;
	}
	return NULL;
}

int ll_use_batch_count(struct ll_use_batch *batch, const struct ll_use_counter *counter)
{
	const struct ll_use_counter *found = ll_use_batch_find_counter(batch, counter->job, counter->card);
	if (found) {
		batch->counters[found - batch->counters] = *counter;
		return 0;
	}
	int rc = make_room(&batch->counters, batch->counter_count, &batch->counter_room, sizeof *batch->counters);
	if (!rc)
		batch->counters[batch->counter_count++] = *counter;
	return rc;
}

int ll_use_batch_end(struct ll_use_batch *batch, const struct ll_past_job *job)
{
	if (batch->past_count == LL_USE_BATCH_ROWS)
		return -ENOSPC;
	int rc = make_room(&batch->past, batch->past_count, &batch->past_room, sizeof *batch->past);
	if (!rc)
		batch->past[batch->past_count++] = *job;
	return rc;
}

int ll_use_batch_set_status(struct ll_use_batch *batch, const struct ll_past_status *status)
{
	for (size_t i = batch->past_count; i-- > 0;) {
		struct ll_past_job *job = &batch->past[i];
		if (job->number != status->number || job->uid != status->uid || job->how != LL_PAST_ENDED)
			continue;
		job->how = ll_past_how_of(status->status);
		job->status = status->status;
		return 0;
	}
	if (batch->status_count == LL_USE_BATCH_ROWS)
		return -ENOSPC;
	int rc = make_room(&batch->statuses, batch->status_count, &batch->status_room, sizeof *batch->statuses);
	if (!rc)
		batch->statuses[batch->status_count++] = *status;
	return rc;
}

int ll_use_batch_merge(struct ll_use_batch *batch, struct ll_use_batch *later)
{
	int rc = 0;
	for (size_t i = 0; i < later->row_count; i++) {
		int added = ll_use_batch_add(batch, &later->rows[i].key, &later->rows[i].use, SIZE_MAX);
		rc = rc ? rc : added;
	}
	for (size_t i = 0; i < later->counter_count; i++) {
		int added = ll_use_batch_count(batch, &later->counters[i]);
		rc = rc ? rc : added;
	}
	for (size_t i = 0; i < later->past_count; i++) {
		int added = ll_use_batch_end(batch, &later->past[i]);
		rc = rc ? rc : added;
	}
	for (size_t i = 0; i < later->status_count; i++) {
		int added = ll_use_batch_set_status(batch, &later->statuses[i]);
		rc = rc ? rc : added;
	}
	ll_use_batch_fini(later);
	return rc;
}

bool ll_use_batch_is_empty(const struct ll_use_batch *batch)
{
	return !batch->row_count && !batch->counter_count && !batch->past_count && !batch->status_count;
}

void ll_use_batch_fini(struct ll_use_batch *batch)
{
	free(batch->rows);
	free(batch->counters);
	free(batch->past);
	free(batch->statuses);
	*batch = (struct ll_use_batch){0};
}
