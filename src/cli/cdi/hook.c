#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/cdi/cdi.h"
#include "cli/common/daemon.h"
#include "cli/common/env_sim.h"
#include "cli/run/run.h"
#include "protocol/keeper.h"

/* The monitor stays, as it is the job's; the container's first process is not a child of it. */

enum { PATH_MORE = 32, ID_LENGTH = 12, HOLDER_SIZE = 96, HOLDER_MODE = 0600 }; /* as podman and docker show it */

struct hook_args {
	const char *tenant;
	char *cards;
	const char *resource, *mem, *compute, *class, *namespaces, *holder; /* of a size of Kubernetes */
	bool is_optional, has_project;
};

/* Runtimes keep what a hook prints to themselves. */
static __attribute__((format(printf, 2, 3))) void tell_journal(int priority, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	openlog("loadline-cdi", LOG_PID, LOG_DAEMON);
	vsyslog(priority, format, ap);
	closelog();
	va_end(ap);
}

/* ---- what the runtime tells ---- */

static int read_container(json_t **ret_state, json_t **ret_config, struct ll_cdi_container *ret_container,
			  struct ll_err *err)
{
	char path[PATH_MAX + PATH_MORE];
	json_error_t why;
	*ret_state = json_loadf(stdin, 0, &why);
	const char *bundle = json_string_value(json_object_get(*ret_state, "bundle"));
	json_int_t pid = json_integer_value(json_object_get(*ret_state, "pid"));
	if (!bundle || pid <= 0 || pid > INT_MAX) {
		ll_err_set(err, -EINVAL, "standard input is not the state of a container that is being made");
		return ll_err_hint(err, "a runtime of containers runs this hook; `loadline cdi generate` tells it to");
	}
	snprintf(path, sizeof path, "%s/config.json", bundle);
	*ret_config = json_load_file(path, 0, &why);
	if (!*ret_config)
		return ll_err_set(err, -EINVAL, "%.200s: %s", path, why.text);
	*ret_container = (struct ll_cdi_container){.config = *ret_config, .bundle = bundle, .pid = (pid_t)pid};
	const char *id = json_string_value(json_object_get(*ret_state, "id"));
	snprintf(ret_container->name, sizeof ret_container->name, "%.*s", ID_LENGTH, id ? id : "");
	if (!ll_tenant_name_is_valid(ret_container->name))
		ret_container->name[0] = '\0';
	return 0;
}

static bool is_word(const json_t *words, size_t index, const char *word)
{
	const char *text = json_string_value(json_array_get(words, index));
	return text && strcmp(text, word) == 0;
}

/* Where the options of a hook of ours begin; 0: it is another's. */
static size_t find_options(const json_t *words)
{
	for (size_t i = 1; i + 1 < json_array_size(words); i++) {
		if (is_word(words, i, "cdi") && is_word(words, i + 1, "hook"))
			return i + 2;
	}
	return 0;
}

static bool is_same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* What the hook of one device says. */
struct device_words {
	const char *tenant, *cards, *resource;
	bool is_part;  /* of a card */
	bool is_claim; /* each has a holder of its own; the words of two cuts of one size are the same */
};

static struct device_words read_words(const json_t *words, size_t from)
{
	struct device_words device = {.tenant = NULL};
	for (size_t at = from; at + 1 < json_array_size(words); at++) {
		const char *value = json_string_value(json_array_get(words, at + 1));
		device.tenant = is_word(words, at, LL_CDI_TENANT) ? value : device.tenant;
		device.cards = is_word(words, at, LL_CDI_CARDS) ? value : device.cards;
		device.resource = is_word(words, at, LL_CDI_RESOURCE) ? value : device.resource;
		device.is_claim |= is_word(words, at, LL_CDI_HOLDER);
		device.is_part |= is_word(words, at, LL_CDI_MEMORY) || is_word(words, at, LL_CDI_COMPUTE);
	}
	return device;
}

static bool is_repeated(const json_t *hooks, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (json_equal(json_array_get(hooks, i), json_array_get(hooks, index)))
			return true;
	}
	return false;
}

/*
 * A container may name several devices, and is one job. The first hook makes it, with what all of them say; the others
 * do nothing. Returns whether this is the first. tenant: points into the configuration. -EINVAL: two tenants, or a part
 * of a card and something else. A claim that is named twice is one: a kubelet that was started again does so.
 */
