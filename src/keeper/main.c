/* loadline-keeper: the part of loadlined that has rights. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "keeper/scope_unit.h"
#include "keeper/serve.h"
#include "protocol/service_socket.h"

static const char help[] = "usage: loadline-keeper [--user NAME] [--groups scope|folder]\n"
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
			   "systemd starts it (loadline-keeper.socket).\n";

struct options {
	const char *user;
	enum ll_group_kind kind;
};

/* ---- start ---- */

static int find_groups(struct ll_keeper *keeper, enum ll_group_kind kind, struct ll_err *err)
{
	int rc = ll_hierarchy_find(&keeper->hierarchy, err);
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

static int serve(const struct options *options)
{
	struct ll_err err = {0};
	struct ll_keeper keeper = {.proc = "/proc", .is_simulated = getenv("LOADLINE_SIM_DIR") != NULL};
	uid_t client = 0;
	int fd = ll_service_socket_passed();
	int rc = ll_service_client_find(options->user, &client, &err);
	if (!rc)
		rc = find_groups(&keeper, options->kind, &err);
	keeper.client = client;
	if (!rc && fd < 0)
		rc = ll_service_socket_bind("keeper", getenv("LOADLINE_SIM_DIR"), client, &fd, &err);
	if (!rc) {
		if (keeper.hierarchy.groups.kind != LL_GROUPS_NONE)
			ll_info("groups of jobs: %s%s", keeper.hierarchy.mount, keeper.hierarchy.groups.base);
		rc = ll_keeper_serve(&keeper, fd, client);
		if (rc)
			ll_err_set(&err, rc, "the socket: %s", strerror(-rc));
	}
	if (keeper.bus)
		ll_scope_bus_close(keeper.bus);
	if (rc)
		fprintf(stderr, "loadline-keeper: %s\n", err.text);
	return ll_err_exit_code(rc);
}

static bool read_kind(const char *text, enum ll_group_kind *ret_kind)
{
	*ret_kind = strcmp(text, "scope") == 0    ? LL_GROUPS_SCOPE
		    : strcmp(text, "folder") == 0 ? LL_GROUPS_FOLDER
						  : LL_GROUPS_NONE;
	return *ret_kind != LL_GROUPS_NONE;
}

static bool read_options(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return false;
		if (strcmp(argv[i], "--user") == 0)
			options->user = argv[i + 1];
		else if (strcmp(argv[i], "--groups") != 0 || !read_kind(argv[i + 1], &options->kind))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options options = {.user = NULL, .kind = LL_GROUPS_NONE};
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("loadline-keeper " LOADLINE_VERSION);
		return LL_EXIT_OK;
	}
	if (read_options(argc, argv, &options))
		return serve(&options);
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	fputs(help, is_help ? stdout : stderr);
	return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
}
