/* The process that stands for a Slurm job in loadlined. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/host.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "protocol/run_settings.h"
#include "slurm/plugin.h"

enum { WORDS = 40, WORD_SIZE = 64, TEXT_MAX = 1 << 16, FILE_MAX = 1 << 20, MODE_PRIVATE = 0700, PERMILLE = 1000 };

/* Slurm's own limit for a prolog is longer (PrologEpilogTimeout, none by default). */
#define START_NS (20 * LL_NS_PER_S)
#define PAUSE_NS (50 * LL_NS_PER_MS)

/* Signals that a user sends to the whole job are not for it: KILL is what Slurm ends jobs with. */
#define SLEEP "trap '' HUP INT QUIT USR1 USR2 ALRM; echo ready; exec sleep infinity >/dev/null 2>&1"
#define READY "ready\n"

/* ---- the command ---- */

struct command {
	const char *words[WORDS];
	size_t count;
	char texts[WORDS][WORD_SIZE]; /* numbers */
	struct ll_strbuf cards;
};

static void add_word(struct command *command, const char *word)
{
	if (command->count < WORDS - 1)
		command->words[command->count++] = word;
}

static void add_option(struct command *command, const char *option, const char *value)
{
	add_word(command, option);
	add_word(command, value);
}

static void add_number(struct command *command, const char *option, const char *format, unsigned long long number)
{
	char *text = command->texts[command->count];
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"")
	    snprintf(text, WORD_SIZE, format, number);
	_Pragma("GCC diagnostic pop") add_option(command, option, text);
}

/* ---- what loadlined knows ---- */

/* A loadlined that governs, and what its sensor reports. */
struct node {
	struct ll_client client;
	struct ll_sensed sensed;
	struct ll_policy policy;
};

static int open_node(const struct ll_spank_config *config, struct node *node, struct ll_err *err)
{
	struct ll_place place;
	uint64_t until_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_place_of_system(config->sim[0] ? config->sim : NULL, &place);
	if (rc)
		return ll_err_set(err, rc, "sim=%.200s: %s", config->sim, strerror(-rc));
	rc = ll_client_open(&node->client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION), until_ns, err);
	if (!rc)
		rc = ll_sensed_read(&node->sensed, &node->client, until_ns, err);
	if (!rc && node->sensed.end.silent_ns > LL_SENSED_FRESH_NS)
		rc = ll_err_set(err, -EAGAIN, "loadline-sensor reports nothing");
	return rc ? rc : ll_client_policy(&node->client, &node->policy, until_ns, err);
}

static void close_node(struct node *node)
{
	ll_policy_fini(&node->policy);
	ll_sensed_fini(&node->sensed);
	ll_client_close(&node->client);
}

static bool has_ended(const struct node *node)
{
	struct pollfd end = {.fd = node->client.fd};
	return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR));
}

static const struct ll_message_sense_card *find_card(const struct node *node, unsigned index)
{
	for (size_t i = 0; i < node->sensed.card_count; i++) {
		const struct ll_message_sense_card *card = &node->sensed.cards[i];
		if (card->index == index && card->slice < 0)
			return card;
	}
	return NULL;
}

/* The memory of a card that is in parts. */
static uint64_t parted_bytes(const struct ll_spank_config *config, const struct ll_message_sense_card *card)
{
	if (!config->borrow)
		return card->memory_bytes;
	uint64_t bytes = card->usable_bytes ? card->usable_bytes : card->memory_bytes;
	return bytes - bytes / LL_SPANK_KEPT_OF;
}

/* The memory of the smallest card is that of each. */
static int name_cards(const struct ll_spank_config *config, const struct node *node, const struct ll_spank_job *job,
		      struct ll_strbuf *names, uint64_t *ret_bytes, struct ll_err *err)
{
	uint64_t least = UINT64_MAX;
	for (size_t i = 0; i < job->card_count; i++) {
		const struct ll_message_sense_card *card = find_card(node, job->cards[i]);
		if (!card)
			return ll_err_set(err, -ENODEV, "loadlined has no card %u", job->cards[i]);
		ll_strbuf_addf(names, "%s%s", i ? "," : "", card->uuid);
		uint64_t bytes = job->of_shards ? parted_bytes(config, card) : card->memory_bytes;
		least = bytes < least ? bytes : least;
	}
	*ret_bytes = least;
	return names->failed ? ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM)) : 0;
}

