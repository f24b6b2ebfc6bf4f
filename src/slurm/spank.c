/* The hooks of spank_loadline.so (doc/slurm.md). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* spank.h needs it before. */
#include <stdint.h>

#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(loadline, 1)
#pragma GCC visibility pop
#include <slurm/slurm.h>

#include "base/err.h"
#include "base/scope.h"
#include "cli/options/limit_words.h"
#include "slurm/plugin.h"

/* ---- the line of plugstack.conf ---- */

/* Copies the folder, with the node's name for %n. */
static int copy_folder(const char *text, const char *node, char ret_path[PATH_MAX])
{
	const char *at = strstr(text, "%n");
	int length = at ? snprintf(ret_path, PATH_MAX, "%.*s%s%s", (int)(at - text), text, node ? node : "", at + 2)
			: snprintf(ret_path, PATH_MAX, "%s", text);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int ll_spank_config_read(int count, char *const *words, const char *node, struct ll_spank_config *ret_config,
			 struct ll_err *err)
{
	*ret_config = (struct ll_spank_config){.program = "/usr/bin/loadline", .folder = "/run/loadline-slurm"};
	for (int i = 0; i < count; i++) {
		const char *word = words[i], *value = strchr(word, '=');
		char rest;
		int rc = value && value[1] ? 0 : -EINVAL;
		if (!rc && strncmp(word, "loadline=", sizeof "loadline=" - 1) == 0)
			ret_config->program = value + 1;
		else if (!rc && strncmp(word, "state=", sizeof "state=" - 1) == 0)
			ret_config->folder = value + 1;
		else if (!rc && strncmp(word, "sim=", sizeof "sim=" - 1) == 0)
			rc = copy_folder(value + 1, node, ret_config->sim);
		else if (!rc && strncmp(word, "borrow=", sizeof "borrow=" - 1) == 0)
			ret_config->borrow = value + 1;
		else if (!rc && strcmp(word, "containers=yes") == 0)
			ret_config->in_containers = true;
		else if (rc || sscanf(word, "shards=%u%c", &ret_config->shards, &rest) != 1 || !ret_config->shards)
			rc = -EINVAL;
		if (rc)
			return ll_err_set(
			    err, rc,
			    "plugstack.conf: '%s': not loadline=, state=, sim=, shards=, borrow= or containers=yes",
			    word);
	}
	if (ret_config->borrow && !ret_config->shards)
		return ll_err_set(err, -EINVAL, "plugstack.conf: borrow= needs shards=");
	return 0;
}

/* ---- options ---- */

int ll_spank_option_check(const char *name, const char *text, struct ll_err *err)
{
	static const char *const ways[] = {"slices", "space", "auto", NULL};
	uint64_t bytes;
	unsigned permille;
	enum ll_priority priority;
	if (strcmp(name, "mem") == 0)
		return ll_limit_read_memory(text, &bytes, err);
	if (strcmp(name, "compute") == 0)
		return ll_limit_read_compute(text, &permille, err);
	if (strcmp(name, "weight") == 0)
		return ll_limit_read_weight(text, &permille, err);
	if (strcmp(name, "class") == 0)
		return ll_limit_read_class(text, &priority, err);
	for (size_t i = 0; ways[i]; i++) {
		if (strcmp(text, ways[i]) == 0)
			return 0;
	}
	return ll_err_set(err, -EINVAL, "--by: '%.60s': not one of slices, space, auto", text);
}

static int take_option(int value, const char *text, int is_remote);

enum { OPTIONS = 5 };
static struct spank_option options[OPTIONS] = {
    {"ll-mem", "SIZE", "loadline: memory of each card that the job may have, such as 20G", 1, 0, take_option},
    {"ll-compute", "SHARE", "loadline: largest share of each card's time, such as 30%", 1, 1, take_option},
    {"ll-weight", "WEIGHT", "loadline: part of the card's time beside others, 0.01 to 100", 1, 2, take_option},
    {"ll-class", "CLASS", "loadline: high, normal or low", 1, 3, take_option},
    {"ll-by", "WAY", "loadline: how programs share the card: slices, space or auto", 1, 4, take_option},
};

enum { NAME_BEGIN = sizeof "ll-" - 1 };

/* At submission, and again on the node. Errors name the option of `loadline run`, which has "--" where this has
 * "--ll-". */
static int take_option(int value, const char *text, int is_remote)
{
	struct ll_err err = {0};
	const char *name = options[value].name + NAME_BEGIN;
	if (is_remote || ll_spank_option_check(name, text ? text : "", &err) == 0)
		return 0;
	const char *why = strncmp(err.text, "--", 2) == 0 ? err.text + 2 : err.text;
	slurm_error("loadline: --ll-%s%s%s", why, err.hint[0] ? "; " : "", err.hint);
	return ESPANK_BAD_ARG;
}

static void get_options(spank_t spank, struct ll_spank_options *ret_options)
{
	const char **texts[OPTIONS] = {&ret_options->mem, &ret_options->compute, &ret_options->weight,
				       &ret_options->class, &ret_options->by};
	*ret_options = (struct ll_spank_options){0};
	for (size_t i = 0; i < OPTIONS; i++) {
		char *text = NULL;
		if (spank_option_getopt(spank, &options[i], &text) == ESPANK_SUCCESS)
			*texts[i] = text;
	}
}

static bool has_options(const struct ll_spank_options *given)
{
	return given->mem || given->compute || given->weight || given->class || given->by;
}

#pragma GCC visibility push(default)

int slurm_spank_init(spank_t spank, int count, char **words)
{
	(void)count;
	(void)words;
	spank_context_t context = spank_context();
	if (context == S_CTX_SLURMD || context == S_CTX_JOB_SCRIPT)
		return 0;
	for (size_t i = 0; i < OPTIONS; i++) {
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			return -1;
	}
	return 0;
}

#pragma GCC visibility pop

/* ---- the job's begin and end ---- */

/* Prolog and epilog have what they need to know in their environment. */
static int read_job(struct ll_spank_job *job, struct ll_err *err)
{
	const char *id = getenv("SLURM_JOB_ID"), *uid = getenv("SLURM_JOB_UID"), *gid = getenv("SLURM_JOB_GID");
	const char *cards = getenv("SLURM_JOB_GPUS");
	*job = (struct ll_spank_job){0};
	if (!id || !uid)
		return ll_err_set(err, -EINVAL, "Slurm does not say which job it is");
	job->id = (uint32_t)strtoul(id, NULL, 10);
	job->uid = (uid_t)strtoul(uid, NULL, 10);
	job->gid = gid ? (gid_t)strtoul(gid, NULL, 10) : (gid_t)job->uid;
	if (cards && ll_spank_cards_read(cards, job))
		return ll_err_set(err, -EINVAL, "SLURM_JOB_GPUS=%.100s: not the numbers of cards", cards);
	return 0;
}

/* A job that runs once more, or whose epilog did not run. */
static void forget_job(const struct ll_spank_config *config, uint32_t job)
{
	struct ll_spank_record record;
	if (ll_spank_record_read(config, job, &record, NULL) == 0)
		ll_spank_end(&record);
	ll_spank_record_remove(config, job);
	ll_strbuf_fini(&record.text);
}

static int make_job(const struct ll_spank_config *config, struct ll_spank_job *job,
		    const struct ll_spank_options *given, struct ll_spank_record *record,
		    enum ll_spank_blame *ret_blame, struct ll_err *err)
{
	const char *node = getenv("SLURMD_NODENAME");
	*ret_blame = LL_SPANK_JOB;
	if (!job->card_count)
		return ll_err_set(err, -EINVAL,
				  "limits without a card: ask Slurm for one, as by --gres=shard:4 or --gres=gpu:1");
	*ret_blame = LL_SPANK_NODE;
	int rc = node ? ll_spank_part_ask(config, node, job, err) : ll_err_set(err, -EINVAL, "no SLURMD_NODENAME");
	return rc ? rc : ll_spank_start(config, job, given, record, ret_blame, err);
}

/* A job that is refused begins, so that its user gets to know why, and each of its steps fails: Slurm drains a node
 * whose prolog fails. */
static int begin_job(spank_t spank, const struct ll_spank_config *config, struct ll_err *err)
{
	struct ll_spank_job job;
	struct ll_spank_options given;
	struct ll_spank_record record = {.text = LL_STRBUF_INIT};
	enum ll_spank_blame blame = LL_SPANK_NODE;
	int rc = read_job(&job, err);
	if (rc)
		return rc;
	get_options(spank, &given);
	forget_job(config, job.id);
	if (!job.card_count && !has_options(&given))
		return 0;
	LL_SCOPE_CLOSE int lock = config->shards ? ll_spank_lock(config, err) : -1;
	if (config->shards && lock < 0)
		return lock;
	rc = make_job(config, &job, &given, &record, &blame, err);
	if (rc && blame == LL_SPANK_JOB) {
		slurm_info("loadline: job %u is refused: %s", job.id, err->text);
		ll_strbuf_reset(&record.text);
		ll_strbuf_addf(&record.text, "%s%s%s", err->text, err->hint[0] ? "; " : "", err->hint);
		record.pid = 0;
		rc = 0;
	}
	if (!rc && (rc = ll_spank_record_write(config, job.id, &record, err)))
		ll_spank_end(&record);
	ll_strbuf_fini(&record.text);
	return rc;
}

#pragma GCC visibility push(default)

int slurm_spank_job_prolog(spank_t spank, int count, char **words)
{
	struct ll_spank_config config;
	struct ll_err err = {0};
	int rc = ll_spank_config_read(count, words, getenv("SLURMD_NODENAME"), &config, &err);
	if (!rc)
		rc = begin_job(spank, &config, &err);
	if (rc)
		slurm_error("loadline: no job can be held to its part of a card here: %s%s%s", err.text,
			    err.hint[0] ? "; " : "", err.hint);
	return rc ? -1 : 0;
}

int slurm_spank_job_epilog(spank_t spank, int count, char **words)
{
	struct ll_spank_config config;
	struct ll_spank_job job;
	struct ll_err err = {0};
	(void)spank;
	int rc = ll_spank_config_read(count, words, getenv("SLURMD_NODENAME"), &config, &err);
	if (!rc && !(rc = read_job(&job, &err))) {
		forget_job(&config, job.id);
		ll_spank_records_sweep(&config);
	}
	if (rc)
		slurm_error("loadline: %s", err.text);
	return 0;
}

#pragma GCC visibility pop

/* ---- steps ---- */

/* Slurm 22.05 writes a container's variables before the plugin sets them; versions between were not tried. */
enum { HAS_CONTAINERS = SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0) };

