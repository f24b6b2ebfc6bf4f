/* loadline-notify: runs the commands that the configuration names for events (`notify`). */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "notify/serve.h"
#include "protocol/service_socket.h"

static const char help[] =
    "usage: loadline-notify [--from FOLDER]... [--deadline SECONDS] [--client NAME] [--user NAME]\n"
    "       loadline-notify --help | --version\n"
    "\n"
    "Runs the commands that `notify` of the configuration names for events. loadlined, which may start no program,\n"
    "sends the events. A command gets the event as one line of JSON on its standard input. It must lie in FOLDER\n"
    "(default: /etc/loadline; at most 8), and belong to root with all folders above it, and nobody else may write\n"
    "to them. A command that runs longer than SECONDS (default: 30) is ended. At most 4 run at a time.\n"
    "\n"
    "systemd starts it (loadline-notify.socket) as user loadline-notify. Started by root it makes the socket for\n"
    "loadlined, which runs as user NAME of --client (default: loadline), and goes on as user NAME of --user\n"
    "(default: loadline-notify, or that of loadlined if there is none).\n";

enum { DEADLINE_S = 30, SECONDS_MAX = 3600 };

struct options {
	struct ll_notify_settings settings;
	int folder_count;
	const char *client, *user;
};

/* ---- the user ---- */

static int become_user(const char *name, uid_t client, struct ll_err *err)
{
	if (geteuid() != 0)
		return 0;
	const struct passwd *entry = getpwnam(name ? name : "loadline-notify");
	if (!entry && !name)
		entry = getpwuid(client);
	if (!entry)
		return ll_err_set(err, -ENOENT, "there is no user %.60s", name ? name : "loadline-notify");
	uid_t uid = entry->pw_uid;
	gid_t gid = entry->pw_gid;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return ll_err_set(err, -errno, "become uid %u: %s", (unsigned)uid, strerror(errno));
	return 0;
}

/* ---- start ---- */

static int serve(struct options *options)
{
	struct ll_err err = {0};
	const char *sim_folder = getenv("LOADLINE_SIM_DIR");
	uid_t client = 0;
	int fd = ll_service_socket_passed(), rc = 0;
	options->settings.rules.owner = sim_folder ? geteuid() : 0;
	if (fd < 0)
		rc = ll_service_client_find(options->client, &client, &err);
	if (!rc && fd < 0) {
		rc = ll_service_socket_bind("notify", sim_folder, client, &fd, &err);
		if (!rc)
			rc = become_user(options->user, client, &err);
	}
	if (!rc) {
		rc = ll_notify_serve(&options->settings, fd);
		if (rc)
			ll_err_set(&err, rc, "the socket: %s", strerror(-rc));
	}
	if (rc)
		fprintf(stderr, "loadline-notify: %s\n", err.text);
	return ll_err_exit_code(rc);
}

/* Returns false if it is not a number in the range. */
static bool read_deadline(const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds > 0) || seconds > SECONDS_MAX)
		return false;
	*ret_ns = (uint64_t)(seconds * LL_NS_PER_S);
	return true;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
	if (strcmp(name, "--from") == 0) {
		if (value[0] != '/' || options->folder_count == LL_HOOK_FOLDERS)
			return false;
		options->settings.rules.folders[options->folder_count++] = value;
		return true;
	}
	if (strcmp(name, "--deadline") == 0)
		return read_deadline(value, &options->settings.deadline_ns);
	const char **text = strcmp(name, "--client") == 0 ? &options->client
			    : strcmp(name, "--user") == 0 ? &options->user
							  : NULL;
	if (text)
		*text = value;
	return text;
}

static bool read_options(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !read_option(options, argv[i], argv[i + 1]))
			return false;
	}
	if (!options->folder_count)
		options->settings.rules.folders[0] = "/etc/loadline";
	return true;
}

int main(int argc, char **argv)
{
	struct options options = {.settings.deadline_ns = DEADLINE_S * LL_NS_PER_S};
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("loadline-notify " LOADLINE_VERSION);
		return LL_EXIT_OK;
	}
	if (read_options(argc, argv, &options))
		return serve(&options);
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	fputs(help, is_help ? stdout : stderr);
	return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
}
