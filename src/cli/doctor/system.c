#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "advice/advice.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/host.h"
#include "base/runtime_folder.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/doctor/doctor.h"
#include "hold/command/words.h"
#include "mps/command/words.h"
#include "mps/mps.h"
#include "protocol/client.h"
#include "protocol/keeper.h"
#include "serve/http.h"

/* ---- system ---- */

/* Linux: PROC_PID_INIT_INO, the inode of the machine's first PID namespace. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

static void check_node(struct ll_doctor *doctor, const char *path, const char *when_missing)
{
	if (!access(path, R_OK | W_OK))
		ll_doctor_ok(doctor, "%s can be opened", path);
	else if (errno == ENOENT)
		ll_doctor_warn(doctor, when_missing, "%s is not there", path);
	else
		ll_doctor_fail(doctor,
			       N_("give this user read and write access, often by its group (ls -l /dev/nvidia*)"),
			       "%s: %s", path, strerror(errno));
}

static void check_card_nodes(struct ll_doctor *doctor)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(doctor->driver, &cards);
	const struct ll_nvml *nvml = ll_driver_nvml(doctor->driver);
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

void ll_doctor_check_nodes(struct ll_doctor *doctor)
{
	if (doctor->is_simulated)
		return;
	check_node(doctor, "/dev/nvidiactl",
		   N_("load the kernel module (modprobe nvidia), or pass it to the container"));
	check_node(doctor, "/dev/nvidia-uvm", N_("CUDA needs it: nvidia-modprobe -u, or pass it to the container"));
	if (doctor->driver)
		check_card_nodes(doctor);
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

void ll_doctor_check_folder(struct ll_doctor *doctor)
{
	char path[LL_FOLDER_SIZE];
	struct ll_err err = {0};
	int rc = ll_runtime_folder(doctor->sim_folder, path, &err);
	if (!rc)
		rc = try_folder(path, &err);
	if (rc)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
	else
		ll_doctor_ok(doctor, "%s", path);
}

void ll_doctor_check_pid_namespace(struct ll_doctor *doctor)
{
	struct stat st;
	if (stat("/proc/self/ns/pid", &st))
		ll_doctor_warn(doctor, N_("mount /proc"), "unknown: no /proc");
	else if (st.st_ino == FIRST_PID_NAMESPACE)
		ll_doctor_ok(doctor, "the machine's own");
	else
		ll_doctor_ok(doctor,
			     "a container's: NVML does not list processes outside it; a hold detects their work by the "
			     "timing of its own kernels");
}

/* ---- pool ---- */

void ll_doctor_check_pool(struct ll_doctor *doctor)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	uint64_t available = ll_host_available_bytes(), reserve = ll_host_reserve_bytes();
	bool is_limited = ll_host_group_limit_bytes() < ll_host_memory_bytes();
	uint64_t room = available > reserve ? available - reserve : 0;
	ll_hold_add_bytes(&text, room);
	ll_strbuf_adds(&text, is_limited ? _(": what the control group allows now, but for a sixteenth")
					 : _(": what the host has now, but for a sixteenth"));
	if (text.failed)
		return;
	if (room)
		ll_doctor_ok(doctor, "for programs' memory off the card %s", text.buf);
	else
		ll_doctor_warn(doctor, N_("programs cannot be evicted; give the group more memory, or end something"),
			       "for programs' memory off the card %s", text.buf);
}

/* ---- fence ---- */

/* Whether device files of the cards open for jobs alone, by the fence's state file. */

/* Returns the next line of the state, from the character after that word. */
static const char *take_line(char **rest, const char *word)
{
	const char *line = strsep(rest, "\n");
	size_t length = strlen(word);
	return line && strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : "";
}

/* The kernel knows the fence by the group of a process alone. */
static void say_closed(struct ll_doctor *doctor, char *state)
{
	const char *majors = take_line(&state, "majors"), *open = take_line(&state, "open");
	const char *partly = take_line(&state, "partly");
	unsigned in_root = (unsigned)strtoul(take_line(&state, "root"), NULL, 10);
	const char *failed = take_line(&state, "failed");
	if (*failed) {
		doctor->limit_fails++;
		ll_doctor_fail(doctor, NULL, "not closed everywhere: %s", failed);
	}
	ll_doctor_ok(doctor,
		     "device files of the cards (numbers %s) open in these control groups alone: %s; files that were "
		     "open before stay so",
		     majors, open);
	if (*partly)
		ll_doctor_warn(doctor, NULL,
			       "processes of the groups %s themselves are not fenced, since open groups are below them",
			       partly);
	if (in_root)
		ll_doctor_warn(doctor, NULL, "%u processes in the root control group are not fenced", in_root);
	ll_doctor_ok(doctor,
		     "whoever may start containers by a daemon of root, such as dockerd, may choose their control "
		     "group, and so is not fenced");
}

/* A program that is started by `env -i` is then not held to any limit. */
static void say_missing(struct ll_doctor *doctor)
{
	doctor->limit_fails++;
	ll_doctor_fail(
	    doctor, N_("close it: systemctl restart loadline-keeper; its journal says what it lacks"),
	    "none, although the configuration orders one (enforce: devices): every program may open the cards, also "
	    "outside of jobs");
}

