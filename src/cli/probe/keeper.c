#include "cli/probe/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "driver/readings.h"

/* A mode that somebody else has changed meanwhile stays. */
static void put_back_mode(const struct ll_driver *driver, const char *uuid)
{
	const struct ll_card *card = ll_cards_find_uuid(driver, uuid);
	enum ll_compute_mode mode;
	if (card && ll_read_compute_mode(card, &mode, NULL) == 0 && mode == LL_MODE_EXCLUSIVE_PROCESS)
		ll_set_compute_mode(card, LL_MODE_DEFAULT, NULL);
}

static void pay(const struct ll_probe_debt *debt)
{
	struct ll_driver *driver = NULL;
	if (!*debt->folder && !*debt->exclusive_uuid)
		return;
	if (ll_driver_open(&driver, NULL) < 0)
		return;
	if (*debt->exclusive_uuid)
		put_back_mode(driver, debt->exclusive_uuid);
	if (*debt->folder)
		ll_probe_mps_clear(driver, debt->folder);
	ll_driver_close(driver);
}

/* Nobody shall wait for the end of an output because of it. */
static void let_go_of_outputs(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = STDIN_FILENO; fd >= 0 && i <= STDERR_FILENO; i++)
		dup2(fd, i);
}

static void keep(int fd)
{
	struct ll_probe_debt debt = {.folder = ""}, fresh;
	ssize_t n;
	setpgid(0, 0); /* what is sent to the probe's group is not for it */
	let_go_of_outputs();
	while ((n = read(fd, &fresh, sizeof fresh)) != 0) {
		if (n == (ssize_t)sizeof fresh)
			debt = fresh;
		else if (n > 0 || errno != EINTR)
			break;
	}
	pay(&debt);
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
		keep(ends[0]);
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

/* Less than PIPE_BUF: it arrives whole. One that has died is missed by nobody but a probe that is killed. */
static void tell(const struct ll_probe_keeper *keeper)
{
	_Static_assert(sizeof keeper->debt <= 512, "POSIX's least PIPE_BUF");
	const struct ll_probe_debt debt = keeper->debt;
	ssize_t n = keeper->pid ? write(keeper->fd, &debt, sizeof debt) : 0;
	(void)n;
}

void ll_probe_keeper_owe_folder(struct ll_probe_keeper *keeper, const char *folder)
{
	snprintf(keeper->debt.folder, sizeof keeper->debt.folder, "%s", folder ? folder : "");
	tell(keeper);
}

void ll_probe_keeper_owe_mode(struct ll_probe_keeper *keeper, const char *uuid)
{
	snprintf(keeper->debt.exclusive_uuid, sizeof keeper->debt.exclusive_uuid, "%s", uuid ? uuid : "");
	tell(keeper);
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
