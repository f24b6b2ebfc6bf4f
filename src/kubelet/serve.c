/*
 * The service, on the C core of gRPC: a server for each resource, as a request does not say of which resource it is,
 * and one queue of completions for all of them. What is begun comes out of the queue later, with its tag.
 */
#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "kubelet/plugin.h"

enum { PATH_SIZE = 512, PREFIX_SIZE = 16, OPS = 6, TICK_MS = 500, REGISTER_S = 10, BACKOFF_MS = 1000, SOCKETS = 2 };

#define AGAIN_NS LL_NS_PER_S

static const char kubelet_socket[] = "kubelet.sock";

struct session;

/* A resource, at its socket. */
struct resource {
	struct session *session;
	const char *name;
	const struct ll_kubelet_method *methods;
	size_t method_count;
	char endpoint[PATH_SIZE]; /* of its socket, in the folder */
	grpc_server *server;
	struct call *watch;        /* the newest ListAndWatch; NULL: the kubelet does not watch */
	struct call *registration; /* that is under way */
	bool is_registered, has_told;
	uint64_t register_ns; /* when it is tried again */
	bool has_news;        /* for the watch */
	ino_t inode;          /* of its socket */
};

/* From here to its end. */
struct session {
	const struct ll_kubelet_service *service;
	grpc_completion_queue *queue;
	grpc_channel *channel; /* to the kubelet */
	struct resource *resources;
	size_t count;
	ino_t kubelet; /* inode of its socket */
	bool is_ending;
};

enum step { STEP_ARRIVED, STEP_READ, STEP_ANSWERED, STEP_SENT, STEP_CLOSED, STEP_REGISTERED, STEPS };

struct tag {
	enum step step;
	struct call *call;
};

struct call {
	struct resource *resource;
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array first, last;
	grpc_byte_buffer *message;
	grpc_slice reason;
	grpc_status_code status;
	int is_cancelled;
	bool is_sending, is_closed; /* of a watch */
	struct tag tags[STEPS];
};

/* ---- calls ---- */

static struct call *make_call(struct resource *resource)
{
	struct call *call = calloc(1, sizeof *call);
	if (!call) {
		ll_error("out of memory");
		exit(EXIT_FAILURE);
	}
	call->resource = resource;
	call->reason = grpc_empty_slice();
	for (int i = 0; i < STEPS; i++)
		call->tags[i] = (struct tag){(enum step)i, call};
	grpc_call_details_init(&call->details);
	grpc_metadata_array_init(&call->first);
	grpc_metadata_array_init(&call->last);
	return call;
}

static void free_call(struct call *call)
{
	if (call->message)
		grpc_byte_buffer_destroy(call->message);
	if (call->call)
		grpc_call_unref(call->call);
	grpc_slice_unref(call->reason);
	grpc_call_details_destroy(&call->details);
	grpc_metadata_array_destroy(&call->first);
	grpc_metadata_array_destroy(&call->last);
	free(call);
}

/* An operation that cannot be begun is a mistake of this program. */
static void begin_ops(struct call *call, const grpc_op *ops, size_t count, enum step step)
{
	grpc_call_error rc = grpc_call_start_batch(call->call, ops, count, &call->tags[step], NULL);
	if (rc != GRPC_CALL_OK) {
		ll_error("gRPC: %s", grpc_call_error_to_string(rc));
		exit(EXIT_FAILURE);
	}
}

static void await_call(struct resource *resource)
{
	struct call *call = make_call(resource);
	grpc_completion_queue *queue = resource->session->queue;
	if (grpc_server_request_call(resource->server, &call->call, &call->details, &call->first, queue, queue,
				     &call->tags[STEP_ARRIVED]) != GRPC_CALL_OK)
		free_call(call);
}

static grpc_byte_buffer *make_message(const struct ll_strbuf *bytes)
{
	grpc_slice slice = grpc_slice_from_copied_buffer(bytes->buf, bytes->length);
	grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	return message;
}

/* ---- answers ---- */