static int merge_devices(const json_t *config, const struct hook_args *own, const char **ret_tenant,
			 struct ll_strbuf *cards, bool *ret_is_first, struct ll_err *err)
{
	const json_t *hooks = json_object_get(json_object_get(config, "hooks"), "createRuntime");
	struct device_words first = {.tenant = NULL};
	const char *tenant = NULL;
	bool is_any = false;
	*ret_is_first = true;
	for (size_t i = 0; i < json_array_size(hooks); i++) {
		const json_t *words = json_object_get(json_array_get(hooks, i), "args");
		size_t from = find_options(words);
		if (!from)
			continue;
		struct device_words its = read_words(words, from);
		if (its.is_claim && is_repeated(hooks, i))
			continue;
		if (!is_any)
			*ret_is_first = is_same_text(its.tenant, own->tenant) && is_same_text(its.cards, own->cards);
		else if (first.is_part || its.is_part || !is_same_text(first.resource, its.resource))
			return ll_err_set(err, -EINVAL, "the container takes two sizes, %s and %s",
					  first.resource ? first.resource : "another device",
					  its.resource ? its.resource : "another device");
		first = is_any ? first : its;
		is_any = true;
		if (tenant && its.tenant && strcmp(tenant, its.tenant) != 0)
			return ll_err_set(err, -EINVAL, "the container names two tenants, %s and %s", tenant,
					  its.tenant);
		tenant = its.tenant ? its.tenant : tenant;
		if (its.cards)
			ll_strbuf_addf(cards, "%s%s", cards->length ? "," : "", its.cards);
	}
	if (!is_any && own->cards)
		ll_strbuf_addf(cards, "%s", own->cards);
	*ret_tenant = is_any ? tenant : own->tenant;
	return 0;
}

/* ---- what the container asks for ---- */

/* A pod may say what its job is called and how it shares a card, within its tenant's rights, but no limit. */
static bool is_of_pods(const char *name)
{
	static const char *const names[] = {"project", "name", "class", "weight"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* An annotation that is not known may be a limit that would not be in force. */
static int read_annotations(const json_t *config, bool is_pod, struct ll_run_args *args, uint64_t *ret_said,
			    struct ll_err *err)
{
	const struct {
		const char *name;
		const char **text;
		uint64_t said;
	} texts[] = {
	    {"mem", &args->mem, LL_SET_MEMORY},
	    {"mem-request", &args->mem_request, LL_SET_REQUEST},
	    {"compute", &args->compute, LL_SET_COMPUTE},
	    {"weight", &args->weight, LL_SET_WEIGHT},
	    {"class", &args->class, LL_SET_PRIORITY},
	    {"slowdown", &args->slowdown, LL_SET_SLOWDOWN},
	    {"max-kernel", &args->max_kernel, 0},
	    {"project", &args->project, 0},
	    {"name", &args->name, 0},
	};
	const char *key;
	json_t *value;
	*ret_said = 0;
	json_object_foreach((json_t *)json_object_get(config, "annotations"), key, value)
	{
		const char *name = key + strlen(LL_CDI_ANNOTATION), *text = json_string_value(value);
		bool is_known = false;
		if (strncmp(key, LL_CDI_ANNOTATION, strlen(LL_CDI_ANNOTATION)) != 0)
			continue;
		if (is_pod && !is_of_pods(name))
			return ll_err_set(err, -EPERM, "annotation %.100s: a pod has what its size gives it", key);
		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
			if (strcmp(name, texts[i].name) != 0)
				continue;
			is_known = true;
			*texts[i].text = text;
			*ret_said |= texts[i].said;
		}
		if (strcmp(name, "allow-ungoverned") == 0) {
			is_known = true;
			args->allow_ungoverned = strcmp(text ? text : "", "true") == 0;
		} else if (strcmp(name, "time") == 0) {
			int rc = ll_parse_duration(text ? text : "", &args->time_ns, err);
			if (rc)
				return ll_err_wrap(err, "%s", key);
			is_known = true;
		}
		if (!is_known)
			return ll_err_set(err, -EINVAL, "annotation %.100s: there is no such one", key);
	}
	return 0;
}

/* ---- a container of a pod ---- */

/* As containerd and CRI-O tell it. A pod's author does not write these. */
static const char *of_pod(const json_t *config, const char *containerd, const char *crio)
{
	const json_t *annotations = json_object_get(config, "annotations");
	const char *text = json_string_value(json_object_get(annotations, containerd));
	return text ? text : json_string_value(json_object_get(annotations, crio));
}

/* Writes the tenant of a namespace, of a list "prod=serving,*=research". -EACCES: it has none. */
static int find_tenant(const char *list, const char *namespace, char *ret_tenant, size_t size, struct ll_err *err)
{
	size_t length = strlen(namespace);
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
		const char *name = strncmp(at, namespace, length) == 0 && at[length] == '=' ? at + length + 1
				   : strncmp(at, "*=", 2) == 0                              ? at + 2
											    : NULL;
		if (!name)
			continue;
		snprintf(ret_tenant, size, "%.*s", (int)strcspn(name, ","), name);
		return 0;
	}
	ll_err_set(err, -EACCES, "namespace %s is in no tenant", namespace);
	return ll_err_hint(err, "name it in members: {kubernetes-namespaces: [...]} of one");
}

