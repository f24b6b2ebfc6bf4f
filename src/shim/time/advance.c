#include "shim/time/advance.h"

enum { LEFT_BITS = 8 };
#define LEFT_MASK ((UINT64_C(1) << LEFT_BITS) - 1)
_Static_assert(LL_ADVANCE_MOST <= LEFT_MASK, "what is left fits beside the number");

/* What this thread was given last; initial-exec, because reading it must not allocate. */
static _Thread_local struct {
	const struct ll_advance *advance;
	uint64_t number;
	struct ll_advance_kind what;
} own __attribute__((tls_model("initial-exec")));

static bool is_like(const struct ll_advance_kind *one, const struct ll_advance_kind *other)
{
	return one->kind == other->kind && one->context == other->context &&
	       ll_timing_stream_is(one->stream, other->stream);
}

static bool is_own(const struct ll_advance *advance, const struct ll_advance_kind *what)
{
	return own.advance == advance && is_like(&own.what, what);
}

bool ll_advance_use(struct ll_advance *advance, const struct ll_advance_kind *what)
{
	if (!is_own(advance, what))
		return false;
	uint64_t word = atomic_load_explicit(&advance->word, memory_order_relaxed);
	while (word >> LEFT_BITS == own.number && word & LEFT_MASK) {
		if (atomic_compare_exchange_weak(&advance->word, &word, word - 1))
			return true;
	}
	return false;
}

void ll_advance_give(struct ll_advance *advance, const struct ll_advance_kind *what, uint32_t launches)
{
	advance->what = *what;
	own.advance = advance;
	own.what = *what;
	own.number = (atomic_load_explicit(&advance->word, memory_order_relaxed) >> LEFT_BITS) + 1;
	atomic_store(&advance->word, own.number << LEFT_BITS | launches);
}

bool ll_advance_is_like_last(struct ll_advance *advance, const struct ll_advance_kind *what)
{
	bool is_like_last = is_like(&advance->last, what);
	advance->last = *what;
	return is_like_last;
}

uint32_t ll_advance_take_back(struct ll_advance *advance)
{
	if (!(atomic_load_explicit(&advance->word, memory_order_relaxed) & LEFT_MASK))
		return 0;
	return (uint32_t)(atomic_fetch_and(&advance->word, ~LEFT_MASK) & LEFT_MASK);
}
