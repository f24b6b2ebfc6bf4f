#include "mps/mps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"

enum { UNDO_S = 5 };

static bool is_leftover(const struct ll_mps_record *record)
{
	struct ll_mps_place place = {.is_named = true};
	struct ll_mps_daemon daemon;
	memcpy(place.pipe, record->pipe, sizeof place.pipe);
	return ll_mps_daemon_find(&place, &daemon, NULL) == -ESRCH;
}

/* Puts the modes back, and removes the record if all of them are as before. */
static int put_back(const struct ll_mps_session *session, const struct ll_mps_record *record, size_t *restored,
		    struct ll_err *err)
{
	int rc = ll_mps_exclusive_restore(session->driver, record, restored, err);
	if (!rc)
		ll_mps_record_remove(session->folder, record->pipe);
	return rc;
}

static int restore_leftovers(const struct ll_mps_session *session, size_t *restored, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	int rc = ll_mps_record_list(session->folder, &records, &count, err);
	for (size_t i = 0; !rc && i < count; i++) {
		if (is_leftover(&records[i]))
			rc = put_back(session, &records[i], restored, err);
	}
	return rc;
}

/* Leftovers have been restored before, so all other records are of living daemons. */
static int check_others(const struct ll_mps_session *session, const struct ll_mps_wish *wish, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	int rc = ll_mps_record_list(session->folder, &records, &count, err);
	for (size_t i = 0; !rc && i < count; i++) {
		for (size_t j = 0; j < records[i].card_count * wish->count; j++) {
			const struct ll_mps_record_card *card = &records[i].cards[j / wish->count];
			const struct ll_card *wanted = wish->cards[j % wish->count];
			if (card->is_changed && strcmp(card->uuid, wanted->uuid) == 0)
				return ll_err_set(err, -EBUSY, "card %s: is in exclusive mode for the MPS daemon at %s",
						  wanted->label, records[i].pipe);
		}
	}
	return rc;
}

static int check_modes(const struct ll_mps_wish *wish, struct ll_err *err)
{
	for (size_t i = 0; i < wish->count; i++) {
		enum ll_compute_mode mode;
		if (ll_read_compute_mode(wish->cards[i], &mode, NULL) == 0 && mode == LL_MODE_PROHIBITED) {
			ll_err_set(err, -EBUSY, "card %s: is in prohibited mode: no program may use it",
				   wish->cards[i]->label);
			return ll_err_hint(err,
					   ll_driver_sim_folder(wish->cards[i]->driver)
					       ? N_("loadline-simctl card %s mode default allows it again")
					       : N_("nvidia-smi -i %s -c DEFAULT allows it again"),
					   wish->cards[i]->label);
		}
	}
	return 0;
}

static int plan_record(const struct ll_mps_session *session, const struct ll_mps_wish *wish,
		       struct ll_mps_record *record, struct ll_err *err)
{
	*record = (struct ll_mps_record){.card_count = wish->count};
	memcpy(record->pipe, session->place->pipe, sizeof record->pipe);
	memcpy(record->log, session->place->log, sizeof record->log);
	for (size_t i = 0; i < wish->count; i++)
		memcpy(record->cards[i].uuid, wish->cards[i]->uuid, sizeof record->cards[i].uuid);
	int rc = check_modes(wish, err);
	if (!rc && wish->is_exclusive)
		rc = check_others(session, wish, err);
	if (!rc && wish->is_exclusive)
		rc = ll_mps_exclusive_plan(wish->cards, wish->count, record, err);
	return rc;
}

static int start_daemon(const struct ll_mps_session *session, const struct ll_mps_wish *wish, uint64_t deadline_ns,
			struct ll_mps_record *record, struct ll_mps_daemon *ret_daemon, struct ll_err *err)
{
	const char *uuids[LL_MPS_RECORD_CARDS];
	for (size_t i = 0; i < wish->count; i++)
		uuids[i] = wish->cards[i]->uuid;
	struct ll_mps_start start = {.uuids = uuids,
				     .count = wish->count,
				     .compute_percent = wish->compute_percent,
				     .memory_bytes = wish->memory_bytes,
				     .has_user = wish->has_user,
				     .user = wish->user};
	uint64_t now_ns = ll_now_ns();
	int rc = ll_mps_daemon_start(session->place, &start, deadline_ns > now_ns ? deadline_ns - now_ns : 0,
				     ret_daemon, err);
	if (rc)
		return rc;
	record->pid = ret_daemon->pid;
	record->start_ticks = ret_daemon->start_ticks;
	rc = ll_mps_record_write(session->folder, record, err);
	if (rc)
		ll_mps_daemon_stop(session->place, true, UNDO_S * LL_NS_PER_S, NULL, NULL);
	return rc;
}

