#include "mix_program.h"

#include <stdlib.h>
#include <string.h>

#include "card/context.h"
#include "card/process.h"
#include "card/queue.h"
#include "mix_dice.h"
#include "test.h"

#define WAKE_NS 4600 /* from the end of a kernel to the return of a wait that spins (paced.c) */
#define WAIT_VALUE_NS 1200
#define SEEN_NS (6 * LL_NS_PER_US) /* from the write of a word to the stream that waits for it */
#define POLL_NS (20 * LL_NS_PER_US)
#define HOST_POLL_NS (100 * LL_NS_PER_US) /* LL_FLOW_POLL_NS */
/* src/shim/time/flow_tick.c */
#define LEAST_QUEUED_NS (2 * LL_NS_PER_MS)
#define FAR_NS (4 * LL_NS_PER_MS)
/* src/shim/time/flow_hold.c */
#define PASSED_GATE_NS (300 * LL_NS_PER_US)
#define QUEUE_NS (20 * LL_NS_PER_MS)
enum { QUEUE_LAUNCHES = 512, RING_LEAVES = 8 };
/* A host's time for a call varies by so much; a kernel's by so much. */
#define CALL_JITTER 0.3
#define KERNEL_JITTER 0.01
/* A drift is the sum of several that change at different speeds: then windows of all lengths differ alike. */
enum { DRIFT_PARTS = 4 };
static const double drift_s[DRIFT_PARTS] = {0.1, 0.5, 2, 8};

static void draw_drift(struct mix_program *self, uint64_t *dice)
{
	double parts[DRIFT_PARTS], share = self->kind.drift / sqrt(DRIFT_PARTS);
	for (int p = 0; p < DRIFT_PARTS; p++)
		parts[p] = share * dice_normal(dice);
	for (int i = 0; i < MIX_DRIFTS; i++) {
		double sum = 0;
		for (int p = 0; p < DRIFT_PARTS; p++) {
			double keeps = exp(-(double)MIX_DRIFT_NS / 1e9 / drift_s[p]);
			parts[p] = keeps * parts[p] + sqrt(1 - keeps * keeps) * share * dice_normal(dice);
			sum += parts[p];
		}
		self->drifts[i] = exp(sum);
	}
}

/* The launches of a round have lengths of their own, the same in each round; their mean is the kind's. */
static void draw_lengths(struct mix_program *self, uint64_t *dice)
{
	double sum = 0;
	for (unsigned i = 0; i < self->kind.launches; i++) {
		self->lengths_ns[i] = exp(self->kind.kernel_spread * dice_normal(dice));
		sum += self->lengths_ns[i];
	}
	for (unsigned i = 0; i < self->kind.launches; i++)
		self->lengths_ns[i] *= self->kind.kernel_ns * self->kind.launches / sum;
}

double mix_longest_kernel_ns(const struct mix_kind *kind)
{
	static struct mix_program drawn;
	uint64_t dice = kind->seed;
	double longest_ns = 0;
	drawn.kind = *kind;
	draw_drift(&drawn, &dice);
	draw_lengths(&drawn, &dice);
	for (unsigned i = 0; i < kind->launches; i++)
		longest_ns = fmax(longest_ns, drawn.lengths_ns[i]);
	return longest_ns;
}

void mix_program_init(struct mix_program *self, struct sim_world *w, const struct mix_kind *kind)
{
	uint64_t dice = kind->seed;
	memset(self, 0, sizeof *self);
	self->kind = *kind;
	self->w = w;
	draw_drift(self, &dice);
	draw_lengths(self, &dice);
	self->dice = dice;
	self->act_ns = w->now_ns + (uint64_t)dice_exponential(&self->dice, 1e6);
	self->idle_since_ns = w->now_ns;
	self->gate.is_open = self->gate.may_launch = true;
	self->gate.word = 1;
	assert_int_equal(sim_context_new(w, 0, sim_proc_join(w), false, &self->context), 0);
	for (unsigned i = 0; i < kind->streams; i++)
		assert_int_equal(sim_stream_new(w, self->context, 0, false, &self->streams[i]), 0);
}

static double drift_now(const struct mix_program *self)
{
	return self->drifts[(self->w->now_ns - MIX_BEGIN_NS) / MIX_DRIFT_NS % MIX_DRIFTS];
}

/* ---- the queue ---- */

static void submit(struct mix_program *self, unsigned stream, struct sim_op op)
{
	uint64_t position;
	op.module = SIM_NONE;
	assert_int_equal(sim_submit(self->w, self->streams[stream], &op, &position), 0);
}

static bool is_ring_full(const struct mix_program *self, unsigned i)
{
	const struct sim_stream *stream = &self->w->streams[self->streams[i]];
	return stream->submitted - stream->reaped > SIM_RING - RING_LEAVES;
}

