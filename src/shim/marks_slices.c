/* What a program's own work is where the hardware's time slices serve several programs at once. */
#include "shim/marks_state.h"

/* The mean of a launch behind an open gate is of the last so many that were looked at. */
enum { TYPICAL_PARTS = 64 };

void ll_marks_set_shared(struct ll_marks *marks, bool is_shared, unsigned sliced_by)
{
	marks->is_shared = is_shared;
	marks->sliced_by = sliced_by;
}

void ll_marks_note_typical(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name)
{
	struct ll_mark_track *track = marks->clock.is_blind ? NULL : ll_mark_track_find(marks, name);
	const struct ll_kind *kind = track ? ll_kinds_find(&marks->kinds, kind_name) : NULL;
	if (!kind || !ll_kind_is_known(kind))
		return;
	track->typical += track->typical < TYPICAL_PARTS;
	track->typical_ns = ((track->typical - 1) * track->typical_ns + kind->ns) / track->typical;
}

uint64_t ll_mark_batch_own_ns(struct ll_marks *marks, const struct ll_mark_track *track,
			      const struct ll_mark_batch *batch, uint64_t span_ns)
{
	const struct ll_kind *kind = batch->kind ? ll_kinds_find(&marks->kinds, batch->kind) : NULL;
	uint64_t kind_ns = kind ? kind->ns : 0;
	if (!kind_ns && !track->typical_ns && !track->mean_ns)
		return span_ns / (1 + marks->sliced_by);
	uint64_t ns = kind_ns ? batch->launches * kind_ns : batch->guess_ns;
	return ns < span_ns ? ns : span_ns;
}
