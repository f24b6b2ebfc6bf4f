#include "kernel/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "card/attach.h"
#include "card/engine.h"
#include "card/process.h"
#include "card/rm.h"

/* ---- files ---- */

static bool is_named_nvidiactl(int fd)
{
	static const char wanted[] = "/memfd:nvidiactl ";
	char path[40], name[sizeof wanted - 1];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof name) == (ssize_t)sizeof name && memcmp(name, wanted, sizeof name) == 0;
}

/* Returns the world's file of a descriptor, and adds it if this process has opened it since. SIM_NONE: the descriptor
 * is not the simulated driver's, or its process has ended. */
static uint32_t find_file(struct sim_world *w, int fd, const struct stat *st, bool is_new)
{
	uint32_t file = sim_rm_find_file(w, st->st_dev, st->st_ino);
	if (file != SIM_NONE || !is_new || !is_named_nvidiactl(fd))
		return file;
	uint32_t proc = sim_proc_join(w);
	return proc == SIM_NONE ? SIM_NONE : sim_rm_add_file(w, proc, st->st_dev, st->st_ino);
}

/* ---- requests ---- */

struct request {
	unsigned number, size;
	void *argument;
};

/* A large request is in a small one. */
static struct request unwrap_request(unsigned long code, void *argument)
{
	struct request request = {code & 0xff, code >> 16 & 0x3fff, argument};
	if (request.number == LL_RM_ESC_XFER && request.size == sizeof(struct ll_rm_xfer) && argument) {
		const struct ll_rm_xfer *inner = argument;
		request = (struct request){inner->request, inner->size, (void *)(uintptr_t)inner->argument};
	}
	return request;
}

/* How long a control call takes before it has its effect, and until it returns (doc/facts.md). */
struct duration {
	uint64_t before_ns, after_ns;
};

static struct duration control_duration(const struct ll_rm_control *control)
{
	const struct ll_rm_disable *list = (const void *)(uintptr_t)control->params;
	switch (control->command) {
	case LL_RM_CONTROL_SET_SLICE:
		return (struct duration){300 * LL_NS_PER_US, 0};
	case LL_RM_CONTROL_PREEMPT:
		return (struct duration){430 * LL_NS_PER_US, 0};
	case LL_RM_CONTROL_FLUSH:
		return (struct duration){40 * LL_NS_PER_US, 0};
	case LL_RM_CONTROL_DISABLE_CHANNELS:
		if (list && list->is_off && !list->only_scheduling)
			return (struct duration){350 * LL_NS_PER_US, 300 * LL_NS_PER_US};
		return (struct duration){350 * LL_NS_PER_US, 0};
	default:
		return (struct duration){0, 0};
	}
}

/* The descriptor by which a memory is mapped becomes one of the memory. It has to be another one of the driver. */
static uint32_t map_memory(const struct sim_world *w, uint32_t file, const struct ll_rm_map *map)
{
	struct stat st;
	int flags = fcntl(map->fd, F_GETFD), memory = -1;
	if (flags < 0 || fstat(map->fd, &st) || !S_ISREG(st.st_mode) || !is_named_nvidiactl(map->fd))
		return SIM_RM_BAD_ARGUMENT;
	uint32_t status = sim_rm_open_memory(w, file, map, &memory);
	if (status)
		return status;
	bool is_put = dup3(memory, map->fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) >= 0;
	close(memory);
	return is_put ? 0 : SIM_RM_BAD_ARGUMENT;
}

static uint32_t carry_out(struct sim_world *w, uint32_t file, const struct request *request)
{
	if (request->number == LL_RM_ESC_MAP_MEMORY)
		return map_memory(w, file, request->argument);
	if (request->number == LL_RM_ESC_ALLOC)
		return sim_rm_alloc(w, file, request->argument);
	if (request->number == LL_RM_ESC_FREE)
		return sim_rm_free(w, file, request->argument);
	return sim_rm_control(w, file, request->argument);
}

/* Returns where a request has its status. NULL: there is no such request of this size. */
static uint32_t *status_of(const struct request *request)
{
	if (request->number == LL_RM_ESC_ALLOC && request->size == sizeof(struct ll_rm_alloc))
		return &((struct ll_rm_alloc *)request->argument)->status;
	if (request->number == LL_RM_ESC_FREE && request->size == sizeof(struct ll_rm_free))
		return &((struct ll_rm_free *)request->argument)->status;
	if (request->number == LL_RM_ESC_MAP_MEMORY && request->size == sizeof(struct ll_rm_map))
		return &((struct ll_rm_map *)request->argument)->status;
	if (request->number == LL_RM_ESC_CONTROL && request->size == sizeof(struct ll_rm_control))
		return &((struct ll_rm_control *)request->argument)->status;
	return NULL;
}

static void sleep_for(uint64_t ns)
{
	if (ns)
		ll_sleep_until_ns(ll_now_ns() + ns);
}

bool sim_kernel_answer(int fd, unsigned long code, void *argument, int *ret)
{
	int before = errno;
	struct stat st;
	struct sim_world *w;
	struct request request = unwrap_request(code, argument);
	bool is_new = request.number == LL_RM_ESC_ALLOC && request.size == sizeof(struct ll_rm_alloc) &&
		      request.argument && ((struct ll_rm_alloc *)request.argument)->class == LL_RM_CLASS_ROOT;
	uint32_t file = SIM_NONE;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && sim_world_attach(&w, NULL) == 0) {
		sim_lock(w);
		sim_advance_to_now(w);
		file = find_file(w, fd, &st, is_new);
		sim_unlock(w);
	}
	errno = before;
	if (file == SIM_NONE)
		return false;
	uint32_t *status = request.argument ? status_of(&request) : NULL;
	*ret = status ? 0 : -1;
	if (!status) {
		errno = EINVAL;
		return true;
	}
	struct duration takes = {0, 0};
	if (request.number == LL_RM_ESC_CONTROL)
		takes = control_duration(request.argument);
	sleep_for(takes.before_ns);
	sim_lock(w);
	sim_advance_to_now(w);
	/* Its process may have ended meanwhile. */
	file = sim_rm_find_file(w, st.st_dev, st.st_ino);
	*status = file == SIM_NONE ? LL_RM_NO_RIGHT : carry_out(w, file, &request);
	sim_unlock(w);
	sleep_for(takes.after_ns);
	errno = before;
	return true;
}
