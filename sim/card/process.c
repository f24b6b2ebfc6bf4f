#include "card/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "card/context.h"
#include "card/holding.h"
#include "card/mps.h"
#include "card/namespace.h"
#include "card/presence.h"
#include "card/rm.h"

/* Returns field 22 of /proc/NAME/stat, and checks field 3. 0: there is no such process, or it is a zombie. UINT64_MAX:
 * this process cannot open a file. */
static uint64_t start_ticks_of(const char *name)
{
	char path[40], text[512];
	snprintf(path, sizeof path, "/proc/%s/stat", name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return UINT64_MAX;
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *at = strrchr(text, ')'); /* the name may contain any character */
	char state = 0;
	unsigned long long ticks = 0;
	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			  &state, &ticks) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : ticks;
}

/* The driver frees all that a process has when it executes another program. */
static bool has_become_another(const struct sim_world *w, uint32_t index)
{
	return w->procs[index].is_present && !sim_presence_is_taken(index);
}

uint32_t sim_proc_own_uid(void)
{
	const char *text = getenv("LOADLINE_SIM_UID");
	return text ? (uint32_t)strtoul(text, NULL, 10) : (uint32_t)getuid();
}

uint32_t sim_proc_join(struct sim_world *w)
{
	struct sim_proc self = {.is_used = 1,
				.pid = getpid(),
				.start_ticks = start_ticks_of("self"),
				.pid_namespace = sim_namespace_own(),
				.uid = sim_proc_own_uid()};
	uint32_t free_slot = SIM_NONE;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &w->procs[i];
		if (proc->is_used && proc->pid == self.pid && proc->start_ticks == self.start_ticks &&
		    proc->pid_namespace == self.pid_namespace) {
			if (!has_become_another(w, i))
				return i;
			sim_proc_leave(w, i); /* of the program that it was before exec */
		}
		if (!proc->is_used && free_slot == SIM_NONE)
			free_slot = i;
	}
	if (free_slot == SIM_NONE)
		return free_slot;
	self.is_present = sim_presence_take(free_slot);
	*SIM_EDIT(w, &w->procs[free_slot]) = self;
	return free_slot;
}

/* The lock of a process shows whether it lives. /proc shows that too of processes of this process's own namespace, of
 * which some have no lock. */
static bool is_alive(const struct sim_world *w, uint32_t index, uint64_t own)
{
	const struct sim_proc *proc = &w->procs[index];
	if (!proc->is_used)
		return false;
	if (has_become_another(w, index))
		return false;
	if (!own || proc->pid_namespace != own)
		return true;
	char name[24];
	snprintf(name, sizeof name, "%d", proc->pid);
	uint64_t ticks = start_ticks_of(name);
	return ticks == proc->start_ticks || (ticks == UINT64_MAX && kill(proc->pid, 0) == 0);
}

bool sim_proc_is_alive(const struct sim_world *w, uint32_t index)
{
	return is_alive(w, index, sim_namespace_own());
}

/* The result for a process of another namespace, so that /proc is searched once for each. */
struct translation {
	uint64_t start_ticks, pid_namespace, own_namespace;
	int32_t pid, found;
};

int32_t sim_proc_pid(const struct sim_world *w, uint32_t index)
{
	static struct translation known[SIM_PROCS];
	const struct sim_proc *proc = &w->procs[index];
	struct translation *found = &known[index];
	uint64_t own = sim_namespace_own();
	if (proc->pid_namespace == own)
		return proc->pid;
	if (found->pid != proc->pid || found->start_ticks != proc->start_ticks ||
	    found->pid_namespace != proc->pid_namespace || found->own_namespace != own)
		*found = (struct translation){
		    .start_ticks = proc->start_ticks,
		    .pid_namespace = proc->pid_namespace,
		    .own_namespace = own,
		    .pid = proc->pid,
		    .found = proc->pid_namespace ? sim_namespace_find(proc->pid_namespace, proc->pid) : 0,
		};
	return found->found;
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
	sim_rm_drop(w, proc);
	sim_holdings_drop(w, proc);
	sim_shared_events_drop(w, proc);
	sim_mps_leave(w, proc);
	*SIM_EDIT(w, &w->procs[proc].is_used) = 0;
	sim_commit(w);
}

void sim_procs_reap_now(struct sim_world *w)
{
	uint64_t own = sim_namespace_own();
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		if (w->procs[i].is_used && !is_alive(w, i, own))
			sim_proc_leave(w, i);
	}
}

void sim_procs_reap(struct sim_world *w, uint64_t now_ns)
{
	if (now_ns - w->reaped_ns < 5 * LL_NS_PER_MS)
		return;
	*SIM_EDIT(w, &w->reaped_ns) = now_ns;
	sim_procs_reap_now(w);
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
