#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/user.h"
#include "cli/doctor/doctor.h"

/* Linux 6.18: NET_NS_INIT_INO, the inode of the machine's first network namespace. */
#define FIRST_NET_NAMESPACE 0xEFFFFFF9U

enum { LINE_SIZE = 512, USER_SIZE = 64, PATH_SIZE = 64, FEW_FILES = 4096 };

/* ---- the network namespace ---- */

/* Whether an interface of /proc/net/dev has a device of the machine, as none has in a container's namespace. */
static bool has_device(void)
{
	char line[LINE_SIZE], path[LINE_SIZE];
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/self/net/dev", "re");
	while (file && fgets(line, sizeof line, file)) {
		char *name = line + strspn(line, " ");
		char *end = strchr(name, ':');
		if (!end)
			continue;
		*end = '\0';
		snprintf(path, sizeof path, "/sys/class/net/%.200s/device", name);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static bool has_own_network(void)
{
	struct stat st;
	if (stat("/proc/self/ns/net", &st) || st.st_ino == FIRST_NET_NAMESPACE)
		return false;
	return !has_device();
}

/* ---- daemons of other users ---- */

#define PREFIX "loadline/"

/* Whether the name is that of another daemon of a user in the same world: PREFIX UID, and what follows in ours.
 * own: this user's; is_own_other: it counts too, as the system's governs. */
static bool is_of_other_user(const char *name, const char *own, bool is_own_other, uid_t *ret_uid)
{
	size_t length = strlen(PREFIX);
	char *rest;
	unsigned long uid = strtoul(name + length, &rest, 10);
	const char *own_rest = own + length + strspn(own + length, "0123456789");
	if (rest == name + length || strcmp(rest, own_rest) != 0 || (strcmp(name, own) == 0 && !is_own_other))
		return false;
	*ret_uid = (uid_t)uid;
	return true;
}

struct others {
	struct ll_strbuf *users;
	const char *own;
	bool is_own_other;
};

static void add_other_user(const char *name, void *arg)
{
	struct others *others = arg;
	char user[USER_SIZE], word[USER_SIZE + 4];
	uid_t uid;
	if (!is_of_other_user(name, others->own, others->is_own_other, &uid))
		return;
	ll_user_name(uid, user, sizeof user);
	snprintf(word, sizeof word, "%s, ", user);
	if (!strstr(others->users->buf, word))
		ll_strbuf_adds(others->users, word);
}

static void check_other_users(struct ll_doctor *doctor)
{
	LL_SCOPE_STRBUF struct ll_strbuf users = LL_STRBUF_INIT;
	struct ll_place own;
	bool is_system = ll_place_is_system(&doctor->view.place);
	if (ll_place_of_user(doctor->sim_folder, &own, NULL))
		return;
	ll_place_each(PREFIX, add_other_user,
		      &(struct others){.users = &users, .own = own.name, .is_own_other = is_system});
	if (users.length < 2 || users.failed)
		return;
	ll_doctor_warn(doctor,
		       is_system ? N_("it makes room for the system's within some seconds")
				 : N_("limits and weights hold among the programs of one user; give each user cards of "
				      "their own (-i), or start the system's loadlined"),
		       "one of user %.*s governs programs on this machine too, and neither knows of the other's",
		       (int)users.length - 2, users.buf);
}

/* ---- what the daemon could not reset ---- */

static void add_limit(struct ll_strbuf *text, pid_t pid, __rlimit_resource_t resource, rlim_t least, const char *name)
{
	struct rlimit limit;
	if (prlimit(pid, resource, NULL, &limit) == 0 && limit.rlim_max < least)
		ll_strbuf_addf(text, "%s %ju, ", name, (uintmax_t)limit.rlim_max);
}

static bool has_filter(pid_t pid)
{
	char path[PATH_SIZE], line[LINE_SIZE];
	int mode = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	}
	return mode > 0;
}

static void check_left(struct ll_doctor *doctor, pid_t pid)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	add_limit(&text, pid, RLIMIT_NOFILE, FEW_FILES, _("at most so many open files (ulimit -Hn):"));
	add_limit(&text, pid, RLIMIT_CPU, RLIM_INFINITY, _("at most so many seconds of CPU time (ulimit -Ht):"));
	errno = 0;
	int nice_value = getpriority(PRIO_PROCESS, (id_t)pid);
	if (!errno && nice_value > 0)
		ll_strbuf_addf(&text, _("a nice value of %d, "), nice_value);
	if (has_filter(pid))
		ll_strbuf_adds(&text, _("a seccomp filter, "));
	if (text.length > 2 && !text.failed)
		ll_doctor_warn(doctor, N_("end it (kill): a job's monitor starts it again, with what the monitor has"),
			       "it keeps from the shell or job that started it: %.*s", (int)text.length - 2, text.buf);
}

