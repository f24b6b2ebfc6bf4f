#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/cdi/cdi.h"
#include "cli/common/daemon.h"
#include "cli/common/env_sim.h"
#include "cli/config/parts.h"
#include "cli/run/run.h"
#include "config/check.h"
#include "config/keys.h"
#include "driver/cards.h"
#include "protocol/place.h"

enum { NAME_SIZE = 64, MIB_SHIFT = 20, FOLDER_MODE = 0755, FILE_MODE = 0644, NO_PROJECTS = 0 };

/* The folders of libraries: of Debian, of Red Hat and SUSE, and of the others. glibc of the container puts its own in
 * place of $LIB; the loader of musl does not, finds no such file, and goes on. */
#if defined(__aarch64__)
static const char *const lib_folders[] = {"lib/aarch64-linux-gnu", "lib64", "lib", NULL};
#else
static const char *const lib_folders[] = {"lib/x86_64-linux-gnu", "lib64", "lib", NULL};
#endif
static const char library[] = "libloadline-cuda.so";
static const char preload[] = LL_CONTAINER_FOLDER "/$LIB/libloadline-cuda.so";

struct generate_args {
	const char *folder, *config;
};

/* What the devices are made of. */
struct material {
	char program[PATH_MAX], shim[PATH_MAX], inside[PATH_MAX], preload[PATH_MAX]; /* real paths */
	char socket_folder[LL_PLACE_SIZE];
	const char *sim_folder; /* NULL: the real cards */
	bool is_optional;       /* a container may start without loadlined */
};

/* ---- what is mounted ---- */

static void add_mount(json_t *mounts, const char *from, const char *to)
{
	json_array_append_new(mounts, json_pack("{s:s, s:s, s:[s,s,s,s]}", "hostPath", from, "containerPath", to,
						"options", "ro", "nosuid", "nodev", "bind"));
}

static json_t *make_mounts(const struct material *material)
{
	char path[PATH_MAX];
	json_t *mounts = json_array();
	for (const char *const *folder = lib_folders; *folder; folder++) {
		snprintf(path, sizeof path, "%s/%s/%s", LL_CONTAINER_FOLDER, *folder, library);
		add_mount(mounts, material->shim, path);
	}
	add_mount(mounts, material->inside, LL_CONTAINER_PROBE);
	if (material->is_optional)
		add_mount(mounts, material->preload, LL_CONTAINER_OPTIONAL);
	add_mount(mounts, material->preload, "/etc/ld.so.preload");
	add_mount(mounts, material->socket_folder, "/run/loadline");
	return mounts;
}

/* What each container gets, whatever device of loadline it names. */
static json_t *make_common_edits(const struct material *material)
{
	char variable[PATH_MAX];
	snprintf(variable, sizeof variable, "LD_PRELOAD=%s", preload);
	return json_pack("{s:[s], s:o, s:[{s:s, s:s, s:[s]}]}", "env", variable, "mounts", make_mounts(material),
			 "hooks", "hookName", "startContainer", "path", LL_CONTAINER_PROBE, "args", "loadline-inside");
}

/* ---- devices ---- */

/* options: of the hook, with their values; takes it. */
static json_t *make_device(const struct material *material, const char *name, json_t *options)
{
	char variable[PATH_MAX];
	json_t *words = json_array(), *hook;
	json_array_append_new(words, json_string("loadline"));
	if (material->sim_folder)
		json_array_append_new(words, json_string("--sim"));
	json_array_append_new(words, json_string("cdi"));
	json_array_append_new(words, json_string("hook"));
	if (material->is_optional)
		json_array_append_new(words, json_string("--optional"));
	json_array_extend(words, options);
	json_decref(options);
	hook = json_pack("{s:s, s:s, s:o}", "hookName", "createRuntime", "path", material->program, "args", words);
	if (material->sim_folder) {
		snprintf(variable, sizeof variable, "LOADLINE_SIM_DIR=%s", material->sim_folder);
		json_object_set_new(hook, "env", json_pack("[s]", variable));
	}
	return json_pack("{s:s, s:{s:[o]}}", "name", name, "containerEdits", "hooks", hook);
}

/* What the names of devices may have. */
static bool is_device_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
	return isalnum((unsigned char)*name) && strspn(name, letters) == strlen(name);
}

