#include "cli/probe/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "driver/readings.h"
#include "mps/daemon.h"
#include "mps/place.h"

/* The message is shorter than PIPE_BUF, so it arrives whole. If the keeper has died, only a killed probe needs it. */
static void send_debt(const struct ll_probe_keeper *keeper)
{
	_Static_assert(sizeof keeper->debt <= 512, "POSIX's least PIPE_BUF");
	const struct ll_probe_debt debt = keeper->debt;
	ssize_t n = keeper->pid ? write(keeper->fd, &debt, sizeof debt) : 0;
	(void)n;
}

static void owe_folder(struct ll_probe_keeper *keeper, const char *folder)
{
	snprintf(keeper->debt.folder, sizeof keeper->debt.folder, "%s", folder ? folder : "");
	send_debt(keeper);
}

/* ---- the private daemon ---- */

/* The daemon answers in 0.1 s. A machine under load takes longer. */
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

/* Daemon and servers have ended, so the folder can be removed. */
static void remove_folder(const struct ll_probe_mps *mps)
{
	nftw(mps->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (mps->keeper)
		owe_folder(mps->keeper, NULL);
}

static int start_daemon(struct ll_probe_mps *mps, const struct ll_driver *driver, const struct ll_card *card,
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
	owe_folder(mps->keeper, mps->folder);
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
	if (start_daemon(mps, driver, card, &why) < 0) {
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
	if (rc == -ESRCH) /* the daemon has ended by itself */
		rc = 0;
	if (rc == 0)
		remove_folder(mps);
	free(mps);
	return rc < 0 ? ll_err_wrap(err, "the probe's private MPS daemon") : 0;
}

/* Ends the daemon in this folder, which another process has started. */
static void clear_folder(const struct ll_driver *driver, const char *folder)
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

/* ---- the keeper ---- */

/* If another program has changed the mode since, the keeper leaves it. */
static void put_back_mode(const struct ll_driver *driver, const char *uuid)
{
	const struct ll_card *card = ll_cards_find_uuid(driver, uuid);
	enum ll_compute_mode mode;
	if (card && ll_read_compute_mode(card, &mode, NULL) == 0 && mode == LL_MODE_EXCLUSIVE_PROCESS)
		ll_set_compute_mode(card, LL_MODE_DEFAULT, NULL);
}

static void pay_debt(const struct ll_probe_debt *debt)
{
	struct ll_driver *driver = NULL;
	if (!*debt->folder && !*debt->exclusive_uuid)
		return;
	if (ll_driver_open(&driver, NULL) < 0)
		return;
	if (*debt->exclusive_uuid)
		put_back_mode(driver, debt->exclusive_uuid);
	if (*debt->folder)
		clear_folder(driver, debt->folder);
	ll_driver_close(driver);
}

static void wait_for_probe(int fd)
{
	struct ll_probe_debt debt = {.folder = ""}, fresh;
	ssize_t n;
	setpgid(0, 0); /* signals to the probe's group must not reach the keeper */
	while ((n = read(fd, &fresh, sizeof fresh)) != 0) {
		if (n == (ssize_t)sizeof fresh)
			debt = fresh;
		else if (n > 0 || errno != EINTR)
			break;
	}
	pay_debt(&debt);
}

int ll_probe_keeper_start(struct ll_probe_keeper *keeper, struct ll_err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[1]);
		wait_for_probe(ll_child_keep_only(ends[0]));
		_exit(0);
	}
	int code = errno;
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return ll_err_set(err, -code, "fork: %s", strerror(code));
	}
	*keeper = (struct ll_probe_keeper){.pid = pid, .fd = ends[1]};
	return 0;
}

void ll_probe_keeper_owe_mode(struct ll_probe_keeper *keeper, const char *uuid)
{
	snprintf(keeper->debt.exclusive_uuid, sizeof keeper->debt.exclusive_uuid, "%s", uuid ? uuid : "");
	send_debt(keeper);
}

void ll_probe_keeper_end(struct ll_probe_keeper *keeper)
{
	if (!keeper->pid)
		return;
	close(keeper->fd);
	if (!*keeper->debt.folder && !*keeper->debt.exclusive_uuid) {
		while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	keeper->pid = 0;
}
