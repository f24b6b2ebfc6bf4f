/* The structs that the later steps use: units, defaults, what is not there, one file over another; and the names that
 * are looked up. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "config/check.h"
#include "config/config.h"
#include "config/names.h"
#include "config/value.h"
#include "test.h"

#define GIB (UINT64_C(1) << 30)
#define HOUR_NS (3600 * LL_NS_PER_S)

static void load(struct ll_config *config, const char *text)
{
	struct ll_config_findings findings = {0};
	assert_int_equal(ll_config_load_text(config, "f", text, strlen(text), &findings, NULL), 0);
	assert_int_equal(findings.fault_count, 0);
	ll_config_findings_fini(&findings);
}

TEST(the_example_is_read_with_its_units)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	const struct ll_config_policy *policy = &config.policy;
	assert_int_equal(ll_config_load(&config, LL_CONFIG_EXAMPLE, &findings, NULL), 0);
	ll_config_check(policy, 0, &findings);
	assert_int_equal(findings.fault_count, 0);
	assert_int_equal(findings.warning_count, 1);
	assert_int_equal(policy->cards.count, 3);
	assert_int_equal(policy->cards.items[1].cards.count, 3);
	assert_int_equal(policy->cards.items[1].cards.items[2].index, 6);
	assert_int_equal(policy->cards.items[1].give, LL_CONFIG_BY_MEMORY);
	assert_int_equal(policy->cards.items[0].by, -1);
	assert_int_equal(policy->host_memory.for_eviction_bytes, 384 * GIB);
	const struct ll_config_tenant *serving = &policy->tenants.items[0];
	assert_string_equal(serving->name, "serving");
	assert_string_equal(serving->members.groups.items[0], "svc");
	assert_int_equal(serving->guarantee.items[0].cards, 1);
	assert_true(serving->guarantee.items[0].memory_bytes == LL_CONFIG_NONE);
	assert_int_equal(serving->guarantee.items[1].memory_bytes, 120 * GIB);
	assert_int_equal(serving->guarantee.items[1].compute_permille, 1500);
	assert_int_equal(serving->classes.count, 2);
	assert_int_equal(serving->classes.items[0], LL_CONFIG_HIGH);
	assert_true(isnan(serving->budget.gpu_hours));
	assert_null(serving->budget.from);
	assert_int_equal(serving->budget.then, -1);
	const struct ll_config_tenant *research = &policy->tenants.items[1];
	assert_int_equal(research->each_user.max_time_ns, 72 * HOUR_NS);
	assert_true(research->budget.gpu_hours == 1500.0);
	assert_int_equal(research->budget.then, LL_CONFIG_BORROW_ONLY);
	assert_int_equal(policy->tenants.items[3].weight, 1);
	assert_string_equal(policy->tenants.items[3].members.users.items[0], "*");
	assert_true(policy->defaults.is_evictable);
	assert_int_equal(policy->defaults.class, LL_CONFIG_NORMAL);
	assert_int_equal(policy->reclaim.stop.grace_ns, 120 * LL_NS_PER_S);
	assert_int_equal(policy->queue.half_life_ns, 7 * 24 * HOUR_NS);
	assert_false(policy->reservations.items[0].begin.is_daily);
	assert_int_equal(policy->reservations.items[0].every, -1);
	assert_int_equal(policy->reservations.items[1].begin.at_s, 9 * 3600);
	assert_int_equal(policy->reservations.items[1].every, 1);
	assert_int_equal(policy->maintenance.items[0].cards.count, 8);
	assert_int_equal(policy->health.drain_xid.items[6], 120);
	assert_string_equal(policy->notify.items[1].command, "/etc/loadline/notify-user");
	assert_int_equal(policy->notify.items[1].to, -1);
	assert_int_equal(policy->low_use.mean_permille, 300);
	assert_true(policy->accounts.price_gib_hour == 0.04);
	assert_int_equal(policy->kubernetes.items[1].memory_permille, 500);
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
}

TEST(what_a_file_lacks_has_its_default_or_none)
{
	struct ll_config config = {0};
	const struct ll_config_policy *policy = &config.policy;
	load(&config, "version: 1\n");
	assert_int_equal(policy->tenants.count, 0);
	assert_null(policy->queue.from);
	assert_int_equal(policy->queue.order.count, 4);
	assert_true(policy->queue.backfill);
	assert_true(policy->queue.wait_ns == LL_CONFIG_NONE);
	assert_int_equal(policy->visibility.others, LL_CONFIG_SEE_USER_AND_SHARE);
	assert_null(policy->accounts.currency);
	assert_true(isnan(policy->accounts.price_gpu_hour));
	assert_true(policy->idle_holder.memory_bytes == LL_CONFIG_NONE);
	assert_int_equal(policy->reclaim.warn.signal, -1);
	ll_config_fini(&config);
}

/* Every default of the table is one that the parser takes. */
static void check_defaults(const struct ll_config_map *map)
{
	for (const struct ll_config_key *key = map->keys; key->name; key++) {
		struct ll_config_arena arena = {0};
		struct ll_config_value *value = ll_config_value_new(&arena, key, false, (struct ll_config_mark){0});
		struct ll_err err = {0};
		assert_true(strlen(key->help) > 5);
		assert_true(!key->is_needed || !key->fallback);
		assert_true((key->kind == LL_CONFIG_WORD) == (key->words != NULL));
		if (key->fallback && !key->is_list && ll_config_value_read(&arena, key->fallback, value, &err))
			fail_msg("%s: %s", key->name, err.text);
		if (key->fallback && !key->is_list)
			assert_string_equal(value->text, key->fallback);
		ll_config_arena_fini(&arena);
		if (key->kind == LL_CONFIG_MAP)
			check_defaults(key->map);
		if (key->kind == LL_CONFIG_MAP && key->map->identity)
			assert_true(ll_config_key_find(key->map, key->map->identity)->is_needed);
	}
}

