/* What happens in the world of mover_protocol.h, and what must hold in it. */
#include "test.h"

#include "base/packet.h"
#include "mover_protocol.h"

/* ---- packets that nobody expects ---- */

static const uint32_t hostile_kinds[] = {LL_MOVER_SIZES,   LL_MOVER_BUSY,  LL_MOVER_AWAY,  LL_MOVER_BACK,
					 LL_MOVER_NO_ROOM, LL_MOVER_WANT,  LL_MOVER_SHORT, LL_MOVER_NOTHING,
					 LL_MOVER_TAKEN,   LL_MOVER_LEAVE, LL_MOVER_HELLO, 77};
/* bytes, batches */
static const uint64_t hostile_quiets[][2] = {{0, 0}, {2, 1},          {4, 2},          {0, 1},
					     {2, 0}, {UINT64_MAX, 1}, {2, UINT64_MAX}, {2, UINT64_C(0x100000001)}};

enum {
	HOSTILE_KINDS = sizeof hostile_kinds / sizeof *hostile_kinds,
	HOSTILE_QUIETS = sizeof hostile_quiets / sizeof *hostile_quiets,
	HOSTILE_IN = HOSTILE_KINDS + HOSTILE_QUIETS,
	HOSTILE_OUT,
	HOSTILE_OUT_HUGE,
	HOSTILE_OUT_SECOND,
};
_Static_assert(HOSTILE_OUT_SECOND + 1 == HOSTILE, "all of them are tried");

static void say_hostile(unsigned number)
{
	struct ll_mover_message message = {.number = PROGRAMS - 1, .value = LL_MOVER_VERSION, .bytes = 2};
	int fd = POOL_FD; /* no memory */
	size_t fd_count = 0;
	if (number < HOSTILE_KINDS) {
		message.kind = hostile_kinds[number];
	} else if (number < HOSTILE_IN) {
		message.kind = LL_MOVER_QUIET;
		message.bytes = hostile_quiets[number - HOSTILE_KINDS][0];
		message.value = hostile_quiets[number - HOSTILE_KINDS][1];
	} else {
		message.kind = number == HOSTILE_IN ? LL_MOVER_IN : LL_MOVER_OUT;
		message.batch = number == HOSTILE_OUT_SECOND;
		message.count = 1;
		message.handle_bytes[0] = number == HOSTILE_OUT_HUGE ? UINT64_MAX : 2;
		fd_count = 1;
		unsigned handle = number == HOSTILE_OUT_HUGE ? 0 : world_new_handle(2);
		fd = handle ? HANDLE_FD + (int)handle - 1 : POOL_FD;
	}
	ll_packet_send(PROGRAM_FD + world.programs[PROGRAMS - 1].connection, &message, sizeof message, &fd, fd_count);
	world_close(fd);
}

/* A hostile program reads and ignores what it is told. */
static void read_as_hostile(void)
{
	for (unsigned i = 0; i < PROGRAMS; i++) {
		if (world.programs[i].is_hostile && world.programs[i].connection >= 0)
			world_empty_queue(&world.connections[world.programs[i].connection].to_program);
	}
}

/* ---- events ---- */

static const char *const event_names[] = {
    [WORLD_TO_MOVER] = "to mover",
    [WORLD_TO_PROGRAM] = "to program",
    [WORLD_TO_PROGRAM_BUSY] = "to program that is busy",
    [WORLD_TO_PROGRAM_NO_EXPORT] = "to program that cannot export",
    [WORLD_TO_MOVER_NO_TRANSFER] = "to mover that cannot copy",
    [WORLD_TO_MOVER_NO_FDS] = "to mover without free descriptors",
    [WORLD_TO_MOVER_NO_BLOCK] = "to mover whose neighbour has no room",
    [WORLD_MOVER_SEES_END] = "mover sees the connection's end",
    [WORLD_PROGRAM_SEES_END] = "program sees the connection's end",
    [WORLD_COPY_ENDS] = "copy ends",
    [WORLD_COPY_FAILS] = "copy fails",
    [WORLD_PIN] = "pin a step",
    [WORLD_HOST_SHORT] = "host is short of memory",
    [WORLD_LEAVE] = "leave",
    [WORLD_HALT] = "halt",
    [WORLD_RETURN] = "return",
    [WORLD_STAY] = "stay away",
    [WORLD_RESUME] = "resume by hand",
    [WORLD_AGAIN] = "return is said again",
    [WORLD_LOOK] = "mover looks after it",
    [WORLD_MOVE_ON] = "memory goes on to the host",
    [WORLD_SILENCE] = "long silence",
    [WORLD_WANTED] = "the neighbour is wanted",
    [WORLD_MAKE_WAY] = "one makes way",
    [WORLD_HOG_COMES] = "card is full",
    [WORLD_HOG_GOES] = "card has room",
    [WORLD_GROW] = "program grows",
    [WORLD_WANT] = "program wants",
    [WORLD_KILL_MOVER] = "mover is killed",
    [WORLD_KILL_PROGRAM] = "program is killed",
    [WORLD_MOVER_CUTS] = "mover disowns the program",
    [WORLD_PROGRAM_CUTS] = "program ends the connection",
    [WORLD_CONNECT] = "connect",
    [WORLD_CLAIM_GONE] = "claim is gone",
};

