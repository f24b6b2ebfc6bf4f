#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/runtime_folder.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/doctor/doctor.h"

/* Linux: PROC_PID_INIT_INO, the inode of the machine's first PID namespace. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

static void check_node(struct ll_doctor *doctor, const char *path, const char *when_missing)
{
	static const char check[] = "device node";
	if (!access(path, R_OK | W_OK))
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "%s can be opened", path);
	else if (errno == ENOENT)
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check, when_missing, "%s is not there", path);
	else
		ll_doctor_say(doctor, LL_FINDING_FAIL, NULL, check,
			      N_("give this user read and write access, often by its group (ls -l /dev/nvidia*)"),
			      "%s: %s", path, strerror(errno));
}

static void check_card_nodes(struct ll_doctor *doctor, const struct ll_driver *driver)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	const struct ll_nvml *nvml = ll_driver_nvml(driver);
	for (size_t i = 0; i < count; i++) {
		char path[40];
		unsigned minor;
		if (cards[i].is_mig || cards[i].fault || !nvml->nvmlDeviceGetMinorNumber ||
		    nvml->nvmlDeviceGetMinorNumber(cards[i].nvml, &minor))
			continue;
		snprintf(path, sizeof path, "/dev/nvidia%u", minor);
		check_node(doctor, path, N_("in a container, pass the card to it; else nvidia-modprobe -c 0 makes it"));
	}
}

static void check_nodes(struct ll_doctor *doctor, const struct ll_driver *driver)
{
	check_node(doctor, "/dev/nvidiactl",
		   N_("load the kernel module (modprobe nvidia), or pass it to the container"));
	check_node(doctor, "/dev/nvidia-uvm", N_("CUDA needs it: nvidia-modprobe -u, or pass it to the container"));
	if (driver)
		check_card_nodes(doctor, driver);
}

/* If the folder does not exist yet, it checks whether the parent folder allows to make it. It does not make it. */
static int try_folder(const char *path, struct ll_err *err)
{
	char parent[LL_FOLDER_SIZE];
	LL_SCOPE_CLOSE int fd = -1;
	snprintf(parent, sizeof parent, "%s", path);
	*strrchr(parent, '/') = '\0';
	if (access(path, F_OK) && errno == ENOENT)
		return access(parent, W_OK | X_OK) ? ll_err_set(err, -errno, "%s: %s", parent, strerror(errno)) : 0;
	int rc = ll_runtime_folder_open(path, &fd, err);
	if (rc)
		return rc;
	return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) ? ll_err_set(err, -errno, "%s: %s", path, strerror(errno))
							   : 0;
}

static void check_folder(struct ll_doctor *doctor, const struct ll_driver *driver)
{
	static const char check[] = "runtime folder";
	char path[LL_FOLDER_SIZE];
	struct ll_err err = {0};
	int rc = ll_runtime_folder(driver ? ll_driver_sim_folder(driver) : NULL, path, &err);
	if (!rc)
		rc = try_folder(path, &err);
	if (rc)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, check, &err);
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "%s", path);
}

static void check_pid_namespace(struct ll_doctor *doctor)
{
	static const char check[] = "pid namespace";
	struct stat st;
	if (stat("/proc/self/ns/pid", &st))
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check, N_("mount /proc"), "unknown: no /proc");
	else if (st.st_ino == FIRST_PID_NAMESPACE)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "the machine's own");
	else
		ll_doctor_say(
		    doctor, LL_FINDING_OK, NULL, check, NULL,
		    "a container's: NVML does not list processes outside it; a hold detects their work by the "
		    "timing of its own kernels");
}

void ll_doctor_check_system(struct ll_doctor *doctor, const struct ll_driver *driver)
{
	if (!doctor->is_simulated)
		check_nodes(doctor, driver);
	check_folder(doctor, driver);
	check_pid_namespace(doctor);
	ll_doctor_check_daemon(doctor, driver ? ll_driver_sim_folder(driver) : NULL);
	ll_doctor_check_mps(doctor, driver);
	ll_doctor_check_pool(doctor);
	ll_doctor_check_earlier(doctor, driver ? ll_driver_sim_folder(driver) : NULL);
}
