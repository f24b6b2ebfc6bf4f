/* What users and operators change in the queue. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/state.h"

static bool is_operator(const struct ll_connection *connection)
{
	return ll_department_is_operator(&connection->server->department, connection->uid);
}

static void accept_act(struct ll_connection *connection, uint64_t number)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	message.accepted.number = number;
	ll_connection_reply(connection, &message, NULL, 0);
}

/* ---- one job ---- */

/* A job that runs is stopped as one whose time is over. */
static void stop_entry(struct ll_admission *admission, struct ll_admission_entry *entry, bool is_by_user,
		       const char *why)
{
	if (!entry->uuid_count || ll_admission_is_reserved(entry)) {
		ll_admission_refuse(admission, entry, -ECANCELED, "the job was taken out of the queue");
		return;
	}
	uint64_t ran_ns = ll_now_ns() - entry->begin_ns;
	entry->has_end = entry->is_warned = entry->is_signaled = true;
	entry->is_ended |= !is_by_user;
	entry->loan.is_requeued = false;
	entry->stop.why = why;
	entry->queued.duration_ns = ran_ns < entry->queued.duration_ns ? ran_ns : entry->queued.duration_ns;
	ll_queue_changed(&admission->queue);
	ll_admission_wake(admission);
}

bool ll_admission_stop_job(struct ll_server *server, struct ll_job *job, const char *why)
{
	struct ll_admission_entry *entry = ll_admission_find(server->admission, job->number);
	bool has_place = entry && entry->uuid_count;
	if (has_place) {
		stop_entry(server->admission, entry, false, why);
	} else if (job->has_group) {
		job->stop.why = why;
		server->wants_tick = true;
		ll_server_look(server);
	}
	return has_place || job->has_group;
}

static int add_time(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t more_ns,
		    bool is_by_operator, const char **ret_reason)
{
	const struct ll_config_tenant *tenant = ll_department_find(admission->department, entry->tenant);
	if (entry->is_ended && !is_by_operator) {
		*ret_reason = "an operator ends the job";
		return -EPERM;
	}
	bool is_finite = more_ns < LL_QUEUE_NONE - entry->queued.duration_ns;
	uint64_t time_ns = entry->queued.duration_ns + more_ns;
	if (!is_finite || (!is_by_operator && !ll_admission_allows_time(tenant, time_ns))) {
		*ret_reason = "more than max-time allows; an operator may give more";
		return -EACCES;
	}
	if (!is_by_operator && !ll_admission_may_last(admission, entry, time_ns)) {
		*ret_reason = "others have the job's cards by then; an operator may give more";
		return -EACCES;
	}
	entry->queued.duration_ns = time_ns;
	entry->queued.has_time = entry->has_end = true;
	entry->is_warned = entry->is_signaled = entry->is_ended = entry->is_canceled = false;
	entry->stop = (struct ll_job_stop){0};
	ll_queue_changed(&admission->queue);
	ll_admission_wake(admission);
	return 0;
}

static int set_pause(struct ll_admission *admission, struct ll_admission_entry *entry, bool is_paused,
		     bool is_by_operator, const char **ret_reason)
{
	if (!is_paused && entry->is_paused && entry->pause_is_operators && !is_by_operator) {
		*ret_reason = "an operator has paused the job";
		return -EPERM;
	}
	entry->pause_is_operators = is_paused && (is_by_operator || (entry->is_paused && entry->pause_is_operators));
	entry->is_paused = is_paused;
	admission->must_arrange = true;
	ll_queue_changed(&admission->queue);
	ll_admission_wake(admission);
	return 0;
}

static int act_on(struct ll_connection *connection, struct ll_admission_entry *entry,
		  const struct ll_message_queue_act *act, const char **ret_reason)
{
	struct ll_admission *admission = connection->server->admission;
	bool is_waiting = !entry->uuid_count;
	*ret_reason = "the job does not wait";
	if (!is_waiting && act->act != LL_QUEUE_CANCEL && act->act != LL_QUEUE_TIME)
		return -EINVAL;
	switch (act->act) {
	case LL_QUEUE_CANCEL:
		entry->is_canceled = true;
		entry->canceled_by = connection->uid;
		stop_entry(admission, entry, entry->uid == connection->uid, "it was canceled");
		return 0;
	case LL_QUEUE_PAUSE:
	case LL_QUEUE_RELEASE:
		return set_pause(admission, entry, act->act == LL_QUEUE_PAUSE, is_operator(connection), ret_reason);
	case LL_QUEUE_MOVE:
		entry->queued.position = act->value < UINT32_MAX ? (uint32_t)act->value : UINT32_MAX;
		admission->must_arrange = true;
		ll_admission_wake(admission);
		return 0;
	case LL_QUEUE_TIME:
		return add_time(admission, entry, act->value, is_operator(connection), ret_reason);
	default:
		*ret_reason = "this loadlined does not know that act";
		return -ENOTSUP;
	}
}