const char *world_event_name(enum world_event_kind kind)
{
	static char hostile[32];
	if (kind < WORLD_SAY_HOSTILE)
		return event_names[kind];
	snprintf(hostile, sizeof hostile, "hostile packet %d", (int)kind - WORLD_SAY_HOSTILE);
	return hostile;
}

bool world_is_sure(enum world_event_kind kind)
{
	switch (kind) {
	case WORLD_TO_MOVER:
	case WORLD_TO_PROGRAM:
	case WORLD_MOVER_SEES_END:
	case WORLD_PROGRAM_SEES_END:
	case WORLD_COPY_ENDS:
	case WORLD_PIN:
	case WORLD_RETURN:
	case WORLD_AGAIN:
	case WORLD_LOOK:
	case WORLD_MOVE_ON:
	case WORLD_MAKE_WAY:
	case WORLD_HOG_GOES:
	case WORLD_CONNECT:
	case WORLD_CLAIM_GONE:
		return true;
	default:
		return false;
	}
}

static bool spend(unsigned char *budget)
{
	if (!*budget)
		return false;
	(*budget)--;
	return true;
}

/* A connection that both sides have left is forgotten. */
static void forget_connections(void)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		struct world_connection *connection = &world.connections[i];
		if (connection->is_used && connection->program_closed && connection->mover_closed &&
		    !connection->program)
			memset(connection, 0, sizeof *connection);
	}
}

static bool step_mover(int number, enum world_event_kind kind)
{
	switch (kind) {
	case WORLD_LEAVE:
		return (!world.has_few_moves || spend(&world.budget.leave)) && mover_step(number, STEP_LEAVE);
	case WORLD_HALT:
		return spend(&world.budget.halt) && mover_step(number, STEP_HALT);
	case WORLD_RETURN:
		return mover_step(number, STEP_RETURN);
	case WORLD_STAY:
		return spend(&world.budget.stay) && mover_step(number, STEP_STAY);
	case WORLD_RESUME:
		return spend(&world.budget.resume) && mover_step(number, STEP_RESUME);
	case WORLD_AGAIN:
		return mover_step(number, STEP_AGAIN);
	case WORLD_MOVE_ON:
		return mover_step(number, STEP_MOVE_ON);
	case WORLD_SILENCE:
		return spend(&world.budget.silence) && mover_step(number, STEP_SILENCE);
	default:
		return mover_step(number, STEP_LOOK);
	}
}

static bool happen_to_mover(struct world_connection *connection, int number, enum world_event_kind kind)
{
	bool is_open = connection->is_used && !connection->mover_closed;
	bool has_program = is_open && connection->program;
	switch (kind) {
	case WORLD_TO_MOVER:
	case WORLD_TO_MOVER_NO_TRANSFER:
	case WORLD_TO_MOVER_NO_FDS:
	case WORLD_TO_MOVER_NO_BLOCK:
		if (!has_program || !connection->to_mover.count ||
		    (kind != WORLD_TO_MOVER &&
		     !(connection->to_mover.packets[0].fd_count &&
		       spend(kind == WORLD_TO_MOVER_NO_BLOCK ? &world.budget.block_fails
							     : &world.budget.transfer_fails))))
			return false;
		world.transfer_fails = kind == WORLD_TO_MOVER_NO_TRANSFER;
		world.has_no_fds = kind == WORLD_TO_MOVER_NO_FDS;
		world.block_fails = kind == WORLD_TO_MOVER_NO_BLOCK;
		mover_deliver(number);
		world.transfer_fails = world.has_no_fds = world.block_fails = false;
		return true;
	case WORLD_MOVER_SEES_END:
		if (!has_program || !connection->program_closed)
			return false;
		mover_drop(number);
		return true;
	case WORLD_MOVER_CUTS:
		if (!has_program || mover_has_disowned(number) || !spend(&world.budget.cut))
			return false;
		mover_disown(number);
		return true;
	case WORLD_COPY_ENDS:
		return has_program && mover_end_copy(number, false);
	case WORLD_COPY_FAILS:
		return has_program && spend(&world.budget.copy_fails) && mover_end_copy(number, true);
	case WORLD_CLAIM_GONE:
		if (!connection->program || !connection->mover_closed || world.programs[number / 2].is_alive)
			return false;
		mover_forget(number);
		return true;
	default:
		return has_program && step_mover(number, kind);
	}
}

