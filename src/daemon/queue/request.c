/* What a job asks of the queue, checked by the configuration. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/core/server.h"
#include "daemon/policy/allowance.h"
#include "daemon/policy/spending.h"
#include "daemon/queue/state.h"
#include "daemon/residency/fair_room.h"

static int read_time(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
		     const struct ll_message_admit *admit, struct ll_admission_entry *entry, struct ll_err *err)
{
	uint64_t most_ns = tenant->each_user.max_time_ns;
	uint64_t time_ns = admit->time_ns;
	if (time_ns && !ll_admission_allows_time(tenant, time_ns))
		return ll_err_set(err, -EACCES, "time: %.4g h asked for, %.4g h allowed for each user",
				  (double)time_ns / (3600.0 * LL_NS_PER_S), (double)most_ns / (3600.0 * LL_NS_PER_S));
	if (!time_ns && policy->defaults.time_ns != LL_CONFIG_NONE)
		time_ns = policy->defaults.time_ns;
	time_ns = time_ns && time_ns < most_ns ? time_ns : most_ns;
	entry->has_end = time_ns != LL_CONFIG_NONE && time_ns;
	if (!admit->time_ns && policy->defaults.time_ns == LL_CONFIG_NONE && most_ns == LL_CONFIG_NONE)
		entry->has_end = false;
	entry->queued.has_time = admit->time_ns;
	entry->queued.duration_ns = entry->has_end ? time_ns : LL_ADMISSION_GUESS_NS;
	entry->signal = admit->signal;
	entry->signal_before_s = admit->signal_before_s;
	if (entry->signal && !entry->has_end)
		return ll_err_set(err, -EACCES, "signal: nothing ends the job before it ends itself: it has no time");
	if (entry->signal && entry->signal_before_s * LL_NS_PER_S >= time_ns)
		return ll_err_set(err, -EACCES, "signal: %u s before the end of %.4g s", entry->signal_before_s,
				  (double)time_ns / LL_NS_PER_S);
	return 0;
}

static uint64_t count_waiting(const struct ll_admission *admission, const struct ll_admission_entry *than)
{
	uint64_t count = 0;
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next)
		count += entry != than && ll_admission_is_waiting(entry) && entry->uid == than->uid &&
			 strcmp(entry->tenant, than->tenant) == 0;
	return count;
}

/* The plan has LL_QUEUE_PLANNED_MAX of them, and each is told its place and its reason: with so many, a look takes some
 * tens of ms. */
enum { WAITING_MAX = 4000 };

static bool has_room(const struct ll_admission *admission, const struct ll_admission_entry *than)
{
	struct ll_subordinates *subordinates = &admission->server->subordinates;
	uint32_t owner = ll_subordinates_owner(subordinates, than->uid);
	struct ll_fair_room room = {.size = WAITING_MAX};
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry != than && ll_admission_is_waiting(entry))
			ll_fair_room_count(&room, ll_subordinates_find(subordinates, entry->uid) == owner, 1);
	}
	return than->uid == 0 || ll_fair_room_permits(&room, 1);
}

static const char *text_of_fault(enum ll_queue_fault fault)
{
	switch (fault) {
	case LL_QUEUE_NO_CARDS:
		return "cards: no group has so many cards that the job may have";
	case LL_QUEUE_TOO_LARGE:
		return "no card has so much memory or compute";
	case LL_QUEUE_BEYOND_LIMIT:
		return "more than the tenant's limit: it would never start";
	case LL_QUEUE_BEYOND_USER:
		return "more than each user of the tenant may have: it would never start";
	case LL_QUEUE_ALL_GUARANTEED:
		return "more than the tenant's guarantee, and the rest is guaranteed to others: it would never start";
	default:
		return "";
	}
}

/* Says what was asked for and what is allowed, where the limits of a user are what forbids the job. */
static int explain_fault(const struct ll_config_tenant *tenant, const struct ll_admission_entry *entry,
			 enum ll_queue_fault fault, struct ll_err *err)
{
	const struct ll_use none = {0};
	uint64_t cards = entry->queued.card_count ? entry->queued.card_count : 1;
	int rc = fault == LL_QUEUE_BEYOND_USER ? ll_allowance_check(tenant, &none, cards, &entry->limits, err) : 0;
	return rc ? rc : ll_err_set(err, -EACCES, "%s", text_of_fault(fault));
}