static void act_on_job(struct ll_connection *connection, const struct ll_message_queue_act *act)
{
	static const char *const verbs[] = {[LL_QUEUE_CANCEL] = "cancels",
					    [LL_QUEUE_PAUSE] = "pauses",
					    [LL_QUEUE_RELEASE] = "releases",
					    [LL_QUEUE_MOVE] = "moves",
					    [LL_QUEUE_TIME] = "gives more time to"};
	struct ll_admission_entry *entry = ll_admission_find(connection->server->admission, act->number);
	const char *reason = "there is no such job in the queue";
	if (entry && !ll_rights_know(connection, entry->uid))
		entry = NULL;
	uint32_t uid = entry ? entry->uid : 0;
	bool is_for_owner = act->act != LL_QUEUE_MOVE;
	int rc = entry ? 0 : -ESRCH;
	if (entry && !is_operator(connection) && !(uid == connection->uid && is_for_owner)) {
		reason = is_for_owner ? "the job is another user's" : "only an operator may do that";
		rc = -EPERM;
	}
	if (!rc)
		rc = act_on(connection, entry, act, &reason);
	if (rc) {
		ll_connection_refuse(connection, rc, reason);
		return;
	}
	if (uid != connection->uid)
		ll_warn("user %" PRIu32 " %s job %" PRIu64 " of user %" PRIu32, connection->uid, verbs[act->act],
			act->number, uid);
	accept_act(connection, act->number);
}

/* ---- drained cards ---- */

static int add_drain(struct ll_admission *admission, unsigned index, uint64_t since_s, const char *reason)
{
	size_t at = 0;
	while (at < admission->drain_count && admission->drains[at].index != index)
		at++;
	if (at == admission->drain_count) {
		struct ll_admission_drain *drains = realloc(admission->drains, (at + 1) * sizeof *drains);
		if (!drains)
			return -ENOMEM;
		admission->drains = drains;
		admission->drain_count++;
	}
	admission->drains[at] = (struct ll_admission_drain){.index = index, .since_s = since_s};
	ll_message_text_set(admission->drains[at].reason, sizeof admission->drains[at].reason, reason);
	return 0;
}

int ll_admission_drain_card(struct ll_server *server, unsigned index, const char *reason)
{
	struct ll_admission *admission = server->admission;
	uint64_t now_s = ll_wall_ns() / LL_NS_PER_S;
	for (size_t i = 0; i < admission->drain_count; i++) {
		if (admission->drains[i].index == index && admission->drains[i].since_s <= now_s)
			return 1;
	}
	int rc = add_drain(admission, index, now_s, reason);
	if (rc)
		return rc;
	admission->is_outdated = true;
	ll_admission_wake(admission);
	return 0;
}

bool ll_admission_drained(const struct ll_server *server, size_t place, struct ll_message_sense_drained *ret_row)
{
	const struct ll_admission *admission = server->admission;
	if (place >= admission->drain_count)
		return false;
	ret_row->index = admission->drains[place].index;
	ret_row->since_s = admission->drains[place].since_s;
	memcpy(ret_row->reason, admission->drains[place].reason, sizeof ret_row->reason);
	return true;
}

static void drain_cards(struct ll_connection *connection, const struct ll_message_queue_act *act)
{
	struct ll_admission *admission = connection->server->admission;
	bool is_undo = act->act == LL_QUEUE_UNDRAIN;
	int rc = is_operator(connection) ? 0 : -EPERM;
	for (unsigned index = 0; index < LL_QUEUE_CARDS_MAX && !rc; index++) {
		if (!(act->card_mask >> index & 1))
			continue;
		if (!is_undo)
			rc = add_drain(admission, index, act->value, "");
		for (size_t i = 0; is_undo && i < admission->drain_count; i++) {
			if (admission->drains[i].index == index) {
				admission->drains[i] = admission->drains[--admission->drain_count];
				break;
			}
		}
	}
	if (rc) {
		ll_connection_refuse(connection, rc,
				     rc == -EPERM ? "only an operator may drain a card" : "loadlined has no memory");
		return;
	}
	ll_events_tell(connection->server, LL_EVENT_DRAINED, NULL, "user %" PRIu32 " %s cards 0x%" PRIx64,
		       connection->uid,
		       is_undo                               ? "stops draining"
		       : act->act == LL_QUEUE_DRAIN_AND_STOP ? "drains and stops the jobs of"
							     : "drains",
		       act->card_mask);
	admission->is_outdated = true;
	ll_admission_wake(admission);
	struct ll_admission_entry *entry = act->act == LL_QUEUE_DRAIN_AND_STOP ? admission->entries : NULL;
	for (; entry; entry = entry->next) {
		bool is_on = false;
		for (uint32_t i = 0; i < entry->uuid_count; i++) {
			const struct ll_machine_card *card = ll_machine_card_find(connection->server, entry->uuids[i]);
			is_on |= card && card->index < LL_QUEUE_CARDS_MAX && act->card_mask >> card->index & 1;
		}
		if (is_on && !entry->stop.why)
			stop_entry(admission, entry, false, "its card is drained");
	}
	accept_act(connection, 0);
}

void ll_admission_act(struct ll_connection *connection, const struct ll_message_queue_act *act)
{
	if (act->act == LL_QUEUE_DRAIN || act->act == LL_QUEUE_UNDRAIN || act->act == LL_QUEUE_DRAIN_AND_STOP)
		drain_cards(connection, act);
	else
		act_on_job(connection, act);
}
