#include "daemon/core/reload.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "daemon/accounts/write.h"
#include "daemon/core/server.h"
#include "daemon/jobs/job_watch.h"
#include "daemon/machine/events.h"
#include "daemon/policy/policy_of_jobs.h"

struct ll_reload {
	struct ll_server *server;
	const char *path;
	uv_signal_t hangup;
	uv_work_t work;
	bool is_reading, is_wanted; /* wanted: another SIGHUP came while the files were read */
	/* written by the thread: */
	struct ll_config config;
	struct ll_err err;
	int rc;
};

static void start_reading(struct ll_reload *reload);

static int64_t now_s(void)
{
	return (int64_t)time(NULL);
}

static void read_files(uv_work_t *work)
{
	struct ll_reload *reload = work->data;
	reload->rc = ll_department_read(&reload->config, reload->path, now_s(), &reload->err);
}

static void on_read(uv_work_t *work, int status)
{
	struct ll_reload *reload = work->data;
	struct ll_server *server = reload->server;
	reload->is_reading = false;
	if (status) { /* canceled: the loop ends */
		ll_config_fini(&reload->config);
		return;
	}
	bool was_refused = server->department.refused_s;
	int rc = ll_department_put(&server->department, &reload->config, reload->rc, &reload->err, now_s());
	if (rc) {
		ll_events_tell(server, LL_EVENT_CONFIG, NULL, "the former configuration stays in force: %s",
			       server->department.fault);
	} else {
		if (was_refused)
			ll_events_tell(server, LL_EVENT_CONFIG, NULL, "the configuration has no faults any more");
		ll_department_note_change(server);
		ll_job_watch_wake(server->watch);
		ll_accounting_look(server->accounting); /* budgets may be new */
	}
	if (reload->is_wanted && !uv_is_closing((uv_handle_t *)&reload->hangup))
		start_reading(reload);
}

static void start_reading(struct ll_reload *reload)
{
	reload->is_wanted = reload->is_reading;
	if (reload->is_reading)
		return;
	reload->config = (struct ll_config){0};
	reload->err = (struct ll_err){0};
	reload->is_reading = uv_queue_work(&reload->server->loop, &reload->work, read_files, on_read) == 0;
}

static void on_hangup(uv_signal_t *signal, int number)
{
	(void)number;
	start_reading(signal->data);
}

int ll_reload_init(struct ll_server *server, const char *path, struct ll_err *err)
{
	int rc = ll_department_load(&server->department, path, now_s(), err);
	if (rc)
		return rc;
	struct ll_reload *reload = calloc(1, sizeof *reload);
	if (!reload)
		return ll_err_set(err, -ENOMEM, "out of memory");
	reload->server = server;
	reload->path = path;
	reload->hangup.data = reload->work.data = reload;
	uv_signal_init(&server->loop, &reload->hangup);
	uv_signal_start(&reload->hangup, on_hangup, SIGHUP);
	server->reload = reload;
	ll_accounting_look(server->accounting); /* budgets are read */
	return 0;
}

void ll_reload_stop(struct ll_server *server)
{
	struct ll_reload *reload = server->reload;
	if (!reload)
		return;
	uv_cancel((uv_req_t *)&reload->work);
	uv_close((uv_handle_t *)&reload->hangup, NULL);
}

void ll_reload_fini(struct ll_server *server)
{
	free(server->reload);
	server->reload = NULL;
	ll_department_fini(&server->department);
}
