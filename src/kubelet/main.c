/* loadline-kubelet: a device plugin of Kubernetes, by which the kubelet gives containers their part of a card; or a
 * driver of Dynamic Resource Allocation, by which claims have theirs. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grpc/grpc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/service.h"
#include "kubelet/claims.h"
#include "kubelet/plugin.h"

static const char help[] =
    "usage: loadline-kubelet [--devices FILE] [--kubelet FOLDER]\n"
    "       loadline-kubelet --claims [--node NAME] [--api URL] [--account FOLDER] [--devices FILE] [--kubelet "
    "FOLDER]\n"
    "       loadline-kubelet --help | --version\n"
    "\n"
    "Offers the sizes of `kubernetes:` in /etc/loadline/loadline.yaml to this node's kubelet, as resources of which a\n"
    "container takes one. loadlined and its sensor run beside it; loadlined's service describes the sizes.\n"
    "\n"
    "--devices FILE    the description, of `loadline cdi generate`; /run/cdi/loadline-cut.json\n"
    "--kubelet FOLDER  the kubelet's folder for plugins; /var/lib/kubelet/device-plugins\n"
    "\n"
    "--claims          be a driver of ResourceClaims instead (Kubernetes from 1.34): of the entries with\n"
    "                  `claims: true` claims take any size. FILE is then /run/cdi/loadline-claims.json, beside which\n"
    "                  claims are described, and FOLDER /var/lib/kubelet\n"
    "--node NAME       this node; $NODE_NAME, or the name of the host\n"
    "--api URL         the API server, https://HOST:PORT; of $KUBERNETES_SERVICE_HOST and _PORT\n"
    "--account FOLDER  with the files token and ca.crt; /var/run/secrets/kubernetes.io/serviceaccount\n";

/* The sensor reports each 5 s. */
#define LOOK_NS (2 * LL_NS_PER_S)
#define PAUSE_NS LL_NS_PER_S
#define DESCRIPTION_MAX (16UL << 20)

enum { FOLDER_MODE = 0750 };

struct options {
	const char *devices, *folder, *node, *api, *account;
	bool is_claims;
};