/* A device for each tenant of the configuration, and one for whom it does not matter. */
static json_t *make_shares(const struct material *material, const struct ll_config_policy *policy)
{
	json_t *devices = json_array();
	json_array_append_new(devices, make_device(material, "default", NULL));
	for (size_t i = 0; i < policy->tenants.count; i++) {
		const char *name = policy->tenants.items[i].name;
		if (is_device_name(name) && strcmp(name, "default") != 0)
			json_array_append_new(devices,
					      make_device(material, name, json_pack("[s,s]", LL_CDI_TENANT, name)));
		else
			ll_log(LL_LOG_WARN,
			       "tenant %s has no device: a device's name is letters, digits and _-.:", name);
	}
	return devices;
}

static json_t *make_cards(const struct material *material, const struct ll_driver *driver)
{
	const struct ll_card *cards;
	json_t *devices = json_array();
	size_t count = ll_driver_cards(driver, &cards);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(
		    devices, make_device(material, cards[i].label, json_pack("[s,s]", LL_CDI_CARDS, cards[i].uuid)));
	return devices;
}

/* ---- devices of Kubernetes ---- */

/* "prod=serving,*=research": of the first tenant that names a namespace. */
static void add_namespaces(const struct ll_config_policy *policy, struct ll_strbuf *out)
{
	for (size_t i = 0; i < policy->tenants.count; i++) {
		const struct ll_config_tenant *tenant = &policy->tenants.items[i];
		for (size_t j = 0; j < tenant->members.kubernetes_namespaces.count; j++)
			ll_strbuf_addf(out, "%s%s=%s", out->length ? "," : "",
				       tenant->members.kubernetes_namespaces.items[j], tenant->name);
	}
}

static bool is_in_size(const struct ll_config_policy *policy, const struct ll_config_kubernetes *size,
		       const struct ll_card *card)
{
	const struct ll_config_group *group = ll_config_group_find(policy, size->of);
	if (card->has_slices || card->fault)
		return false;
	for (size_t i = 0; group && i < group->cards.count; i++) {
		const struct ll_config_card *named = &group->cards.items[i];
		if (named->index == card->index && named->slice == (card->is_mig ? (int)card->slice : -1))
			return true;
	}
	return !size->of;
}

static void add_option(json_t *options, const char *name, const char *value)
{
	json_array_append_new(options, json_string(name));
	json_array_append_new(options, json_string(value));
}

static json_t *make_size_options(const struct ll_config_policy *policy, const struct ll_config_kubernetes *size,
				 const struct ll_card *card)
{
	char text[NAME_SIZE];
	LL_SCOPE_STRBUF struct ll_strbuf namespaces = LL_STRBUF_INIT;
	json_t *options = json_pack("[s,s,s,s]", LL_CDI_CARDS, card->uuid, LL_CDI_RESOURCE, size->resource);
	/* Claims take their sizes of what stands here. */
	if (size->memory_permille != LL_CONFIG_NONE || size->claims) {
		uint64_t permille = size->memory_permille != LL_CONFIG_NONE ? size->memory_permille : 1000;
		uint64_t bytes = card->usable_bytes ? card->usable_bytes : card->memory_bytes;
		snprintf(text, sizeof text, "%lluM", (unsigned long long)((bytes >> MIB_SHIFT) * permille / 1000));
		add_option(options, LL_CDI_MEMORY, text);
	}
	if (size->compute_permille != LL_CONFIG_NONE || size->claims) {
		uint64_t permille = size->compute_permille != LL_CONFIG_NONE ? size->compute_permille : 1000;
		snprintf(text, sizeof text, "%g%%", (double)permille / 10);
		add_option(options, LL_CDI_COMPUTE, text);
	}
	if (size->class >= 0)
		add_option(options, LL_CDI_CLASS, ll_config_classes[size->class]);
	add_namespaces(policy, &namespaces);
	if (namespaces.length)
		add_option(options, LL_CDI_NAMESPACES, namespaces.buf);
	if (policy->accounts.projects != NO_PROJECTS)
		json_array_append_new(options, json_string(LL_CDI_PROJECT));
	return options;
}

/* NVIDIA's runtime shows a container the cards of this variable. For whole cards, of which a container may have
 * several, loadline-kubelet sets it. */
static json_t *make_cut(const struct material *material, const struct ll_config_policy *policy,
			const struct ll_config_kubernetes *size, const struct ll_card *card, unsigned number)
{
	char name[NAME_SIZE + LL_UUID_SIZE], variable[NAME_SIZE + LL_UUID_SIZE];
	snprintf(name, sizeof name, "%s.%.60s.%u", card->uuid, strrchr(size->resource, '/') + 1, number);
	if (!is_device_name(name)) {
		ll_log(LL_LOG_WARN, "card %s has no device of Kubernetes: %s cannot be a device's name", card->label,
		       name);
		return NULL;
	}
	json_t *device = make_device(material, name, make_size_options(policy, size, card));
	snprintf(variable, sizeof variable, "NVIDIA_VISIBLE_DEVICES=%s", card->uuid);
	if (size->claims || size->memory_permille != LL_CONFIG_NONE || size->compute_permille != LL_CONFIG_NONE)
		json_object_set_new(json_object_get(device, "containerEdits"), "env", json_pack("[s]", variable));
	return device;
}