/* ---- the daemon ---- */

/* Only processes of the job can write there. */
static void say_repairs(struct ll_doctor *doctor, const struct ll_daemon_view *view,
			const struct ll_message_card_row *row)
{
	const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
	if (job && row->repairs)
		ll_doctor_warn(doctor,
			       N_("a program of the job writes where it must not: look for a stray pointer in it"),
			       "words of the page of tenant %s were changed by its programs %llu "
			       "times; loadlined has written them again, and the limits hold",
			       job->job.tenant, (unsigned long long)row->repairs);
}

static void say_policy(struct ll_doctor *doctor, const struct ll_message_welcome *welcome)
{
	char since[LL_MOMENT_SIZE];
	if (welcome->policy_refused_s) {
		ll_policy_moment(welcome->policy_refused_s, since);
		ll_doctor_warn(doctor,
			       N_("`loadline config check` names all faults; after that: systemctl reload loadlined"),
			       "what is on the disk is not in force since %s: %s", since, welcome->policy_fault);
	} else if (welcome->policy_since_s) {
		ll_policy_moment(welcome->policy_since_s, since);
		ll_doctor_ok(doctor, "in force since %s", since);
	}
}

static void say_keeper(struct ll_doctor *doctor, uint32_t keeper)
{
	if (keeper == LL_KEEPER_PRESENT)
		ll_doctor_ok(doctor,
			     "loadline-keeper serves it: the processes of a job are known by its control group");
	else if (keeper == LL_KEEPER_REFUSES)
		ll_doctor_warn(
		    doctor,
		    N_("mount control groups of version 2: systemd.unified_cgroup_hierarchy=1 on the kernel's "
		       "command line"),
		    "loadline-keeper refuses, since it needs control groups of version 2: the processes of a job "
		    "are known by the job's token only");
	else
		ll_doctor_warn(
		    doctor, N_("start it: systemctl enable --now loadline-keeper.socket"),
		    "no loadline-keeper serves it: the processes of a job are known by the job's token only");
}

static void say_events(struct ll_doctor *doctor, uint32_t waiting)
{
	char events[LINE_SIZE];
	if (!waiting)
		return;
	snprintf(events, sizeof events, ll_translate_count("%u event waits", "%u events wait", waiting), waiting);
	ll_doctor_warn(doctor, N_("start it: systemctl enable --now loadline-notify.socket"),
		       "no loadline-notify serves it: %s for the commands of `notify`", events);
}

