/* loadline-kubelet: a device plugin of Kubernetes, by which the kubelet gives containers their part of a card. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grpc/grpc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/service.h"
#include "kubelet/plugin.h"

static const char help[] =
    "usage: loadline-kubelet [--devices FILE] [--kubelet FOLDER]\n"
    "       loadline-kubelet --help | --version\n"
    "\n"
    "Offers the sizes of `kubernetes:` in /etc/loadline/loadline.yaml to this node's kubelet, as resources of which a\n"
    "container takes one. loadlined and its sensor run beside it; loadlined's service describes the sizes.\n"
    "\n"
    "--devices FILE    the description, of `loadline cdi generate`; /run/cdi/loadline-cut.json\n"
    "--kubelet FOLDER  the kubelet's folder for plugins; /var/lib/kubelet/device-plugins\n";

/* The sensor reports each 5 s. */
#define LOOK_NS (2 * LL_NS_PER_S)
#define PAUSE_NS LL_NS_PER_S
#define DESCRIPTION_MAX (16UL << 20)

struct options {
	const char *devices, *folder;
};

struct plugin {
	const struct options *options;
	struct ll_place place;
	struct ll_kubelet_cuts cuts;
	struct ll_strbuf text; /* of the description that cuts are of */
	uint64_t look_ns, read_ns;
	bool has_failed; /* loadlined did not answer; it was said */
};

static volatile sig_atomic_t is_ending;

static void on_signal(int number)
{
	(void)number;
	is_ending = 1;
}

/* ---- what changes ---- */

/* loadlined's service writes the description whenever it starts, mostly the same. */
static bool is_description_new(struct plugin *plugin)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int rc = ll_strbuf_add_file(&text, AT_FDCWD, plugin->options->devices, DESCRIPTION_MAX);
	bool is_new = rc == -ENOENT ? plugin->text.length : !rc && strcmp(text.buf, plugin->text.buf) != 0;
	return is_new;
}

static void look_at_cards(struct plugin *plugin)
{
	struct ll_err err = {0};
	int rc = ll_kubelet_cuts_look(&plugin->cuts, &err);
	if (rc && !plugin->has_failed)
		ll_warn("%s", err.text);
	else if (!rc && plugin->has_failed)
		ll_info("loadlined replies");
	plugin->has_failed = rc;
	plugin->look_ns = ll_now_ns() + LOOK_NS;
}

static bool on_tick(void *data)
{
	struct plugin *plugin = data;
	uint64_t now_ns = ll_now_ns();
	if (now_ns >= plugin->look_ns)
		look_at_cards(plugin);
	if (is_ending || now_ns < plugin->read_ns)
		return !is_ending;
	plugin->read_ns = now_ns + PAUSE_NS;
	return !is_description_new(plugin);
}

static int read_description(struct plugin *plugin, struct ll_err *err)
{
	ll_kubelet_cuts_fini(&plugin->cuts);
	ll_strbuf_reset(&plugin->text);
	int rc = ll_strbuf_add_file(&plugin->text, AT_FDCWD, plugin->options->devices, DESCRIPTION_MAX);
	if (rc && rc != -ENOENT)
		return ll_err_set(err, rc, "%s: %s", plugin->options->devices, strerror(-rc));
	rc = ll_kubelet_cuts_read(&plugin->cuts, plugin->options->devices, &plugin->place, err);
	if (!rc && !plugin->cuts.count)
		ll_warn("%s: no size is described; `kubernetes:` in loadline.yaml has them, and loadlined's service "
			"describes them",
			plugin->options->devices);
	plugin->look_ns = 0;
	return rc;
}

/* ---- the program ---- */

/* A kubelet removes the files in its folder when it starts, but not the folder. */
static int lock_folder(const char *folder, int *ret_fd, struct ll_err *err)
{
	*ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0)
		return ll_err_set(err, -errno, "%s: %s", folder, strerror(errno));
	if (flock(*ret_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return ll_err_set(err, -EBUSY, "%s: another loadline-kubelet serves here", folder);
	return ll_err_set(err, -errno, "%s: %s", folder, strerror(errno));
}

/* Whatever is wrong may be right in a second: the kubelet's folder, a description that is written just now. */
static void serve(struct plugin *plugin)
{
	const struct ll_kubelet_service service = {
	    .cuts = &plugin->cuts, .folder = plugin->options->folder, .on_tick = on_tick, .data = plugin};
	char said[sizeof((struct ll_err *)NULL)->text] = "";
	while (!is_ending) {
		struct ll_err err = {0};
		int rc = read_description(plugin, &err);
		if (!rc)
			rc = ll_kubelet_serve(&service, &err);
		if (rc && strcmp(said, err.text) != 0)
			ll_warn("%s", err.text);
		memcpy(said, err.text, sizeof said);
		if (rc && !is_ending)
			ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
}

static int run(void *data, struct ll_err *err)
{
	const struct options *options = data;
	struct plugin plugin = {.options = options, .text = LL_STRBUF_INIT};
	const struct sigaction action = {.sa_handler = on_signal};
	LL_SCOPE_CLOSE int lock_fd = -1;
	int rc = ll_place_of_system(getenv("LOADLINE_SIM_DIR"), &plugin.place);
	if (rc)
		return ll_err_set(err, rc, "the folder of the simulated world: %s", strerror(-rc));
	rc = lock_folder(options->folder, &lock_fd, err);
	if (rc)
		return rc;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	grpc_init();
	serve(&plugin);
	grpc_shutdown();
	ll_kubelet_cuts_fini(&plugin.cuts);
	ll_strbuf_fini(&plugin.text);
	return LL_EXIT_OK;
}

static bool read_options(int argc, char **argv, void *ret_options)
{
	static const struct option options[] = {
	    {"devices", required_argument, NULL, 'd'}, {"kubelet", required_argument, NULL, 'k'}, {NULL, 0, NULL, 0}};
	struct options *its = ret_options;
	int letter;
	while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (letter == 'd')
			its->devices = optarg;
		else if (letter == 'k')
			its->folder = optarg;
		else
			return false;
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	static const struct ll_program program = {"loadline-kubelet", LOADLINE_VERSION, help, read_options, run};
	struct options options = {"/run/cdi/loadline-cut.json", "/var/lib/kubelet/device-plugins"};
	return ll_program_main(&program, argc, argv, &options);
}
