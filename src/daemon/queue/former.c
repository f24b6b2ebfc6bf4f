/* What a former loadlined knew: its waiting jobs, which ask again, and the use of users. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/queue/state.h"

/* For so long after the first look no job starts while waiting jobs of the former loadlined have not asked again: they
 * try each 0.5 s. Those that do not come in the second time are gone. */
#define HOLD_NS (2 * LL_NS_PER_S)
#define GONE_NS (10 * LL_NS_PER_S)

void ll_admission_former_return(struct ll_admission *admission, struct ll_admission_entry *entry)
{
	struct ll_admission_entry **at = &admission->former;
	while (*at && ((*at)->token != entry->token || (*at)->uid != entry->uid))
		at = &(*at)->next;
	struct ll_admission_entry *former = *at;
	if (!former)
		return;
	*at = former->next;
	entry->queued.number = former->queued.number;
	entry->queued.position = former->queued.position;
	entry->came_s = former->came_s;
	entry->is_paused = former->is_paused;
	entry->pause_is_operators = former->pause_is_operators;
	if (former->has_end && entry->has_end && former->queued.duration_ns > entry->queued.duration_ns)
		entry->queued.duration_ns = former->queued.duration_ns; /* it was given more time */
	entry->wait_until_ns =
	    former->wait_until_ns < entry->wait_until_ns ? former->wait_until_ns : entry->wait_until_ns;
	free(former);
	admission->must_arrange = true;
}

const struct ll_admission_entry *ll_admission_former_find(const struct ll_admission *admission, uint64_t number)
{
	const struct ll_admission_entry *former = admission->former;
	while (former && former->queued.number != number)
		former = former->next;
	return former;
}

bool ll_admission_former_holds(struct ll_admission *admission, uint64_t now_ns)
{
	if (!admission->former)
		return false;
	if (!admission->first_look_ns)
		admission->first_look_ns = now_ns;
	while (admission->former && now_ns - admission->first_look_ns >= GONE_NS) {
		struct ll_admission_entry *former = admission->former;
		admission->former = former->next;
		former->told_ns = now_ns;
		ll_admission_note_end(admission, former);
		free(former);
	}
	return admission->former && now_ns - admission->first_look_ns < HOLD_NS;
}

/* A tenant that the configuration does not have any more has no use. */
void ll_admission_former_count(struct ll_admission *admission, uint64_t half_life_ns)
{
	struct ll_queue *queue = &admission->queue;
	bool never_halves = half_life_ns == LL_QUEUE_NONE || !half_life_ns;
	double age_ns = (double)admission->former_use_age_s * (double)LL_NS_PER_S;
	double left = never_halves ? 1 : exp2(-age_ns / (double)half_life_ns);
	if (!queue->charged_ns)
		queue->charged_ns = admission->former_use_ns ? admission->former_use_ns : ll_now_ns();
	for (size_t i = 0; i < admission->former_use_count; i++) {
		const struct ll_admission_use *use = &admission->former_use[i];
		for (uint32_t tenant = 0; tenant + 1 < admission->described.machine.tenant_count; tenant++) {
			if (strcmp(admission->described.names[tenant], use->tenant) != 0)
				continue;
			ll_queue_add_use(queue, tenant, use->uid, left * use->use_ns);
			queue->tenant_use_ns[tenant] += left * use->use_ns;
		}
	}
	free(admission->former_use);
	admission->former_use = NULL;
	admission->former_use_count = 0;
}

void ll_admission_former_fini(struct ll_admission *admission)
{
	while (admission->former) {
		struct ll_admission_entry *next = admission->former->next;
		free(admission->former);
		admission->former = next;
	}
	free(admission->former_use);
}