/* The size of Kubernetes decides; the namespace says whose it is. */
static int take_size(const json_t *config, const struct hook_args *own, char tenant[LL_NAME_SIZE],
		     struct ll_run_args *args, uint64_t *said, struct ll_err *err)
{
	const char *namespace = of_pod(config, "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace");
	const char *name = of_pod(config, "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name");
	args->mem = own->mem;
	args->compute = own->compute;
	if (own->class && args->class && strcmp(own->class, args->class) != 0)
		return ll_err_set(err, -EPERM, "annotation %sclass: the size gives class %s", LL_CDI_ANNOTATION,
				  own->class);
	args->class = own->class ? own->class : args->class;
	*said |= (own->mem ? LL_SET_MEMORY : 0U) | (own->compute ? LL_SET_COMPUTE : 0U) |
		 (own->class ? LL_SET_PRIORITY : 0U);
	if (!namespace)
		return ll_err_set(err, -EINVAL, "the runtime does not tell the namespace of the pod");
	if (name && ll_tenant_name_is_valid(name))
		args->name = name;
	if (own->has_project && !args->project && ll_tenant_name_is_valid(namespace))
		args->project = namespace;
	args->tenant = tenant;
	return find_tenant(own->namespaces ? own->namespaces : "", namespace, tenant, LL_NAME_SIZE, err);
}

/* What one request of a claim has is one container's at a time: two would have it each. The file says whose it is.
 * *ret_is_held: it was this container's already. */
static int hold_claim(const char *path, pid_t pid, bool *ret_is_held, struct ll_err *err)
{
	char text[HOLDER_SIZE] = "";
	struct ll_process_stat stat;
	struct ll_process_id holder = {.pid = 0};
	LL_SCOPE_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, HOLDER_MODE);
	if (fd < 0 || flock(fd, LOCK_EX) || pread(fd, text, sizeof text - 1, 0) < 0)
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	int count = sscanf(text, "%d %" SCNu64 " %" SCNu64, &holder.pid, &holder.start_ticks, &holder.namespaces);
	int rc = ll_process_stat_of(pid, &stat);
	*ret_is_held = !rc && count == 3 && holder.pid == pid && holder.start_ticks == stat.start_ticks &&
		       holder.namespaces == ll_process_namespaces();
	if (*ret_is_held)
		return 0;
	if (text[0] && (count != 3 || !ll_process_is_gone(&holder, ll_process_namespaces()))) {
		ll_err_set(err, -EBUSY, "the claim is in use by another container (process %d)", (int)holder.pid);
		return ll_err_hint(err, "a claim gives each of its requests to one container at a time");
	}
	int length = snprintf(text, sizeof text, "%d %" PRIu64 " %" PRIu64 "\n", (int)pid, rc ? 0 : stat.start_ticks,
			      ll_process_namespaces());
	if (!rc && (ftruncate(fd, 0) || pwrite(fd, text, (size_t)length, 0) != length))
		rc = errno ? -errno : -EIO;
	return rc ? ll_err_set(err, rc, "%.200s: %s", path, strerror(-rc)) : 0;
}

/* ---- the job ---- */

/* The sensor tells the cards, so that the driver need not be opened, which takes some 100 ms. */
static int open_cards(struct ll_client *client, struct ll_driver **ret_driver, struct ll_err *err)
{
	return ll_sensed_cards_ask(client, 0, ll_sim_entered_folder(), ret_driver) ? ll_driver_open(ret_driver, err)
										   : 0;
}

static int bind_cards(struct ll_run_talk *talk, struct ll_run_settings *settings, const struct ll_driver *driver,
		      const char *text, struct ll_err *err)
{
	const struct ll_card *card = NULL;
	const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_run_cards_choose(driver, text, &cards, &count, err);
	const struct ll_run_binding binding = {.settings = settings, .cards = cards, .count = count};
	if (!rc)
		rc = ll_run_bind(talk, &binding, &card, err);
	if (rc && card)
		ll_err_wrap(err, N_("card %s"), card->label);
	free(cards);
	return rc;
}