void ll_doctor_check_fence(struct ll_doctor *doctor)
{
	LL_SCOPE_STRBUF struct ll_strbuf state = LL_STRBUF_INIT;
	char path[LL_FENCE_STATE_SIZE];
	bool is_system = doctor->view.answer == LL_DAEMON_SERVES && ll_place_is_system(&doctor->view.place);
	ll_fence_state_path(path);
	if (ll_strbuf_add_file(&state, AT_FDCWD, path, SIZE_MAX) == 0)
		say_closed(doctor, state.buf);
	else if (is_system && doctor->view.welcome.policy_orders & LL_POLICY_FENCE)
		say_missing(doctor);
	else if (is_system)
		ll_doctor_ok(doctor, "none: every program may open the cards, also outside of jobs");
}

/* ---- the sensor ---- */

void ll_doctor_check_sensor(struct ll_doctor *doctor)
{
	const struct ll_message_sense_end *end = &doctor->view.sensed.end;
	if (end->silent_ns == UINT64_MAX)
		ll_doctor_warn(doctor, N_("start it: systemctl start loadline-sensor"),
			       "none has reported to loadlined, which knows nothing of programs outside of jobs");
	else if (end->silent_ns >= LL_SENSED_FRESH_NS)
		ll_doctor_warn(doctor, N_("look at it: systemctl status loadline-sensor; the driver may hang"),
			       "it has said nothing for %.0f s", (double)end->silent_ns / 1e9);
	else
		ll_doctor_ok(doctor, "%u cards and slices, %u processes on them", end->cards, end->processes);
}

/* ---- metrics ---- */

/* Whether the metrics that the configuration asks for are served (src/exporter). */
enum { HTTP_OK = 200 };

/* Returns serve.metrics and serve.page; empty: not configured. Errors are those of the connection; -EACCES: neither is.
 */
