/* loadline-fence: device files of NVIDIA's driver open inside the control groups of jobs only. Root runs it. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "fence/watch.h"

static const char help[] =
    "usage: loadline-fence on [--once | --config] [--keep-open GROUP]... [--root FOLDER]\n"
    "       loadline-fence off | show [--keep-open GROUP]... [--root FOLDER]\n"
    "       loadline-fence --help | --version\n"
    "\n"
    "on:    /dev/nvidia* opens only in the control groups of jobs (loadline.slice) and of some services. New groups\n"
    "       are closed as they appear. The program stays; when it is ended by SIGTERM it opens the fence. If it is\n"
    "       killed, the fence stays closed, and `loadline-fence off` opens it.\n"
    "off:   opens the fence, whoever has closed it.\n"
    "show:  which groups are closed. Exit status 1: one is not that must be.\n"
    "\n"
    "--once            on: closes what is there, and ends. The fence stays closed.\n"
    "--config          on: closes if /etc/loadline/loadline.yaml has `enforce: {devices: true}`; read again at "
    "SIGHUP.\n"
    "--keep-open GROUP that group stays open too: /system.slice/example.service\n"
    "--root FOLDER     of control groups, in place of the machine's; for tests.\n";

struct options {
	const char *command, *root;
	const char *open[LL_FENCE_OPEN_MAX];
	size_t open_count;
	bool is_once, by_config;
};

static int want_always(void *data)
{
	(void)data;
	return 1;
}

/* A configuration with faults changes nothing. */
static int want_by_config(void *data)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	struct ll_err err = {0};
	(void)data;
	int rc = access(LL_CONFIG_FILE, F_OK) ? 0 : ll_config_load(&config, NULL, &findings, &err);
	if (rc)
		ll_error("%s", err.text);
	else if (findings.fault_count)
		rc = -EINVAL;
	else
		rc = config.policy.enforce.devices;
	if (rc == -EINVAL)
		ll_error("the configuration has faults; the fence stays as it is: see `loadline config check`");
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return rc;
}

static int close_once(struct ll_fence *fence, struct ll_err *err)
{
	int rc = ll_fence_close(fence, err);
	return rc ? ll_err_hint(err, "the fence may be closed in part; `loadline-fence off` opens it") : 0;
}

static int do_command(const struct options *options, struct ll_fence *fence, struct ll_err *err)
{
	if (strcmp(options->command, "show") == 0)
		return ll_fence_show(fence, stdout, err);
	if (strcmp(options->command, "off") == 0)
		return ll_fence_open(fence, err);
	if (options->is_once)
		return close_once(fence, err);
	return ll_fence_watch(fence, options->by_config ? want_by_config : want_always, NULL, err);
}

static int run_fence(const struct options *options)
{
	struct ll_err err = {0};
	struct ll_fence fence;
	int rc = ll_fence_init(&fence, options->root, &err);
	for (size_t i = 0; !rc && i < options->open_count; i++) {
		rc = ll_fence_tree_keep_open(&fence.tree, options->open[i]);
		if (rc)
			ll_err_set(&err, rc, "--keep-open %s: not the path of a group, or too many", options->open[i]);
	}
	if (!rc)
		rc = do_command(options, &fence, &err);
	ll_fence_fini(&fence);
	if (rc >= 0)
		return rc;
	fprintf(stderr, err.hint[0] ? "loadline-fence: %s; %s\n" : "loadline-fence: %s\n", err.text, err.hint);
	return ll_err_exit_code(rc);
}

static bool read_options(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {{"once", no_argument, NULL, 'o'},
					      {"config", no_argument, NULL, 'c'},
					      {"keep-open", required_argument, NULL, 'k'},
					      {"root", required_argument, NULL, 'r'},
					      {NULL, 0, NULL, 0}};
	for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		if (option == 'k' && options->open_count < LL_FENCE_OPEN_MAX)
			options->open[options->open_count++] = optarg;
		else if (option == 'r')
			options->root = optarg;
		else if (option == 'o')
			options->is_once = true;
		else if (option == 'c')
			options->by_config = true;
		else
			return false;
	}
	options->command = optind == argc - 1 ? argv[optind] : "";
	bool is_on = strcmp(options->command, "on") == 0;
	bool is_other = strcmp(options->command, "off") == 0 || strcmp(options->command, "show") == 0;
	return is_on ? !(options->is_once && options->by_config) : is_other && !options->is_once && !options->by_config;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	ll_log_set_level(LL_LOG_WARN);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("loadline-fence " LOADLINE_VERSION);
		return LL_EXIT_OK;
	}
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	if (!is_help && read_options(argc, argv, &options))
		return run_fence(&options);
	fputs(help, is_help ? stdout : stderr);
	return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
}
