#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/doctor/doctor.h"
#include "cli/mps/words.h"
#include "mps/environment.h"
#include "mps/version.h"

/* doctor reports a daemon that does not answer in this time as hanging. */
#define ANSWER_NS (3 * LL_NS_PER_S)

static const char check[] = "mps";

static void check_program(struct ll_doctor *doctor, const struct ll_mps_place *place)
{
	static const char own[] = "mps program";
	if (*place->program)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, own, NULL, "%s", place->program);
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, own, NULL,
			      "no nvidia-cuda-mps-control: programs cannot share by space");
}

static void check_servers(struct ll_doctor *doctor, const struct ll_mps_list *list)
{
	for (size_t i = 0; i < list->server_count; i++) {
		const struct ll_mps_server *server = &list->servers[i];
		if (server->status == LL_MPS_FAULT)
			ll_doctor_say(
			    doctor, LL_FINDING_WARN, NULL, check,
			    N_("end the clients that `loadline mps clients` lists, or `loadline mps stop --force`"),
			    "server %d is in FAULT: new clients wait", (int)server->pid);
		else if (server->user != (uid_t)-1 && server->user != geteuid())
			ll_doctor_say(
			    doctor, LL_FINDING_WARN, NULL, check,
			    N_("start a daemon of your own: `loadline mps start` with CUDA_MPS_PIPE_DIRECTORY set"),
			    "server %d serves user %lu: your clients wait until that user's last client has ended",
			    (int)server->pid, (unsigned long)server->user);
	}
}

static void say_daemon(struct ll_doctor *doctor, const struct ll_mps_desk *desk, const struct ll_mps_version *version,
		       const struct ll_mps_list *list)
{
	char clients[64];
	snprintf(clients, sizeof clients, ll_translate_count("%zu client", "%zu clients", list->client_count),
		 list->client_count);
	ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "a daemon answers at %s: MPS v%u%s, %s",
		      desk->place.pipe, version->protocol,
		      version->has_static_partitions ? _(" with static partitions") : "", clients);
}

/* A missing daemon is a warning only if the environment names one. */
static void say_none(struct ll_doctor *doctor, const struct ll_mps_desk *desk, struct ll_err *why)
{
	if (desk->place.is_named)
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check,
			      N_("start the daemon or unset the variable: with a wrong folder programs silently run "
				 "without MPS and limits"),
			      "%s=%s, but no control daemon is there", LL_MPS_PIPE_VARIABLE, desk->place.pipe);
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "%s", why->text);
}

static void check_daemon(struct ll_doctor *doctor, const struct ll_mps_desk *desk)
{
	uint64_t deadline_ns = ll_now_ns() + ANSWER_NS;
	LL_SCOPE_STRBUF struct ll_strbuf partitions = LL_STRBUF_INIT;
	struct ll_mps_version version;
	struct ll_mps_list list = {0};
	struct ll_err err = {0};
	int rc = ll_mps_desk_need_daemon(desk, deadline_ns, &err);
	if (rc == -ECONNREFUSED || rc == -ENOENT) {
		say_none(doctor, desk, &err);
		return;
	}
	if (!rc)
		rc = ll_mps_version_read(&desk->place, deadline_ns, &version, &partitions, &err);
	if (!rc)
		rc = ll_mps_list_read(&desk->place, deadline_ns, &list, &err);
	if (rc) {
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, check, &err);
		return;
	}
	say_daemon(doctor, desk, &version, &list);
	check_servers(doctor, &list);
	ll_mps_list_fini(&list);
}

/* Reports cards that a killed daemon, or a killed loadline, left in exclusive mode. */
static void check_leftovers(struct ll_doctor *doctor, const struct ll_mps_desk *desk)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	struct ll_err err = {0};
	if (ll_mps_session_leftovers(&desk->session, &records, &count, &err)) {
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, check, &err);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < records[i].card_count; j++) {
			const struct ll_card *card = ll_cards_find_uuid(desk->driver, records[i].cards[j].uuid);
			if (card && records[i].cards[j].is_changed)
				ll_doctor_say(
				    doctor, LL_FINDING_WARN, card, check, N_("`loadline mps stop` restores its mode"),
				    "left in exclusive mode for an MPS daemon at %s that is gone", records[i].pipe);
		}
	}
}

static bool holds_exclusive(const struct ll_mps_record *records, size_t count, const struct ll_card *card)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < records[i].card_count; j++) {
			if (records[i].cards[j].is_changed && strcmp(records[i].cards[j].uuid, card->uuid) == 0)
				return true;
		}
	}
	return false;
}

enum ll_doctor_mps ll_doctor_mps_of_card(const struct ll_card *card)
{
	struct ll_mps_desk desk = {.own = NULL};
	LL_SCOPE_FREE struct ll_mps_record *all = NULL;
	LL_SCOPE_FREE struct ll_mps_record *left = NULL;
	size_t count = 0;
	size_t left_count = 0;
	if (ll_mps_desk_use(&desk, card->driver, NULL) || ll_mps_record_list(desk.folder, &all, &count, NULL) ||
	    !holds_exclusive(all, count, card) || ll_mps_session_leftovers(&desk.session, &left, &left_count, NULL))
		return LL_DOCTOR_MPS_NONE;
	return holds_exclusive(left, left_count, card) ? LL_DOCTOR_MPS_LEFT : LL_DOCTOR_MPS_LIVE;
}

void ll_doctor_check_mps(struct ll_doctor *doctor, const struct ll_driver *driver)
{
	struct ll_mps_desk desk = {.own = NULL};
	struct ll_err err = {0};
	int rc = driver ? ll_mps_desk_use(&desk, driver, &err) : ll_mps_place_find(NULL, &desk.place, &err);
	if (rc) {
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, check, &err);
		return;
	}
	check_program(doctor, &desk.place);
	check_daemon(doctor, &desk);
	if (driver)
		check_leftovers(doctor, &desk);
}
