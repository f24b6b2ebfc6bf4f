#include "shim/time/gate.h"

#include <stddef.h>

static _Atomic uint32_t open_word = LL_GATE_OPEN;
static _Atomic uint32_t shut_word = LL_GATE_SHUT;

struct ll_gate_line ll_gate_line = {.word = &shut_word};

void ll_gate_set(_Atomic uint32_t *word)
{
	atomic_store(&ll_gate_line.word, word ? word : &shut_word);
}

void ll_gate_set_open(void)
{
	atomic_store(&ll_gate_line.count.limit, LL_GATE_NO_LIMIT);
	atomic_store(&ll_gate_line.word, &open_word);
}

/* ---- prepaid launches ---- */

enum { LEFT_BITS = 8 };
#define LEFT_MASK ((UINT64_C(1) << LEFT_BITS) - 1)
_Static_assert(LL_PREPAID_MOST <= LEFT_MASK, "what is left fits beside the number");

/* The prepaid launches that this thread was given last. The TLS model is initial-exec, because reading the variable
 * must not allocate memory. */
static _Thread_local struct {
	const struct ll_prepaid *prepaid;
	uint64_t number;
	struct ll_prepaid_kernel what;
} own __attribute__((tls_model("initial-exec")));

static bool is_like(const struct ll_prepaid_kernel *one, const struct ll_prepaid_kernel *other)
{
	return one->kernel_key == other->kernel_key && one->context == other->context &&
	       ll_timing_stream_is(one->stream, other->stream);
}

static bool is_own(const struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what)
{
	return own.prepaid == prepaid && is_like(&own.what, what);
}

bool ll_prepaid_use(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what)
{
	if (!is_own(prepaid, what))
		return false;
	uint64_t word = atomic_load_explicit(&prepaid->word, memory_order_relaxed);
	while (word >> LEFT_BITS == own.number && word & LEFT_MASK) {
		if (atomic_compare_exchange_weak(&prepaid->word, &word, word - 1))
			return true;
	}
	return false;
}

void ll_prepaid_give(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what, uint32_t launches)
{
	prepaid->what = *what;
	own.prepaid = prepaid;
	own.what = *what;
	own.number = (atomic_load_explicit(&prepaid->word, memory_order_relaxed) >> LEFT_BITS) + 1;
	atomic_store(&prepaid->word, own.number << LEFT_BITS | launches);
}

bool ll_prepaid_is_like_last(struct ll_prepaid *prepaid, const struct ll_prepaid_kernel *what)
{
	bool is_like_last = is_like(&prepaid->last, what);
	prepaid->last = *what;
	return is_like_last;
}

uint32_t ll_prepaid_return(struct ll_prepaid *prepaid)
{
	if (!(atomic_load_explicit(&prepaid->word, memory_order_relaxed) & LEFT_MASK))
		return 0;
	return (uint32_t)(atomic_fetch_and(&prepaid->word, ~LEFT_MASK) & LEFT_MASK);
}
