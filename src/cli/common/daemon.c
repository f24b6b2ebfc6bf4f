#include "cli/common/daemon.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/common/beside.h"

#define ANSWER_NS LL_NS_PER_S

static const char *const daemon_places[] = {"src/daemon", "../lib/loadline", ".", NULL};
static const char *const monitor_places[] = {"src/monitor", "../lib/loadline", ".", NULL};

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

/*
 * loadlined is told of the jobs by their monitors. If it has ended, one of them starts the next one (GAP), and all come
 * to it: within some ms (SETTLED), or within a second where the machine is busy (YOUNG). Until then it knows a part.
 */
#define GAP_NS (50 * LL_NS_PER_MS)
#define SETTLED_NS (100 * LL_NS_PER_MS)
#define YOUNG_NS LL_NS_PER_S
#define PAUSE_NS (10 * LL_NS_PER_MS)

struct asking {
	struct ll_place place;
	const struct ll_programs *programs; /* NULL: it is not started */
	uint64_t answer_ns;
};

static int open_and_list(const struct asking *asking, struct ll_client *client, struct ll_list *list,
			 struct ll_err *err)
{
	const struct ll_client_self self = {LOADLINE_VERSION, LL_ROLE_COMMAND, -1, asking->programs};
	uint64_t deadline_ns = ll_now_ns() + asking->answer_ns;
	int rc = ll_client_open(client, &asking->place, &self, deadline_ns, err);
	return rc ? rc : ll_client_list(client, list, deadline_ns, err);
}

static bool is_settled(const struct ll_message_welcome *welcome)
{
	return welcome->age_ns >= (welcome->last_job ? SETTLED_NS : YOUNG_NS);
}

/* Fills in both, also after a failure. A daemon may have ended just now, or between two messages. */
static int request_view(const struct asking *asking, struct ll_client *client, struct ll_list *list, struct ll_err *err)
{
	uint64_t begun_ns = ll_now_ns(), served_ns = begun_ns;
	for (;;) {
		*client = (struct ll_client){.fd = -1};
		*list = (struct ll_list){0};
		int rc = open_and_list(asking, client, list, err);
		uint64_t now_ns = ll_now_ns();
		bool may_change = rc == -ECONNREFUSED ? now_ns - served_ns < GAP_NS
						      : ll_client_is_lost(rc) || (!rc && !is_settled(&client->welcome));
		if (!may_change || now_ns - begun_ns > 2 * YOUNG_NS)
			return rc;
		served_ns = rc == -ECONNREFUSED ? served_ns : now_ns;
		ll_client_close(client);
		ll_list_fini(list);
		ll_sleep_until_ns(now_ns + PAUSE_NS);
	}
}

static int connect_and_ask(struct ll_daemon_view *view)
{
	struct ll_client client;
	int rc = request_view(&(struct asking){view->place, NULL, ANSWER_NS}, &client, &view->list, NULL);
	view->pid = client.pid;
	view->foreign_uid = client.its_uid;
	view->welcome = client.welcome;
	if (!rc)
		rc = ll_client_policy(&client, &view->policy, ll_now_ns() + ANSWER_NS, NULL);
	if (rc == -EPERM)
		view->answer = LL_DAEMON_FOREIGN;
	view->sensed.end.silent_ns = UINT64_MAX;
	/* What the sensor reports adds to the list. An older loadlined refuses, and the list is all. */
	if (!rc && ll_place_is_system(&view->place) &&
	    ll_sensed_read(&view->sensed, &client, ll_now_ns() + ANSWER_NS, NULL))
		ll_sensed_fini(&view->sensed);
	ll_client_close(&client);
	return rc;
}

static void note_result(struct ll_daemon_view *view, int rc)
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
	note_result(view, connect_and_ask(view));
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
	ll_policy_fini(&view->policy);
	ll_sensed_fini(&view->sensed);
}

/* pid: as the socket tells it here. welcome: as it is where loadlined lives. */
static bool is_same_number(pid_t pid, const struct ll_message_welcome *welcome)
{
	return pid > 0 && (uint32_t)pid == welcome->pid;
}

bool ll_daemon_view_pids_are_ours(const struct ll_daemon_view *view)
{
	return is_same_number(view->pid, &view->welcome);
}

bool ll_daemon_pids_are_ours(const struct ll_client *client)
{
	return is_same_number(client->pid, &client->welcome);
}

/* ---- for requests ---- */

/* Returns whether jobs may yet come, among them what was looked for. */
static bool look_once(const struct asking *asking, ll_daemon_look_fn look, void *data, int *ret_rc, struct ll_err *err)
{
	struct ll_client client;
	struct ll_list list;
	int rc = request_view(asking, &client, &list, err);
	bool is_asked = !rc || rc == -ECONNREFUSED;
	if (is_asked)
		rc = look(data, client.fd >= 0 ? &client : NULL, &list, err);
	ll_list_fini(&list);
	ll_client_close(&client);
	*ret_rc = rc;
	return is_asked && (ll_client_is_lost(rc) || (rc == -ENOENT && client.welcome.age_ns < YOUNG_NS));
}

int ll_daemon_look(const char *sim_folder, bool starts, ll_daemon_look_fn look, void *data, struct ll_err *err)
{
	struct ll_daemon_paths paths = {0};
	struct asking asking = {.programs = starts ? &paths.programs : NULL, .answer_ns = LL_CLIENT_REPLY_NS};
	struct ll_err why = {0};
	int rc = ll_place_find(sim_folder, &asking.place, err);
	if (!rc && starts)
		rc = ll_daemon_paths_find(&paths, err);
	if (rc)
		return rc;
	uint64_t deadline_ns = ll_now_ns() + YOUNG_NS;
	while (look_once(&asking, look, data, &rc, &why) && ll_now_ns() < deadline_ns) {
		why = (struct ll_err){0};
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
	if (rc && err)
		*err = why;
	return rc;
}

int ll_daemon_open(const char *sim_folder, struct ll_client *client, struct ll_err *err)
{
	struct ll_daemon_paths paths;
	const struct ll_client_self self = {LOADLINE_VERSION, LL_ROLE_COMMAND, -1, &paths.programs};
	struct ll_place place;
	*client = (struct ll_client){.fd = -1};
	int rc = ll_place_find(sim_folder, &place, err);
	if (!rc)
		rc = ll_daemon_paths_find(&paths, err);
	return rc ? rc : ll_client_open(client, &place, &self, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
}