/* The wait at the head of a stream ends if the card sees an open word. */
static bool pass_gate(struct mix_program *self)
{
	bool passes = false;
	for (unsigned i = 0; i < self->kind.streams; i++) {
		const struct sim_stream *stream = &self->w->streams[self->streams[i]];
		if (!sim_queue_is_pending(stream))
			continue;
		const struct sim_op *op = sim_queue_head(self->w, self->streams[i]);
		if (op->kind != SIM_OP_VALUE || op->state != SIM_OP_RUNNING)
			continue;
		sim_finish(self->w, self->streams[i], stream->done);
		passes = true;
	}
	return passes;
}

static void note_op(struct mix_program *self, const struct sim_op *op)
{
	if (op->kind != SIM_OP_KERNEL && op->kind != SIM_OP_COPY)
		return;
	self->left[op->cookie % MIX_ROUNDS]--;
	self->ended_ns = op->end_ns;
	self->queued_ns -= op->length_ns;
	self->kernels_ns += op->kind == SIM_OP_KERNEL ? op->length_ns : 0;
	self->completed++;
	if (self->completed == self->launched)
		self->idle_since_ns = op->end_ns;
}

static void note_done(struct mix_program *self)
{
	for (unsigned i = 0; i < self->kind.streams; i++) {
		struct sim_stream *stream = &self->w->streams[self->streams[i]];
		for (; self->noted[i] < stream->done; self->noted[i]++)
			note_op(self, sim_op_at(self->w, self->streams[i], self->noted[i]));
		stream->reaped = stream->done;
	}
}

/* ---- the gate ---- */

/* Behind a gate that is shut for a cap, and by visits. */
static uint64_t most_queued_ns(const struct mix_gate *gate)
{
	uint64_t most_ns = gate->is_exclusive ? QUEUE_NS : 2 * FAR_NS;
	uint64_t tokens_ns = gate->tokens_ns < most_ns ? gate->tokens_ns : most_ns;
	return tokens_ns > LEAST_QUEUED_NS ? tokens_ns : LEAST_QUEUED_NS;
}

static bool has_room(const struct mix_program *self)
{
	const struct mix_gate *gate = &self->gate;
	uint64_t launches = self->launched - self->completed;
	if (self->kind.cap_permille && !gate->bound_ns) {
		bool is_paid = launches < 2 && self->queued_ns < gate->tokens_ns;
		return launches < QUEUE_LAUNCHES && (is_paid || self->queued_ns < most_queued_ns(gate));
	}
	if (gate->is_exclusive)
		return launches < 2 || (self->queued_ns < QUEUE_NS && launches < QUEUE_LAUNCHES);
	return !gate->bound_ns || launches < 2 || self->queued_ns < gate->bound_ns;
}

static bool wants_wait(const struct mix_program *self, unsigned i)
{
	const struct mix_gate *gate = &self->gate;
	return (!gate->is_open && gate->waits_at[i] != gate->word) || gate->unheld_ns[i] >= PASSED_GATE_NS;
}

/* Those of a cap that are told to wait look again by themselves. */
static bool is_kept_by_cap(struct mix_program *self)
{
	const struct mix_gate *gate = &self->gate;
	if (!self->kind.cap_permille)
		return false;
	bool waits = gate->is_in_debt || (!gate->is_exclusive && !gate->must_ask && !gate->may_launch);
	if (waits && !self->stalled_since_ns)
		self->stalled_since_ns = self->w->now_ns;
	if (waits)
		self->act_ns = self->w->now_ns + HOST_POLL_NS;
	return waits;
}

uint64_t mix_program_stall_ns(const struct mix_program *self)
{
	uint64_t stalled_ns = self->stalled_since_ns ? self->w->now_ns - self->stalled_since_ns : 0;
	return stalled_ns > self->stalled_most_ns ? stalled_ns : self->stalled_most_ns;
}

static void end_stall(struct mix_program *self)
{
	self->stalled_most_ns = mix_program_stall_ns(self);
	self->stalled_since_ns = 0;
}

/* Whether the next launch may go now. If not, the host's next time is set. */
static bool may_launch(struct mix_program *self, unsigned i)
{
	struct mix_gate *gate = &self->gate;
	if (is_kept_by_cap(self))
		return false;
	if (gate->must_ask) {
		gate->is_asking = true;
		self->act_ns = SIM_NEVER;
		return false;
	}
	gate->waits_for_room = !has_room(self);
	if (gate->waits_for_room || is_ring_full(self, i)) {
		self->act_ns = self->w->now_ns + (gate->bound_ns && !gate->is_exclusive ? HOST_POLL_NS : POLL_NS);
		return false;
	}
	end_stall(self);
	if (!gate->is_exclusive || !wants_wait(self, i))
		return true;
	submit(self, i, (struct sim_op){.kind = SIM_OP_VALUE});
	gate->waits_at[i] = gate->word;
	gate->unheld_ns[i] = 0;
	self->act_ns = self->w->now_ns + WAIT_VALUE_NS;
	return false;
}

