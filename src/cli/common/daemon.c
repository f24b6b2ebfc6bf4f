#include "cli/common/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"

#define ANSWER_NS LL_NS_PER_S

static const char *const daemon_places[] = {"src/daemon", "../daemon", "../lib/loadline", ".", NULL};
static const char *const monitor_places[] = {"src/monitor", "../monitor", "../lib/loadline", ".", NULL};

int ll_daemon_paths_find(struct ll_daemon_paths *ret_paths, struct ll_err *err)
{
	ret_paths->programs = (struct ll_programs){ret_paths->daemon, ret_paths->monitor};
	if (ll_beside_find(daemon_places, "loadlined", ret_paths->daemon) == 0 &&
	    ll_beside_find(monitor_places, "loadline-job", ret_paths->monitor) == 0)
		return 0;
	ll_err_set(err, -ENOENT, "loadlined and loadline-job are not beside this program, nor in %s", daemon_places[2]);
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

static struct ll_card card_of(const struct ll_message_sense_card *row, int fault)
{
	struct ll_card card = {
	    .index = row->index,
	    .slice = row->slice < 0 ? 0 : (unsigned)row->slice,
	    .sm_count = (unsigned)row->sm_count,
	    .memory_bytes = row->memory_bytes,
	    .usable_bytes = row->usable_bytes,
	    .is_mig = row->slice >= 0,
	    .has_slices = row->flags & LL_SENSE_HAS_SLICES,
	    .fault = row->flags & LL_SENSE_IS_LOST ? -ENODEV : fault,
	};
	snprintf(card.label, sizeof card.label, row->slice < 0 ? "%u" : "%u:%u", row->index, card.slice);
	memcpy(card.uuid, row->uuid, sizeof card.uuid);
	memcpy(card.name, row->name, sizeof card.name);
	snprintf(card.pci, sizeof card.pci, "%.23s", row->bus_id);
	return card;
}

static int make_driver(const struct ll_sensed *sensed, int fault, const char *sim_folder, struct ll_driver **ret_driver)
{
	bool is_known = sensed->end.silent_ns < LL_SENSED_FRESH_NS && sensed->card_count;
	LL_SCOPE_FREE struct ll_card *cards = calloc(sensed->card_count + 1, sizeof *cards);
	int rc = is_known && cards ? 0 : -ENOENT;
	for (size_t i = 0; !rc && i < sensed->card_count; i++)
		cards[i] = card_of(&sensed->cards[i], fault);
	return rc ? rc : ll_driver_of_list(cards, sensed->card_count, sim_folder, ret_driver, NULL);
}

int ll_sensed_cards_ask(struct ll_client *client, int fault, const char *sim_folder, struct ll_driver **ret_driver)
{
	struct ll_sensed sensed;
	int rc = ll_sensed_read(&sensed, client, ll_now_ns() + ANSWER_NS, NULL);
	if (!rc)
		rc = make_driver(&sensed, fault, sim_folder, ret_driver);
	ll_sensed_fini(&sensed);
	return rc;
}

static int open_sensed(int fault, struct ll_driver **ret_driver)
{
	struct ll_daemon_view view;
	const char *sim_folder = ll_sim_entered_folder();
	ll_daemon_view_init(&view, sim_folder);
	int rc = make_driver(&view.sensed, fault, sim_folder, ret_driver);
	ll_daemon_view_fini(&view);
	return rc;
}

int ll_cards_open(int fault, struct ll_driver **ret_driver, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = ll_driver_open(ret_driver, &why);
	if (!rc || open_sensed(fault, ret_driver) == 0)
		return 0;
	if (err)
		*err = why;
	return rc;
}

/* A card that a container or a control group keeps from this process NVML would not list. */
static bool can_open(const struct ll_card *card)
{
	char path[128], line[128];
	unsigned minor = UINT_MAX;
	snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", card->pci);
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file) && sscanf(line, "Device Minor: %u", &minor) != 1)
		;
	snprintf(path, sizeof path, "/dev/nvidia%u", minor);
	LL_SCOPE_CLOSE int fd = minor == UINT_MAX ? -1 : open(path, O_RDWR | O_CLOEXEC);
	return fd >= 0;
}

/* Whether the list tells what NVML would tell. A sensor of an earlier version does not know the SMs. */
static bool is_enough(const struct ll_driver *driver)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	bool is_enough = true;
	for (size_t i = 0; is_enough && i < count; i++)
		is_enough = cards[i].sm_count && (ll_driver_sim_folder(driver) || can_open(&cards[i]));
	return is_enough;
}

int ll_cards_open_listed(struct ll_driver **ret_driver, struct ll_err *err)
{
	if (open_sensed(0, ret_driver) == 0) {
		if (is_enough(*ret_driver))
			return 0;
		ll_driver_close(*ret_driver);
	}
	return ll_cards_open(0, ret_driver, err);
}

int ll_cards_list(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
		  size_t *ret_count, struct ll_err *err)
{
	const struct ll_card *all;
	size_t count = ll_driver_cards(driver, &all);
	const struct ll_card **list = text ? NULL : calloc(count + 1, sizeof *list);
	if (text)
		return ll_cards_select(driver, text, ret_cards, ret_count, err);
	if (!list)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (size_t i = 0; i < count; i++)
		list[i] = &all[i];
	*ret_cards = list;
	*ret_count = count;
	return 0;
}