/* reply NULL: an error, with its text. */
static void answer(struct call *call, const struct ll_strbuf *reply, grpc_status_code status, const char *why)
{
	grpc_op ops[OPS] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
	size_t count = 1;
	grpc_byte_buffer *message = reply ? make_message(reply) : NULL;
	call->reason = grpc_slice_from_copied_string(why);
	if (message) {
		ops[count].op = GRPC_OP_SEND_MESSAGE;
		ops[count++].data.send_message.send_message = message;
	}
	ops[count].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[count].data.send_status_from_server.status = status;
	ops[count++].data.send_status_from_server.status_details = &call->reason;
	ops[count].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
	ops[count++].data.recv_close_on_server.cancelled = &call->is_cancelled;
	begin_ops(call, ops, count, STEP_ANSWERED);
	if (message)
		grpc_byte_buffer_destroy(message);
}

static void answer_by(struct call *call, ll_kubelet_answer_fn fn)
{
	LL_SCOPE_STRBUF struct ll_strbuf reply = LL_STRBUF_INIT;
	struct ll_err err = {0};
	const char *resource = call->resource->name;
	grpc_byte_buffer_reader reader;
	if (!call->message || !grpc_byte_buffer_reader_init(&reader, call->message)) {
		answer(call, NULL, GRPC_STATUS_INVALID_ARGUMENT, "the request has no message");
		return;
	}
	grpc_slice request = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	int rc = fn(call->resource->session->service->cuts, resource, GRPC_SLICE_START_PTR(request),
		    GRPC_SLICE_LENGTH(request), &reply, &err);
	grpc_slice_unref(request);
	if (rc)
		ll_warn("%s: a container does not start: %s", resource, err.text);
	answer(call, rc ? NULL : &reply, rc ? GRPC_STATUS_FAILED_PRECONDITION : GRPC_STATUS_OK, rc ? err.text : "");
}

/* ---- the list ---- */

static void send_list(struct resource *resource, bool is_first)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	struct call *call = resource->watch;
	grpc_op ops[2] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
	size_t at = is_first ? 1 : 0;
	ll_kubelet_add_list(resource->session->service->cuts, resource->name, &list);
	grpc_byte_buffer *message = make_message(&list);
	ops[at] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
	ops[at].data.send_message.send_message = message;
	resource->has_news = false;
	call->is_sending = true;
	begin_ops(call, ops, at + 1, STEP_SENT);
	grpc_byte_buffer_destroy(message);
}

static void begin_watch(struct call *call)
{
	grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
	op.data.recv_close_on_server.cancelled = &call->is_cancelled;
	call->resource->watch = call;
	begin_ops(call, &op, 1, STEP_CLOSED);
	send_list(call->resource, true);
}

static void send_news(struct session *session)
{
	struct ll_kubelet_cuts *cuts = session->service->cuts;
	for (size_t i = 0; i < session->count; i++) {
		struct resource *resource = &session->resources[i];
		resource->has_news |= cuts->has_news;
		if (resource->has_news && resource->watch && !resource->watch->is_sending)
			send_list(resource, false);
	}
	cuts->has_news = false;
}

static void end_watch(struct call *call)
{
	if (call->resource->watch == call)
		call->resource->watch = NULL;
	if (call->is_closed && !call->is_sending)
		free_call(call);
}

/* ---- a request ---- */

static const struct ll_kubelet_method methods[] = {
    {"/v1beta1.DevicePlugin/GetDevicePluginOptions", ll_kubelet_answer_options},
    {"/v1beta1.DevicePlugin/ListAndWatch", NULL},
    {"/v1beta1.DevicePlugin/GetPreferredAllocation", ll_kubelet_answer_prefer},
    {"/v1beta1.DevicePlugin/Allocate", ll_kubelet_answer_allocate},
    {"/v1beta1.DevicePlugin/PreStartContainer", ll_kubelet_answer_start},
};

static void on_read(struct call *call)
{
	if (call->resource->session->is_ending) {
		free_call(call);
		return;
	}
	const struct ll_kubelet_method *its = call->resource->methods;
	for (size_t i = 0; i < call->resource->method_count; i++) {
		if (grpc_slice_str_cmp(call->details.method, its[i].name) != 0)
			continue;
		if (its[i].fn)
			answer_by(call, its[i].fn);
		else
			begin_watch(call);
		return;
	}
	answer(call, NULL, GRPC_STATUS_UNIMPLEMENTED, "loadline-kubelet has no such method");
}

static void on_arrived(struct call *call, bool is_done)
{
	grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
	if (!is_done || call->resource->session->is_ending) {
		free_call(call);
		return;
	}
	await_call(call->resource);
	op.data.recv_message.recv_message = &call->message;
	begin_ops(call, &op, 1, STEP_READ);
}

