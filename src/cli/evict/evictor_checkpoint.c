#include "cli/evict/evict.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/scope.h"
#include "cli/common/daemon.h"
#include "driver/readings.h"
#include "protocol/client.h"
#include "protocol/words.h"

/* How long the process's work on the cards may take to end, as for evictable programs. */
enum { LOCK_MS = 10000 };

static int open_checkpoint(const struct ll_evictor_target *target, const struct ll_cuda **ret_cuda,
			   enum ll_cu_process_state *ret_state, struct ll_err *err)
{
	const struct ll_cuda *cuda;
	if (!target->pid)
		return ll_err_set(err, -EOPNOTSUPP, "its process is in another PID namespace");
	int rc = ll_driver_cuda(target->driver, &cuda, err);
	if (rc)
		return rc;
	if (!cuda->cuCheckpointProcessLock || !cuda->cuCheckpointProcessCheckpoint ||
	    !cuda->cuCheckpointProcessRestore || !cuda->cuCheckpointProcessUnlock ||
	    !cuda->cuCheckpointProcessGetState) {
		ll_err_set(err, -EOPNOTSUPP, "this driver has no checkpoint: it is older than 570");
		return ll_err_hint(err, "start the program with `loadline run --evictable`");
	}
	ll_cu_result status = cuda->cuCheckpointProcessGetState(target->pid, ret_state);
	if (status)
		return ll_cuda_fail(cuda, status, err, "the driver's checkpoint does not know the process");
	if (*ret_state == LL_CU_PROCESS_STATE_FAILED)
		return ll_err_set(err, -EIO, "the driver's checkpoint has failed before: the process is lost");
	*ret_cuda = cuda;
	return 0;
}

static int fail_step(const struct ll_cuda *cuda, ll_cu_result status, const char *what, struct ll_err *err)
{
	char text[LL_STATUS_TEXT_SIZE];
	return ll_err_set(err, -EBUSY, "%s: %s", what, ll_cuda_status_text(cuda, status, text));
}

/* On all cards, as NVML tells. */
static uint64_t process_bytes(const struct ll_evictor_target *target)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(target->driver, &cards);
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++) {
		struct ll_process_list list = {0};
		if (!cards[i].fault && ll_read_processes(&cards[i], LL_PROCESS_COMPUTE, &list, NULL) == 0) {
			for (size_t k = 0; k < list.count; k++) {
				const struct ll_process *process = &list.items[k];
				if (process->pid == target->pid && process->memory_bytes != LL_MEMORY_UNKNOWN)
					bytes += process->memory_bytes;
			}
		}
		ll_process_list_fini(&list);
	}
	return bytes;
}

static uint32_t checkpoint_of(enum ll_cu_process_state state)
{
	return state == LL_CU_PROCESS_STATE_RUNNING        ? LL_CHECKPOINT_NONE
	       : state == LL_CU_PROCESS_STATE_CHECKPOINTED ? LL_CHECKPOINT_EVICTED
							   : LL_CHECKPOINT_SUSPENDED;
}

struct note {
	uint32_t state;
	int process_fd;
};