struct plugin {
	const struct options *options;
	struct ll_place place;
	struct ll_kubelet_cuts cuts;
	struct ll_kubelet_driver driver; /* of claims */
	struct ll_strbuf text;           /* of the description that cuts are of */
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
	if (plugin->options->is_claims && !is_ending)
		ll_kubelet_driver_publish(&plugin->driver, &plugin->cuts);
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
	bool is_claims = plugin->options->is_claims;
	rc = ll_kubelet_cuts_read(&plugin->cuts, plugin->options->devices,
				  is_claims ? "loadline.dev/claims" : "loadline.dev/cut", &plugin->place, err);
	plugin->cuts.driver = is_claims ? &plugin->driver : NULL;
	if (!rc && !plugin->cuts.count)
		ll_warn("%s: no size is described; `kubernetes:` in loadline.yaml has them%s, and loadlined's service "
			"describes them",
			plugin->options->devices, is_claims ? ", with `claims: true`" : "");
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
	const struct ll_kubelet_service service = {.cuts = &plugin->cuts,
						   .folder = plugin->options->folder,
						   .sockets =
						       plugin->options->is_claims ? ll_kubelet_driver_sockets : NULL,
						   .on_tick = on_tick,
						   .data = plugin};
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

/* ---- the driver of claims ---- */

static int find_node(const char *named, char ret_name[LL_KUBELET_NAME_SIZE], struct ll_err *err)
{
	if (named)
		snprintf(ret_name, LL_KUBELET_NAME_SIZE, "%s", named);
	else if (gethostname(ret_name, LL_KUBELET_NAME_SIZE - 1))
		return ll_err_set(err, -errno, "the name of the host: %s", strerror(errno));
	if (ret_name[0] && !ret_name[strspn(ret_name, "abcdefghijklmnopqrstuvwxyz0123456789-.")])
		return 0;
	return ll_err_set(err, -EINVAL, "--node: '%.100s' is no name of a node", ret_name);
}

/* ret_url has its text as long as the process runs. */
static int find_api(const char *named, const char **ret_url, struct ll_err *err)
{
	static char url[LL_KUBELET_PATH_SIZE];
	const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
	*ret_url = named ? named : url;
	if (named)
		return 0;
	if (!host || !port)
		return ll_err_set(err, -EINVAL,
				  "which API server? --api, or in a pod KUBERNETES_SERVICE_HOST and _PORT");
	snprintf(url, sizeof url, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	return 0;
}

static int start_driver(struct plugin *plugin, struct ll_err *err)
{
	static const char *const parts[] = {"plugins", LL_KUBELET_DRIVER_FOLDER, "plugins_registry"};
	const struct options *options = plugin->options;
	struct ll_kubelet_driver *driver = &plugin->driver;
	const char *slash = strrchr(options->devices, '/');
	int rc = find_node(options->node, driver->node, err);
	driver->api.account = options->account;
	if (!rc)
		rc = find_api(options->api, &driver->api.url, err);
	snprintf(driver->kubelet, sizeof driver->kubelet, "%s", options->folder);
	snprintf(driver->folder, sizeof driver->folder, "%.*s", slash ? (int)(slash - options->devices) : 1,
		 slash ? options->devices : ".");
	for (size_t i = 0; !rc && i < sizeof parts / sizeof *parts; i++) {
		char path[LL_KUBELET_PATH_SIZE];
		snprintf(path, sizeof path, "%s/%s", options->folder, parts[i]);
		if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
			rc = ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	return rc;
}

static int lock(const struct options *options, int *ret_fd, struct ll_err *err)
{
	char path[LL_KUBELET_PATH_SIZE];
	snprintf(path, sizeof path, "%s/%s", options->folder, options->is_claims ? LL_KUBELET_DRIVER_FOLDER : "");
	return lock_folder(path, ret_fd, err);
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
	if (options->is_claims)
		rc = start_driver(&plugin, err);
	if (!rc)
		rc = lock(options, &lock_fd, err);
	if (rc)
		return rc;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	grpc_init();
	serve(&plugin);
	grpc_shutdown();
	ll_kubelet_driver_fini(&plugin.driver);
	ll_kubelet_cuts_fini(&plugin.cuts);
	ll_strbuf_fini(&plugin.text);
	return LL_EXIT_OK;
}

static bool read_options(int argc, char **argv, void *ret_options)
{
	static const struct option options[] = {{"devices", required_argument, NULL, 'd'},
						{"kubelet", required_argument, NULL, 'k'},
						{"claims", no_argument, NULL, 'c'},
						{"node", required_argument, NULL, 'n'},
						{"api", required_argument, NULL, 'a'},
						{"account", required_argument, NULL, 's'},
						{NULL, 0, NULL, 0}};
	struct options *its = ret_options;
	bool has_claims_option = false;
	int letter;
	while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (letter == '?')
			return false;
		its->is_claims |= letter == 'c';
		has_claims_option |= letter == 'n' || letter == 'a' || letter == 's';
		*(letter == 'd'   ? &its->devices
		  : letter == 'k' ? &its->folder
		  : letter == 'n' ? &its->node
		  : letter == 'a' ? &its->api
		  : letter == 's' ? &its->account
				  : &(const char *){NULL}) = optarg;
	}
	if (!its->devices)
		its->devices = its->is_claims ? "/run/cdi/loadline-claims.json" : "/run/cdi/loadline-cut.json";
	if (!its->folder)
		its->folder = its->is_claims ? "/var/lib/kubelet" : "/var/lib/kubelet/device-plugins";
	return optind == argc && (its->is_claims || !has_claims_option);
}

int main(int argc, char **argv)
{
	static const struct ll_program program = {"loadline-kubelet", LOADLINE_VERSION, help, read_options, run};
	struct options options = {.node = getenv("NODE_NAME"),
				  .account = "/var/run/secrets/kubernetes.io/serviceaccount"};
	return ll_program_main(&program, argc, argv, &options);
}