/* ---- registration ---- */

static void begin_registration(struct resource *resource)
{
	LL_SCOPE_STRBUF struct ll_strbuf request = LL_STRBUF_INIT;
	struct call *call = make_call(resource);
	grpc_op ops[OPS] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
	gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_seconds(REGISTER_S, GPR_TIMESPAN));
	ll_kubelet_add_registration(resource->name, resource->endpoint, &request);
	grpc_byte_buffer *message = make_message(&request);
	call->call = grpc_channel_create_call(
	    resource->session->channel, NULL, GRPC_PROPAGATE_DEFAULTS, resource->session->queue,
	    grpc_slice_from_static_string("/v1beta1.Registration/Register"), NULL, until, NULL);
	ops[1].op = GRPC_OP_SEND_MESSAGE;
	ops[1].data.send_message.send_message = message;
	ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &call->first;
	ops[4].op = GRPC_OP_RECV_MESSAGE;
	ops[4].data.recv_message.recv_message = &call->message;
	ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
	ops[5].data.recv_status_on_client.trailing_metadata = &call->last;
	ops[5].data.recv_status_on_client.status = &call->status;
	ops[5].data.recv_status_on_client.status_details = &call->reason;
	resource->registration = call;
	begin_ops(call, ops, OPS, STEP_REGISTERED);
	grpc_byte_buffer_destroy(message);
}

static void on_registered(struct call *call)
{
	struct resource *resource = call->resource;
	char *why = grpc_slice_to_c_string(call->reason);
	resource->registration = NULL;
	resource->register_ns = ll_now_ns() + AGAIN_NS;
	resource->is_registered = call->status == GRPC_STATUS_OK;
	if (resource->is_registered)
		ll_info("%s: registered", resource->name);
	else if (call->status != GRPC_STATUS_CANCELLED && !resource->has_told)
		ll_warn("%s: not registered: %s; it is tried again each second", resource->name, why);
	resource->has_told = true;
	gpr_free(why);
	free_call(call);
}

/* ---- completions ---- */

static void on_event(const grpc_event *event)
{
	const struct tag *tag = event->tag;
	if (event->type != GRPC_OP_COMPLETE || !tag)
		return;
	struct call *call = tag->call;
	switch (tag->step) {
	case STEP_ARRIVED:
		on_arrived(call, event->success);
		break;
	case STEP_READ:
		on_read(call);
		break;
	case STEP_SENT:
		call->is_sending = false;
		if (call->is_closed)
			end_watch(call);
		break;
	case STEP_CLOSED:
		call->is_closed = true;
		end_watch(call);
		break;
	case STEP_REGISTERED:
		on_registered(call);
		break;
	default:
		free_call(call);
		break;
	}
}

/* ---- sockets ---- */

static void name_socket(const struct session *session, const char *name, char ret_path[PATH_SIZE])
{
	snprintf(ret_path, PATH_SIZE, "%.255s/%.255s", session->service->folder, name);
}