/* Whether the step is in a container of Slurm's (srun --container). */
static bool is_contained(spank_t spank)
{
	char text[PATH_MAX];
	spank_err_t rc = spank_getenv(spank, "SLURM_CONTAINER", text, sizeof text);
	return rc == ESPANK_NOSPACE || (rc == ESPANK_SUCCESS && *text);
}

/* Finds the record of the job. ret_record->pid stays 0 if the job has no card and no limits. */
static int find_record(spank_t spank, int count, char **words, struct ll_spank_record *ret_record, struct ll_err *err)
{
	struct ll_spank_config config;
	uint32_t job = 0;
	*ret_record = (struct ll_spank_record){.text = LL_STRBUF_INIT};
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return ll_err_set(err, -EINVAL, "Slurm does not say which job it is");
	int rc = ll_spank_config_read(count, words, NULL, &config, err);
	if (!rc)
		rc = ll_spank_record_read(&config, job, ret_record, err);
	if (!rc && !ret_record->pid)
		rc = ll_err_set(err, -EACCES, "%s", ret_record->text.buf);
	return rc;
}

/* Whether the step has a card. Without one it has no record. */
static bool has_card(spank_t spank)
{
	static const char *const names[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_SHARDS_ON_NODE",
					    "SLURM_GPUS_ON_NODE", NULL};
	char text[LL_SPANK_NAME];
	for (size_t i = 0; names[i]; i++) {
		if (spank_getenv(spank, names[i], text, sizeof text) == ESPANK_SUCCESS && *text)
			return true;
	}
	return false;
}