static int read_served(const struct ll_daemon_view *view, struct ll_message_metrics_end *ret_end)
{
	struct ll_client client = {.fd = -1};
	struct ll_metrics_sums sums = {0};
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_client_open(&client, &view->place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	if (!rc)
		rc = ll_metrics_sums_read(&sums, &client, deadline_ns, NULL);
	if (!rc)
		*ret_end = sums.end;
	ll_metrics_sums_fini(&sums);
	ll_client_close(&client);
	return rc;
}

static void say_address(struct ll_doctor *doctor, const char *address)
{
	struct ll_err err = {0};
	int status = ll_http_ask(address, "/healthz", &err);
	if (status == HTTP_OK)
		ll_doctor_ok(doctor, "served at %s", address);
	else if (status > 0)
		ll_doctor_warn(doctor,
			       N_("look at it: systemctl status loadline-exporter; another program may have the port"),
			       "what replies at %s has status %d", address, status);
	else
		ll_doctor_warn(doctor, N_("look at it: systemctl status loadline-exporter"), "not served: %s",
			       err.text);
}

void ll_doctor_check_metrics(struct ll_doctor *doctor)
{
	struct ll_message_metrics_end end = {0};
	int rc = read_served(&doctor->view, &end);
	if (*end.address)
		say_address(doctor, end.address);
	else if (!rc || rc == -EACCES)
		ll_doctor_ok(doctor, "not served: serve.metrics is not configured");
}

/* ---- page ---- */

/* loadline-exporter writes it each 10 s. */
enum { PAGE_OLD_S = 40 };

/* Why it is not written, as far as this user can see; the exporter logs what it meets. */
void ll_doctor_check_page(struct ll_doctor *doctor)
{
	struct ll_message_metrics_end end = {0};
	char path[LL_METRICS_ADDRESS_SIZE + sizeof "/data.js"];
	struct stat folder, data;
	if (read_served(&doctor->view, &end) || !*end.page)
		return;
	snprintf(path, sizeof path, "%s/data.js", end.page);
	if (stat(path, &data) == 0) {
		double age_s = difftime(time(NULL), data.st_mtime);
		if (age_s < PAGE_OLD_S)
			ll_doctor_ok(doctor, "written in %s", end.page);
		else
			ll_doctor_warn(doctor, N_("look at it: journalctl -u loadline-exporter"),
				       "not written in %s for %.0f s", end.page, age_s);
		return;
	}
	const char *why = strerror(errno);
	bool is_there = stat(end.page, &folder) == 0;
	ll_doctor_warn(doctor,
		       is_there ? N_("let the user loadline-exporter write there; its unit needs ReadWritePaths= for a "
				     "folder outside /run/loadline-exporter")
				: N_("make the folder, or its parent for the user loadline-exporter; see journalctl -u "
				     "loadline-exporter"),
		       "not written in %s: %s", end.page, is_there ? why : strerror(errno));
}

/* ---- mps ---- */

/* doctor reports a daemon that does not answer in this time as hanging. */
#define ANSWER_NS (3 * LL_NS_PER_S)

static void check_servers(struct ll_doctor *doctor, const struct ll_mps_list *list)
{
	for (size_t i = 0; i < list->server_count; i++) {
		const struct ll_mps_server *server = &list->servers[i];
		if (server->status == LL_MPS_FAULT)
			ll_doctor_warn(
			    doctor,
			    N_("end the clients that `loadline mps clients` lists, or `loadline mps stop --force`"),
			    "server %d is in FAULT: new clients wait", (int)server->pid);
		else if (server->user != (uid_t)-1 && server->user != geteuid())
			ll_doctor_warn(
			    doctor,
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
	ll_doctor_ok(doctor, "a daemon answers at %s: MPS v%u%s, %s", desk->place.pipe, version->protocol,
		     version->has_static_partitions ? _(" with static partitions") : "", clients);
}

/* A missing daemon is a warning only if the environment names one. */
static void say_none(struct ll_doctor *doctor, const struct ll_mps_desk *desk, struct ll_err *why)
{
	if (desk->place.is_named)
		ll_doctor_warn(doctor,
			       N_("start the daemon or unset the variable: with a wrong folder programs silently run "
				  "without MPS and limits"),
			       "%s=%s, but no control daemon is there", LL_MPS_PIPE_VARIABLE, desk->place.pipe);
	else
		ll_doctor_ok(doctor, "%s", why->text);
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
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
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
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < records[i].card_count; j++) {
			const struct ll_card *card = ll_cards_find_uuid(desk->driver, records[i].cards[j].uuid);
			doctor->card = card;
			if (card && records[i].cards[j].is_changed)
				ll_doctor_warn(doctor, N_("`loadline mps stop` restores its mode"),
					       "left in exclusive mode for an MPS daemon at %s that is gone",
					       records[i].pipe);
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

void ll_doctor_check_mps(struct ll_doctor *doctor)
{
	const struct ll_driver *driver = doctor->driver;
	struct ll_mps_desk desk = {.own = NULL};
	struct ll_err err = {0};
	int rc = driver ? ll_mps_desk_use(&desk, driver, &err) : ll_mps_place_find(NULL, &desk.place, &err);
	if (rc) {
		ll_doctor_say_err(doctor, LL_FINDING_WARN, &err);
		return;
	}
	doctor->check = "mps program";
	ll_doctor_ok(doctor, "%s",
		     *desk.place.program ? desk.place.program
					 : _("no nvidia-cuda-mps-control: programs cannot share by space"));
	doctor->check = "mps";
	check_daemon(doctor, &desk);
	if (driver)
		check_leftovers(doctor, &desk);
}

/* ---- Kubernetes ---- */

/* Names a socket of the folder that begins so and is served: one that a program left behind stays there until the
 * kubelet is started again. */
static bool find_plugin(const char *folder, const char *begin, char ret_name[NAME_MAX + 1])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	bool is_found = false;
	DIR *files = opendir(folder);
	for (const struct dirent *file; files && !is_found && (file = readdir(files));) {
		LL_SCOPE_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, file->d_name);
		is_found = strncmp(file->d_name, begin, strlen(begin)) == 0 && length > 0 &&
			   (size_t)length < sizeof address.sun_path &&
			   connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
		if (is_found)
			snprintf(ret_name, NAME_MAX + 1, "%s", file->d_name);
	}
	if (files)
		closedir(files);
	return is_found;
}

/* NVIDIA's device plugin names its sockets nvidia-gpu.sock and nvidia-mig-….sock, that of GKE nvidiaGPU-….sock. The
 * folder is root's. */
void ll_doctor_check_kubernetes(struct ll_doctor *doctor)
{
	static const char folder[] = "/var/lib/kubelet/device-plugins";
	char own[NAME_MAX + 1], other[NAME_MAX + 1];
	if (!find_plugin(folder, "loadline-", own))
		return;
	if (find_plugin(folder, "nvidia", other))
		ll_doctor_warn(doctor,
			       N_("kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false, or give the two "
				  "plugins different cards"),
			       "NVIDIA's device plugin (%s) serves the kubelet beside loadline-kubelet: it gives away "
			       "whole the cards that loadline cuts",
			       other);
	else
		ll_doctor_ok(doctor, "loadline-kubelet alone offers the cards to the kubelet");
}

/* ---- sharing ---- */

void ll_doctor_check_earlier(struct ll_doctor *doctor)
{
	static const char advice[] = N_("remove it: it says only how programs got on beside each other");
	LL_SCOPE_FREE struct ll_earlier *earlier = calloc(1, sizeof *earlier);
	char folder[PATH_MAX];
	struct ll_err err = {0};
	if (!earlier || ll_earlier_folder(doctor->sim_folder, folder, NULL))
		return;
	if (ll_earlier_read(folder, earlier, &err))
		ll_doctor_warn(doctor,
			       err.code == -EBADMSG
				   ? N_("the next program that shares a card puts it aside, and begins another")
				   : N_("programs that share a card have nothing to compare with"),
			       "%s", err.text);
	if (ll_earlier_has_damaged(folder))
		ll_doctor_warn(doctor, advice, "%s/" LL_EARLIER_DAMAGED ": a damaged file that was put aside", folder);
}
