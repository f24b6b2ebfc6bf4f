#include "cli/common/daemon.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/common/beside.h"

#define ANSWER_NS LL_NS_PER_S

static const char *const daemon_places[] = {"src/daemon", "../lib/loadline", NULL};
static const char *const monitor_places[] = {"src/monitor", "../lib/loadline", NULL};

int ll_daemon_paths_find(struct ll_daemon_paths *ret_paths, struct ll_err *err)
{
	ret_paths->programs = (struct ll_programs){ret_paths->daemon, ret_paths->monitor};
	if (ll_beside_find(daemon_places, "loadlined", ret_paths->daemon) == 0 &&
	    ll_beside_find(monitor_places, "loadline-job", ret_paths->monitor) == 0)
		return 0;
	ll_err_set(err, -ENOENT, "loadlined and loadline-job are not beside this program, nor in %s", daemon_places[1]);
	return ll_err_hint(err, "install all of loadline");
}

/* ---- asking ---- */

static int read_list(struct ll_daemon_view *view, struct ll_client *client, uint64_t deadline_ns)
{
	int rc = ll_client_open(client, &view->place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	view->pid = client->pid;
	view->foreign_uid = client->its_uid;
	view->welcome = client->welcome;
	if (rc == -EPERM)
		view->answer = LL_DAEMON_FOREIGN;
	return rc ? rc : ll_client_list(client, &view->list, deadline_ns, NULL);
}

/* A daemon may end, or be ended, between two messages; the next one is there within some ms. */
static int connect_and_ask(struct ll_daemon_view *view)
{
	uint64_t deadline_ns = ll_now_ns() + ANSWER_NS;
	int rc = -EPIPE;
	for (int i = 0; i < 3 && ll_client_is_lost(rc); i++) {
		struct ll_client client;
		ll_list_fini(&view->list);
		rc = read_list(view, &client, deadline_ns);
		ll_client_close(&client);
	}
	return rc;
}

static void note(struct ll_daemon_view *view, int rc)
{
	view->code = rc;
	if (rc == 0)
		view->answer = LL_DAEMON_SERVES;
	else if (rc == -ECONNREFUSED)
		view->answer = LL_DAEMON_NONE;
	else if (rc == -ETIMEDOUT)
		view->answer = LL_DAEMON_SILENT;
}

void ll_daemon_view_init_at(struct ll_daemon_view *view, const struct ll_place *place)
{
	*view = (struct ll_daemon_view){.answer = LL_DAEMON_BROKEN, .place = *place};
	note(view, connect_and_ask(view));
}

void ll_daemon_view_init(struct ll_daemon_view *view, const char *sim_folder)
{
	struct ll_place place;
	int rc = ll_place_find(sim_folder, &place, NULL);
	if (rc)
		*view = (struct ll_daemon_view){.answer = LL_DAEMON_BROKEN, .code = rc};
	else
		ll_daemon_view_init_at(view, &place);
}

void ll_daemon_view_fini(struct ll_daemon_view *view)
{
	ll_list_fini(&view->list);
}

bool ll_daemon_view_pids_are_ours(const struct ll_daemon_view *view)
{
	return view->pid > 0 && (uint32_t)view->pid == view->welcome.pid;
}

/* ---- for requests ---- */

static int open_and_list(const struct ll_place *place, struct ll_client *client, struct ll_list *list,
			 uint64_t deadline_ns, struct ll_err *err)
{
	int rc = ll_client_open(client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	return rc ? rc : ll_client_list(client, list, deadline_ns, err);
}

int ll_daemon_ask_list(const char *sim_folder, struct ll_client *client, struct ll_list *ret_list, struct ll_err *err)
{
	struct ll_place place;
	struct ll_err why = {0};
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_ANSWER_NS;
	*client = (struct ll_client){.fd = -1};
	*ret_list = (struct ll_list){0};
	int rc = ll_place_find(sim_folder, &place, err);
	if (rc)
		return rc;
	rc = -EPIPE;
	for (int i = 0; i < 3 && ll_client_is_lost(rc); i++) {
		ll_client_close(client);
		ll_list_fini(ret_list);
		rc = open_and_list(&place, client, ret_list, deadline_ns, &why);
	}
	if (rc == -ECONNREFUSED)
		return 0;
	if (rc && err)
		*err = why;
	return rc;
}