/* A configuration names the tenants. Without it each job is one, with limits of its own. */
static void add_tenant(struct command *command, const struct node *node, const struct ll_spank_job *job)
{
	bool is_tenant = false;
	for (size_t i = 0; i < node->policy.tenant_count; i++)
		is_tenant |= strcmp(node->policy.tenants[i].name, job->account) == 0;
	if (is_tenant)
		add_option(command, "--tenant", job->account);
	else if (!node->policy.tenant_count)
		add_number(command, "--tenant", "slurm-%llu", job->id);
	if (ll_tenant_name_is_valid(job->account))
		add_option(command, "--project", job->account);
}

/* ---- limits ---- */

/* Who asks for more than its shards would take it from others. */
static int add_memory(struct command *command, const struct ll_spank_job *job, const char *text, uint64_t card_bytes,
		      struct ll_err *err)
{
	uint64_t bytes = 0;
	uint64_t own = job->of_shards ? card_bytes / job->of_shards * job->shards : card_bytes;
	if (!text && job->of_shards) {
		add_number(command, "--mem", "%lluK", own >> 10);
		return 0;
	}
	if (!text)
		return 0;
	if (strcmp(text, "none") != 0 && ll_parse_bytes(text, &bytes, err))
		return ll_err_wrap(err, "--ll-mem");
	if (job->of_shards && (!bytes || bytes > own))
		return ll_err_set(err, -EDQUOT, "--ll-mem=%.60s: %u of %u shards are %llu MiB of the card", text,
				  job->shards, job->of_shards, (unsigned long long)own >> 20);
	add_option(command, "--mem", text);
	return 0;
}

static int add_compute(struct command *command, const struct ll_spank_job *job, const char *text, struct ll_err *err)
{
	double percent = 0, own = job->of_shards ? 100.0 * job->shards / job->of_shards : 100.0;
	if (!text && job->of_shards) {
		char *word = command->texts[command->count];
		snprintf(word, WORD_SIZE, "%.1f%%", own);
		add_option(command, "--compute", word);
		return 0;
	}
	if (!text)
		return 0;
	if (strcmp(text, "none") != 0 && ll_parse_share(text, &percent, err))
		return ll_err_wrap(err, "--ll-compute");
	if (job->of_shards && (percent <= 0 || percent > own + 0.05))
		return ll_err_set(err, -EDQUOT, "--ll-compute=%.60s: %u of %u shards are %.1f%% of the card", text,
				  job->shards, job->of_shards, own);
	add_option(command, "--compute", text);
	return 0;
}

/* The memory of a job that does not borrow is promised: borrowers leave for it. */
static int add_lending(struct command *command, const struct ll_spank_job *job, const struct ll_spank_options *options,
		       struct ll_err *err)
{
	if (!job->borrows) {
		add_option(command, "--mem-request", command->words[command->count - 1]);
		return 0;
	}
	if (options->class && strcmp(options->class, "low") != 0)
		return ll_err_set(err, -EINVAL, "--ll-class=%.60s: a job that borrows is of class low", options->class);
	if (options->by && strcmp(options->by, "space") == 0)
		return ll_err_set(err, -EINVAL, "--ll-by=space: a job that borrows has no SMs of its own");
	add_word(command, "--evictable");
	add_option(command, "--class", "low");
	return 0;
}

/* ---- its start ---- */

/* After a boot another process may have its numbers. An earlier plugin did not note the boot. */
static bool is_of_this_boot(const struct ll_spank_record *record)
{
	char boot[LL_BOOT_ID_SIZE];
	const char *its_boot = ll_spank_record_value(&record->text, LL_SPANK_BOOT_NAME);
	ll_boot_id_read(boot);
	return !its_boot || strcmp(its_boot, boot) == 0;
}

