#include "cli/probe/mps.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/probe/keeper.h"
#include "mps/daemon.h"
#include "mps/place.h"

/* The daemon answers in 0.1 s and takes a server's start into account; a machine may be loaded. */
#define START_WITHIN_NS (20 * LL_NS_PER_S)
#define STOP_WITHIN_NS (10 * LL_NS_PER_S)

struct ll_probe_mps {
	char folder[LL_PROBE_MPS_FOLDER_SIZE];
	struct ll_mps_place place;
	struct ll_probe_keeper *keeper;
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	remove(path);
	return 0;
}

/* Daemon and servers are gone: what is in it is theirs and nobody's. */
static void remove_folder(const struct ll_probe_mps *mps)
{
	nftw(mps->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (mps->keeper)
		ll_probe_keeper_owe_folder(mps->keeper, NULL);
}

static int start(struct ll_probe_mps *mps, const struct ll_driver *driver, const struct ll_card *card,
		 struct ll_err *err)
{
	const char *uuids[] = {card->uuid};
	const struct ll_mps_start wish = {.uuids = uuids, .count = 1, .has_user = true, .user = geteuid()};
	const char *sim_folder = ll_driver_sim_folder(driver);
	static const char name[] = "/loadline-probe.XXXXXX";
	const char *parent = getenv("TMPDIR");
	if (!parent || !*parent || strlen(parent) + sizeof name > sizeof mps->folder)
		parent = "/tmp";
	snprintf(mps->folder, sizeof mps->folder, "%s%s", parent, name);
	if (!mkdtemp(mps->folder))
		return ll_err_set(err, -errno, "%s: %s", mps->folder, strerror(errno));
	ll_probe_keeper_owe_folder(mps->keeper, mps->folder);
	int rc = ll_mps_place_at(sim_folder, mps->folder, &mps->place, err);
	if (rc == 0)
		rc = ll_mps_place_need_program(&mps->place, err);
	if (rc == 0)
		rc = ll_mps_daemon_start(&mps->place, &wish, START_WITHIN_NS, NULL, err);
	if (rc < 0)
		remove_folder(mps);
	return rc;
}

int ll_probe_mps_start(const struct ll_driver *driver, const struct ll_card *card, struct ll_probe_keeper *keeper,
		       struct ll_probe_mps **ret_mps, struct ll_err *err)
{
	struct ll_err why = {0};
	struct ll_probe_mps *mps = calloc(1, sizeof *mps);
	if (!mps)
		return ll_err_set(err, -ENOMEM, "MPS: %s", strerror(ENOMEM));
	mps->keeper = keeper;
	if (start(mps, driver, card, &why) < 0) {
		free(mps);
		return ll_err_set(err, -EOPNOTSUPP, "no private MPS daemon: %.300s", why.text);
	}
	*ret_mps = mps;
	return 0;
}

const char *ll_probe_mps_pipe(const struct ll_probe_mps *mps)
{
	return mps->place.pipe;
}

int ll_probe_mps_stop(struct ll_probe_mps *mps, struct ll_err *err)
{
	if (!mps)
		return 0;
	int rc = ll_mps_daemon_stop(&mps->place, true, STOP_WITHIN_NS, NULL, err);
	if (rc == -ESRCH) /* it has ended by itself */
		rc = 0;
	if (rc == 0)
		remove_folder(mps);
	free(mps);
	return rc < 0 ? ll_err_wrap(err, "the probe's private MPS daemon") : 0;
}

void ll_probe_mps_clear(const struct ll_driver *driver, const char *folder)
{
	struct ll_probe_mps *mps = calloc(1, sizeof *mps);
	if (!mps)
		return;
	snprintf(mps->folder, sizeof mps->folder, "%s", folder);
	if (ll_mps_place_at(ll_driver_sim_folder(driver), folder, &mps->place, NULL) == 0)
		ll_probe_mps_stop(mps, NULL);
	else
		free(mps);
}