/* If nobody serves there are no claims. */
static int tell_state(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err)
{
	const struct note *note = data;
	union ll_message message;
	(void)list;
	if (!client)
		return 0;
	ll_message_init(&message, LL_MESSAGE_CHECKPOINT);
	message.checkpoint.state = note->state;
	int rc = ll_client_request(client, &message, &note->process_fd, 1, NULL, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	return rc == -ESRCH ? -ENOENT : rc;
}

/* Tells loadlined the state that the driver tells, for all claims of the process. cuda NULL: nothing was done. A
 * process that has no claim, or no loadlined, is nobody's concern. */
static void note_state(const struct ll_cuda *cuda, const struct ll_evictor_target *target)
{
	enum ll_cu_process_state state;
	LL_SCOPE_CLOSE int process_fd = ll_process_open(target->pid);
	if (process_fd < 0 || !cuda || cuda->cuCheckpointProcessGetState(target->pid, &state) ||
	    state == LL_CU_PROCESS_STATE_FAILED)
		return;
	struct note note = {checkpoint_of(state), process_fd};
	int rc = ll_daemon_look(ll_driver_sim_folder(target->driver), false, tell_state, &note, NULL);
	if (rc && rc != -ENOENT)
		ll_log(LL_LOG_WARN, "pid %d: loadlined does not know what the checkpoint did: %s", (int)target->pid,
		       strerror(-rc));
}

static int lock_process(const struct ll_cuda *cuda, const struct ll_evictor_target *target, struct ll_err *err)
{
	uint64_t wait_ms = target->wait_ns ? target->wait_ns / LL_NS_PER_MS : LOCK_MS;
	struct ll_cu_checkpoint_lock_args args = {.timeout_ms = wait_ms < UINT32_MAX ? (unsigned)wait_ms : UINT32_MAX};
	ll_cu_result status = cuda->cuCheckpointProcessLock(target->pid, &args);
	if (status == LL_CUDA_ERROR_NOT_READY)
		return ll_err_set(err, -EBUSY, "its work on the card does not end: it cannot leave until that ends");
	return status ? fail_step(cuda, status, "the driver cannot stop it", err) : 0;
}

/* Of a process that is locked. before: its state before that, which it has again if it cannot leave. */
static int checkpoint_process(const struct ll_cuda *cuda, const struct ll_evictor_target *target,
			      enum ll_cu_process_state before, struct ll_err *err)
{
	int rc;
	if (target->interrupt && atomic_load(&target->interrupt->is_set)) {
		rc = ll_err_set(err, -EINTR, "interrupted");
	} else {
		ll_cu_result status = cuda->cuCheckpointProcessCheckpoint(target->pid, NULL);
		rc = status ? fail_step(cuda, status, "the driver cannot take its memory off the card", err) : 0;
	}
	if (rc && before == LL_CU_PROCESS_STATE_RUNNING)
		cuda->cuCheckpointProcessUnlock(target->pid, NULL);
	return rc;
}

static int evict_by_checkpoint(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			       struct ll_err *err)
{
	const struct ll_cuda *cuda = NULL;
	enum ll_cu_process_state state = LL_CU_PROCESS_STATE_RUNNING;
	uint64_t begun_ns = ll_now_ns();
	int rc = open_checkpoint(target, &cuda, &state, err);
	uint64_t bytes = rc ? 0 : process_bytes(target);
	if (!rc && cuda && state == LL_CU_PROCESS_STATE_RUNNING)
		rc = lock_process(cuda, target, err);
	if (!rc && cuda && state != LL_CU_PROCESS_STATE_CHECKPOINTED)
		rc = checkpoint_process(cuda, target, state, err);
	note_state(cuda, target);
	if (!rc)
		*ret_moved = (struct ll_evictor_moved){.bytes = bytes,
						       .took_ns = ll_now_ns() - begun_ns,
						       .is_already = state == LL_CU_PROCESS_STATE_CHECKPOINTED};
	return rc;
}

static int suspend_by_checkpoint(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
				 struct ll_err *err)
{
	const struct ll_cuda *cuda = NULL;
	enum ll_cu_process_state state = LL_CU_PROCESS_STATE_RUNNING;
	uint64_t begun_ns = ll_now_ns();
	int rc = open_checkpoint(target, &cuda, &state, err);
	if (!rc && cuda && state == LL_CU_PROCESS_STATE_RUNNING)
		rc = lock_process(cuda, target, err);
	note_state(cuda, target);
	if (!rc)
		*ret_moved = (struct ll_evictor_moved){.took_ns = ll_now_ns() - begun_ns,
						       .is_already = state != LL_CU_PROCESS_STATE_RUNNING};
	return rc;
}

static int restore_process(const struct ll_cuda *cuda, pid_t pid, struct ll_err *err)
{
	ll_cu_result status = cuda->cuCheckpointProcessRestore(pid, NULL);
	if (status != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return status ? fail_step(cuda, status, "the driver cannot bring its memory back: it waits", err) : 0;
	ll_err_set(err, -EBUSY, "the card has no room for its memory: it waits");
	return ll_err_hint(err, "end or evict another program, and try again");
}

static int resume_by_checkpoint(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
				struct ll_err *err)
{
	const struct ll_cuda *cuda = NULL;
	enum ll_cu_process_state state = LL_CU_PROCESS_STATE_RUNNING;
	uint64_t begun_ns = ll_now_ns();
	int rc = open_checkpoint(target, &cuda, &state, err);
	if (!rc && cuda && state == LL_CU_PROCESS_STATE_CHECKPOINTED)
		rc = restore_process(cuda, target->pid, err);
	if (!rc && cuda && state != LL_CU_PROCESS_STATE_RUNNING) {
		ll_cu_result status = cuda->cuCheckpointProcessUnlock(target->pid, NULL);
		rc = status ? fail_step(cuda, status, "the driver cannot let it go on", err) : 0;
	}
	note_state(cuda, target);
	if (!rc)
		*ret_moved = (struct ll_evictor_moved){.bytes = process_bytes(target),
						       .took_ns = ll_now_ns() - begun_ns,
						       .is_already = state == LL_CU_PROCESS_STATE_RUNNING};
	return rc;
}

const struct ll_evictor ll_evictor_checkpoint = {.name = "checkpoint",
						 .evict = evict_by_checkpoint,
						 .suspend = suspend_by_checkpoint,
						 .resume = resume_by_checkpoint};