/* Writes "NAMESPACE/POD/CONTAINER"; an empty text if the runtime does not tell them. */
static void name_pod(const json_t *config, char ret_pod[LL_POD_SIZE])
{
	const char *namespace = of_pod(config, "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace");
	const char *pod = of_pod(config, "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name");
	const char *name = of_pod(config, "io.kubernetes.cri.container-name", "io.kubernetes.container.name");
	if (namespace && pod)
		snprintf(ret_pod, LL_POD_SIZE, "%s/%s/%s", namespace, pod, name ? name : "");
}

/* talk: its place is that of the system's loadlined, to which the client is connected. */
static int make_job(const struct ll_cdi_container *container, struct ll_run_args *args, uint64_t said,
		    struct ll_run_talk talk, struct ll_client *client, struct ll_err *err)
{
	char pod[LL_POD_SIZE] = "";
	struct ll_run_settings settings;
	struct ll_driver *driver = NULL;
	struct ll_message_accepted accepted;
	LL_SCOPE_STRBUF struct ll_strbuf place = LL_STRBUF_INIT;
	const char *command = json_string_value(
	    json_array_get(json_object_get(json_object_get(container->config, "process"), "args"), 0));
	command = command ? command : "container";
	talk.pid = container->pid;
	name_pod(container->config, pod);
	int rc = ll_run_args_settings(args, command, &settings, err);
	if (!rc)
		rc = open_cards(client, &driver, err);
	const struct ll_run_admit wish = {
	    .args = args, .settings = &settings, .driver = driver, .command = command, .said = said, .has_place = true};
	const struct ll_run_job job = {.settings = &settings,
				       .command = command,
				       .is_named = args->tenant,
				       .is_container = true,
				       .project = args->project,
				       .name = args->name,
				       .pod = pod,
				       .said = said};
	rc = rc ? rc : -ESTALE;
	for (unsigned asked = 0; rc == -ESTALE && asked < LL_RUN_ASKS; asked++) {
		if (asked)
			ll_run_admit_again();
		ll_strbuf_reset(&place);
		rc = ll_run_admit(&wish, &talk, &place, err);
		if (!rc)
			rc = ll_run_job_start(&job, &talk, &accepted, err);
	}
	if (!rc)
		rc = bind_cards(&talk, &settings, driver, place.length ? place.buf : args->cards, err);
	ll_run_talk_end(&talk);
	ll_driver_close(driver);
	return rc;
}

/* Behind the fence the container would start, and its cards would not open. A group outside of what this process sees
 * is not known. */
static int check_fence(pid_t pid, struct ll_err *err)
{
	char path[LL_FENCE_STATE_SIZE], group[LL_GROUP_SIZE];
	LL_SCOPE_STRBUF struct ll_strbuf state = LL_STRBUF_INIT;
	ll_fence_state_path(path);
	if (ll_strbuf_add_file(&state, AT_FDCWD, path, SIZE_MAX) || ll_group_of_process(pid, group) ||
	    strncmp(group, "/..", 3) == 0 || ll_fence_opens(state.buf, group))
		return 0;
	ll_err_set(err, -EPERM,
		   "the fence is closed (enforce: devices), and no card opens in the container's group, %s", group);
	return ll_err_hint(err, "keep the engine's group open by --keep-open of loadline-keeper, or open the fence");
}

/* The caller closes the client in each case. */
static int reach_system(struct ll_place *ret_place, struct ll_client *client, struct ll_err *err)
{
	int rc = ll_place_of_system(ll_sim_entered_folder(), ret_place);
	*client = (struct ll_client){.fd = -1};
	if (!rc)
		rc = ll_client_open(client, ret_place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
				    ll_now_ns() + LL_CLIENT_REPLY_NS, NULL);
	return rc ? ll_err_set(err, rc, "the system's loadlined does not serve at %s: %s", ret_place->name,
			       strerror(-rc))
		  : 0;
}

