/* loadline-keeper: the part of loadlined that has rights. */
#include <errno.h>
#include <getopt.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/service.h"
#include "keeper/keeper.h"
#include "protocol/service_socket.h"

static const char help[] = "usage: loadline-keeper [--user NAME] [--groups scope|folder] [--config PATH]\n"
			   "                       [--keep-open GROUP]... [--root FOLDER]\n"
			   "       loadline-keeper fence on|off|show [--keep-open GROUP]... [--root FOLDER]\n"
			   "       loadline-keeper --help | --version\n"
			   "\n"
			   "loadline-keeper does for loadlined, which has no rights, what needs rights: it puts a\n"
			   "job's process into a control group of the job, sends signals to processes there,\n"
			   "freezes, thaws and removes such groups, and ends programs that use a card outside of\n"
			   "jobs. It checks each request itself. Only user NAME (default: loadline) and root may\n"
			   "send requests.\n"
			   "\n"
			   "--groups: where jobs have their groups, of version 2. Without it: scopes of systemd in\n"
			   "loadline.slice; without systemd's D-Bus, and beside controllers of version 1, folders\n"
			   "below its own group. Where version 2 is not mounted it refuses each request.\n"
			   "\n"
			   "It is the fence too: if the configuration has `enforce: {devices: true}`, /dev/nvidia*\n"
			   "opens only in the control groups of jobs (loadline.slice) and of some services. New\n"
			   "groups are closed as they appear. The configuration is read again at SIGHUP. Ended by\n"
			   "SIGTERM it opens the fence. If it is killed, the fence stays closed.\n"
			   "\n"
			   "--config PATH     loadline.yaml, or a folder with it. Without it: /etc/loadline;\n"
			   "                  on simulated cards none.\n"
			   "--keep-open GROUP that group stays open too: /system.slice/example.service\n"
			   "--root FOLDER     of control groups, in place of the machine's; for tests.\n"
			   "\n"
			   "fence on:   closes what is there, and ends. The fence stays closed.\n"
			   "fence off:  opens the fence, whoever has closed it. A loadline-keeper that runs closes\n"
			   "            it again if its configuration says so.\n"
			   "fence show: which groups are closed. Exit status 1: one is not that must be.\n"
			   "\n"
			   "systemd starts it (loadline-keeper.socket).\n";

enum { OPEN_MAX = 64 };

struct options {
	const char *user, *config, *root, *fence; /* fence: its command */
	const char *open[OPEN_MAX];
	size_t open_count;
	enum ll_group_kind kind; /* LL_GROUPS_NONE: it is found */
};

/* ---- where ---- */

static int use_root(struct ll_hierarchy *hierarchy, const char *root, struct ll_err *err)
{
	struct statfs fs;
	LL_SCOPE_FREE char *path = realpath(root, NULL);
	if (!path || statfs(path, &fs))
		return ll_err_set(err, -errno, "%s: %s", root, strerror(errno));
	if (fs.f_type != CGROUP2_SUPER_MAGIC || strlen(path) >= sizeof hierarchy->mount)
		return ll_err_set(err, -ENOENT, "%s: not a folder of control groups of version 2", root);
	memcpy(hierarchy->mount, path, strlen(path) + 1);
	return 0;
}

static int find_hierarchy(struct ll_keeper *keeper, const struct options *options, struct ll_err *err)
{
	int rc = ll_hierarchy_find(&keeper->hierarchy, err);
	if (!rc && options->root)
		rc = use_root(&keeper->hierarchy, options->root, err);
	for (size_t i = 0; !rc && i < options->open_count; i++) {
		if (options->open[i][0] != '/' || !options->open[i][1])
			rc = ll_err_set(err, -EINVAL, "--keep-open %s: not the path of a group", options->open[i]);
	}
	keeper->fence.hierarchy = &keeper->hierarchy;
	keeper->fence.open = options->open;
	keeper->fence.open_count = options->open_count;
	return rc;
}

static int find_groups(struct ll_keeper *keeper, const struct options *options, struct ll_err *err)
{
	enum ll_group_kind kind = options->kind;
	int rc = find_hierarchy(keeper, options, err);
	if (rc == -ENOTSUP) {
		ll_warn("%s: every request is refused", err->text);
		return 0;
	}
	if (rc || kind == LL_GROUPS_FOLDER || (kind == LL_GROUPS_NONE && keeper->hierarchy.is_beside_limits))
		return rc;
	rc = ll_scope_bus_open(&keeper->bus);
	if (!rc)
		ll_hierarchy_use_scopes(&keeper->hierarchy);
	else if (kind == LL_GROUPS_SCOPE)
		return ll_err_set(err, rc, "systemd cannot be asked: %s", strerror(-rc));
	return 0;
}