/* Fills in what the configuration says about the request. */
static int read_limits(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
		       const struct ll_message_admit *admit, struct ll_admission_entry *entry, struct ll_err *err)
{
	const struct ll_use none = {0};
	entry->limits = admit->limits;
	entry->has_memory = admit->limits.memory_bytes;
	entry->has_compute = admit->limits.compute_permille || admit->limits.space_permille;
	ll_allowance_complete(policy, tenant, &none, admit->said, &entry->limits);
	if (!entry->limits.memory_bytes && policy->defaults.memory_bytes == LL_CONFIG_NONE && !admit->card_count &&
	    !(admit->flags & LL_ADMIT_HAS_CARDS))
		return ll_err_set(err, -EACCES, "memory: not said, and the configuration has no defaults.memory");
	return read_time(policy, tenant, admit, entry, err);
}

int ll_admission_check_now(const struct ll_admission *admission, const struct ll_admission_entry *entry,
			   struct ll_err *err)
{
	const struct ll_server *server = admission->server;
	struct ll_err why = {0};
	const struct ll_config_tenant *tenant =
	    ll_department_tenant(&server->department, entry->uid, entry->tenant, &why);
	if (!tenant) /* a lookup that fails later ends no wait */
		return why.code == -EACCES ? ll_err_set(err, why.code, "%s", why.text) : 0;
	int rc = ll_spending_check(server, tenant, entry->has_project, err);
	return rc ? rc : ll_allowance_check_class(tenant, entry->limits.priority, err);
}

int ll_admission_read_request(struct ll_admission *admission, const struct ll_message_admit *admit,
			      struct ll_admission_entry *entry, struct ll_err *err)
{
	const struct ll_department *department = &admission->server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	const struct ll_config_tenant *tenant = ll_department_tenant(department, entry->uid, admit->tenant, err);
	if (!tenant)
		return -EACCES;
	ll_message_text_set(entry->tenant, sizeof entry->tenant, tenant->name);
	ll_message_text_set(entry->command, sizeof entry->command, admit->command);
	ll_message_text_set(entry->name, sizeof entry->name, admit->name);
	entry->has_named_cards = admit->flags & LL_ADMIT_HAS_CARDS;
	entry->card_mask = admit->card_mask;
	entry->slice = admit->slice;
	entry->takes_no_wait = admit->flags & LL_ADMIT_NO_WAIT;
	entry->after = admit->after;
	entry->must_be_ok = admit->after && admit->flags & LL_ADMIT_AFTER_OK;
	entry->tells_status = admit->flags & LL_ADMIT_TELLS_STATUS;
	entry->queued.uid = entry->uid;
	entry->queued.card_count = admit->card_count;
	entry->has_count = admit->card_count;
	uint64_t wait_ns = admit->wait_ns ? admit->wait_ns : policy->queue.wait_ns;
	uint64_t now_ns = ll_now_ns();
	entry->wait_until_ns = wait_ns < LL_QUEUE_NONE - now_ns ? now_ns + wait_ns : LL_QUEUE_NONE;
	entry->has_project = admit->flags & LL_ADMIT_HAS_PROJECT;
	int rc = read_limits(policy, tenant, admit, entry, err);
	if (!rc)
		rc = ll_admission_check_now(admission, entry, err);
	if (!rc)
		rc = ll_admission_check_after(admission, entry, err);
	if (rc)
		return rc;
	if (count_waiting(admission, entry) >= tenant->each_user.queued && !entry->takes_no_wait)
		return ll_err_set(err, -EACCES, "queued: %" PRIu64 " jobs of each user may wait",
				  tenant->each_user.queued);
	if (!has_room(admission, entry))
		return ll_err_set(err, -EACCES, "the queue is full: no more jobs of this user may wait");
	ll_admission_place_wish(admission, entry);
	enum ll_queue_fault fault = ll_queue_check(&admission->described.machine, &entry->queued);
	if (entry->queued.card_count > LL_QUEUE_CARDS_OF_JOB)
		return ll_err_set(err, -EACCES, "cards: a job of the queue has at most %d", LL_QUEUE_CARDS_OF_JOB);
	return fault ? explain_fault(tenant, entry, fault, err)
		     : ll_admission_check_high(admission, tenant, entry, err);
}
