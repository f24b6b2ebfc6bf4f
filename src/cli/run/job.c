#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/still.h"
#include "protocol/client.h"
#include "protocol/message.h"
#include "protocol/run_settings.h"
#include "protocol/start.h"

/* One page is what a pipe needs at least; a user's pipes together are limited. */
enum { PIPE_BYTES = 4096 };

/* A loadlined that can start has answered by then, where the machine is not busy. */
#define TRY_AFTER_NS (500 * LL_NS_PER_MS)
#define TRY_NS (2 * LL_NS_PER_S)

void ll_run_job_limits(const struct ll_run_settings *settings, struct ll_limits *ret_limits)
{
	*ret_limits = (struct ll_limits){
	    .memory_bytes = settings->memory_limit_bytes,
	    .request_bytes = settings->memory_request_bytes,
	    .max_kernel_ns = settings->max_kernel_ns,
	    .compute_permille = settings->compute_cap_permille,
	    .space_permille = settings->space_permille,
	    .weight_permille = settings->weight_permille,
	    .priority = ll_class_of_priority(settings->priority),
	    .slowdown_permille = (uint16_t)settings->slowdown_permille,
	    .flags = (settings->is_evictable ? LL_LIMIT_EVICTABLE : 0U) | (settings->is_strict ? LL_LIMIT_STRICT : 0U) |
		     (settings->counts_context ? LL_LIMIT_COUNTS_CONTEXT : 0U) |
		     (settings->kills_at_max_kernel ? LL_LIMIT_KILLS_MAX_KERNEL : 0U),
	};
}

void ll_run_job_take_limits(struct ll_run_settings *settings, const struct ll_message_accepted *accepted)
{
	const struct ll_limits *limits = &accepted->limits;
	if (!accepted->tenant[0])
		return;
	settings->memory_limit_bytes = limits->memory_bytes;
	settings->memory_request_bytes = limits->request_bytes;
	settings->compute_cap_permille = limits->compute_permille;
	settings->priority = ll_priority_of_class(limits->priority);
	settings->is_evictable = limits->flags & LL_LIMIT_EVICTABLE;
}

void ll_run_job_describe(const struct ll_run_job *job, union ll_message *ret_message)
{
	const char *slash = strrchr(job->command, '/');
	ll_message_init(ret_message, LL_MESSAGE_JOB);
	ret_message->job.said = job->said;
	if (job->project)
		ll_message_text_set(ret_message->job.project, sizeof ret_message->job.project, job->project);
	if (job->name)
		ll_message_text_set(ret_message->job.name, sizeof ret_message->job.name, job->name);
	if (job->pod)
		ll_message_text_set(ret_message->job.pod, sizeof ret_message->job.pod, job->pod);
	struct ll_job_facts *facts = &ret_message->job.job;
	facts->token[0] = job->settings->id;
	if (getrandom(&facts->token[1], sizeof facts->token[1], 0) < 0)
		facts->token[1] = ll_now_ns();
	facts->uid = geteuid();
	facts->pid = (uint32_t)getpid();
	facts->state = LL_JOB_RUNNING;
	facts->flags = (job->is_named ? LL_JOB_NAMED : 0U) | (job->is_container ? LL_JOB_CONTAINER : 0U);
	ll_run_job_limits(job->settings, &facts->limits);
	ll_message_text_set(facts->tenant, sizeof facts->tenant, job->settings->tenant);
	if (job->words) {
		ret_message->job.program = ll_program_key(job->path, job->words);
		ll_program_name(job->words, ret_message->job.program_name);
	}
	ll_message_text_set(facts->command, sizeof facts->command, slash && slash[1] ? slash + 1 : job->command);
}

/* ---- the conversation ---- */

void ll_run_talk_end(struct ll_run_talk *talk)
{
	ll_client_close(&talk->client);
	if (talk->lifeline_fd >= 0)
		close(talk->lifeline_fd);
	talk->lifeline_fd = -1;
}

int ll_run_talk_start(struct ll_run_talk *talk, struct ll_err *err)
{
	struct ll_daemon_paths paths;
	int ends[2], lifeline[2];
	if (talk->client.fd >= 0)
		return 0;
	LL_SCOPE_CLOSE int process_fd = ll_process_open(talk->pid ? talk->pid : getpid());
	int rc = ll_daemon_paths_find(&paths, err);
	if (!rc && process_fd < 0)
		rc = ll_err_set(err, process_fd, "this process: %s", strerror(-process_fd));
	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return ll_err_set(err, -errno, "socket: %s", strerror(errno));
	talk->client.fd = ends[0];
	if (pipe2(lifeline, O_CLOEXEC | O_NONBLOCK) < 0) {
		rc = ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	} else {
		fcntl(lifeline[1], F_SETPIPE_SZ, PIPE_BYTES);
		talk->lifeline_fd = lifeline[1];
		rc = ll_monitor_start(ends[1], lifeline[0], process_fd, &talk->place, &paths.programs, err);
		close(lifeline[0]);
	}
	close(ends[1]);
	if (rc)
		ll_run_talk_end(talk);
	return rc;
}

int ll_run_talk_receive(const struct ll_run_talk *talk, union ll_message *ret_reply, uint64_t deadline_ns,
			struct ll_err *err)
{
	int rc = ll_client_receive(&talk->client, ret_reply, deadline_ns, err);
	if (ll_client_is_lost(rc))
		return ll_err_set(err, rc, "the job's monitor has ended");
	if (rc == -EPERM)
		return ll_err_set(err, rc, "another user has the name of loadlined, %s%s", ll_place_mark(&talk->place),
				  talk->place.name);
	return rc;
}

