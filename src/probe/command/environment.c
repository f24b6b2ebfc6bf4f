#include "probe/command/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "driver/readings.h"
#include "mps/mps.h"

/* ---- keeper ---- */

/* Tells the keeper what must be undone. The message is shorter than PIPE_BUF, so it arrives whole. If the keeper has
 * died, only a killed probe needs it. */
static void tell_debt(const struct ll_probe_keeper *keeper)
{
	_Static_assert(sizeof keeper->debt <= 512, "POSIX's least PIPE_BUF");
	const struct ll_probe_debt debt = keeper->debt; /* gcc takes its address for that of the first member */
	ssize_t n = keeper->pid ? write(keeper->fd, &debt, sizeof debt) : 0;
	(void)n;
}

/* folder NULL: it is removed. */
static void owe_folder(struct ll_probe_keeper *keeper, const char *folder)
{
	snprintf(keeper->debt.folder, sizeof keeper->debt.folder, "%s", folder ? folder : "");
	tell_debt(keeper);
}

/* Before the card's mode is changed. uuid NULL: the mode is put back. */
static void owe_mode(struct ll_probe_keeper *keeper, const char *uuid)
{
	snprintf(keeper->debt.exclusive_uuid, sizeof keeper->debt.exclusive_uuid, "%s", uuid ? uuid : "");
	tell_debt(keeper);
}

/* ---- the private daemon ---- */

/* The daemon answers in 0.1 s. A machine under load takes longer. */
#define START_WITHIN_NS (20 * LL_NS_PER_S)
#define STOP_WITHIN_NS (10 * LL_NS_PER_S)

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	remove(path);
	return 0;
}

