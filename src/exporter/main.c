/* loadline-exporter: serves metrics of the system's loadlined to Prometheus, and writes a page for people. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/service.h"
#include "config/config.h"
#include "exporter/web.h"
#include "protocol/place.h"
#include "serve/http.h"

static const char help[] =
    "usage: loadline-exporter [--config PATH | --listen ADDRESS]\n"
    "       loadline-exporter --help | --version\n"
    "\n"
    "Serves metrics of the system's loadlined in Prometheus' text format, at the address of `serve: {metrics: …}` in\n"
    "/etc/loadline/loadline.yaml, and writes a page for people into the folder of `serve: {page: …}` each 10 s. What "
    "has\n"
    "no key is not done. SIGHUP: it reads the file again.\n"
    "\n"
    "--config PATH     the configuration is there\n"
    "--listen ADDRESS  serves there, whatever the configuration says: 127.0.0.1:9409, :9409, unix:/run/file.sock\n";

/* Many who ask within a second get one text. 1024 connections have 8 MiB of memory. */
#define KEEP_NS LL_NS_PER_S
enum { CONNECTIONS = 1024 };

/* place: never changes. All else is guarded by the lock: while an address replaces another, two servers run. */
struct exporter {
	struct ll_place place;
	pthread_mutex_t lock;
	struct ll_exporter_history history;
	struct ll_exporter_self self;
	int said;         /* the error of the last reading, which was logged; 0: none */
	uint64_t read_ns; /* its end */
};

/* ---- the server's thread, with the lock ---- */

/* Logs a state once, not at each scrape. */
static void log_once(struct exporter *exporter, int rc, const struct ll_err *err)
{
	if (rc && rc != exporter->said)
		ll_warn("%s", err->text);
	else if (!rc && exporter->said)
		ll_info("loadlined replies");
	exporter->said = rc;
}

/* A loadlined that hangs takes the whole wait of a reading, during which nobody else is served. */
static bool is_just_read(const struct exporter *exporter)
{
	return exporter->read_ns && ll_now_ns() - exporter->read_ns < KEEP_NS;
}

static int read_figures(struct exporter *exporter, struct ll_figures *figures)
{
	struct ll_err err = {0};
	int rc = ll_figures_read(figures, &exporter->place, false, &err);
	log_once(exporter, rc, &err);
	exporter->read_ns = ll_now_ns();
	return rc;
}

static bool write_metrics(void *data, struct ll_strbuf *text)
{
	struct exporter *exporter = data;
	struct ll_figures figures = {0};
	LL_SCOPE_LOCK(&exporter->lock);
	int rc = exporter->said && is_just_read(exporter) ? exporter->said : read_figures(exporter, &figures);
	exporter->self.scrapes++;
	exporter->self.failures += rc != 0;
	bool is_good = ll_exporter_history_add(&exporter->history, &figures.sensed) == 0;
	ll_exporter_text(text, &figures, &exporter->history, &exporter->self);
	ll_figures_fini(&figures);
	return is_good && !text->failed;
}

static bool write_health(void *data, struct ll_strbuf *text)
{
	struct exporter *exporter = data;
	struct ll_figures figures = {0};
	LL_SCOPE_LOCK(&exporter->lock);
	int rc = is_just_read(exporter) ? exporter->said : read_figures(exporter, &figures);
	ll_figures_fini(&figures);
	ll_strbuf_adds(text, rc ? "loadlined does not reply\n" : "ok\n");
	return !rc;
}

/* ---- the configuration ---- */

static int copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

/* Reads serve.metrics and serve.page; NULL: the configuration has not the key. The caller frees them, also after an
 * error. -EINVAL: the configuration has faults, or cannot be read. */
static int read_settings(const char *path, char **ret_address, char **ret_folder)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	struct ll_err err = {0};
	bool is_there = path || access(LL_CONFIG_FILE, F_OK) == 0;
	int rc = is_there ? ll_config_load(&config, path, &findings, &err) : 0;
	if (rc)
		ll_error("%s", err.text);
	else if (findings.fault_count)
		rc = -EINVAL;
	if (!rc)
		rc = copy_text(config.policy.serve.metrics, ret_address);
	if (!rc)
		rc = copy_text(config.policy.serve.page, ret_folder);
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return rc;
}

struct options {
	const char *config, *listen;
};

/* ---- the server ---- */