/* The cuts of the cards, which loadline-kubelet offers to the kubelet; or the parts of which claims take theirs. */
static json_t *make_cuts(const struct material *material, const struct ll_config_policy *policy,
			 const struct ll_driver *driver, bool of_claims)
{
	const struct ll_card *cards;
	json_t *devices = json_array();
	size_t count = ll_driver_cards(driver, &cards);
	for (size_t i = 0; i < policy->kubernetes.count * count; i++) {
		const struct ll_config_kubernetes *size = &policy->kubernetes.items[i / count];
		const struct ll_card *card = &cards[i % count];
		if (size->claims != of_claims)
			continue;
		for (unsigned number = 1; is_in_size(policy, size, card) && number <= size->count; number++) {
			json_t *device = make_cut(material, policy, size, card, number);
			if (device)
				json_array_append_new(devices, device);
		}
	}
	return devices;
}

/* ---- files ---- */

/* A runtime may read the file at any time. Takes the devices. */
static int write_file(const char *folder, const char *what, const char *version, const struct material *material,
		      json_t *devices, struct ll_err *err)
{
	char path[PATH_MAX], made[PATH_MAX], kind[NAME_SIZE];
	snprintf(kind, sizeof kind, "loadline.dev/%s", what);
	int fits = snprintf(path, sizeof path, "%s/loadline-%s.json", folder, what) < PATH_MAX &&
		   snprintf(made, sizeof made, "%s/.loadline-%s.%d", folder, what, (int)getpid()) < PATH_MAX;
	json_t *spec = json_pack("{s:s, s:s, s:o, s:o}", "cdiVersion", version, "kind", kind, "devices", devices,
				 "containerEdits", make_common_edits(material));
	int rc = !fits ? -ENAMETOOLONG : spec ? 0 : -ENOMEM;
	if (!rc && (json_dump_file(spec, made, JSON_INDENT(2)) || chmod(made, FILE_MODE) || rename(made, path))) {
		rc = errno ? -errno : -EIO;
		unlink(made);
	}
	json_decref(spec);
	if (rc)
		return ll_err_set(err, rc, "%.200s: %s", path, strerror(-rc));
	printf("%s\n", path);
	return 0;
}

static int find_material(struct material *material, const struct ll_driver *driver, struct ll_err *err)
{
	static const char *const inside_places[] = {"src/monitor", "../lib/loadline", NULL};
	struct ll_place place;
	material->sim_folder = ll_driver_sim_folder(driver);
	int rc = ll_run_find_shim(material->shim, err);
	if (!rc && (ll_beside_find(inside_places, "loadline-inside", material->inside) ||
		    ll_beside_find(inside_places, "ld.so.preload", material->preload)))
		rc =
		    ll_err_set(err, -ENOENT, "loadline-inside and ld.so.preload are not beside this program, nor in %s",
			       inside_places[1]);
	if (!rc && !realpath("/proc/self/exe", material->program))
		rc = ll_err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	if (!rc && (rc = ll_place_of_system(material->sim_folder, &place)))
		ll_err_set(err, rc, "the folder of the simulated world: %s", strerror(-rc));
	if (!rc)
		snprintf(material->socket_folder, sizeof material->socket_folder, "%.*s",
			 (int)(strrchr(place.name, '/') - place.name), place.name);
	return rc;
}

/* containerd 1.6, with its version of the library for CDI, knows descriptions up to version 0.3.0. */
static int write_cuts(const char *folder, const struct material *material, const struct ll_config_policy *policy,
		      const struct ll_driver *driver, bool of_claims, struct ll_err *err)
{
	char path[PATH_MAX];
	const char *what = of_claims ? LL_CDI_CLAIMS : LL_CDI_CUT;
	for (size_t i = 0; i < policy->kubernetes.count; i++) {
		if (policy->kubernetes.items[i].claims == of_claims)
			return write_file(folder, what, "0.3.0", material,
					  make_cuts(material, policy, driver, of_claims), err);
	}
	if (snprintf(path, sizeof path, "%s/loadline-%s.json", folder, what) < (int)sizeof path && unlink(path) &&
	    errno != ENOENT)
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	return 0;
}