/* ---- start ---- */

static int change_fence(struct ll_keeper *keeper, const struct options *options, struct ll_err *err)
{
	int rc = find_hierarchy(keeper, options, err);
	if (rc)
		return rc == -ENOTSUP ? -ENOSYS : rc; /* for the exit status */
	if (strcmp(options->fence, "show") == 0)
		return ll_fence_show(&keeper->fence, err);
	if (strcmp(options->fence, "off") == 0)
		return ll_fence_open(&keeper->fence, err);
	rc = ll_fence_close(&keeper->fence, err);
	if (rc && rc != -ENOSYS)
		ll_err_hint(err, "the fence may be closed in part; `loadline-keeper fence off` opens it");
	return rc;
}

static int run_keeper(void *data, struct ll_err *err)
{
	const struct options *options = data;
	bool is_simulated = getenv("LOADLINE_SIM_DIR") != NULL;
	struct ll_keeper keeper = {.proc = "/proc", .is_simulated = is_simulated};
	sigset_t early;
	if (options->fence)
		return change_fence(&keeper, options, err);
	/* It is read by the loop: one that came before would end this process. */
	sigemptyset(&early);
	sigaddset(&early, SIGHUP);
	sigprocmask(SIG_BLOCK, &early, NULL);
	keeper.fence.is_by_config = options->config || !is_simulated;
	keeper.fence.config = options->config;
	int fd = ll_service_socket_passed();
	int rc = ll_service_client_find(options->user, &keeper.client, err);
	if (!rc)
		rc = find_groups(&keeper, options, err);
	if (!rc && fd < 0)
		rc = ll_service_socket_bind("keeper", getenv("LOADLINE_SIM_DIR"), keeper.client, &fd, err);
	if (!rc) {
		if (keeper.hierarchy.groups.kind != LL_GROUPS_NONE)
			ll_info("groups of jobs: %s%s", keeper.hierarchy.mount, keeper.hierarchy.groups.base);
		rc = ll_keeper_serve(&keeper, fd, err);
	}
	if (keeper.bus)
		ll_scope_bus_close(keeper.bus);
	return rc;
}

static bool read_groups(const char *word, enum ll_group_kind *ret_kind)
{
	*ret_kind = strcmp(word, "scope") == 0 ? LL_GROUPS_SCOPE : LL_GROUPS_FOLDER;
	return *ret_kind == LL_GROUPS_SCOPE || strcmp(word, "folder") == 0;
}

/* `fence` and its command; their options are those of the fence alone. */
static bool read_command(char **words, int count, struct options *options)
{
	static const char *const commands[] = {"on", "off", "show"};
	if (count != 2 || strcmp(words[0], "fence") != 0 || options->user || options->config || options->kind)
		return count == 0;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(words[1], commands[i]) == 0)
			options->fence = words[1];
	}
	return options->fence != NULL;
}

static bool read_options(int argc, char **argv, void *ret_options)
{
	struct options *options = ret_options;
	static const struct option table[] = {
	    {"user", required_argument, NULL, 'u'},      {"groups", required_argument, NULL, 'g'},
	    {"config", required_argument, NULL, 'c'},    {"root", required_argument, NULL, 'r'},
	    {"keep-open", required_argument, NULL, 'k'}, {NULL, 0, NULL, 0}};
	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		if (option == 'u')
			options->user = optarg;
		else if (option == 'c')
			options->config = optarg;
		else if (option == 'r')
			options->root = optarg;
		else if (option == 'k' && options->open_count < OPEN_MAX)
			options->open[options->open_count++] = optarg;
		else if (option != 'g' || !read_groups(optarg, &options->kind))
			return false;
	}
	return read_command(argv + optind, argc - optind, options);
}

int main(int argc, char **argv)
{
	static const struct ll_program program = {"loadline-keeper", LOADLINE_VERSION, help, read_options, run_keeper};
	struct options options = {.kind = LL_GROUPS_NONE};
	return ll_program_main(&program, argc, argv, &options);
}
