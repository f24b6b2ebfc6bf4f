#include "card/fault.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

void sim_faults_announce(struct sim_world *w)
{
	sim_save(w, &w->has_faults, sizeof w->has_faults);
	__atomic_store_n(&w->has_faults, 1, __ATOMIC_RELAXED);
}

/* Counts this call for one fault. Returns whether the fault affects the call. */
static bool fault_hits(struct sim_world *w, struct sim_fault *fault, const char *function)
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
		if (!fault_hits(w, fault, function))
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

int sim_fault_parse_limits(const struct sim_world *w, const struct sim_words *words, int i, struct sim_fault *fault,
			   struct ll_err *err)
{
	for (; i < words->count; i += 2) {
		const char *key = words->word[i];
		uint64_t duration_ns;
		int rc;
		if (strcmp(key, "for") == 0) {
			rc = sim_word_duration(words, i + 1, &duration_ns, err);
			if (rc == 0)
				fault->until_ns = w->now_ns + duration_ns;
		} else if (strcmp(key, "after") == 0) {
			rc = sim_word_uint(words, i + 1, 0, UINT64_MAX, &fault->pass, err);
		} else if (strcmp(key, "count") == 0) {
			rc = sim_word_uint(words, i + 1, 1, UINT64_MAX, &fault->count, err);
		} else {
			rc = ll_err_set(err, -EINVAL, "'%s': not one of for, after, count", key);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sim_fault_add(struct sim_world *w, const struct sim_fault *fault, struct ll_err *err)
{
	for (unsigned slot = 0; slot < SIM_FAULTS; slot++) {
		if (w->faults[slot].is_used)
			continue;
		*SIM_EDIT(w, &w->faults[slot]) = *fault;
		sim_faults_announce(w);
		return 0;
	}
	return ll_err_set(err, -ENOSPC, "%s: more than %d faults at once", fault->function, SIM_FAULTS);
}