/* 0: it is not there. */
static ino_t inode_of(const struct session *session, const char *name)
{
	char path[PATH_SIZE];
	struct stat st;
	name_socket(session, name, path);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int open_resource(struct resource *resource, struct ll_err *err)
{
	char path[PATH_SIZE], address[PATH_SIZE + PREFIX_SIZE];
	const struct session *session = resource->session;
	name_socket(session, resource->endpoint, path);
	snprintf(address, sizeof address, "unix:%s", path);
	resource->server = grpc_server_create(NULL, NULL);
	grpc_server_register_completion_queue(resource->server, session->queue, NULL);
	grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
	int port = grpc_server_add_http2_port(resource->server, address, credentials);
	grpc_server_credentials_release(credentials);
	grpc_server_start(resource->server);
	if (!port)
		return ll_err_set(err, -EAGAIN, "%s: no socket can be made here", path);
	resource->inode = inode_of(session, resource->endpoint);
	await_call(resource);
	return 0;
}

/* The cuts of a resource follow each other. */
static void list_resources(struct session *session)
{
	const struct ll_kubelet_cuts *cuts = session->service->cuts;
	for (const struct ll_kubelet_socket *its = session->service->sockets; its && its->path; its++) {
		struct resource *resource = &session->resources[session->count++];
		*resource = (struct resource){.session = session, .name = its->path, .is_registered = true};
		resource->methods = its->methods;
		resource->method_count = its->count;
		snprintf(resource->endpoint, sizeof resource->endpoint, "%s", its->path);
	}
	if (session->service->sockets)
		return;
	for (size_t i = 0; i < cuts->count; i++) {
		const char *name = cuts->items[i].resource;
		if (session->count && strcmp(session->resources[session->count - 1].name, name) == 0)
			continue;
		struct resource *resource = &session->resources[session->count++];
		*resource = (struct resource){.session = session, .name = name, .methods = methods};
		resource->method_count = sizeof methods / sizeof *methods;
		snprintf(resource->endpoint, sizeof resource->endpoint, "loadline-%.60s.sock", strrchr(name, '/') + 1);
	}
}

static int open_session(struct session *session, struct ll_err *err)
{
	char path[PATH_SIZE], address[PATH_SIZE + PREFIX_SIZE];
	int rc = 0;
	session->resources = calloc(session->service->cuts->count + SOCKETS, sizeof *session->resources);
	if (!session->resources)
		return ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	list_resources(session);
	session->queue = grpc_completion_queue_create_for_next(NULL);
	name_socket(session, kubelet_socket, path);
	snprintf(address, sizeof address, "unix:%s", path);
	grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
	/* A kubelet is back within seconds. */
	grpc_arg backoff = {.type = GRPC_ARG_INTEGER};
	char key[] = GRPC_ARG_MAX_RECONNECT_BACKOFF_MS;
	backoff.key = key;
	backoff.value.integer = BACKOFF_MS;
	const grpc_channel_args args = {1, &backoff};
	session->channel = grpc_channel_create(address, credentials, &args);
	grpc_channel_credentials_release(credentials);
	session->kubelet = inode_of(session, kubelet_socket);
	for (size_t i = 0; !rc && i < session->count; i++)
		rc = open_resource(&session->resources[i], err);
	return rc;
}

/* All that was begun comes out of the queue before it ends. */
static void close_session(struct session *session)
{
	grpc_event event = {.type = GRPC_QUEUE_TIMEOUT};
	session->is_ending = true;
	for (size_t i = 0; i < session->count; i++) {
		if (session->resources[i].registration)
			grpc_call_cancel(session->resources[i].registration->call, NULL);
		if (!session->resources[i].server)
			continue;
		grpc_server_shutdown_and_notify(session->resources[i].server, session->queue, NULL);
		grpc_server_cancel_all_calls(session->resources[i].server);
	}
	if (session->channel)
		grpc_channel_destroy(session->channel);
	if (session->queue)
		grpc_completion_queue_shutdown(session->queue);
	while (session->queue && event.type != GRPC_QUEUE_SHUTDOWN) {
		event = grpc_completion_queue_next(session->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
		on_event(&event);
	}
	for (size_t i = 0; i < session->count; i++) {
		if (session->resources[i].server)
			grpc_server_destroy(session->resources[i].server);
	}
	if (session->queue)
		grpc_completion_queue_destroy(session->queue);
	free(session->resources);
}

/* A kubelet that starts removes what is in its folder, and has a new socket of its own. */
static bool is_kubelet_new(const struct session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		if (inode_of(session, session->resources[i].endpoint) != session->resources[i].inode)
			return true;
	}
	return inode_of(session, kubelet_socket) != session->kubelet;
}

static void register_all(struct session *session)
{
	for (size_t i = 0; i < session->count; i++) {
		struct resource *resource = &session->resources[i];
		if (!resource->is_registered && !resource->registration && ll_now_ns() >= resource->register_ns)
			begin_registration(resource);
	}
}

int ll_kubelet_serve(const struct ll_kubelet_service *service, struct ll_err *err)
{
	struct session session = {.service = service};
	int rc = open_session(&session, err);
	while (!rc && service->on_tick(service->data) && !is_kubelet_new(&session)) {
		register_all(&session);
		send_news(&session);
		gpr_timespec until =
		    gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis(TICK_MS, GPR_TIMESPAN));
		grpc_event event = grpc_completion_queue_next(session.queue, until, NULL);
		on_event(&event);
	}
	close_session(&session);
	return rc;
}