static int make_container_job(const struct hook_args *own, const struct ll_cdi_container *container, struct ll_err *err)
{
	struct ll_run_args args = {.strict = true};
	LL_SCOPE_STRBUF struct ll_strbuf cards = LL_STRBUF_INIT;
	const char *why = NULL;
	char tenant[LL_NAME_SIZE];
	struct ll_run_talk talk = LL_RUN_TALK_NONE;
	struct ll_client client = {.fd = -1};
	bool is_first = true, is_held = false;
	uint64_t said = 0;
	int rc = merge_devices(container->config, own, &args.tenant, &cards, &is_first, err);
	if (rc || !is_first)
		return rc;
	args.cards = cards.length ? cards.buf : NULL;
	args.name = container->name[0] ? container->name : NULL;
	const char *sandbox =
	    of_pod(container->config, "io.kubernetes.cri.sandbox-id", "io.kubernetes.cri-o.SandboxID");
	if (own->resource && sandbox)
		rc = ll_cdi_read_pod(sandbox, json_object_get(container->config, "annotations"), err);
	if (!rc)
		rc = read_annotations(container->config, own->resource, &args, &said, err);
	if (!rc && own->resource)
		rc = take_size(container->config, own, tenant, &args, &said, err);
	if (!rc && (rc = ll_cdi_check_program(container, &why, err)) == -EPERM && args.allow_ungoverned)
		rc = 0;
	if (why) {
		ll_log(LL_LOG_WARN, "%s", why);
		tell_journal(LOG_WARNING, "container %s: %s", container->name, why);
	}
	if (!rc)
		rc = check_fence(container->pid, err);
	int reached = rc ? 0 : reach_system(&talk.place, &client, err);
	/* One that is there and does not answer, as it has too many connections of this user, lets nothing start. */
	if (own->is_optional && (reached == -ECONNREFUSED || reached == -ENOENT)) {
		ll_log(LL_LOG_WARN, "the container starts ungoverned, as the configuration lets it: %s", err->text);
		tell_journal(LOG_WARNING, "container %s starts ungoverned: %s", container->name, err->text);
		ll_client_close(&client);
		return 0;
	}
	rc = rc ? rc : reached;
	if (!rc && own->holder)
		rc = hold_claim(own->holder, container->pid, &is_held, err);
	if (!rc && !is_held)
		rc = make_job(container, &args, said, talk, &client, err);
	ll_client_close(&client);
	return rc;
}

static int run_hook(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_cdi_container container = {.config = NULL};
	json_t *state = NULL, *config = NULL;
	struct ll_err why = {0};
	(void)operands;
	int rc = read_container(&state, &config, &container, &why);
	if (!rc)
		rc = make_container_job(data, &container, &why);
	json_decref(config);
	json_decref(state);
	if (rc) {
		tell_journal(LOG_ERR, "a container does not start: %s%s%s", why.text, why.hint[0] ? "; " : "",
			     why.hint);
		*err = why;
	}
	return rc;
}

static const struct ll_option hook_options[] = {
    {.name = "tenant",
     .placeholder = "NAME",
     LL_OPTION_TEXT(struct hook_args, tenant),
     .help = N_("The tenant of the job. loadlined decides whether the user whose runtime it is may be in it.")},
    LL_OPTION_CARDS(struct hook_args, cards),
    {.name = "resource",
     .placeholder = "NAME",
     LL_OPTION_TEXT(struct hook_args, resource),
     .help = N_("The container is of a pod, and has this size of Kubernetes: the next options are its limits.")},
    {.name = "mem", .placeholder = "SIZE", LL_OPTION_TEXT(struct hook_args, mem), .help = N_("Its memory.")},
    {.name = "compute", .placeholder = "SHARE", LL_OPTION_TEXT(struct hook_args, compute), .help = N_("Its compute.")},
    {.name = "class", .placeholder = "CLASS", LL_OPTION_TEXT(struct hook_args, class), .help = N_("Its class.")},
    {.name = "namespaces",
     .placeholder = "LIST",
     LL_OPTION_TEXT(struct hook_args, namespaces),
     .help = N_("Its tenant, by the pod's namespace: NAMESPACE=TENANT,...")},
    {.name = "holder",
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct hook_args, holder),
     .complete = LL_COMPLETE_FILE,
     .help = N_("It has this claim of Kubernetes, which one container has at a time: the file says which.")},
    {.name = "project",
     LL_OPTION_FLAG(struct hook_args, has_project),
     .help = N_("Its project in the accounts is the pod's namespace.")},
    {.name = "optional",
     LL_OPTION_FLAG(struct hook_args, is_optional),
     .help = N_("Let the container start ungoverned if the system's loadlined does not serve.")},
    LL_OPTION_END,
};

const struct ll_command ll_cdi_hook_command = {
    .name = "hook",
    .group = &ll_command_cdi,
    .summary = N_("make a container that is being made a job"),
    .description = N_("A runtime of containers runs it as an OCI hook (createRuntime), with the container's state at "
		      "standard input; it is not run by hand. If it fails, the container does not start. The reason is "
		      "in the journal, under loadline-cdi."),
    .options = hook_options,
    .args_size = sizeof(struct hook_args),
    .run = run_hook,
};
