#include "daemon/core/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/process_id.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/connection.h"
#include "daemon/jobs/jobs.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/queue.h"
#include "daemon/residency/residency.h"

/* BACKLOG: of a user's daemon, to which thousands of its own processes may come at once. The system's: door.c. */
enum { BACKLOG = 4096, BACKLOG_OF_SYSTEM = 256, IDLE_EXIT_MS = 2000, TICK_MS = 1000, ROOM_MS = 2000 };

/* ---- periodic checks, and the end ---- */

static void on_idle_exit(uv_timer_t *timer)
{
	ll_server_stop(timer->data);
}

/* When the system's daemon serves, this daemon ends. The monitors register their jobs there, with the jobs' pages. A
 * monitor without pages does so too. */
static void on_room(uv_timer_t *timer)
{
	struct ll_server *server = timer->data;
	int fd;
	if (ll_place_connect(&server->system_place, &fd, NULL))
		return;
	close(fd);
	ll_server_stop(server);
}

static void on_tick(uv_timer_t *timer)
{
	struct ll_server *server = timer->data;
	bool is_door_shut = ll_door_tick(server);
	bool is_monitor_lost = ll_jobs_tick(server);
	bool is_hello_due = ll_connections_tick(server);
	bool is_user_lost = ll_users_tick(server);
	bool has_unread = ll_unread_tick(server);
	bool has_company = ll_cards_note_company(&server->cards, ll_now_ns());
	bool has_weights = server->department.config.root && ll_weights_settle(server);
	server->wants_tick =
	    is_monitor_lost || is_hello_due || is_user_lost || has_company || has_weights || has_unread || is_door_shut;
	if (!server->wants_tick)
		uv_timer_stop(timer);
	ll_server_look(server);
}

void ll_server_look(struct ll_server *server)
{
	bool is_idle = server->connection_count == server->watcher_count && !server->books.job_count;
	if (!is_idle || server->is_system)
		uv_timer_stop(&server->idle_exit);
	else if (!uv_is_active((uv_handle_t *)&server->idle_exit))
		uv_timer_start(&server->idle_exit, on_idle_exit, IDLE_EXIT_MS, 0);
	if (server->wants_tick && !uv_is_active((uv_handle_t *)&server->tick))
		uv_timer_start(&server->tick, on_tick, TICK_MS, TICK_MS);
	ll_accounting_look(server->accounting);
	ll_job_watch_wake(server->watch);
}

void ll_server_stop(struct ll_server *server)
{
	uv_stop(&server->loop);
}

void ll_server_describe(const struct ll_server *server, struct ll_message_welcome *welcome)
{
	welcome->protocol = LL_PROTOCOL_VERSION;
	welcome->pid = (uint32_t)getpid();
	welcome->version = ll_version_number(server->version);
	ll_message_text_set(welcome->version_text, sizeof welcome->version_text, server->version);
	welcome->instance = server->instance;
	welcome->age_ns = ll_now_ns() - server->born_ns;
	welcome->jobs = server->books.job_count;
	welcome->tenants = server->books.tenant_count;
	welcome->connections = server->connection_count;
	welcome->bad_messages = server->bad_messages;
	welcome->last_job = server->books.last_job;
	welcome->policy_since_s = (uint64_t)server->department.since_s;
	welcome->policy_refused_s = (uint64_t)server->department.refused_s;
	ll_message_text_set(welcome->policy_fault, sizeof welcome->policy_fault, server->department.fault);
	welcome->keeper = server->keeper.state;
	welcome->events_waiting = ll_notify_link_waiting(server->notify);
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	welcome->policy_orders = policy && policy->enforce.devices ? LL_POLICY_FENCE : 0;
}

/* ---- reading the configuration at SIGHUP, in a thread, because a disk can hang ---- */

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

/* Reads the configuration now, before the loop runs, and again at each SIGHUP from then on. -EINVAL: it has faults.
 * -ENOMEM. */
static int init_reload(struct ll_server *server, const char *path, struct ll_err *err)
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

static void stop_reload(struct ll_server *server)
{
	struct ll_reload *reload = server->reload;
	if (!reload)
		return;
	uv_cancel((uv_req_t *)&reload->work);
	uv_close((uv_handle_t *)&reload->hangup, NULL);
}

/* ---- start and end ---- */

static int check_listener(int fd, int backlog)
{
	int is_listening = 0;
	socklen_t length = sizeof is_listening;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* After a second listen(), clients see the credentials of this process. */
	return !is_listening ? -EINVAL : listen(fd, backlog) < 0 ? -errno : 0;
}

