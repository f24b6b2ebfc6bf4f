// spin.comp - keeps the card busy for a given time and writes down what it saw.
//
// Built four times: with the device clock or (LL_NO_CLOCK) as a loop of a given count, and plain or (LL_FMA)
// with multiply-adds between two looks at the clock. payload_vulkan.h is the host's view of the buffers.
//
// The first invocation of the grid is the one that counts: it writes the record, judges lateness and gaps for all, and
// when it is done the kernel is done. The others go by their own clock and look every POLL_NS whether it is over.
#version 450
#extension GL_ARB_gpu_shader_int64 : require
#ifndef LL_NO_CLOCK
#extension GL_EXT_shader_realtime_clock : require
#endif

layout(local_size_x_id = 0) in;

// lavapipe leaves any loop after 65535 rounds in all: there a round is made longer, so that kernels can last some
// 10 ms; what goes beyond that ends early.
layout(constant_id = 1) const bool IS_CPU = false;

layout(push_constant) uniform Push {
	uint slot;
};

struct Record {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns;
	uint flags;
	uint sequence;
};

struct Slot {
	uint blocks[3];
	uint epoch;
	uint64_t length_ns;
	uint64_t late_after_ns;
	uint64_t queued_ns;
	uint gap_limit_ns;
	uint loops;
	uint sequence;
	uint unused[3];
};

layout(set = 0, binding = 0, std430) coherent volatile buffer Host {
	Record records[64];
	Slot slots[64];
	uint is_closing;
} host;

layout(set = 0, binding = 1, std430) coherent volatile buffer Card {
	uint stopped_epoch;
	uint done_sequence;
	uint64_t free_ns;
	float sink;
} card;

// The workgroup's copy of the slot: thousands of warps that each read host memory take 30 us over it.
struct Order {
	uint64_t length_ns;
	uint64_t late_after_ns;
	uint64_t queued_ns;
	uint gap_limit_ns;
	uint loops;
	uint epoch;
	uint sequence;
	uint is_closing;
};
shared Order order;

const uint LATE = 1u, GAP = 2u, STOPPED = 4u;

// Straight-line work on the integer pipe, for where a look at the clock by itself is too little or missing.
#define MIX_1 mixed = (mixed ^ (mixed >> 7)) * 2654435761u + 1u;
#define MIX_8 MIX_1 MIX_1 MIX_1 MIX_1 MIX_1 MIX_1 MIX_1 MIX_1
#define MIX_64 MIX_8 MIX_8 MIX_8 MIX_8 MIX_8 MIX_8 MIX_8 MIX_8

uint mixed = gl_GlobalInvocationID.x;
#ifdef LL_FMA
vec4 chain_a = vec4(1.0, 1.1, 1.2, 1.3) + float(gl_GlobalInvocationID.x % 8191u) * 0.000123;
vec4 chain_b = chain_a * 1.0789;
#endif

// One round between two looks at the clock. The multiply-adds can be neither dropped nor folded: two coefficients
// whose product is one up to rounding, so values stay finite and keep their bits moving.
void work()
{
#ifdef LL_FMA
	for (uint n = 0u; n < (IS_CPU ? 1u : 32u); n++) {
		chain_a = fma(chain_a, vec4(1.3371337), vec4(0.1234567));
		chain_b = fma(chain_b, vec4(1.3371337), vec4(0.1234567));
		chain_a = fma(chain_a, vec4(0.7478683), vec4(-0.0923296));
		chain_b = fma(chain_b, vec4(0.7478683), vec4(-0.0923296));
	}
#endif
#ifdef LL_NO_CLOCK
	MIX_64
#else
	if (IS_CPU) {
		MIX_64
	}
#endif
}

void keep_results()
{
	if (mixed == 0xffffffffu)
		card.sink = 1.0;
#ifdef LL_FMA
	vec4 sum = chain_a + chain_b;
	if (floatBitsToUint(sum.x + sum.y + sum.z + sum.w) == 0x7fc0deadu)
		card.sink = sum.x;
#endif
}