static void say_serves(struct ll_doctor *doctor, const struct ll_daemon_view *view)
{
	char cgroup[LL_CGROUP_SIZE] = "/";
	const struct ll_message_welcome *welcome = &view->welcome;
	char jobs[LINE_SIZE], tenants[LINE_SIZE];
	bool is_system = ll_place_is_system(&view->place);
	snprintf(jobs, sizeof jobs, ll_translate_count("%u job", "%u jobs", view->list.end.jobs), view->list.end.jobs);
	snprintf(tenants, sizeof tenants, ll_translate_count("%u tenant", "%u tenants", view->list.end.tenants),
		 view->list.end.tenants);
	bool is_here = view->pid > 0 && ll_cgroup_read(view->pid, cgroup, sizeof cgroup) == 0;
	ll_doctor_ok(doctor, "version %s, pid %u: %s of %s, %s%s%s", welcome->version_text, welcome->pid, jobs, tenants,
		     ll_place_mark(&view->place), view->place.name,
		     is_system ? _(" (the system's: it governs the programs of all users)") : "");
	if (!is_system && is_here && strcmp(cgroup, "/") != 0)
		ll_doctor_ok(doctor,
			     "it is in control group %s, and ends with it; the monitor of a job in another group then "
			     "starts it again",
			     cgroup);
	if (is_system)
		say_keeper(doctor, welcome->keeper);
	say_events(doctor, welcome->events_waiting);
	if (is_here && !is_system)
		check_left(doctor, view->pid);
	if (welcome->version < ll_version_number(LOADLINE_VERSION))
		ll_doctor_warn(doctor,
			       is_system ? N_("restart it: systemctl restart loadlined")
					 : N_("the next `loadline run` replaces it"),
			       "it is of version %s, older than this one, %s", welcome->version_text, LOADLINE_VERSION);
	doctor->check = "configuration";
	say_policy(doctor, welcome);
	doctor->check = "loadlined";
	for (size_t i = 0; i < view->list.card_count; i++)
		say_repairs(doctor, view, &view->list.cards[i]);
	if (welcome->bad_messages)
		ll_doctor_warn(doctor, NULL, "it has ended %llu connections that sent what is no message of loadline",
			       (unsigned long long)welcome->bad_messages);
}

/* No limits can be put in force. It does not prevent a hold. */
static void say_refusing(struct ll_doctor *doctor, const char *todo, const char *detail)
{
	doctor->is_refusing = true;
	doctor->limit_fails++;
	ll_doctor_fail(doctor, todo, "%s", detail);
}

static void say_view(struct ll_doctor *doctor, const struct ll_daemon_view *view)
{
	char user[USER_SIZE], detail[LINE_SIZE];
	switch (view->answer) {
	case LL_DAEMON_NONE:
		ll_doctor_ok(doctor, "none runs; `loadline run` starts one");
		break;
	case LL_DAEMON_SERVES:
		say_serves(doctor, view);
		break;
	case LL_DAEMON_SILENT:
		snprintf(detail, sizeof detail, _("pid %d does not answer within 1 s"), (int)view->pid);
		say_refusing(doctor,
			     N_("it is stopped, or frozen with its control group: continue it (kill -CONT), or end it "
				"(kill -KILL)"),
			     detail);
		break;
	case LL_DAEMON_FOREIGN:
		ll_user_name(view->foreign_uid, user, sizeof user);
		snprintf(detail, sizeof detail, _("user %s has its name, %s%s; it cannot be started"), user,
			 ll_place_mark(&view->place), view->place.name);
		say_refusing(doctor, N_("ask that user to end the program that has the name"), detail);
		break;
	case LL_DAEMON_BROKEN:
		snprintf(detail, sizeof detail, _("it cannot be asked: %s"), strerror(-view->code));
		say_refusing(doctor, NULL, detail);
		break;
	}
}

/* A socket of the system's that commands do not use. */
static void check_system(struct ll_doctor *doctor)
{
	struct ll_place place;
	int fd, rc = ll_place_of_system(doctor->sim_folder, &place);
	uid_t uid = 0;
	if (!rc)
		rc = ll_place_connect(&place, &fd, &uid);
	if (!rc)
		close(fd);
	if (rc == -EPERM)
		ll_doctor_warn(doctor, N_("its folder must be root's, and others may not write it"),
			       "%s, where uid %u serves, cannot be trusted and is not used", place.name, (unsigned)uid);
}

void ll_doctor_check_daemon(struct ll_doctor *doctor)
{
	struct ll_daemon_paths paths;
	struct ll_err err = {0};
	if (ll_daemon_paths_find(&paths, &err))
		say_refusing(doctor, err.hint[0] ? err.hint : NULL, err.text);
	ll_daemon_view_init(&doctor->view, doctor->sim_folder);
	say_view(doctor, &doctor->view);
	if (doctor->view.answer != LL_DAEMON_BROKEN)
		check_other_users(doctor);
	check_system(doctor);
}

void ll_doctor_check_network(struct ll_doctor *doctor)
{
	if (has_own_network())
		ll_doctor_warn(doctor,
			       N_("give the container the host's network (--network=host) if its programs shall share "
				  "cards with others"),
			       "this network namespace is not the machine's: a loadlined outside is not reached, and "
			       "one inside is not known outside");
}
