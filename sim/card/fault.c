#include "card/fault.h"

#include "base/clock.h"
#include "card/engine.h"

void sim_faults_announce(struct sim_world *w)
{
	sim_save(w, &w->has_faults, sizeof w->has_faults);
	__atomic_store_n(&w->has_faults, 1, __ATOMIC_RELAXED);
}

/* Counts this call against one fault. Returns whether it is hit. */
static bool hits(struct sim_world *w, struct sim_fault *fault, const char *function)
{
	if (!sim_name_matches(fault->function, function))
		return false;
	SIM_EDIT(w, fault);
	if (fault->pass) {
		fault->pass--;
		return false;
	}
	if (--fault->count == 0)
		fault->is_used = 0;
	return true;
}

uint32_t sim_fault_find(struct sim_world *w, const char *function, uint64_t *ret_until_ns)
{
	uint32_t status = 0;
	uint64_t hang_ns = 0;
	bool any = false;
	*ret_until_ns = w->suspended_until_ns;
	for (unsigned i = 0; i < SIM_FAULTS; i++) {
		struct sim_fault *fault = &w->faults[i];
		if (!fault->is_used)
			continue;
		if (fault->until_ns <= w->now_ns) {
			SIM_EDIT(w, fault)->is_used = 0;
			continue;
		}
		any = true;
		if (!hits(w, fault, function))
			continue;
		hang_ns = fault->hang_ns > hang_ns ? fault->hang_ns : hang_ns;
		status = fault->status ? fault->status : status;
	}
	if (!any && *ret_until_ns <= w->now_ns) {
		sim_save(w, &w->has_faults, sizeof w->has_faults);
		__atomic_store_n(&w->has_faults, 0, __ATOMIC_RELAXED);
	}
	if (hang_ns && w->now_ns + hang_ns > *ret_until_ns)
		*ret_until_ns = w->now_ns + hang_ns;
	return status;
}

uint32_t sim_fault_check(struct sim_world *w, const char *function)
{
	if (!__atomic_load_n(&w->has_faults, __ATOMIC_RELAXED))
		return 0;
	uint64_t until_ns;
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t status = sim_fault_find(w, function, &until_ns);
	sim_unlock(w);
	ll_sleep_until_ns(until_ns);
	return status;
}