void mix_program_set_word(struct mix_program *self, bool is_open)
{
	if (self->gate.is_open == is_open)
		return;
	self->gate.is_open = is_open;
	self->gate.word++;
	self->gate.seen_ns = self->w->now_ns + SEEN_NS;
}

void mix_program_answer(struct mix_program *self)
{
	self->gate.must_ask = self->gate.is_asking = false;
	self->act_ns = self->w->now_ns;
}

bool mix_program_overruns(const struct mix_program *self)
{
	for (unsigned i = 0; i < self->kind.streams; i++) {
		const struct sim_stream *stream = &self->w->streams[self->streams[i]];
		if (sim_queue_is_pending(stream) && sim_queue_head(self->w, self->streams[i])->kind != SIM_OP_VALUE)
			return true;
	}
	return false;
}

uint64_t mix_program_used_ns(const struct mix_program *self)
{
	uint64_t card_ns = self->w->contexts[self->context].card_ns;
	return card_ns < self->kernels_ns ? card_ns : self->kernels_ns;
}

/* ---- the host ---- */

static void launch(struct mix_program *self, unsigned stream, enum sim_op_kind kind, double length_ns)
{
	uint64_t ns = (uint64_t)(length_ns * (1 + KERNEL_JITTER * (2 * dice_part(&self->dice) - 1))) + 1;
	submit(self, stream,
	       (struct sim_op){
		   .kind = kind, .length_ns = ns, .cookie = self->round, .blocks = 8, .threads = 128, .direction = 1});
	self->queued_ns += ns;
	self->gate.unheld_ns[stream] += ns;
	self->launched++;
	self->idle_since_ns = 0;
}

static uint64_t pause_ns(struct mix_program *self)
{
	double jitter = 1 + CALL_JITTER * (2 * dice_part(&self->dice) - 1);
	double ns = self->kind.pause_ns * drift_now(self) * jitter;
	if (self->kind.think_ns > 0)
		ns += dice_exponential(&self->dice, self->kind.think_ns);
	return (uint64_t)ns;
}

static void note_answer(struct mix_program *self, uint64_t at_ns)
{
	if (mix_kind_answers(&self->kind))
		self->latencies_ns[self->answered++ % MIX_LATENCIES] = at_ns - self->asked_ns;
	self->asked_ns = 0;
}

static void end_round(struct mix_program *self)
{
	uint64_t ahead = self->kind.ahead;
	self->round++;
	self->at = 0;
	self->waits += !ahead;
	if (self->round > ahead && self->left[(self->round - 1 - ahead) % MIX_ROUNDS]) {
		self->awaited = self->round - ahead;
		self->act_ns = SIM_NEVER;
		return;
	}
	note_answer(self, self->act_ns);
	self->act_ns += pause_ns(self);
}

static void end_wait(struct mix_program *self)
{
	if (!self->awaited || self->left[(self->awaited - 1) % MIX_ROUNDS])
		return;
	self->awaited = 0;
	note_answer(self, self->ended_ns + WAKE_NS);
	self->act_ns = self->ended_ns + WAKE_NS + pause_ns(self);
}

static void act(struct mix_program *self)
{
	const struct mix_kind *kind = &self->kind;
	unsigned stream = self->at % kind->streams;
	if (!self->asked_ns)
		self->asked_ns = self->w->now_ns;
	if (!may_launch(self, stream))
		return;
	if (self->at == 0)
		self->left[self->round % MIX_ROUNDS] = kind->launches + (kind->copy_ns > 0);
	launch(self, stream, SIM_OP_KERNEL, self->lengths_ns[self->at]);
	double jitter = 1 + CALL_JITTER * (2 * dice_part(&self->dice) - 1);
	self->act_ns = self->w->now_ns + (uint64_t)(kind->call_ns * drift_now(self) * jitter) + 1;
	if (++self->at < kind->launches)
		return;
	if (kind->copy_ns > 0)
		launch(self, 0, SIM_OP_COPY, kind->copy_ns);
	end_round(self);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return (first > second) - (first < second);
}

uint64_t mix_program_latency_ns(const struct mix_program *self)
{
	uint64_t sorted[MIX_LATENCIES], count = self->answered < MIX_LATENCIES ? self->answered : MIX_LATENCIES;
	if (!count)
		return 0;
	memcpy(sorted, self->latencies_ns, count * sizeof sorted[0]);
	qsort(sorted, count, sizeof sorted[0], compare_times);
	return sorted[count / 2];
}

uint64_t mix_program_next_ns(const struct mix_program *self)
{
	uint64_t next_ns = self->act_ns;
	if (self->gate.is_open && self->gate.seen_ns > self->w->now_ns && self->gate.seen_ns < next_ns)
		next_ns = self->gate.seen_ns;
	return next_ns;
}

bool mix_program_go_on(struct mix_program *self)
{
	bool passes = self->gate.is_open && self->w->now_ns >= self->gate.seen_ns && pass_gate(self);
	note_done(self);
	end_wait(self);
	if (self->act_ns <= self->w->now_ns)
		act(self);
	return passes;
}