/* Undoes a start that failed with rc. err keeps the reason of the failure. If undoing fails too, that reason comes
 * first, because it is more important. */
static int undo_start(const struct ll_mps_session *session, const struct ll_mps_record *record, int rc,
		      struct ll_err *err)
{
	size_t restored = 0;
	struct ll_err why = {0};
	if (put_back(session, record, &restored, &why) && err) {
		ll_err_wrap(err, "%.120s; and before that", why.text);
		ll_err_hint(err, "`loadline mps stop` tries again to restore the compute mode");
	}
	return rc;
}

static int start_locked(const struct ll_mps_session *session, const struct ll_mps_wish *wish, uint64_t deadline_ns,
			struct ll_mps_daemon *ret_daemon, struct ll_err *err)
{
	struct ll_mps_record record;
	struct ll_mps_daemon daemon = {0};
	size_t restored = 0;
	if (ll_mps_daemon_find(session->place, &daemon, NULL) == 0) {
		ll_err_set(err, -EALREADY, "an MPS daemon (process %d) runs at %s already", (int)daemon.pid,
			   session->place->pipe);
		return ll_err_hint(err, "`loadline mps status` shows it, `loadline mps stop` ends it");
	}
	int rc = restore_leftovers(session, &restored, err);
	if (!rc)
		rc = plan_record(session, wish, &record, err);
	if (!rc)
		rc = ll_mps_record_write(session->folder, &record, err);
	if (rc)
		return rc;
	rc = wish->is_exclusive ? ll_mps_exclusive_set(session->driver, &record, err) : 0;
	if (!rc)
		rc = start_daemon(session, wish, deadline_ns, &record, &daemon, err);
	if (rc)
		return undo_start(session, &record, rc, err);
	if (ret_daemon)
		*ret_daemon = daemon;
	return 0;
}

int ll_mps_session_start(const struct ll_mps_session *session, const struct ll_mps_wish *wish, uint64_t within_ns,
			 struct ll_mps_daemon *ret_daemon, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + within_ns;
	LL_SCOPE_CLOSE int lock = -1;
	if (!wish->count || wish->count > LL_MPS_RECORD_CARDS)
		return ll_err_set(err, -EINVAL, "MPS: %zu cards: not between 1 and %d", wish->count,
				  LL_MPS_RECORD_CARDS);
	int rc = ll_mps_place_need_program(session->place, err);
	if (!rc)
		rc = ll_mps_folder_make(session->folder, 0700, err);
	if (!rc)
		rc = ll_mps_lock(session->folder, deadline_ns, &lock, err);
	return rc ? rc : start_locked(session, wish, deadline_ns, ret_daemon, err);
}

int ll_mps_session_stop(const struct ll_mps_session *session, bool force, uint64_t within_ns,
			struct ll_mps_stopped *ret_stopped, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + within_ns;
	struct ll_mps_stopped stopped = {.had_daemon = true};
	struct ll_err why = {0};
	LL_SCOPE_CLOSE int lock = -1;
	int rc = ll_mps_folder_make(session->folder, 0700, err);
	if (!rc)
		rc = ll_mps_lock(session->folder, deadline_ns, &lock, err);
	if (rc)
		return rc;
	uint64_t now_ns = ll_now_ns();
	int ended = ll_mps_daemon_stop(session->place, force, deadline_ns > now_ns ? deadline_ns - now_ns : 0,
				       &stopped.was_signalled, &why);
	/* Leftovers of other daemons are restored even if this daemon does not end. */
	rc = restore_leftovers(session, &stopped.restored, err);
	if (ended == -ESRCH && (stopped.restored || rc)) {
		stopped.had_daemon = false;
		ended = 0;
	}
	if (ended && err)
		*err = why;
	if (!ended && !rc)
		*ret_stopped = stopped;
	return ended ? ended : rc;
}

int ll_mps_session_leftovers(const struct ll_mps_session *session, struct ll_mps_record **ret_records,
			     size_t *ret_count, struct ll_err *err)
{
	struct ll_mps_record *records = NULL;
	size_t count = 0;
	size_t kept = 0;
	int rc = ll_mps_record_list(session->folder, &records, &count, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++) {
		if (is_leftover(&records[i]) && ll_mps_exclusive_count(session->driver, &records[i]))
			records[kept++] = records[i];
	}
	*ret_records = records;
	*ret_count = kept;
	return 0;
}