static bool is_there(const struct ll_spank_record *record)
{
	struct ll_process_stat stat;
	return record->pid && is_of_this_boot(record) && ll_process_stat_of(record->pid, &stat) == 0 && !stat.is_dead &&
	       stat.start_ticks == record->start_ticks;
}

/* Reads what the command prints, until it sleeps. -EPIPE: it has ended. */
static int read_answer(int fd, struct ll_strbuf *answer)
{
	uint64_t until_ns = ll_now_ns() + START_NS;
	char bytes[WORD_SIZE];
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)((until_ns - now_ns) / LL_NS_PER_MS) + 1);
		ssize_t length = read(fd, bytes, sizeof bytes);
		if (length < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (length <= 0)
			return -EPIPE;
		ll_strbuf_add(answer, bytes, (size_t)length);
		if (answer->failed || answer->length > TEXT_MAX)
			return -ENOMEM;
		size_t ready = sizeof READY - 1;
		if (answer->length >= ready && strcmp(answer->buf + answer->length - ready, READY) == 0)
			return 0;
	}
}

static bool is_for_task(const char *variable, bool is_simulated)
{
	static const char *const names[] = {"LOADLINE_", "LD_PRELOAD=", "CUDA_", NULL};
	for (size_t i = 0; names[i]; i++) {
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	}
	return is_simulated && strncmp(variable, "LD_LIBRARY_PATH=", sizeof "LD_LIBRARY_PATH=" - 1) == 0;
}

static bool is_of_system(const char *value)
{
	struct ll_run_settings settings;
	struct ll_place place;
	return ll_run_settings_read(value, &settings) == 0 && ll_place_read(settings.place, &place) == 0 &&
	       ll_place_is_system(&place);
}

/* The process executes another program just now. For a moment the kernel shows no environment of it. */
static ssize_t read_environment(pid_t pid, char *ret_text)
{
	uint64_t until_ns = ll_now_ns() + START_NS;
	ssize_t length;
	while ((length = ll_process_read_file(pid, "environ", ret_text, TEXT_MAX)) == 0 && ll_now_ns() < until_ns)
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	return length;
}

/* Takes from the environment of the process what a task of the job gets. */
static int take_environment(struct ll_spank_record *record, bool is_simulated, struct ll_err *err)
{
	LL_SCOPE_FREE char *text = calloc(1, TEXT_MAX);
	bool is_governed = false;
	struct ll_process_stat stat;
	ssize_t length = text ? read_environment(record->pid, text) : -ENOMEM;
	int rc = length < 0 ? (int)length : ll_process_stat_of(record->pid, &stat);
	if (rc)
		return ll_err_set(err, rc, "the job's process: %s", strerror(-rc));
	record->start_ticks = stat.start_ticks;
	for (const char *at = text; at < text + length; at += strlen(at) + 1) {
		size_t name = sizeof LL_RUN_VARIABLE;
		if (strncmp(at, LL_RUN_VARIABLE "=", name) == 0)
			is_governed = is_of_system(at + name);
		if (is_for_task(at, is_simulated))
			ll_strbuf_add(&record->text, at, strlen(at) + 1);
	}
	return is_governed ? 0 : ll_err_set(err, -ECONNREFUSED, "loadlined has ended meanwhile");
}

static int start_command(const struct ll_spank_config *config, const struct command *command, int out, pid_t *ret_pid,
			 struct ll_err *err)
{
	char sim[PATH_MAX + WORD_SIZE];
	const char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL, NULL};
	struct ll_child child = {.path = command->words[0],
				 .words = command->words,
				 .environment = environment,
				 .in = LL_CHILD_NULL,
				 .out = out,
				 .err = out,
				 .flags = LL_CHILD_OWN_GROUP};
	snprintf(sim, sizeof sim, "LOADLINE_SIM_DIR=%s", config->sim);
	if (config->sim[0])
		environment[2] = sim;
	return ll_child_start(&child, ret_pid, err);
}