/* Of this task, from its first hook to its second. */
static struct ll_spank_record own_record = {.text = LL_STRBUF_INIT};

static int say_refused(const struct ll_err *err)
{
	slurm_error("loadline: the step is refused: %s", err->text);
	return -1;
}

#pragma GCC visibility push(default)

/* The extern step has no tasks: its process is forked with the id -1. */
int slurm_spank_task_post_fork(spank_t spank, int count, char **words)
{
	struct ll_spank_record record;
	struct ll_err err = {0};
	uint32_t step = 0;
	if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step != SLURM_EXTERN_CONT)
		return 0;
	int rc = find_record(spank, count, words, &record, &err);
	if (!rc)
		rc = ll_spank_bind(&record, &err);
	ll_strbuf_fini(&record.text);
	/* Without a card there is no record; without control groups loadlined knows the job by its environment. */
	if (rc && rc != -ENOENT && rc != -EACCES)
		slurm_error("loadline: %s", err.text);
	return 0;
}

int slurm_spank_task_init_privileged(spank_t spank, int count, char **words)
{
	struct ll_err err = {0};
	struct ll_spank_config config;
	int rc = find_record(spank, count, words, &own_record, &err);
	if (!rc && is_contained(spank) && !(rc = ll_spank_config_read(count, words, NULL, &config, &err)) &&
	    !(HAS_CONTAINERS && config.in_containers))
		rc = ll_err_set(&err, -EACCES,
				"its container would not have its limits: they need containers=yes in plugstack.conf, "
				"and Slurm 24.11");
	if (rc == -ENOENT)
		return has_card(spank) ? say_refused(&err) : 0;
	if (!rc && !ll_spank_is_bound(&own_record))
		rc = ll_err_set(&err, -ENOENT,
				"the job is not in its control group: slurm.conf needs PrologFlags=Contain");
	return rc ? say_refused(&err) : 0;
}