/* Whether the program reads the first packet, and how. */
static bool reads_packet(const struct world_connection *connection, enum world_event_kind kind)
{
	if (!connection || !connection->to_program.count)
		return false;
	uint32_t packet = connection->to_program.packets[0].kind;
	if (kind == WORLD_TO_PROGRAM_BUSY)
		return (packet == LL_MOVER_LEAVE || packet == LL_MOVER_STOP) && spend(&world.budget.busy);
	return kind == WORLD_TO_PROGRAM || spend(&world.budget.export_fails);
}

static bool happen_to_program(unsigned program, enum world_event_kind kind)
{
	struct world_program *mine = &world.programs[program];
	struct world_connection *connection = mine->connection >= 0 ? &world.connections[mine->connection] : NULL;
	switch (kind) {
	case WORLD_TO_PROGRAM:
	case WORLD_TO_PROGRAM_BUSY:
	case WORLD_TO_PROGRAM_NO_EXPORT:
		if (!reads_packet(connection, kind))
			return false;
		world.is_busy = kind == WORLD_TO_PROGRAM_BUSY;
		world.export_fails = kind == WORLD_TO_PROGRAM_NO_EXPORT;
		program_deliver(program);
		world.is_busy = world.export_fails = false;
		return true;
	case WORLD_PROGRAM_SEES_END:
		if (!connection || (!connection->mover_closed && !connection->mover_shut))
			return false;
		program_lose(program);
		return true;
	case WORLD_PROGRAM_CUTS:
		if (!connection || !spend(&world.budget.cut))
			return false;
		program_lose(program);
		return true;
	case WORLD_CONNECT:
		if (connection || world.is_mover_dead || !program_connect(program))
			return false;
		program_tell(program);
		return true;
	case WORLD_WANT:
		return !mine->is_hostile && spend(&world.budget.want) && program_want(program);
	default: /* WORLD_KILL_PROGRAM */
		if (!mine->is_hostile && !spend(&world.budget.kill_program))
			return false;
		program_die(program);
		return true;
	}
}

bool world_add_piece(unsigned program, unsigned number, unsigned size)
{
	struct world_piece *piece = &world.programs[program].pieces[number];
	unsigned handle = world_new_handle(size);
	if (!handle)
		return false;
	*piece = (struct world_piece){(unsigned char)size, true, handle, handle};
	for (unsigned at = 0; at < size; at++)
		world.handles[handle - 1].bytes[at] = world_byte(program, number, at);
	return true;
}

static bool grow(unsigned program)
{
	unsigned number = 0;
	while (number < PIECES && world.programs[program].pieces[number].size)
		number++;
	if (number == PIECES || world.programs[program].is_hostile || program_is_stopped(program) ||
	    !spend(&world.budget.grow) || !world_add_piece(program, number, 1))
		return false;
	program_tell(program);
	return true;
}

static bool say_anything(unsigned program, unsigned number)
{
	const struct world_program *mine = &world.programs[program];
	if (!mine->is_hostile || mine->connection < 0 || world.connections[mine->connection].to_mover.count ||
	    !spend(&world.budget.hostile))
		return false;
	say_hostile(number);
	return true;
}

static bool happen_to_all(enum world_event_kind kind)
{
	switch (kind) {
	case WORLD_PIN:
		if (world.is_mover_dead || !mover_is_pinning())
			return false;
		mover_pin();
		return true;
	case WORLD_HOST_SHORT:
		if (world.is_mover_dead || !mover_is_pinning() || !spend(&world.budget.host_short))
			return false;
		mover_be_short();
		return true;
	case WORLD_WANTED:
		if (!world.has_neighbour || world.is_wanted || !spend(&world.budget.wanted))
			return false;
		world.is_wanted = true;
		return true;
	case WORLD_MAKE_WAY:
		return !world.is_mover_dead && mover_make_way();
	case WORLD_HOG_COMES:
		if (world.hog_bytes || !world_free_bytes() || !spend(&world.budget.hog))
			return false;
		world.hog_bytes = world_free_bytes();
		return true;
	case WORLD_HOG_GOES:
		if (!world.hog_bytes)
			return false;
		world.hog_bytes = 0;
		return true;
	default: /* WORLD_KILL_MOVER */
		if (world.is_mover_dead || !spend(&world.budget.kill_mover))
			return false;
		mover_die();
		return true;
	}
}

