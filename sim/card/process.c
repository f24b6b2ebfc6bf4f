#include "card/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "card/context.h"
#include "card/holding.h"
#include "card/mps.h"

/* Field 22 of /proc/PID/stat, and field 3. 0: no such process, or a zombie. UINT64_MAX: this process can open no file.
 */
static uint64_t start_ticks_of(int32_t pid)
{
	char path[40], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return UINT64_MAX;
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *at = strrchr(text, ')'); /* the name may hold anything */
	char state = 0;
	unsigned long long ticks = 0;
	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			  &state, &ticks) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : ticks;
}

uint32_t sim_proc_join(struct sim_world *w)
{
	int32_t pid = getpid();
	uint64_t ticks = start_ticks_of(pid);
	uint32_t free_slot = SIM_NONE;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &w->procs[i];
		if (proc->is_used && proc->pid == pid && proc->start_ticks == ticks)
			return i;
		if (!proc->is_used && free_slot == SIM_NONE)
			free_slot = i;
	}
	if (free_slot != SIM_NONE)
		*SIM_EDIT(w, &w->procs[free_slot]) = (struct sim_proc){.is_used = 1, .pid = pid, .start_ticks = ticks};
	return free_slot;
}

bool sim_proc_is_alive(const struct sim_proc *proc)
{
	uint64_t ticks = proc->is_used ? start_ticks_of(proc->pid) : 0;
	return proc->is_used && (ticks == proc->start_ticks || (ticks == UINT64_MAX && kill(proc->pid, 0) == 0));
}

void sim_proc_leave(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		if (w->contexts[i].is_used && w->contexts[i].proc == proc)
			sim_context_free(w, i);
	}
	for (uint32_t i = 0; i < SIM_MODULES; i++) {
		if (w->module_owner[i] == proc + 1)
			*SIM_EDIT(w, &w->module_owner[i]) = 0;
	}
	sim_holdings_drop(w, proc);
	sim_shared_events_drop(w, proc);
	sim_mps_leave(w, proc);
	*SIM_EDIT(w, &w->procs[proc].is_used) = 0;
	sim_commit(w);
}

void sim_procs_reap(struct sim_world *w, uint64_t now_ns)
{
	if (now_ns - w->reaped_ns < 5 * LL_NS_PER_MS)
		return;
	*SIM_EDIT(w, &w->reaped_ns) = now_ns;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &w->procs[i];
		if (proc->is_used && !sim_proc_is_alive(proc))
			sim_proc_leave(w, i);
	}
}

uint32_t sim_module_new(struct sim_world *w, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_MODULES; i++) {
		if (w->module_owner[i])
			continue;
		*SIM_EDIT(w, &w->module_owner[i]) = proc + 1;
		*SIM_EDIT(w, &w->stopped_epoch[i]) = 0;
		return i;
	}
	return SIM_NONE;
}

void sim_module_free(struct sim_world *w, uint32_t module)
{
	if (module != SIM_NONE)
		*SIM_EDIT(w, &w->module_owner[module]) = 0;
}