void ll_policy_moment(uint64_t seconds, char ret_text[LL_MOMENT_SIZE])
{
	time_t at = (time_t)seconds;
	struct tm tm;
	ret_text[0] = '\0';
	if (localtime_r(&at, &tm))
		strftime(ret_text, LL_MOMENT_SIZE, "%Y-%m-%d %H:%M:%S", &tm);
}

void ll_policy_add_state(struct ll_strbuf *text, const struct ll_message_welcome *welcome)
{
	char since[LL_MOMENT_SIZE];
	if (!welcome->policy_refused_s)
		return;
	ll_policy_moment(welcome->policy_refused_s, since);
	ll_strbuf_addf(text, _("the configuration on the disk is not in force since %s: %s\n"), since,
		       welcome->policy_fault);
}

void ll_policy_add_amount(struct ll_strbuf *text, char kind, uint64_t amount)
{
	if (kind == 'm')
		ll_strbuf_addf(text, "%.4g GiB", (double)amount / (double)(UINT64_C(1) << 30));
	else if (kind == 'c')
		ll_strbuf_addf(text, "%g %%", (double)amount / 10);
	else
		ll_strbuf_addf(text, "%" PRIu64, amount);
}

uint64_t ll_policy_left(const struct ll_policy_amount *amount)
{
	if (amount->limit == UINT64_MAX)
		return UINT64_MAX;
	return amount->limit > amount->used ? amount->limit - amount->used : 0;
}

void ll_policy_user_amounts(const struct ll_message_policy_tenant *row, struct ll_policy_amount ret[LL_POLICY_AMOUNTS])
{
	const struct ll_policy_amount amounts[LL_POLICY_AMOUNTS] = {
	    {N_("jobs"), 'n', row->user_running, row->used_jobs},
	    {N_("memory"), 'm', row->user_memory_bytes, row->used_memory_bytes},
	    {N_("compute"), 'c', row->user_compute_permille, row->used_compute_permille},
	    {N_("whole cards"), 'n', row->user_cards, row->used_cards},
	};
	memcpy(ret, amounts, sizeof amounts);
}

/* ---- tenants with jobs ---- */

static void add_item(struct ll_strbuf *text, bool *has_one, char kind, uint64_t amount)
{
	if (amount == UINT64_MAX)
		return;
	ll_strbuf_adds(text, *has_one ? ", " : " ");
	ll_policy_add_amount(text, kind, amount);
	*has_one = true;
}

static void add_part(struct ll_strbuf *text, const struct ll_message_policy_part *part)
{
	bool has_one = false;
	if (part->guaranteed_cards == UINT64_MAX && part->guaranteed_memory_bytes == UINT64_MAX &&
	    part->guaranteed_compute_permille == UINT64_MAX)
		return;
	ll_strbuf_addf(text, _("; guaranteed in %s:"), part->group);
	add_item(text, &has_one, 'n', part->guaranteed_cards);
	add_item(text, &has_one, 'm', part->guaranteed_memory_bytes);
	add_item(text, &has_one, 'c', part->guaranteed_compute_permille);
	if (!part->is_known)
		return;
	ll_strbuf_adds(text, _(", asked for there:"));
	has_one = false;
	add_item(text, &has_one, 'n', part->gives_cards ? part->used_cards : UINT64_MAX);
	add_item(text, &has_one, 'm', part->gives_cards ? UINT64_MAX : part->used_memory_bytes);
	add_item(text, &has_one, 'c', part->gives_cards ? UINT64_MAX : part->used_compute_permille);
}

static void add_excess(struct ll_strbuf *text, const struct ll_message_policy_tenant *row)
{
	struct ll_policy_amount amounts[LL_POLICY_AMOUNTS];
	bool has_one = false;
	ll_policy_user_amounts(row, amounts);
	for (size_t i = 0; i < LL_POLICY_AMOUNTS; i++) {
		if (amounts[i].limit == UINT64_MAX || amounts[i].used <= amounts[i].limit)
			continue;
		if (!has_one)
			ll_strbuf_addf(text, _("tenant %s: you have more than each user may have now:"), row->name);
		ll_strbuf_addf(text, "%s %s ", has_one ? "," : "", _(amounts[i].name));
		ll_policy_add_amount(text, amounts[i].kind, amounts[i].used);
		ll_strbuf_adds(text, _(" of "));
		ll_policy_add_amount(text, amounts[i].kind, amounts[i].limit);
		has_one = true;
	}
	if (has_one)
		ll_strbuf_adds(text, _("; no job is ended\n"));
}

void ll_policy_add_tenants(struct ll_strbuf *text, const struct ll_policy *policy)
{
	for (size_t i = 0; i < policy->tenant_count; i++) {
		const struct ll_message_policy_tenant *row = &policy->tenants[i];
		if (!row->jobs)
			continue;
		ll_strbuf_addf(text, ll_translate_count("tenant %s: %u job", "tenant %s: %u jobs", (unsigned)row->jobs),
			       row->name, (unsigned)row->jobs);
		for (size_t k = 0; k < policy->part_count; k++) {
			if (strcmp(policy->parts[k].tenant, row->name) == 0)
				add_part(text, &policy->parts[k]);
		}
		ll_strbuf_addc(text, '\n');
		add_excess(text, row);
	}
}
