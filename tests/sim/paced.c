#include "paced.h"
#include "card/context.h"
#include "card/defaults.h"
#include "card/process.h"
#include "card/queue.h"

#include <sys/mman.h>

#include "card/engine.h"
#include "test.h"

#define WARM_UP_NS (50 * MS)
#define WINDOW_NS (500 * MS)
/* What the host takes, by the rates that each program has alone. */
#define CALL_NS 3800 /* a launch */
#define WAKE_NS 4600 /* from the end of a kernel to the return of a wait that spins */
/* doc/facts.md, "Streams that wait on the card". */
#define WAIT_VALUE_NS 1200
#define WRITE_VALUE_NS 1100
#define SEEN_NS (6 * US) /* from the write of a word to the stream that waits for it */
/* A gated flood whose queue is full looks so often whether it still is. */
#define POLL_NS (20 * US)
/* Launches to a batch; of the others one. */
enum { EAGER_BATCH = 10 };

static struct sim_world *w;

static struct paced new_program(struct program program, bool is_gated)
{
	uint32_t context, stream;
	assert_int_equal(sim_context_new(w, 0, sim_proc_join(w), false, &context), 0);
	assert_int_equal(sim_stream_new(w, context, 0, false, &stream), 0);
	unsigned batch = program.pace == EAGER ? EAGER_BATCH : 1;
	return (struct paced){.program = program,
			      .stream = stream,
			      .act_ns = w->now_ns,
			      .waits_for = UINT64_MAX,
			      .batch = is_gated ? batch : 0};
}

static uint64_t submit(const struct paced *self, struct sim_op op)
{
	uint64_t position;
	assert_int_equal(sim_submit(w, self->stream, &op, &position), 0);
	return position;
}

static uint64_t launch(struct paced *self)
{
	uint64_t position = submit(self, (struct sim_op){.kind = SIM_OP_KERNEL,
							 .length_ns = self->program.kernel_ns,
							 .is_timed = true,
							 .blocks = 1,
							 .threads = 32,
							 .module = SIM_NONE});
	self->positions[self->launched++ % MOST_DEPTH] = position;
	self->in_batch++;
	return CALL_NS;
}

static uint64_t end_batch(struct paced *self)
{
	self->enqueued++;
	struct sim_op op = {.kind = SIM_OP_MARK, .cookie = self->enqueued, .module = SIM_NONE};
	self->positions[(self->launched - 1) % MOST_DEPTH] = submit(self, op);
	self->is_in_batch = false;
	return WRITE_VALUE_NS;
}

static uint64_t begin_batch(struct paced *self)
{
	uint64_t number = self->is_by_visit ? 1 : self->enqueued + 1;
	submit(self, (struct sim_op){.kind = SIM_OP_VALUE, .cookie = number, .module = SIM_NONE});
	self->is_in_batch = true;
	self->in_batch = 0;
	return WAIT_VALUE_NS;
}

static void wait_for_launch(struct paced *self, uint64_t number)
{
	self->waits_for = self->positions[number % MOST_DEPTH];
	self->act_ns = SIM_NEVER;
}

static bool is_full(const struct paced *self)
{
	return self->program.pace == FLOOD && self->batch && self->enqueued - self->served >= self->program.depth;
}

/* The host's next call. */
static void act(struct paced *self)
{
	const struct program *program = &self->program;
	if (is_full(self)) {
		self->act_ns = w->now_ns + POLL_NS;
		return;
	}
	if (self->batch && !self->is_in_batch) {
		self->act_ns = w->now_ns + begin_batch(self);
		return;
	}
	uint64_t takes_ns = launch(self);
	if (program->pace == EAGER && takes_ns < program->pause_ns)
		takes_ns = program->pause_ns;
	bool waits = program->pace == SYNC || (program->pace == EAGER && self->launched % EAGER_STEP == 0);
	if (self->batch && (self->in_batch == self->batch || waits))
		takes_ns += end_batch(self);
	self->act_ns = w->now_ns + takes_ns;
	if (waits)
		wait_for_launch(self, self->launched - 1);
	else if (program->pace == FLOOD && !self->batch && self->launched >= program->depth)
		wait_for_launch(self, self->launched - program->depth);
}

static void end_wait(struct paced *self)
{
	const struct sim_stream *stream = &w->streams[self->stream];
	if (self->waits_for == UINT64_MAX || stream->done <= self->waits_for)
		return;
	uint64_t done_ns = sim_op_at(w, self->stream, self->waits_for)->end_ns;
	self->act_ns = done_ns + WAKE_NS + (self->program.pace == SYNC ? self->program.pause_ns : 0);
	self->waits_for = UINT64_MAX;
}