void fetch_order()
{
	if (gl_LocalInvocationID.x == 0u) {
		order.length_ns = host.slots[slot].length_ns;
		order.late_after_ns = host.slots[slot].late_after_ns;
		order.queued_ns = host.slots[slot].queued_ns;
		order.gap_limit_ns = host.slots[slot].gap_limit_ns;
		order.loops = host.slots[slot].loops;
		order.epoch = host.slots[slot].epoch;
		order.sequence = host.slots[slot].sequence;
		order.is_closing = host.is_closing;
	}
	memoryBarrierShared();
	barrier();
}

bool is_over()
{
	return card.done_sequence == order.sequence;
}

void publish(uint64_t start_ns, uint64_t end_ns, uint gap_ns, uint flags)
{
	if ((flags & (LATE | GAP)) != 0u)
		card.stopped_epoch = order.epoch;
	card.done_sequence = order.sequence;
	host.records[slot].start_ns = start_ns;
	host.records[slot].end_ns = end_ns;
	host.records[slot].gap_ns = gap_ns;
	host.records[slot].flags = flags;
	memoryBarrierBuffer();
	host.records[slot].sequence = order.sequence;
}

#ifndef LL_NO_CLOCK
// Thousands of warps may poll one word: at this interval that is a tenth of what one slice of the L2 serves.
const uint POLL_NS = 50000u;

// Differences need the clock's low half only: it cannot be seen torn, and no gap of interest lasts 4 s.
uint clock_low()
{
	return uint(clockRealtimeEXT());
}

// Read in two halves the clock may be seen torn: take a value only when another agrees.
uint64_t clock_whole()
{
	uint64_t first, second;
	do {
		first = clockRealtimeEXT();
		second = clockRealtimeEXT();
	} while (second - first > 0x7ffffffful);
	return second;
}

// lavapipe's clock is CLOCK_MONOTONIC without its high half; the host's stamp has it.
uint64_t extend(uint low, uint64_t near)
{
	return near + int64_t(int(low - uint(near)));
}

uint flags_at_start(uint64_t start_ns)
{
	if (order.is_closing != 0u || card.stopped_epoch == order.epoch)
		return STOPPED;
	return start_ns > order.late_after_ns ? LATE : 0u;
}

void main()
{
	uint64_t start_ns = IS_CPU ? clock_low() : clock_whole();

	fetch_order();
	if (is_over())
		return;
	if (IS_CPU)
		start_ns = extend(uint(start_ns), order.queued_ns);

	const uint64_t length_ns = order.length_ns;
	const uint gap_limit_ns = order.gap_limit_ns;
	uint flags = flags_at_start(start_ns);
	uint last = clock_low(), polled = last, gap_ns = 0u;
	uint64_t elapsed_ns = last - uint(start_ns); // the way to host memory is no gap

	while (flags == 0u && elapsed_ns < length_ns) {
		work();
		uint now = clock_low();
		uint step_ns = now - last;
		last = now;
		elapsed_ns += step_ns;
		gap_ns = max(gap_ns, step_ns);
		flags = step_ns > gap_limit_ns ? GAP : 0u;
		if (now - polled > POLL_NS) {
			polled = now;
			if (card.stopped_epoch == order.epoch || is_over())
				flags |= STOPPED;
		}
	}
	keep_results();
	if (gl_GlobalInvocationID.x == 0u)
		publish(start_ns, start_ns + elapsed_ns, gap_ns, flags);
}
#else
void main()
{
	fetch_order();
	if (is_over())
		return;
	if (order.is_closing == 0u) {
		for (uint n = 0u; n < order.loops; n++)
			work();
	}
	keep_results();
	if (gl_GlobalInvocationID.x == 0u) {
		uint64_t start_ns = max(order.queued_ns, card.free_ns);
		uint64_t end_ns = start_ns + order.length_ns;
		card.free_ns = end_ns;
		publish(start_ns, end_ns, 0u, 0u);
	}
}
#endif