/* Daemon and servers have ended, so the folder can be removed. */
static void remove_folder(const char *folder)
{
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int start_daemon(struct ll_probe_environment *environment, struct ll_err *err)
{
	const char *uuids[] = {environment->card->uuid};
	const struct ll_mps_start wish = {.uuids = uuids, .count = 1, .has_user = true, .user = geteuid()};
	struct ll_mps_place *place = &environment->mps;
	char folder[LL_PROBE_MPS_FOLDER_SIZE];
	static const char name[] = "/loadline-probe.XXXXXX";
	const char *parent = getenv("TMPDIR");
	if (!parent || !*parent || strlen(parent) + sizeof name > sizeof folder)
		parent = "/tmp";
	snprintf(folder, sizeof folder, "%s%s", parent, name);
	if (!mkdtemp(folder))
		return ll_err_set(err, -errno, "%s: %s", folder, strerror(errno));
	owe_folder(environment->keeper, folder);
	int rc = ll_mps_place_at(ll_driver_sim_folder(environment->driver), folder, place, err);
	if (rc == 0)
		rc = ll_mps_place_need_program(place, err);
	if (rc == 0)
		rc = ll_mps_daemon_start(place, &wish, START_WITHIN_NS, NULL, err);
	if (rc < 0) {
		remove_folder(folder);
		owe_folder(environment->keeper, NULL);
	}
	return rc;
}

/* Ends the daemon, by force if it must, and removes its folder. */
static int stop_daemon(const struct ll_mps_place *place, const char *folder, struct ll_err *err)
{
	int rc = ll_mps_daemon_stop(place, true, STOP_WITHIN_NS, NULL, err);
	if (rc < 0 && rc != -ESRCH) /* -ESRCH: it has ended by itself */
		return ll_err_wrap(err, "the probe's private MPS daemon");
	remove_folder(folder);
	return 0;
}

/* ---- the keeper ---- */

/* If another program has changed the mode since, the keeper leaves it. */
static void pay_mode_debt(const struct ll_driver *driver, const char *uuid)
{
	const struct ll_card *card = ll_cards_find_uuid(driver, uuid);
	enum ll_compute_mode mode;
	if (card && ll_read_compute_mode(card, &mode, NULL) == 0 && mode == LL_MODE_EXCLUSIVE_PROCESS)
		ll_set_compute_mode(card, LL_MODE_DEFAULT, NULL);
}

static void pay_debt(const struct ll_probe_debt *debt)
{
	struct ll_driver *driver = NULL;
	struct ll_mps_place place;
	if (!*debt->folder && !*debt->exclusive_uuid)
		return;
	if (ll_driver_open(&driver, NULL) < 0)
		return;
	if (*debt->exclusive_uuid)
		pay_mode_debt(driver, debt->exclusive_uuid);
	if (*debt->folder && ll_mps_place_at(ll_driver_sim_folder(driver), debt->folder, &place, NULL) == 0)
		stop_daemon(&place, debt->folder, NULL);
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

/* ---- environment ---- */

/* A process whose pipe directory has no daemon does not use MPS (doc/facts.md). */
static const char no_mps[] = "CUDA_MPS_PIPE_DIRECTORY=/nonexistent/loadline-keeps-out-of-mps";

__attribute__((format(printf, 2, 3))) static void add_variable(struct ll_probe_environment *environment,
							       const char *fmt, ...)
{
	size_t count = 0;
	va_list list;
	while (environment->variables[count])
		count++;
	va_start(list, fmt);
	vsnprintf(environment->texts[count], LL_PROBE_VARIABLE_SIZE, fmt, list);
	va_end(list);
	environment->variables[count] = environment->texts[count];
}

/* Replaces the user's variables that change how kernels are queued, or which cards and SMs a process may use. */
static void begin_variables(struct ll_probe_environment *environment, unsigned connections)
{
	memset(environment->variables, 0, sizeof environment->variables);
	add_variable(environment, "CUDA_DEVICE_MAX_CONNECTIONS=%u", connections);
	add_variable(environment, "CUDA_LAUNCH_BLOCKING");
	add_variable(environment, "CUDA_MPS_CLIENT_PRIORITY");
	add_variable(environment, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
}

/* ---- the card's mode ---- */

static int set_mode(const struct ll_probe_environment *environment, enum ll_nvml_compute_mode mode, const char *what,
		    struct ll_err *err)
{
	const struct ll_card *whole = ll_card_whole(environment->card);
	const struct ll_nvml *nvml = ll_driver_nvml(environment->driver);
	if (!nvml->nvmlDeviceSetComputeMode)
		return ll_err_set(err, -ENOSYS, "card %s: %s: the driver cannot", whole->label, what);
	ll_nvml_result status = nvml->nvmlDeviceSetComputeMode(whole->nvml, mode);
	return status == LL_NVML_SUCCESS ? 0 : ll_nvml_fail(nvml, status, err, "card %s: %s", whole->label, what);
}

static int put_back_mode(struct ll_probe_environment *environment, struct ll_err *err)
{
	if (!*environment->keeper->debt.exclusive_uuid)
		return 0;
	int rc = set_mode(environment, LL_NVML_COMPUTEMODE_DEFAULT, "restore the default compute mode", err);
	if (rc < 0)
		return ll_err_hint(err,
				   ll_driver_sim_folder(environment->driver) ? "loadline-simctl card %s mode default"
									     : "nvidia-smi -i %s -c DEFAULT",
				   environment->card->label);
	owe_mode(environment->keeper, NULL);
	return 0;
}

static int need_exclusive(struct ll_probe_environment *environment, struct ll_err *err)
{
	enum ll_compute_mode mode;
	int rc = ll_read_compute_mode(environment->card, &mode, err);
	if (rc < 0)
		return rc;
	if (mode == LL_MODE_EXCLUSIVE_PROCESS)
		return 0;
	if (!environment->may_set_exclusive)
		return ll_err_set(
		    err, -EOPNOTSUPP,
		    "the card is in %s mode; --set-exclusive changes the mode for these cells and restores it",
		    ll_compute_mode_text(mode));
	if (mode != LL_MODE_DEFAULT)
		return ll_err_set(err, -EOPNOTSUPP, "the card is in %s mode, and probe does not change it",
				  ll_compute_mode_text(mode));
	owe_mode(environment->keeper, ll_card_whole(environment->card)->uuid);
	rc = set_mode(environment, LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, "set exclusive-process mode", err);
	if (rc == 0)
		return 0;
	owe_mode(environment->keeper, NULL);
	return -EOPNOTSUPP; /* these cells report the error; the other cells are measured */
}

static int need_default(struct ll_probe_environment *environment, struct ll_err *err)
{
	enum ll_compute_mode mode;
	int rc = put_back_mode(environment, err);
	if (rc == 0)
		rc = ll_read_compute_mode(environment->card, &mode, err);
	if (rc == 0 && mode != LL_MODE_DEFAULT)
		return ll_err_set(err, -EOPNOTSUPP, "the card is in %s mode", ll_compute_mode_text(mode));
	return rc == -ENOSYS ? 0 : rc; /* a card without compute modes counts as in the default mode */
}

/* ---- MPS ---- */

/* If the daemon could not be started, that is not tried again. */
static int start_mps(struct ll_probe_environment *environment, struct ll_err *err)
{
	enum ll_compute_mode mode;
	struct ll_err why = {0};
	if (!environment->no_mps[0]) {
		if (ll_read_compute_mode(environment->card, &mode, NULL) == 0 && mode == LL_MODE_PROHIBITED)
			ll_err_set(&why, -EOPNOTSUPP, "the card is in %s mode", ll_compute_mode_text(mode));
		else if (start_daemon(environment, &why) == 0)
			return 0;
		else
			ll_err_wrap(&why, "no private MPS daemon");
		snprintf(environment->no_mps, sizeof environment->no_mps, "%.*s", (int)sizeof environment->no_mps - 1,
			 why.text);
	}
	return ll_err_set(err, -EOPNOTSUPP, "%s", environment->no_mps);
}

static int join_mps(struct ll_probe_environment *environment, unsigned percent, struct ll_err *err)
{
	unsigned sms = environment->card->sm_count;
	int rc = put_back_mode(environment, err);
	if (rc == 0 && percent && sms && sms * percent < 100)
		rc = ll_err_set(err, -EOPNOTSUPP, "%u %% of %u SMs are less than one", percent, sms);
	if (rc == 0 && !*environment->keeper->debt.folder)
		rc = start_mps(environment, err);
	if (rc < 0)
		return rc;
	add_variable(environment, "CUDA_MPS_PIPE_DIRECTORY=%.200s", environment->mps.pipe);
	/* The daemon shows its only card as card 0. */
	add_variable(environment, "CUDA_VISIBLE_DEVICES");
	if (percent)
		add_variable(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u", percent);
	else
		add_variable(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	return 0;
}

int ll_probe_environment_arrange(void *user, struct ll_probe_under under, unsigned connections,
				 const char *const **ret_environment, struct ll_err *err)
{
	struct ll_probe_environment *environment = user;
	int rc;
	begin_variables(environment, connections);
	if (under.manner == LL_PROBE_MPS) {
		rc = join_mps(environment, under.percent, err);
	} else {
		add_variable(environment, "%s", no_mps);
		add_variable(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
		/* CUDA shows a process one slice, the first one unless CUDA_VISIBLE_DEVICES names another. */
		if (environment->card->is_mig)
			add_variable(environment, "CUDA_VISIBLE_DEVICES=%.96s", environment->card->uuid);
		rc = under.manner == LL_PROBE_EXCLUSIVE ? need_exclusive(environment, err)
							: need_default(environment, err);
	}
	if (rc == 0)
		*ret_environment = environment->variables;
	return rc;
}

int ll_probe_environment_fini(struct ll_probe_environment *environment, struct ll_err *err)
{
	const char *folder = environment->keeper->debt.folder;
	int rc = *folder ? stop_daemon(&environment->mps, folder, err) : 0;
	if (rc == 0)
		owe_folder(environment->keeper, NULL);
	int mode_rc = put_back_mode(environment, rc ? NULL : err);
	return rc ? rc : mode_rc;
}