/* The wait at the head of the stream ends if the gate lets its batch through. */
static void pass_gate(struct paced *self)
{
	const struct sim_stream *stream = &w->streams[self->stream];
	if (stream->done == stream->submitted || w->now_ns < self->granted_ns)
		return;
	const struct sim_op *op = sim_op_at(w, self->stream, stream->done);
	if (op->kind == SIM_OP_VALUE && op->state == SIM_OP_RUNNING && op->cookie <= self->granted)
		sim_finish(w, self->stream, stream->done);
}

/* Notes what is done, and gives its place in the queue back. */
static void note_done(struct paced *self)
{
	struct sim_stream *stream = &w->streams[self->stream];
	for (; self->noted < stream->done; self->noted++) {
		const struct sim_op *op = sim_op_at(w, self->stream, self->noted);
		self->kernels += op->kind == SIM_OP_KERNEL;
		if (op->kind == SIM_OP_MARK)
			self->served = op->cookie;
	}
	end_wait(self);
	stream->reaped = stream->done;
}

void paced_grant(struct paced *self, uint64_t number, uint64_t now_ns)
{
	if (number > self->granted)
		self->granted_ns = now_ns + SEEN_NS;
	self->granted = number;
}

void paced_use_visits(struct paced *self)
{
	self->is_by_visit = true;
}

void paced_begin_visit(struct paced *self, uint64_t now_ns)
{
	paced_grant(self, 1, now_ns);
}

void paced_end_visit(struct paced *self, uint64_t now_ns)
{
	self->is_in_batch = false;
	paced_grant(self, 0, now_ns);
}

bool paced_is_drained(const struct paced *self)
{
	const struct sim_stream *stream = &w->streams[self->stream];
	return stream->done == stream->submitted || sim_op_at(w, self->stream, stream->done)->kind == SIM_OP_VALUE;
}

static uint64_t next_ns(const struct paced *programs, unsigned count)
{
	uint64_t next_ns = sim_next_event_ns(w);
	for (unsigned i = 0; i < count; i++) {
		const struct paced *self = &programs[i];
		next_ns = self->act_ns < next_ns ? self->act_ns : next_ns;
		if (self->granted_ns > w->now_ns && self->granted_ns < next_ns)
			next_ns = self->granted_ns;
	}
	return next_ns;
}

static void run(struct paced *programs, unsigned count, paced_scheduler *scheduler, uint64_t until_ns)
{
	uint64_t due_ns = scheduler ? scheduler(programs, count, w->now_ns) : 0;
	while (w->now_ns < until_ns) {
		uint64_t to_ns = next_ns(programs, count);
		to_ns = scheduler && due_ns > w->now_ns && due_ns < to_ns ? due_ns : to_ns;
		sim_advance(w, to_ns < until_ns ? to_ns : until_ns, 0);
		for (unsigned i = 0; i < count; i++) {
			pass_gate(&programs[i]);
			note_done(&programs[i]);
			if (programs[i].act_ns <= w->now_ns)
				act(&programs[i]);
		}
		if (scheduler)
			due_ns = scheduler(programs, count, w->now_ns);
	}
}

void paced_run(const struct program *programs, paced_scheduler *scheduler, uint64_t window_ns, double *ret_rates)
{
	struct paced paced[MOST_PROGRAMS];
	unsigned count = 0;
	w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(w != MAP_FAILED);
	sim_world_init(w, 1000 * LL_NS_PER_S, 0);
	while (programs[count].pace != NOBODY) {
		paced[count] = new_program(programs[count], scheduler);
		count++;
	}
	run(paced, count, scheduler, w->now_ns + WARM_UP_NS);
	for (unsigned i = 0; i < count; i++)
		paced[i].kernels_before = paced[i].kernels;
	run(paced, count, scheduler, w->now_ns + window_ns);
	for (unsigned i = 0; i < count; i++)
		ret_rates[i] = (double)(paced[i].kernels - paced[i].kernels_before) * 1e9 / (double)window_ns;
	munmap(w, sizeof *w);
}

void paced_check(const char *what, const struct program *programs, paced_scheduler *scheduler)
{
	double rates[MOST_PROGRAMS];
	paced_run(programs, scheduler, WINDOW_NS, rates);
	for (unsigned i = 0; programs[i].pace != NOBODY; i++) {
		double wanted = programs[i].wanted;
		if (rates[i] < 0.9 * wanted || rates[i] > 1.1 * wanted)
			fail_msg("%s, program %u: %.0f kernels a second, on the H200 %.0f", what, i, rates[i], wanted);
	}
}