TEST(each_default_of_the_table_is_one_that_the_parser_takes)
{
	check_defaults(ll_config_root.map);
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	chmod(path, 0700);
}

enum { FOLDER_SIZE = 64 };

static void make_folder(char folder[FOLDER_SIZE])
{
	char path[256];
	snprintf(folder, FOLDER_SIZE, "/tmp/loadline-test-config.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/loadline.d", folder);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void remove_folder(const char *folder)
{
	struct ll_strbuf command = LL_STRBUF_INIT;
	ll_strbuf_addf(&command, "rm -r '%s'", folder);
	assert_int_equal(system(command.buf), 0);
	ll_strbuf_fini(&command);
}

TEST(a_later_file_replaces_values_and_entries_of_the_same_name)
{
	char folder[FOLDER_SIZE];
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	make_folder(folder);
	put(folder, "loadline.yaml",
	    "version: 1\nqueue: {wait: 1h, half-life: 2d}\n"
	    "tenants:\n  - {name: a, members: {users: [x]}, weight: 5}\n  - {name: b, members: {users: [y]}}\n"
	    "notify: [{events: [evicted], to: tty}, {events: [resumed], to: tty}]\nfault-domain: user\n");
	put(folder, "loadline.d/10-first.yaml",
	    "queue: {wait: 3h}\ntenants:\n  - {name: a, members: {users: [z]}}\n  - {name: c, members: {users: "
	    "[c]}}\n");
	put(folder, "loadline.d/20-second.yaml",
	    "queue: {wait: 4h}\nnotify: [{events: [budget], to: tty}]\nfault-domain: user\n");
	put(folder, "loadline.d/30-other.txt", "nothing: here\n");
	assert_int_equal(ll_config_load(&config, folder, &findings, NULL), 0);
	assert_int_equal(findings.fault_count, 0);
	assert_int_equal(findings.warning_count, 2); /* not in force: once for each file that has such keys */
	assert_int_equal(config.policy.queue.wait_ns, 4 * HOUR_NS);
	assert_int_equal(config.policy.queue.half_life_ns, 48 * HOUR_NS);
	assert_int_equal(config.policy.tenants.count, 3);
	assert_string_equal(config.policy.tenants.items[0].name, "a");
	assert_string_equal(config.policy.tenants.items[0].members.users.items[0], "z");
	assert_int_equal(config.policy.tenants.items[0].weight, 1);
	assert_int_equal(config.policy.notify.count, 1);
	struct ll_config_mark mark = ll_config_value_mark(config.policy.tenants.items[0].from, "members");
	assert_non_null(strstr(mark.file, "10-first.yaml"));
	assert_int_equal(mark.line, 3);
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	remove_folder(folder);
}

/* getent that answers so to the names of a configuration. Returns the number of warnings; the text of the last one is
 * in text. */
static size_t ask_for(const char *policy, const char *script, uint64_t wait_ns, char text[256])
{
	char folder[FOLDER_SIZE], path[128];
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	make_folder(folder);
	put(folder, "getent", script);
	snprintf(path, sizeof path, "%s/getent", folder);
	load(&config, policy);
	ll_config_check_names(&config.policy, path, wait_ns, &findings);
	size_t count = findings.warning_count;
	assert_int_equal(findings.count, count);
	snprintf(text, 256, "%s", count ? findings.items[count - 1].text : "");
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
	remove_folder(folder);
	return count;
}

static size_t ask(const char *script, uint64_t wait_ns, char text[256])
{
	return ask_for("version: 1\nadmins: {groups: [known, strange]}\n"
		       "tenants: [{name: g, members: {users: [\"*\"]}}]\n",
		       script, wait_ns, text);
}

TEST(a_user_is_known_by_name_and_by_uid)
{
	static const char policy[] = "version: 1\ntenants: [{name: g, members: {users: [ann, \"1234\", \"12\"]}}]\n";
	char text[256];
	assert_int_equal(ask_for(policy, "#!/bin/sh\necho ann:x:12:5::/:/bin/sh\necho bob:x:1234:12::/:/bin/sh\n",
				 20 * LL_NS_PER_S, text),
			 0);
	assert_int_equal(ask_for(policy, "#!/bin/sh\necho ann:x:7:12::/:/bin/sh\necho bob:x:1234:5::/:/bin/sh\n",
				 20 * LL_NS_PER_S, text),
			 1);
	assert_string_equal(text, "user '12' is not known on this machine");
}

TEST(unknown_names_are_warnings_and_a_directory_that_hangs_is_given_up)
{
	char text[256];
	uint64_t begin_ns = ll_now_ns();
	assert_int_equal(ask("#!/bin/sh\necho known:x:5:\nexit 2\n", 20 * LL_NS_PER_S, text), 1);
	assert_string_equal(text, "group 'strange' is not known on this machine");
	assert_int_equal(ask("#!/bin/sh\necho known:x:5:\necho strange:x:6:a,b\n", 20 * LL_NS_PER_S, text), 0);
	assert_int_equal(ask("#!/bin/sh\nexit 1\n", 20 * LL_NS_PER_S, text), 1);
	assert_non_null(strstr(text, "groups: not looked up"));
	/* A directory that does not answer; neither does the child of the program. */
	assert_int_equal(ask("#!/bin/sh\necho known:x:5:\nsleep 600\n", LL_NS_PER_S / 5, text), 1);
	assert_string_equal(text, "groups: not looked up: no answer in 0.2 s");
	assert_true(ll_now_ns() - begin_ns < 60 * LL_NS_PER_S);
}