static void on_identity(void *data, uint32_t uid, enum ll_identity_news news)
{
	ll_connections_resume(data, uid, news);
}

static int init_server(struct ll_server *server, const struct ll_server_config *config)
{
	*server = (struct ll_server){.version = config->version,
				     .place = config->place,
				     .programs = config->programs,
				     .is_system = config->is_system,
				     .system_place = config->system_place,
				     .born_ns = ll_now_ns()};
	server->namespaces = ll_process_namespaces();
	server->has_own_proc = ll_process_has_own_proc();
	if (getrandom(&server->instance, sizeof server->instance, 0) < 0)
		server->instance = ll_wall_ns();
	int rc = uv_loop_init(&server->loop);
	if (rc)
		return rc;
	uv_timer_init(&server->loop, &server->idle_exit);
	uv_timer_init(&server->loop, &server->tick);
	uv_timer_init(&server->loop, &server->room);
	server->department.find_card = ll_department_find_card;
	ll_identities_init(&server->department.identities, &server->loop, NULL, on_identity, server);
	server->idle_exit.data = server->tick.data = server->room.data = server;
	const struct ll_place *system = server->is_system ? &server->place : NULL;
	rc = ll_keeper_link_init(&server->keeper, server, &server->loop, system);
	if (!rc)
		rc = ll_notify_link_new(&server->loop, system, &server->notify);
	if (!rc)
		rc = ll_job_watch_new(server, &server->watch);
	if (!rc)
		rc = ll_admission_init(server);
	if (!rc)
		rc = ll_machine_init(server);
	if (!rc)
		rc = ll_memory_init(server);
	if (!rc)
		rc = ll_residency_init(server);
	if (!rc)
		rc = ll_minutes_init(server);
	if (!rc)
		rc = ll_cards_init(&server->cards, &server->loop);
	if (!rc)
		rc = ll_door_open(server, config->listen_fd);
	if (!rc && *server->system_place.name)
		rc = uv_timer_start(&server->room, on_room, ROOM_MS, ROOM_MS);
	if (!rc && config->state_folder)
		rc = ll_accounting_new(server, config->state_folder, &server->accounting);
	if (!rc && config->state_folder)
		rc = ll_admission_keep(server->admission, config->state_folder);
	return rc;
}

static void fini_server(struct ll_server *server)
{
	close(server->door.listen_fd); /* first: from now on another process may bind the name */
	ll_accounting_finish(server->accounting);
	ll_admission_save_last(server->admission);
	while (server->connections) {
		server->connections->job = NULL;
		ll_connection_close(server->connections);
	}
	ll_keeper_link_fini(&server->keeper); /* first: the jobs go on, so the keeper removes none of their groups */
	ll_jobs_fini(server);
	ll_cards_fini(&server->cards);
	ll_memory_fini(server);
	ll_residency_fini(server);
	ll_notify_link_free(server->notify);
	ll_job_watch_free(server->watch);
	ll_admission_stop(server);
	ll_identities_fini(&server->department.identities);
	stop_reload(server);
	ll_ungoverned_fini(server);
	ll_machine_fini(server);
	ll_health_fini(server);
	ll_door_close(server);
	uv_close((uv_handle_t *)&server->idle_exit, NULL);
	uv_close((uv_handle_t *)&server->tick, NULL);
	uv_close((uv_handle_t *)&server->minutes, NULL);
	uv_close((uv_handle_t *)&server->room, NULL);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	uv_loop_close(&server->loop);
	ll_admission_fini(server);
	free(server->reload);
	ll_department_fini(&server->department);
	ll_accounting_free(server->accounting);
	ll_subordinates_fini(&server->subordinates);
	ll_unread_fini(server);
}

int ll_server_run(const struct ll_server_config *config, struct ll_err *err)
{
	struct ll_server server;
	int rc = check_listener(config->listen_fd, config->is_system ? BACKLOG_OF_SYSTEM : BACKLOG);
	if (rc)
		return ll_err_set(err, rc, "descriptor %d: %s", config->listen_fd, strerror(-rc));
	rc = init_server(&server, config);
	if (rc)
		return ll_err_set(err, rc, "event loop: %s", uv_strerror(rc));
	server.department.admin = config->admin;
	rc = config->has_policy ? init_reload(&server, config->policy_path, err) : 0;
	if (rc) {
		fini_server(&server);
		return rc;
	}
	if (server.is_system) {
		ll_store_restore(&server);
		ll_keeper_link_greet(&server.keeper);
		ll_store_say_ready(&server);
	}
	ll_server_look(&server);
	uv_run(&server.loop, UV_RUN_DEFAULT);
	fini_server(&server);
	return 0;
}