/* ---- the job ---- */

/* Says why a loadlined that should serve by now does not start: a library may be missing. The monitor would start it
 * again and again. The system's is systemd's. */
static int check_daemon(const struct ll_run_talk *talk, struct ll_err *err)
{
	struct ll_daemon_paths paths;
	const char *const words[] = {"loadlined", "--version", NULL};
	int rc = ll_place_is_system(&talk->place) ? 0 : ll_daemon_paths_find(&paths, err);
	if (rc || ll_place_is_system(&talk->place))
		return rc;
	rc = ll_detach_try(paths.daemon, words, ll_now_ns() + TRY_NS, err);
	if (rc == -ETIMEDOUT)
		return 0;
	return rc ? ll_err_wrap(err, "loadlined cannot start") : 0;
}

/* The command shall have the writable end; this process's other descriptors are closed on exec. */
static int keep_lifeline(int fd, struct ll_err *err)
{
	if (fcntl(fd, F_DUPFD, LL_RUN_FIRST_FD) >= 0 || fcntl(fd, F_DUPFD, STDERR_FILENO + 1) >= 0)
		return 0;
	return ll_err_set(err, -errno, "lifeline: %s", strerror(errno));
}

int ll_run_job_start(const struct ll_run_job *job, struct ll_run_talk *talk, struct ll_message_accepted *ret_accepted,
		     struct ll_err *err)
{
	union ll_message message;
	struct ll_still still;
	uint64_t since_ns = ll_now_ns();
	int rc = ll_run_talk_start(talk, err);
	if (rc)
		return rc;
	ll_run_job_describe(job, &message);
	rc = ll_client_send(&talk->client, &message, since_ns + LL_CLIENT_REPLY_NS, err);
	if (!rc)
		rc = ll_run_talk_receive(talk, &message, since_ns + TRY_AFTER_NS, err);
	if (rc == -ETIMEDOUT && !(rc = check_daemon(talk, err))) {
		ll_still_begin(&still, N_("waits for loadlined to answer"));
		rc = ll_run_talk_receive(talk, &message, since_ns + LL_CLIENT_REPLY_NS, err);
		ll_still_end(&still);
	}
	if (!rc)
		*ret_accepted = message.accepted;
	if (rc == -ESTALE) /* the job begins anew */
		return rc;
	/* Also after a refusal: the monitor tries again. */
	int kept = keep_lifeline(talk->lifeline_fd, rc ? NULL : err);
	return rc ? rc : kept;
}

/* ---- the cards ---- */

/* The configuration of the machine may give the job other limits on a card that is given whole. */
static int bind_card(struct ll_client *client, const struct ll_run_binding *binding, const struct ll_card *card,
		     uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message message, reply;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = binding->settings->id;
	message.bind.promisable_bytes = binding->may_overcommit ? 0 : card->usable_bytes;
	message.bind.usable_bytes = card->usable_bytes;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, card->uuid);
	int rc = ll_client_request(client, &message, NULL, 0, &reply, deadline_ns, err);
	if (!rc && reply.header.kind == LL_MESSAGE_ACCEPTED)
		ll_run_job_take_limits(binding->settings, &reply.accepted);
	return rc;
}

/* Binds those from *next on. */
static int bind_rest(struct ll_client *client, const struct ll_run_binding *binding, size_t *next, uint64_t deadline_ns,
		     struct ll_err *err)
{
	int rc = 0;
	for (; !rc && *next < binding->count; *next += !rc)
		rc = bind_card(client, binding, binding->cards[*next], deadline_ns, err);
	return rc;
}

/* A command inside a job has a connection of its own for it. */
static int bind_inside(const struct ll_run_binding *binding, const struct ll_place *place, size_t *next,
		       uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_client client;
	struct ll_place system;
	int rc = ll_client_open(&client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	/* The job may have moved to the system's loadlined since it began. */
	if (rc == -ECONNREFUSED && ll_place_system_beside(place->name, binding->settings->folder, &system)) {
		ll_client_close(&client);
		rc = ll_client_open(&client, &system, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	}
	if (!rc)
		rc = bind_rest(&client, binding, next, deadline_ns, err);
	ll_client_close(&client);
	return rc;
}

#define PAUSE_NS (5 * LL_NS_PER_MS)

/* What a daemon says, or who is missing, between the end of one and the moment at which the job's monitor has
 * registered the job with the next. */
static bool may_pass(int rc)
{
	return ll_client_is_lost(rc) || rc == -ECONNREFUSED || rc == -EAGAIN || rc == -ESRCH;
}

int ll_run_bind(struct ll_run_talk *talk, const struct ll_run_binding *binding, const struct ll_card **ret_card,
		struct ll_err *err)
{
	struct ll_place place;
	size_t next = 0;
	bool is_inside = talk->client.fd < 0;
	/* The monitor asks the next loadlined, if this one ends. */
	uint64_t deadline_ns = ll_now_ns() + (is_inside ? LL_CLIENT_REPLY_NS : LL_CLIENT_RETURN_NS);
	if (is_inside && ll_place_read(binding->settings->place, &place) < 0)
		return ll_err_set(err, -EINVAL, "%s: does not say where loadlined is", LL_RUN_VARIABLE);
	for (;;) {
		int rc = is_inside ? bind_inside(binding, &place, &next, deadline_ns, err)
				   : bind_rest(&talk->client, binding, &next, deadline_ns, err);
		if (rc && next < binding->count)
			*ret_card = binding->cards[next];
		if (!is_inside || !may_pass(rc) || ll_now_ns() >= deadline_ns)
			return rc;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
}
