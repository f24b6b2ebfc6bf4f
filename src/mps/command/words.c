#include "mps/command/words.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "driver/cards.h"
#include "mps/mps.h"

enum { FOUND_MAX = 64, MIB_SHIFT = 20 };

int ll_mps_desk_use(struct ll_mps_desk *desk, const struct ll_driver *driver, struct ll_err *err)
{
	const char *sim_folder = ll_driver_sim_folder(driver);
	desk->driver = driver;
	int rc = ll_mps_place_find(sim_folder, &desk->place, err);
	if (!rc)
		rc = ll_mps_state_folder(sim_folder, desk->folder, err);
	desk->session = (struct ll_mps_session){.driver = driver, .folder = desk->folder, .place = &desk->place};
	return rc;
}

int ll_mps_desk_init(struct ll_mps_desk *desk, struct ll_err *err)
{
	*desk = (struct ll_mps_desk){.own = NULL};
	int rc = ll_driver_open(&desk->own, err);
	return rc ? rc : ll_mps_desk_use(desk, desk->own, err);
}

void ll_mps_desk_fini(struct ll_mps_desk *desk)
{
	ll_driver_close(desk->own);
	*desk = (struct ll_mps_desk){.own = NULL};
}

/* Whether the found daemon is of this program's driver. Daemons of the simulator, or of another simulated world, are of
 * no use on a real card. */
static bool is_of_our_world(const struct ll_mps_place *place, const struct ll_mps_found *found)
{
	char path[LL_MPS_PATH_SIZE];
	char real[PATH_MAX];
	char theirs[LL_MPS_PATH_SIZE] = "";
	const char *ours = getenv("LOADLINE_SIM_DIR");
	ll_mps_process_variable(found->pid, "LOADLINE_SIM_DIR", theirs, sizeof theirs);
	return ll_mps_process_program(found->pid, path, sizeof path) && realpath(place->program, real) &&
	       strcmp(path, real) == 0 && strcmp(ours ? ours : "", theirs) == 0;
}

/* Returns another daemon. NULL: there is none. */
static const struct ll_mps_found *find_other(const struct ll_mps_place *place, struct ll_mps_found *found)
{
	size_t count = ll_mps_search(found, FOUND_MAX);
	for (size_t i = 0; i < count; i++) {
		if (!found[i].is_server && *found[i].pipe && strcmp(found[i].pipe, place->pipe) != 0 &&
		    is_of_our_world(place, &found[i]))
			return &found[i];
	}
	return NULL;
}

static int say_none(const struct ll_mps_desk *desk, struct ll_err *err)
{
	struct ll_mps_found found[FOUND_MAX];
	const struct ll_mps_found *other = find_other(&desk->place, found);
	const char *why = desk->place.is_named ? _(", where CUDA_MPS_PIPE_DIRECTORY points") : "";
	if (!other) {
		ll_err_set(err, -ECONNREFUSED, "no MPS daemon runs at %s%s", desk->place.pipe, why);
		return ll_err_hint(err, "start one: loadline mps start");
	}
	ll_err_set(err, -ECONNREFUSED, "no MPS daemon runs at %s%s; one runs at %s", desk->place.pipe, why,
		   other->pipe);
	return ll_err_hint(err, "to use that one: export %s=%s", LL_MPS_PIPE_VARIABLE, other->pipe);
}

int ll_mps_desk_need_daemon(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = ll_mps_daemon_answers(&desk->place, deadline_ns, &why);
	if (rc == -ECONNREFUSED)
		return say_none(desk, err);
	if (rc && err)
		*err = why;
	if (rc == -EOPNOTSUPP) {
		ll_err_set(err, rc, "the MPS daemon at %s speaks another protocol than version 2 (MPS v3)",
			   desk->place.pipe);
		ll_err_hint(err, "end it, and start another with `loadline mps start`");
	}
	return rc;
}

/* Goes to the place of another daemon of this user. */
static bool use_other(struct ll_mps_desk *desk)
{
	struct ll_mps_found found[FOUND_MAX];
	const struct ll_mps_found *other = find_other(&desk->place, found);
	if (!other || other->owner != geteuid())
		return false;
	snprintf(desk->place.pipe, sizeof desk->place.pipe, "%s", other->pipe);
	ll_mps_process_variable(other->pid, LL_MPS_LOG_VARIABLE, desk->place.log, sizeof desk->place.log);
	return true;
}

static int start_daemon(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	struct ll_mps_wish wish = {.cards = NULL};
	struct ll_mps_daemon daemon = {0};
	uint64_t now_ns = ll_now_ns();
	int rc = ll_cards_select(desk->driver, NULL, &cards, &wish.count, err);
	wish.cards = cards;
	if (!rc)
		rc = ll_mps_session_start(&desk->session, &wish, deadline_ns > now_ns ? deadline_ns - now_ns : 1,
					  &daemon, err);
	if (!rc)
		ll_log(LL_LOG_INFO,
		       "no MPS daemon ran: started one, process %d, pipe directory %s; it stays until "
		       "`loadline mps stop`",
		       (int)daemon.pid, desk->place.pipe);
	return rc;
}

int ll_mps_desk_have_daemon(struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = ll_mps_desk_need_daemon(desk, deadline_ns, err);
	if (rc != -ECONNREFUSED || desk->place.is_named)
		return rc;
	if (use_other(desk))
		return ll_mps_desk_need_daemon(desk, deadline_ns, err);
	rc = start_daemon(desk, deadline_ns, &why);
	/* Another program of this user may have started one at the same moment. */
	if (!rc || ll_mps_desk_need_daemon(desk, deadline_ns, NULL) == 0)
		return 0;
	if (err)
		*err = why;
	return rc;
}

int ll_mps_check_memory(const struct ll_card *const *cards, size_t count, uint64_t bytes, struct ll_err *err)
{
	if (bytes && bytes < (UINT64_C(1) << MIB_SHIFT))
		return ll_err_set(err, -EINVAL, "--mem: less than 1 MiB");
	for (size_t i = 0; i < count; i++) {
		if (cards[i]->memory_bytes && bytes > cards[i]->memory_bytes)
			return ll_err_set(err, -EINVAL, "--mem: card %s has only %llu MiB", cards[i]->label,
					  (unsigned long long)(cards[i]->memory_bytes >> MIB_SHIFT));
	}
	return 0;
}

void ll_mps_print_shares(const struct ll_card *const *cards, size_t count, double percent)
{
	for (size_t i = 0; i < count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		if (!cards[i]->sm_count)
			continue;
		ll_mps_share_add(&text, cards[i]->label, cards[i]->sm_count, percent);
		puts(text.buf);
	}
}