static void kill_command(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The first line, without what program said it. */
static const char *first_line(struct ll_strbuf *answer)
{
	static const char prefix[] = "loadline: ";
	char *line = answer->buf;
	line[strcspn(line, "\n")] = '\0';
	return strncmp(line, prefix, sizeof prefix - 1) == 0 ? line + sizeof prefix - 1 : line;
}

static int run_command(const struct ll_spank_config *config, const struct command *command,
		       struct ll_spank_record *record, enum ll_spank_blame *ret_blame, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	int rc = start_command(config, command, ends[1], &record->pid, err);
	close(ends[1]);
	if (rc) {
		close(ends[0]);
		return ll_err_wrap(err, "%s", command->words[0]);
	}
	rc = read_answer(ends[0], &answer);
	close(ends[0]);
	if (rc == -EPIPE) {
		*ret_blame = LL_SPANK_JOB;
		rc = ll_err_set(err, -EACCES, "%s", answer.length ? first_line(&answer) : "loadline run has ended");
	} else if (rc) {
		ll_err_set(err, rc, "%s run: %s", config->program, strerror(-rc));
	} else {
		rc = take_environment(record, config->sim[0], err);
	}
	if (rc)
		kill_command(record->pid);
	return rc;
}

static void add_user(struct command *command, const struct ll_spank_job *job)
{
	add_word(command, "/usr/bin/setpriv");
	add_number(command, "--reuid", "%llu", job->uid);
	add_number(command, "--regid", "%llu", job->gid);
	add_word(command, getpwuid(job->uid) ? "--init-groups" : "--clear-groups");
	add_word(command, "--");
}

static int fill_command(struct command *command, const struct ll_spank_config *config, const struct node *node,
			const struct ll_spank_job *job, const struct ll_spank_options *options,
			enum ll_spank_blame *ret_blame, struct ll_err *err)
{
	uint64_t bytes = 0;
	int rc = name_cards(config, node, job, &command->cards, &bytes, err);
	if (rc)
		return rc;
	if (job->uid != geteuid())
		add_user(command, job);
	add_word(command, config->program);
	if (config->sim[0])
		add_word(command, "--sim");
	add_word(command, "run");
	add_word(command, "--strict");
	add_number(command, "--name", "slurm-%llu", job->id);
	add_option(command, "-i", command->cards.buf);
	add_tenant(command, node, job);
	*ret_blame = LL_SPANK_JOB;
	if ((rc = add_memory(command, job, options->mem, bytes, err)) ||
	    (config->borrow && job->of_shards && (rc = add_lending(command, job, options, err))) ||
	    (rc = add_compute(command, job, options->compute, err)))
		return rc;
	*ret_blame = LL_SPANK_NODE;
	if (options->weight)
		add_option(command, "--weight", options->weight);
	if (options->class && !job->borrows)
		add_option(command, "--class", options->class);
	if (options->by)
		add_option(command, "--by", options->by);
	add_word(command, "--");
	add_option(command, "/bin/sh", "-c");
	add_word(command, SLEEP);
	return 0;
}

static const char *half_of(const struct ll_spank_job *job)
{
	return job->borrows ? "lent" : "own";
}

static void note_job(struct ll_spank_record *record, const struct ll_spank_job *job, const char *uuids)
{
	char boot[LL_BOOT_ID_SIZE];
	ll_boot_id_read(boot);
	ll_strbuf_addf(&record->text, LL_SPANK_BOOT_NAME "=%s", boot);
	ll_strbuf_addc(&record->text, '\0');
	ll_strbuf_adds(&record->text, LL_SPANK_CARDS_NAME "=");
	for (size_t i = 0; i < job->card_count; i++)
		ll_strbuf_addf(&record->text, "%s%u", i ? "," : "", job->cards[i]);
	ll_strbuf_addc(&record->text, '\0');
	ll_strbuf_addf(&record->text, LL_SPANK_UUIDS_NAME "=%s", uuids);
	ll_strbuf_addc(&record->text, '\0');
	if (job->of_shards) {
		ll_strbuf_addf(&record->text, LL_SPANK_HALF_NAME "=%s %u", half_of(job), job->shards);
		ll_strbuf_addc(&record->text, '\0');
	}
}

/* -EAGAIN, -EPIPE, -ECONNRESET: loadlined ends or begins just now. */
static int start_once(const struct ll_spank_config *config, const struct ll_spank_job *job,
		      const struct ll_spank_options *options, struct ll_spank_record *record,
		      enum ll_spank_blame *ret_blame, struct ll_err *err)
{
	struct command command = {.cards = LL_STRBUF_INIT};
	struct node node = {.client = {.fd = -1}};
	*ret_blame = LL_SPANK_NODE;
	int rc = open_node(config, &node, err);
	if (!rc)
		rc = fill_command(&command, config, &node, job, options, ret_blame, err);
	if (!rc)
		rc = run_command(config, &command, record, ret_blame, err);
	if (!rc)
		note_job(record, job, command.cards.buf);
	if (rc && has_ended(&node)) {
		*ret_blame = LL_SPANK_NODE;
		rc = ll_err_set(err, -EAGAIN, "loadlined has ended meanwhile");
	}
	close_node(&node);
	ll_strbuf_fini(&command.cards);
	return rc;
}

/* Adds the shards of each of the job's cards that the job of the record has in the same half. */
static void add_taken(const struct ll_spank_record *record, const struct ll_spank_job *job, unsigned *taken)
{
	struct ll_spank_job other = {.id = 0};
	const char *cards = ll_spank_record_value(&record->text, LL_SPANK_CARDS_NAME);
	const char *half = ll_spank_record_value(&record->text, LL_SPANK_HALF_NAME);
	char word[WORD_SIZE];
	unsigned shards;
	if (!cards || !half || ll_spank_cards_read(cards, &other) || sscanf(half, "%63s %u", word, &shards) != 2 ||
	    strcmp(word, half_of(job)) != 0)
		return;
	for (size_t i = 0; i < job->card_count; i++) {
		for (size_t j = 0; j < other.card_count; j++)
			taken[i] += job->cards[i] == other.cards[j] ? shards : 0;
	}
}

/* Slurm counts the shards of both halves as one number. */
static int check_halves(const struct ll_spank_config *config, const struct ll_spank_job *job, struct ll_err *err)
{
	unsigned taken[LL_SPANK_CARDS] = {0};
	const struct dirent *entry;
	DIR *folder = opendir(config->folder);
	while (folder && (entry = readdir(folder))) {
		char *end;
		struct ll_spank_record record;
		uint32_t id = (uint32_t)strtoul(entry->d_name, &end, 10);
		if (end == entry->d_name || *end || id == job->id)
			continue;
		if (ll_spank_record_read(config, id, &record, NULL) == 0 && is_there(&record))
			add_taken(&record, job, taken);
		ll_strbuf_fini(&record.text);
	}
	if (folder)
		closedir(folder);
	for (size_t i = 0; i < job->card_count; i++) {
		if (taken[i] + job->shards > job->of_shards)
			return ll_err_set(
			    err, -EDQUOT,
			    "card %u has %u shards for jobs that %s, and others have %u of them: %u more do not fit",
			    job->cards[i], job->of_shards, job->borrows ? "borrow" : "do not borrow", taken[i],
			    job->shards);
	}
	return 0;
}

int ll_spank_start(const struct ll_spank_config *config, const struct ll_spank_job *job,
		   const struct ll_spank_options *options, struct ll_spank_record *ret_record,
		   enum ll_spank_blame *ret_blame, struct ll_err *err)
{
	uint64_t until_ns = ll_now_ns() + LL_CLIENT_RETURN_NS;
	*ret_record = (struct ll_spank_record){.text = LL_STRBUF_INIT};
	*ret_blame = LL_SPANK_JOB;
	int rc = config->shards && job->of_shards ? check_halves(config, job, err) : 0;
	if (rc)
		return rc;
	while ((rc = start_once(config, job, options, ret_record, ret_blame, err)) &&
	       (rc == -EAGAIN || ll_client_is_lost(rc)) && ll_now_ns() < until_ns) {
		ll_strbuf_reset(&ret_record->text);
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
	return rc;
}

/* ---- its control group ---- */

/* Where the hierarchy with these controllers is mounted. controllers: "freezer", "name=systemd", or "" for version 2.
 */
static bool find_mount(const char *controllers, char ret_path[PATH_MAX])
{
	char folder[PATH_MAX], type[WORD_SIZE], options[PATH_MAX];
	size_t length = strcspn(controllers, ",");
	LL_SCOPE_FCLOSE FILE *mounts = fopen("/proc/self/mounts", "re");
	while (mounts && fscanf(mounts, "%*s %4095s %63s %4095s %*d %*d", folder, type, options) == 3) {
		bool is_found = !length && strcmp(type, "cgroup2") == 0;
		for (const char *at = options; length && strcmp(type, "cgroup") == 0 && *at; at += *at == ',') {
			size_t word = strcspn(at, ",");
			is_found |= word == length && strncmp(at, controllers, length) == 0;
			at += word;
		}
		if (is_found) {
			memcpy(ret_path, folder, strlen(folder) + 1);
			return true;
		}
	}
	return false;
}

static int write_group(const char *mount, const char *group, const char *below, pid_t pid)
{
	char path[3 * PATH_MAX];
	snprintf(path, sizeof path, "%s%s%s/cgroup.procs", mount, group, below);
	LL_SCOPE_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	char number[WORD_SIZE];
	int length = snprintf(number, sizeof number, "%d", (int)pid);
	return write(fd, number, (size_t)length) == length ? 0 : -errno;
}

/* The groups of the extern step, in the order in which a process may be there: of version 2, and of version 1. */
static int move_process(const char *mount, const char *job_group, pid_t pid)
{
	static const char *const below[] = {"/step_extern/user/task_special", "/step_extern/user/task_0",
					    "/step_extern/task_special", "/step_extern"};
	int rc = -ENOENT;
	for (size_t i = 0; rc && i < sizeof below / sizeof *below; i++)
		rc = write_group(mount, job_group, below[i], pid);
	return rc;
}

int ll_spank_bind(const struct ll_spank_record *record, struct ll_err *err)
{
	char text[FILE_MAX >> 8], group[PATH_MAX], mount[PATH_MAX];
	ssize_t length = ll_process_read_file(0, "cgroup", text, sizeof text);
	int rc = length < 0 ? (int)length : -ENOENT;
	char *rest = NULL;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path || !ll_cgroup_slurm_job(path + 1, group, sizeof group))
			continue;
		*path = '\0';
		if (!find_mount(controllers + 1, mount))
			continue;
		int moved = move_process(mount, group, record->pid);
		if (moved)
			return ll_err_set(err, moved, "%s%s: %s", mount, group, strerror(-moved));
		rc = 0;
	}
	return rc ? ll_err_set(err, rc, "Slurm has no control group for the job (proctrack/cgroup)") : 0;
}