static int write_files(const char *folder, const struct ll_config_policy *policy, struct ll_err *err)
{
	static struct material material;
	struct ll_driver *driver = NULL;
	int rc = ll_cards_open(-EACCES, &driver, err);
	if (!rc)
		rc = find_material(&material, driver, err);
	material.is_optional = !policy->enforce.containers;
	if (!rc && mkdir(folder, FOLDER_MODE) && errno != EEXIST)
		rc = ll_err_set(err, -errno, "%.200s: %s", folder, strerror(errno));
	if (!rc)
		rc = write_file(folder, "share", "0.5.0", &material, make_shares(&material, policy), err);
	if (!rc)
		rc = write_file(folder, "card", "0.5.0", &material, make_cards(&material, driver), err);
	for (int of_claims = 0; !rc && of_claims <= 1; of_claims++)
		rc = write_cuts(folder, &material, policy, driver, of_claims, err);
	ll_driver_close(driver);
	return rc;
}

static int run_generate(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct generate_args *args = data;
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	bool has_cards;
	(void)operands;
	bool is_there = access(args->config, F_OK) == 0;
	int rc = is_there ? ll_config_open(&config, args->config, LL_CONFIG_SCOPE_FILE, &findings, &has_cards, err) : 0;
	if (!rc)
		rc = ll_config_refuse_faults(&findings, err);
	if (!rc && !is_there)
		config.policy.enforce.containers = true;
	if (!rc)
		rc = write_files(args->folder, &config.policy, err);
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	return rc;
}

static const struct ll_option generate_options[] = {
    {.name = "folder",
     .placeholder = "FOLDER",
     LL_OPTION_TEXT(struct generate_args, folder),
     .fallback = "/etc/cdi",
     .complete = LL_COMPLETE_FILE,
     .help = N_("Where the two files go. Runtimes read /etc/cdi and /run/cdi.")},
    {.name = "config",
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct generate_args, config),
     .fallback = "/etc/loadline",
     .complete = LL_COMPLETE_FILE,
     .help =
	 N_("The configuration with the tenants: a file or a folder. Without one there is the tenant default alone.")},
    LL_OPTION_END,
};

static const struct ll_example generate_examples[] = {
    {"loadline cdi generate", N_("The files of this machine, in /etc/cdi; as root.")},
    {NULL, NULL},
};

const struct ll_command ll_cdi_generate_command = {
    .name = "generate",
    .group = &ll_command_cdi,
    .summary = N_("describe tenants and cards as devices of containers"),
    .description = N_(
	"Writes two files, by which podman, docker, containerd and CRI-O know devices of loadline: "
	"loadline.dev/share=TENANT for each tenant of the configuration and loadline.dev/share=default, and "
	"loadline.dev/card=INDEX for each card. A container that names some of them becomes one job of the "
	"system's loadlined: of that tenant, on those cards. The device files of the cards and the driver's libraries "
	"come from NVIDIA's own devices.\n\n"
	"Where the configuration has `kubernetes`, a third file describes its sizes, which loadline-kubelet offers.\n\n"
	"Write them again when tenants or cards have changed. The service loadlined writes them into /run/cdi when it "
	"starts and when it reads its configuration again."),
    .examples = generate_examples,
    .options = generate_options,
    .args_size = sizeof(struct generate_args),
    .run = run_generate,
};

/* ---- the group ---- */

static const struct ll_command *const subcommands[] = {&ll_cdi_generate_command, &ll_cdi_hook_command, NULL};

static const struct ll_option group_options[] = {LL_OPTION_END};

static const struct ll_example group_examples[] = {
    {"loadline cdi generate", N_("Describe the devices, once for a machine.")},
    {NULL, NULL},
};

const struct ll_command ll_command_cdi = {
    .name = "cdi",
    .subcommands = subcommands,
    .summary = N_("make containers jobs"),
    .description = N_(
	"`podman run --device nvidia.com/gpu=0 --device loadline.dev/share=research IMAGE` is then a job of the tenant "
	"research: its processes share the limits, whatever their environment. The library comes by mount, so "
	"the image needs nothing. A container in which it is not in force does not start.\n\n"
	"Annotations of the container give the job what options of `loadline run` do: loadline.dev/mem, mem-request, "
	"compute, weight, class, slowdown, max-kernel, project, name, time; loadline.dev/allow-ungoverned=true "
	"lets a program start into which nothing can be preloaded."),
    .examples = group_examples,
    .options = group_options,
};
