#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/older.h"
#include "cli/common/stalling.h"
#include "cli/doctor/doctor.h"
#include "driver/readings.h"
#include "hold/hold_socket.h"

#define SILENT_NS (10 * LL_NS_PER_S)

static const char check[] = "claims";

static void check_hold(struct ll_doctor *doctor, const struct ll_card *card, const struct ll_hold_owner *owner)
{
	static const char advice[] = N_("if it is stopped or hangs, end it (kill -9 is safe)");
	if (!owner->has_report)
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, advice, "the hold of pid %d does not answer",
			      (int)owner->pid);
	else if (owner->report.beat_age_ns >= SILENT_NS)
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, advice,
			      "the hold of pid %d has not said for %llu s that it goes on", (int)owner->pid,
			      (unsigned long long)(owner->report.beat_age_ns / LL_NS_PER_S));
}

/* Reports tenants of which a process has lost its claim and gets no other. */
static void check_tenants(struct ll_doctor *doctor, const struct ll_card *card)
{
	const struct ll_list *list = &doctor->view.list;
	for (size_t i = 0; i < list->card_count; i++) {
		const struct ll_message_card_row *row = &list->cards[i];
		const struct ll_message_job_row *job = ll_list_job(list, row->job_number);
		if (!job || !(row->flags & LL_CARD_IS_LOST) || strcmp(row->uuid, card->uuid) != 0)
			continue;
		doctor->limit_fails++;
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check,
			      N_("its standard error says why; restart the program (`loadline status` shows it)"),
			      "tenant %s has not been held to its limits for %llu s: a process has lost its claim",
			      job->job.tenant, (unsigned long long)(row->lost_ns / LL_NS_PER_S));
	}
}

static void look_for_older(pid_t pid, void *ret_is_older)
{
	*(bool *)ret_is_older = ll_process_is_of_older(pid);
}

/* One whose memory lock is held now is left out. */
static void check_older(struct ll_doctor *doctor, const struct ll_card *card)
{
	struct ll_process_list processes = {0};
	if (card->has_slices || ll_read_processes(card, LL_PROCESS_ALL, &processes, NULL))
		return;
	LL_SCOPE_FREE pid_t *pids = calloc(processes.count + 1, sizeof *pids);
	LL_SCOPE_FREE bool *are_older = calloc(processes.count + 1, sizeof *are_older);
	LL_SCOPE_FREE bool *are_read = calloc(processes.count + 1, sizeof *are_read);
	size_t count = pids && are_older && are_read ? processes.count : 0;
	for (size_t i = 0; i < count; i++)
		pids[i] = processes.items[i].pid;
	if (count)
		ll_stalling_read(pids, count, look_for_older, sizeof *are_older, are_older, are_read);
	for (size_t i = 0; i < count; i++) {
		if (are_older[i])
			ll_doctor_say(doctor, LL_FINDING_WARN, card, check,
				      N_("start it again, so that all programs of the card share it by the same rule"),
				      "pid %d is governed by an older loadline: it and the others do not know of each "
				      "other",
				      (int)pids[i]);
	}
	ll_process_list_fini(&processes);
}

static size_t count_claims(const struct ll_list *list, const char *uuid)
{
	size_t count = 0;
	for (size_t i = 0; i < list->claim_count; i++)
		count += strcmp(list->claims[i].uuid, uuid) == 0;
	return count;
}

void ll_doctor_check_claims(struct ll_doctor *doctor, const struct ll_card *card)
{
	struct ll_hold_owner owner;
	bool has_hold = ll_hold_query(card, ll_driver_sim_folder(card->driver), &owner, NULL, NULL) == 0;
	size_t count = count_claims(&doctor->view.list, card->uuid);
	if (has_hold)
		check_hold(doctor, card, &owner);
	if (doctor->view.answer == LL_DAEMON_SERVES || doctor->view.answer == LL_DAEMON_NONE)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "%zu live (%d synthetic)", count + has_hold,
			      has_hold);
	else
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check, NULL, "not known: see the finding loadlined above");
	check_tenants(doctor, card);
	ll_doctor_check_sharing(doctor, card);
	check_older(doctor, card);
}