struct service {
	const struct options *options;
	struct exporter exporter;
	struct ll_http *http; /* NULL: nothing is served */
	char *address;
	struct ll_web web;
	int rc; /* of the last reload */
	struct ll_err *err;
};

static int start_http(struct service *service, const char *address, struct ll_http **ret_http, struct ll_err *err)
{
	struct ll_http_config config = {.address = address,
					.metrics = write_metrics,
					.health = write_health,
					.data = &service->exporter,
					.most_connections = CONNECTIONS,
					.keep_ns = KEEP_NS};
	int rc = ll_http_new(&config, ret_http, err);
	if (!rc)
		ll_info("serves at %s, port %u", address, ll_http_port(*ret_http));
	return rc;
}

static bool is_same(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

/* Takes over the address; NULL: nothing is served. After an error the former address is served. */
static int serve_at(struct service *service, char *address, struct ll_err *err)
{
	struct ll_http *http = NULL;
	bool is_served = service->http && is_same(service->address, address);
	int rc = is_served || !address ? 0 : start_http(service, address, &http, err);
	if (rc || is_served) {
		free(address);
		return rc;
	}
	ll_http_free(service->http);
	free(service->address);
	service->http = http;
	service->address = address;
	if (!address)
		ll_info("serve.metrics is not configured; nothing is served");
	return 0;
}

/* A configuration with faults changes nothing. */
static int load_settings(struct service *service, struct ll_err *err)
{
	const struct options *options = service->options;
	char *address = NULL;
	LL_SCOPE_FREE char *folder = NULL;
	int rc =
	    options->listen ? copy_text(options->listen, &address) : read_settings(options->config, &address, &folder);
	if (!rc)
		rc = ll_web_move(&service->web, folder);
	if (rc) {
		free(address);
		ll_error("the configuration has faults; metrics are served as before: see `loadline config check`");
		return 0;
	}
	bool is_serving = service->http;
	rc = serve_at(service, address, err);
	if (!rc || !is_serving)
		return rc;
	ll_error("%s; metrics are served at %s as before", err->text, service->address);
	return 0;
}

/* SIGHUP */
static void reload(struct ll_service *loop, int number)
{
	struct service *service = loop->data;
	(void)number;
	service->rc = load_settings(service, service->err);
	loop->is_ending = service->rc;
	loop->tick_ns = service->web.folder ? ll_now_ns() : UINT64_MAX;
}

static void write_page(struct ll_service *loop)
{
	struct service *service = loop->data;
	ll_web_write(&service->web, &service->exporter.place);
	loop->tick_ns = ll_now_ns() + LL_WEB_EVERY_NS;
}

/* The server has a thread of its own: metrics are served also while the folder of the page hangs. */
static int run_service(struct service *service)
{
	struct ll_service loop = {.data = service,
				  .signals = {SIGHUP, SIGTERM, SIGINT},
				  .on_signal = reload,
				  .listen_fd = -1,
				  .watched_fd = -1,
				  .tick_ns = UINT64_MAX,
				  .on_tick = write_page};
	int rc = ll_service_init(&loop);
	if (rc)
		return ll_err_set(service->err, rc, "signals: %s", strerror(-rc));
	reload(&loop, SIGHUP);
	ll_service_run(&loop);
	return service->rc;
}

static int run_exporter(void *data, struct ll_err *err)
{
	struct service service = {.options = data, .exporter.lock = PTHREAD_MUTEX_INITIALIZER, .err = err};
	int rc = ll_place_of_system(getenv("LOADLINE_SIM_DIR"), &service.exporter.place);
	rc = rc ? ll_err_set(err, rc, "%s", strerror(-rc)) : run_service(&service);
	ll_http_free(service.http);
	free(service.address);
	ll_web_fini(&service.web);
	ll_exporter_history_fini(&service.exporter.history);
	return rc;
}

static bool read_options(int argc, char **argv, void *ret_options)
{
	static const struct option table[] = {
	    {"config", required_argument, NULL, 'c'}, {"listen", required_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
	struct options *options = ret_options;
	for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		if (option == 'c')
			options->config = optarg;
		else if (option == 'l')
			options->listen = optarg;
		else
			return false;
	}
	return optind == argc && !(options->config && options->listen);
}

int main(int argc, char **argv)
{
	static const struct ll_program program = {"loadline-exporter", LOADLINE_VERSION, help, read_options,
						  run_exporter};
	struct options options = {0};
	signal(SIGPIPE, SIG_IGN);
	return ll_program_main(&program, argc, argv, &options);
}