bool ll_spank_is_bound(const struct ll_spank_record *record)
{
	char own[PATH_MAX], its[PATH_MAX];
	if (ll_cgroup_read_slurm_job(0, own, sizeof own))
		return true;
	return ll_cgroup_read_slurm_job(record->pid, its, sizeof its) == 0 && strcmp(own, its) == 0;
}

void ll_spank_end(const struct ll_spank_record *record)
{
	LL_SCOPE_CLOSE int fd = record->pid ? ll_process_open(record->pid) : -1;
	if (fd >= 0 && is_there(record))
		kill(record->pid, SIGKILL);
}

/* ---- what is kept ---- */

static void name_file(const struct ll_spank_config *config, uint32_t job, const char *end, char ret_path[PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%.4000s/%u%s", config->folder, (unsigned)job, end);
}

/* Only who runs slurmd may have written what a step believes. */
static int check_file(int fd, const char *path, struct ll_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return ll_err_set(err, -EPERM, "%s: others can write to it", path);
	return 0;
}

int ll_spank_record_read(const struct ll_spank_config *config, uint32_t job, struct ll_spank_record *ret_record,
			 struct ll_err *err)
{
	char path[PATH_MAX];
	int pid, first = 0;
	unsigned long long ticks;
	*ret_record = (struct ll_spank_record){.text = LL_STRBUF_INIT};
	name_file(config, job, "", path);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int rc = fd < 0 ? ll_err_set(err, -errno, "%s: %s", path, strerror(errno)) : check_file(fd, path, err);
	if (!rc && (rc = ll_strbuf_add_file(&ret_record->text, AT_FDCWD, path, FILE_MAX)))
		rc = ll_err_set(err, rc, "%s: %s", path, strerror(-rc));
	if (!rc && (sscanf(ret_record->text.buf, "%d %llu\n%n", &pid, &ticks, &first) != 2 || !first))
		rc = ll_err_set(err, -EINVAL, "%s: garbled", path);
	if (rc)
		return rc;
	ret_record->pid = pid;
	ret_record->start_ticks = ticks;
	ret_record->text.length -= (size_t)first;
	memmove(ret_record->text.buf, ret_record->text.buf + first, ret_record->text.length + 1);
	return 0;
}

int ll_spank_record_write(const struct ll_spank_config *config, uint32_t job, const struct ll_spank_record *record,
			  struct ll_err *err)
{
	char path[PATH_MAX], made[PATH_MAX];
	name_file(config, job, "", path);
	name_file(config, job, ".new", made);
	if (mkdir(config->folder, MODE_PRIVATE) < 0 && errno != EEXIST)
		return ll_err_set(err, -errno, "%s: %s", config->folder, strerror(errno));
	unlink(made);
	LL_SCOPE_CLOSE int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_addf(&text, "%d %llu\n", (int)record->pid, (unsigned long long)record->start_ticks);
	ll_strbuf_add(&text, record->text.buf, record->text.length);
	if (fd < 0 || text.failed || write(fd, text.buf, text.length) != (ssize_t)text.length || rename(made, path) < 0)
		return ll_err_set(err, errno ? -errno : -ENOMEM, "%s: %s", path, strerror(errno));
	return 0;
}

int ll_spank_lock(const struct ll_spank_config *config, struct ll_err *err)
{
	if (mkdir(config->folder, MODE_PRIVATE) < 0 && errno != EEXIST)
		return ll_err_set(err, -errno, "%s: %s", config->folder, strerror(errno));
	int fd = open(config->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) < 0) {
		ll_err_set(err, -errno, "%s: %s", config->folder, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -ENOLCK;
	}
	return fd;
}

const char *ll_spank_record_value(const struct ll_strbuf *text, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = text->buf; at < text->buf + text->length; at += strlen(at) + 1) {
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	}
	return NULL;
}

void ll_spank_record_remove(const struct ll_spank_config *config, uint32_t job)
{
	char path[PATH_MAX];
	name_file(config, job, "", path);
	unlink(path);
}

void ll_spank_records_sweep(const struct ll_spank_config *config)
{
	const struct dirent *entry;
	DIR *folder = opendir(config->folder);
	while (folder && (entry = readdir(folder))) {
		char *end;
		struct ll_spank_record record;
		uint32_t job = (uint32_t)strtoul(entry->d_name, &end, 10);
		if (end == entry->d_name || *end)
			continue;
		if (ll_spank_record_read(config, job, &record, NULL) == 0 && record.pid && !is_there(&record))
			ll_spank_record_remove(config, job);
		ll_strbuf_fini(&record.text);
	}
	if (folder)
		closedir(folder);
}