/* The step's cards by UUID: the numbers that Slurm gives it are those within its control group, where devices are
 * constrained, and those of the node elsewhere. A step may have fewer cards than its job. */
static void name_cards(spank_t spank, const struct ll_strbuf *text, struct ll_strbuf *names)
{
	char numbers[LL_SPANK_NAME];
	struct ll_spank_job job = {.id = 0}, step = {.id = 0};
	const char *cards = ll_spank_record_value(text, LL_SPANK_CARDS_NAME);
	const char *uuids = ll_spank_record_value(text, LL_SPANK_UUIDS_NAME);
	bool is_told = spank_getenv(spank, "SLURM_STEP_GPUS", numbers, sizeof numbers) == ESPANK_SUCCESS &&
		       ll_spank_cards_read(numbers, &step) == 0 && cards && ll_spank_cards_read(cards, &job) == 0;
	size_t found = 0;
	for (size_t i = 0; is_told && i < job.card_count && uuids[0]; i++) {
		size_t length = strcspn(uuids, ",");
		bool is_of_step = false;
		for (size_t j = 0; j < step.card_count; j++)
			is_of_step |= step.cards[j] == job.cards[i];
		if (is_of_step)
			ll_strbuf_addf(names, "%s%.*s", found++ ? "," : "", (int)length, uuids);
		uuids += length + (uuids[length] == ',');
	}
	if (!found || found < step.card_count) {
		ll_strbuf_reset(names);
		ll_strbuf_adds(names, ll_spank_record_value(text, LL_SPANK_UUIDS_NAME));
	}
}

static int set_variable(spank_t spank, const char *name, const struct ll_strbuf *value)
{
	if (!value->failed && spank_setenv(spank, name, value->buf, 1) == ESPANK_SUCCESS)
		return 0;
	slurm_error("loadline: the step is refused: no room for %s", name);
	return -1;
}

/* The task may have libraries of its own to preload; the governing one is last (cli/run/run.h). A container gets it by
 * its /etc/ld.so.preload, and at another path. */
int slurm_spank_task_init(spank_t spank, int count, char **words)
{
	(void)count;
	(void)words;
	const struct ll_strbuf *text = &own_record.text;
	bool in_container = is_contained(spank);
	for (const char *at = text->buf; own_record.pid && at < text->buf + text->length; at += strlen(at) + 1) {
		char name[LL_SPANK_NAME], earlier[1 << 12];
		const char *value = strchr(at, '=');
		size_t length = value ? (size_t)(value - at) : 0;
		if (!length || length >= sizeof name)
			continue;
		memcpy(name, at, length);
		name[length] = '\0';
		LL_SCOPE_STRBUF struct ll_strbuf joined = LL_STRBUF_INIT;
		bool is_set = spank_getenv(spank, name, earlier, sizeof earlier) == ESPANK_SUCCESS && *earlier;
		if (strcmp(name, LL_SPANK_CARDS_NAME) == 0 || strcmp(name, LL_SPANK_HALF_NAME) == 0 ||
		    strcmp(name, LL_SPANK_BOOT_NAME) == 0 || strcmp(name, "CUDA_VISIBLE_DEVICES") == 0 ||
		    (in_container && strcmp(name, "LD_PRELOAD") == 0))
			continue;
		if (strcmp(name, LL_SPANK_UUIDS_NAME) == 0) {
			name_cards(spank, text, &joined);
			if (set_variable(spank, "CUDA_VISIBLE_DEVICES", &joined))
				return -1;
			continue;
		}
		if (is_set && strcmp(name, "LD_PRELOAD") == 0)
			ll_strbuf_addf(&joined, "%s:%s", earlier, value + 1);
		else if (is_set && strcmp(name, "LD_LIBRARY_PATH") == 0)
			ll_strbuf_addf(&joined, "%s:%s", value + 1, earlier);
		else
			ll_strbuf_adds(&joined, value + 1);
		if (set_variable(spank, name, &joined))
			return -1;
	}
	return 0;
}

#pragma GCC visibility pop