static bool is_for_all(enum world_event_kind kind)
{
	return kind == WORLD_PIN || kind == WORLD_HOST_SHORT || kind == WORLD_WANTED || kind == WORLD_MAKE_WAY ||
	       kind == WORLD_HOG_COMES || kind == WORLD_HOG_GOES || kind == WORLD_KILL_MOVER;
}

static bool is_for_mover(enum world_event_kind kind)
{
	return kind == WORLD_TO_MOVER || kind == WORLD_TO_MOVER_NO_TRANSFER || kind == WORLD_TO_MOVER_NO_FDS ||
	       kind == WORLD_TO_MOVER_NO_BLOCK || kind == WORLD_MOVER_SEES_END || kind == WORLD_COPY_ENDS ||
	       kind == WORLD_COPY_FAILS || (kind >= WORLD_LEAVE && kind <= WORLD_SILENCE) || kind == WORLD_MOVER_CUTS ||
	       kind == WORLD_CLAIM_GONE;
}

static bool happen(struct world_event event)
{
	enum world_event_kind kind = event.kind;
	if (is_for_all(kind))
		return event.who == 0 && happen_to_all(kind);
	if (is_for_mover(kind))
		return !world.is_mover_dead && happen_to_mover(&world.connections[event.who], event.who, kind);
	if (event.who >= PROGRAMS || !world.programs[event.who].is_alive)
		return false;
	if (kind == WORLD_GROW)
		return grow(event.who);
	if (kind >= WORLD_SAY_HOSTILE)
		return say_anything(event.who, kind - WORLD_SAY_HOSTILE);
	return happen_to_program(event.who, kind);
}

bool world_happen(struct world_event event)
{
	bool has_happened = happen(event);
	if (has_happened) {
		read_as_hostile();
		forget_connections();
	}
	world.current = 0;
	return has_happened;
}

/* ---- what must hold ---- */

void world_check(void)
{
	mover_check();
	for (unsigned i = 0; i < PROGRAMS; i++)
		program_check(i);
	world.current = 0;
}

static bool is_program_at_rest(unsigned number)
{
	const struct world_program *program = &world.programs[number];
	if (!program->is_alive || program->is_hostile)
		return true;
	if (world.is_tight && program->connection >= 0 && program_is_stopped(number) &&
	    mover_is_away(program->connection))
		return true;
	if (program_is_stopped(number))
		return false;
	return world.is_mover_dead || (program->connection >= 0 && mover_is_at_rest(program->connection));
}

static bool is_connection_at_rest(int number)
{
	const struct world_connection *connection = &world.connections[number];
	const struct world_program *program = &world.programs[number / 2];
	if (!connection->is_used)
		return true;
	if (!program->is_alive || program->connection != number)
		return false;
	return program->is_hostile || (!connection->to_mover.count && !connection->to_program.count);
}

static bool has_hostile(void)
{
	bool has_any = false;
	for (unsigned i = 0; i < PROGRAMS; i++)
		has_any |= world.programs[i].is_hostile && world.programs[i].is_alive;
	return has_any;
}

static bool has_block(void)
{
	for (unsigned i = 0; i < HANDLES; i++) {
		if (world.handles[i].is_beside)
			return true;
	}
	return false;
}

static bool is_any_on_card(void)
{
	bool is_any = false;
	for (unsigned i = 0; i < PROGRAMS; i++)
		is_any |= world.programs[i].is_alive && !world.programs[i].is_hostile && !program_is_stopped(i);
	return is_any;
}

bool world_is_at_rest(void)
{
	bool is_at_rest = !world.is_tight || is_any_on_card();
	for (unsigned i = 0; i < PROGRAMS; i++)
		is_at_rest = is_at_rest && is_program_at_rest(i);
	for (int i = 0; i < CONNECTIONS; i++)
		is_at_rest = is_at_rest && is_connection_at_rest(i);
	world.current = 0;
	if (is_at_rest && !world.is_tight)
		is_at_rest = !has_block();
	return is_at_rest && !has_hostile() && (world.is_mover_dead || world.is_tight || mover_pool_is_empty());
}
