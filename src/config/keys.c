#include "config/keys.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

enum { PATH_SIZE = 128 };

/* ---- words ---- */

#define WORDS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

const char *const ll_config_classes[] = {"high", "normal", "low", NULL};
const char *const ll_config_conditions[] = {"row-remap-failure", "row-remap-pending", "ecc-uncorrected",
					    "thermal-slowdown",  "nvlink-errors",     NULL};
const char *const ll_config_events[] = {"reclaim",     "evicted",  "resumed", "stopped",        "time-ending",
					"idle-holder", "budget",   "low-use", "ungoverned",     "unhealthy",
					"drained",     "database", "config",  "endless-kernel", NULL};
const char *const ll_config_signals[] = {"HUP", "INT", "TERM", "USR1", "USR2", "KILL", NULL};

WORDS(gives, "card", "memory");
WORDS(sharings, "slices", "space", "auto");
WORDS(domains, "user", "tenant");
WORDS(others, "nothing", "user-and-share", "all");
WORDS(commands, "own", "tenant", "all");
WORDS(spent, "borrow-only", "refuse");
WORDS(periods, "day", "week", "month");
WORDS(steps, "compute", "evict-idle", "evict", "stop", "kill");
WORDS(multi_cards, "together");
WORDS(orders, "reservation", "guarantee", "fairshare", "age");
WORDS(days, "mon", "tue", "wed", "thu", "fri", "sat", "sun", "day", "weekday");
WORDS(actions, "report", "stop", "kill");
WORDS(mismatch_actions, "report", "stop");
WORDS(targets, "tty");
WORDS(low_use_of, "tenant", "user");
WORDS(projects, "no", "optional", "required");
WORDS(fences, "none", "shard");

/* ---- rows ---- */

/* The size is checked, so that a row cannot write beyond its field. */
#define FIELD(type, field, want)                                                                                       \
	.offset = offsetof(type, field) + 0 * sizeof(char[sizeof(((type *)0)->field) == sizeof(want) ? 1 : -1])
#define SCALAR(key, of_kind, type, field, want) .name = key, .kind = of_kind, FIELD(type, field, want)
#define TEXT(key, type, field) SCALAR(key, LL_CONFIG_TEXT, type, field, char *)
#define NAME(key, type, field) SCALAR(key, LL_CONFIG_NAME, type, field, char *)
#define WORD(key, type, field, of_words) SCALAR(key, LL_CONFIG_WORD, type, field, int), .words = of_words
#define BOOL(key, type, field) SCALAR(key, LL_CONFIG_BOOL, type, field, bool)
#define UINT(key, type, field) SCALAR(key, LL_CONFIG_UINT, type, field, uint64_t)
#define DECIMAL(key, type, field) SCALAR(key, LL_CONFIG_DECIMAL, type, field, double)
#define BYTES(key, type, field) SCALAR(key, LL_CONFIG_BYTES, type, field, uint64_t)
#define DURATION(key, type, field) SCALAR(key, LL_CONFIG_DURATION, type, field, uint64_t)
#define SHARE(key, type, field) SCALAR(key, LL_CONFIG_SHARE, type, field, uint64_t)
#define CARDS(key, type, field) SCALAR(key, LL_CONFIG_CARDS, type, field, struct ll_config_cards)
#define TIME(key, type, field) SCALAR(key, LL_CONFIG_TIME, type, field, struct ll_config_time)
#define USERS(key, type, field)                                                                                        \
	SCALAR(key, LL_CONFIG_USER, type, field, struct ll_config_texts), .is_list = true, .is_set = true
#define LIST_OF_WORDS(key, type, field, of_words)                                                                      \
	SCALAR(key, LL_CONFIG_WORD, type, field, struct ll_config_words), .words = of_words, .is_list = true
#define MAP(key, type, field, of_map)                                                                                  \
	.name = key, .kind = LL_CONFIG_MAP, .offset = offsetof(type, field), .map = &(of_map)
#define LIST_OF_MAPS(key, type, field, of_map)                                                                         \
	SCALAR(key, LL_CONFIG_MAP, type, field, struct ll_config_texts), .map = &(of_map), .is_list = true
#define END                                                                                                            \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}
#define DEFINE_MAP(map_name, type, of_identity, rows)                                                                  \
	static const struct ll_config_map map_name = {.identity = of_identity, .size = sizeof(type), .keys = rows}

static const struct ll_config_key staff_keys[] = {
    {USERS("users", struct ll_config_people, users), .help = "Users, by name or uid (\"1234\")."},
    {USERS("groups", struct ll_config_people, groups), .help = "Unix groups, by name."},
    END,
};
DEFINE_MAP(staff, struct ll_config_people, NULL, staff_keys);

static const struct ll_config_key member_keys[] = {
    {USERS("users", struct ll_config_people, users), .help = "Users, by name or uid (\"1234\"). \"*\" is everybody."},
    {USERS("groups", struct ll_config_people, groups), .help = "Unix groups, by name."},
    {USERS("slurm-accounts", struct ll_config_people, slurm_accounts), .is_idle = true, .help = "Accounts of Slurm."},
    {USERS("kubernetes-namespaces", struct ll_config_people, kubernetes_namespaces),
     .help =
	 "Namespaces of Kubernetes. \"*\" is every one. A pod is of the first tenant listed that has its namespace."},
    END,
};
DEFINE_MAP(members, struct ll_config_people, NULL, member_keys);

static const struct ll_config_key visibility_keys[] = {
    {WORD("others", struct ll_config_visibility, others, others), .fallback = "user-and-share",
     .help = "What a user sees of the work of others."},
    {WORD("commands", struct ll_config_visibility, commands, commands), .fallback = "own",
     .help = "Whose command lines a user sees."},
    END,
};
DEFINE_MAP(visibility, struct ll_config_visibility, NULL, visibility_keys);

static const struct ll_config_key group_keys[] = {
    {NAME("name", struct ll_config_group, name), .is_needed = true, .help = "The name of the group of cards."},
    {CARDS("cards", struct ll_config_group, cards), .is_needed = true,
     .help = "The cards, in PCI order: \"0-3\", \"0,2\"; a MIG slice is a card of its own, \"7:0\". A card is in one "
	     "group."},
    {WORD("give", struct ll_config_group, give, gives), .is_needed = true,
     .help = "card: a job gets whole cards. memory: a job gets memory and compute of a card. One group, one way."},
    {WORD("by", struct ll_config_group, by, sharings), .is_idle = true,
     .help = "How jobs share the compute of cards that are given by memory. The default is auto."},
    END,
};
DEFINE_MAP(group, struct ll_config_group, "name", group_keys);

static const struct ll_config_key host_memory_keys[] = {
    {BYTES("for-eviction", struct ll_config_host_memory, for_eviction_bytes),
     .help = "Host memory for memory that leaves its card. Memory is lent only while all that is lent fits in it; each "
	     "NUMA node with cards has an equal part."},
    END,
};
DEFINE_MAP(host_memory, struct ll_config_host_memory, NULL, host_memory_keys);

static const struct ll_config_key part_keys[] = {
    {NAME("of", struct ll_config_part, of), .is_needed = true, .help = "The group of cards."},
    {UINT("cards", struct ll_config_part, cards), .min = 1, .max = 4096,
     .help = "Whole cards, of a group with give: card."},
    {BYTES("memory", struct ll_config_part, memory_bytes),
     .help = "Memory of the group's cards together, of a group with give: memory."},
    {SHARE("compute", struct ll_config_part, compute_permille), .min = 0.1, .max = 409600,
     .help = "Compute in percent of one card, of a group with give: memory. 150% is a card and a half."},
    END,
};
DEFINE_MAP(part, struct ll_config_part, NULL, part_keys);

static const struct ll_config_key each_user_keys[] = {
    {UINT("cards", struct ll_config_each_user, cards), .min = 1, .max = 4096, .help = "Whole cards at a time."},
    {BYTES("memory", struct ll_config_each_user, memory_bytes), .help = "Memory of cards at a time."},
    {SHARE("compute", struct ll_config_each_user, compute_permille), .min = 0.1, .max = 409600,
     .help = "Compute at a time, in percent of one card."},
    {UINT("running", struct ll_config_each_user, running), .min = 1, .max = 1000000,
     .help = "Jobs that run at a time."},
    {UINT("queued", struct ll_config_each_user, queued), .max = 1000000, .help = "Jobs that wait at a time."},
    {DURATION("max-time", struct ll_config_each_user, max_time_ns), .help = "How long a job may run."},
    END,
};
DEFINE_MAP(each_user, struct ll_config_each_user, NULL, each_user_keys);

static const struct ll_config_key budget_keys[] = {
    {DECIMAL("gpu-hours", struct ll_config_budget, gpu_hours), .is_needed = true, .max = 1e9,
     .help = "Hours of whole cards that the tenant is granted (`loadline report`)."},
    {WORD("per", struct ll_config_budget, per, periods), .fallback = "month",
     .help = "The period after which it begins anew."},
    {WORD("then", struct ll_config_budget, then, spent), .fallback = "borrow-only",
     .help = "What a tenant may do whose budget is spent. In this version borrow-only acts as refuse: new jobs are "
	     "refused, running ones go on."},
    END,
};
DEFINE_MAP(budget, struct ll_config_budget, NULL, budget_keys);

static const struct ll_config_key tenant_keys[] = {
    {NAME("name", struct ll_config_tenant, name), .is_needed = true, .help = "The name of the tenant."},
    {MAP("members", struct ll_config_tenant, members, members), .is_needed = true,
     .help = "Who belongs to it. A user who is in several tenants belongs to the first listed."},
    {LIST_OF_MAPS("guarantee", struct ll_config_tenant, guarantee, part),
     .help = "What it gets whenever it asks. The guarantees of all tenants must fit in each group of cards."},
    {LIST_OF_MAPS("limit", struct ll_config_tenant, limit, part),
     .help = "The most that it may have, with what it borrows."},
    {UINT("weight", struct ll_config_tenant, weight), .min = 1, .max = 1000, .fallback = "1",
     .help = "Its weight in the queue and on a shared card."},
    {LIST_OF_WORDS("classes", struct ll_config_tenant, classes, ll_config_classes), .is_set = true,
     .fallback = "normal low",
     .help = "The classes that its members may ask for; high is for jobs within the guarantee."},
    {BYTES("keep-free", struct ll_config_tenant, keep_free_bytes),
     .help = "Memory of the guarantee that is not lent, on one card of the group: room for the first request."},
    {MAP("each-user", struct ll_config_tenant, each_user, each_user),
     .help = "The most that each of its users may have."},
    {MAP("budget", struct ll_config_tenant, budget, budget), .help = "The use that it may make in a period."},
    END,
};
DEFINE_MAP(tenant, struct ll_config_tenant, "name", tenant_keys);

static const struct ll_config_key defaults_keys[] = {
    {BYTES("memory", struct ll_config_defaults, memory_bytes), .help = "Memory of a job that does not say."},
    {SHARE("compute", struct ll_config_defaults, compute_permille), .min = 0.1, .max = 100,
     .help = "Compute of a job that does not say."},
    {WORD("class", struct ll_config_defaults, class, ll_config_classes), .fallback = "normal",
     .help = "Class of a job that does not say."},
    {DURATION("time", struct ll_config_defaults, time_ns), .help = "Time of a job that does not say."},
    {BOOL("evictable", struct ll_config_defaults, is_evictable), .fallback = "false",
     .help = "Whether the memory of a job that does not say may leave its card."},
    END,
};
DEFINE_MAP(defaults, struct ll_config_defaults, NULL, defaults_keys);

static const struct ll_config_key warn_keys[] = {
    {WORD("signal", struct ll_config_warn_signal, signal, ll_config_signals),
     .help =
	 "A signal that each job gets then which has not chosen one by `run --signal`. It ends programs that do not "
	 "handle it."},
    {DURATION("before", struct ll_config_warn_signal, before_ns), .is_needed = true,
     .help = "How long before the end of its time a job is told (`time-ending` in `notify`)."},
    END,
};
DEFINE_MAP(warn_signal, struct ll_config_warn_signal, NULL, warn_keys);

static const struct ll_config_key stop_keys[] = {
    {WORD("signal", struct ll_config_stop_signal, signal, ll_config_signals), .fallback = "TERM",
     .help = "The signal that stops a job."},
    {DURATION("grace", struct ll_config_stop_signal, grace_ns), .fallback = "1m",
     .help = "The time that it has to end."},
    {BOOL("requeue", struct ll_config_stop_signal, requeue), .fallback = "false",
     .help = "Whether a job of `loadline submit` that an owner's return stops goes back into the queue, and is started "
	     "again."},
    END,
};
DEFINE_MAP(stop_signal, struct ll_config_stop_signal, NULL, stop_keys);

static const struct ll_config_key reclaim_keys[] = {
    {LIST_OF_WORDS("steps", struct ll_config_reclaim, steps, steps),
     .help =
	 "What guarantees leave idle is lent where this is written. When an owner needs its room, borrowers lose it "
	 "by these steps, the gentlest first; their compute always. evict: they sleep. stop: as at the end of their "
	 "time. kill: at once. Memory is lent only if one of these three can bring it back."},
    {BOOL("observe", struct ll_config_reclaim, does_observe), .fallback = "false",
     .help = "Nothing is lent; events of the kind reclaim tell what would be."},
    {DURATION("idle-after", struct ll_config_reclaim, idle_after_ns), .fallback = "15m",
     .help = "With the step evict-idle borrowers without a kernel for so long sleep first."},
    {DURATION("min-runtime", struct ll_config_reclaim, min_runtime_ns), .fallback = "0s",
     .help = "A borrower keeps its memory at least so long; an owner waits."},
    {WORD("multi-card", struct ll_config_reclaim, multi_card, multi_cards), .fallback = "together",
     .help = "All cards of a job are taken, or none."},
    {DURATION("max-sleep", struct ll_config_reclaim, max_sleep_ns),
     .help = "A borrower sleeps so long at most; then stop or kill follows, if it is among the steps."},
    {MAP("warn", struct ll_config_reclaim, warn, warn_signal), .help = "The notice before the stop."},
    {MAP("stop", struct ll_config_reclaim, stop, stop_signal), .help = "How a job is stopped."},
    END,
};
DEFINE_MAP(reclaim, struct ll_config_reclaim, NULL, reclaim_keys);

static const struct ll_config_key queue_keys[] = {
    {LIST_OF_WORDS("order", struct ll_config_queue, order, orders), .fallback = "reservation guarantee fairshare age",
     .help = "What decides who is next, the first first."},
    {DURATION("half-life", struct ll_config_queue, half_life_ns), .fallback = "7d",
     .help = "Use of so long ago counts half."},
    {BOOL("backfill", struct ll_config_queue, backfill), .fallback = "true",
     .help = "Whether a job may overtake where it delays nobody."},
    {DURATION("wait", struct ll_config_queue, wait_ns), .help = "How long a job waits at most."},
    END,
};
DEFINE_MAP(queue, struct ll_config_queue, NULL, queue_keys);

static const struct ll_config_key reservation_keys[] = {
    {NAME("name", struct ll_config_reservation, name), .is_needed = true, .help = "The name of the reservation."},
    {NAME("tenant", struct ll_config_reservation, tenant), .is_needed = true, .help = "For which tenant."},
    {NAME("of", struct ll_config_reservation, of), .is_needed = true, .help = "The group of cards."},
    {UINT("cards", struct ll_config_reservation, cards), .is_needed = true, .min = 1, .max = 4096,
     .help = "How many whole cards."},
    {WORD("every", struct ll_config_reservation, every, days),
     .help = "It repeats on this day of the week; day: each day, weekday: Monday to Friday."},
    {TIME("from", struct ll_config_reservation, begin), .is_needed = true,
     .help = "The beginning in the machine's time zone, \"2026-12-03 14:00\"; with every a time of day, \"09:00\"."},
    {DURATION("for", struct ll_config_reservation, for_ns), .is_needed = true, .help = "How long."},
    END,
};
DEFINE_MAP(reservation, struct ll_config_reservation, "name", reservation_keys);

static const struct ll_config_key maintenance_keys[] = {
    {NAME("name", struct ll_config_maintenance, name), .is_needed = true, .help = "The name of the window."},
    {CARDS("cards", struct ll_config_maintenance, cards), .is_needed = true, .help = "Which cards."},
    {TIME("from", struct ll_config_maintenance, begin), .is_needed = true,
     .help = "The beginning in the machine's time zone, \"2026-12-12 22:00\"."},
    {DURATION("for", struct ll_config_maintenance, for_ns), .is_needed = true, .help = "How long."},
    {TEXT("note", struct ll_config_maintenance, note), .help = "What users are told."},
    END,
};
DEFINE_MAP(maintenance, struct ll_config_maintenance, "name", maintenance_keys);

static const struct ll_config_key enforce_keys[] = {
    {BOOL("devices", struct ll_config_enforce, devices), .fallback = "false",
     .help = "Whether the device files of cards open in the cgroup of a job only."},
    {BOOL("containers", struct ll_config_enforce, containers), .fallback = "true",
     .help = "Whether a container that names a device of loadline starts only if loadlined makes a job of it. "
	     "`loadline cdi generate` writes it into the devices."},
    END,
};
DEFINE_MAP(enforce, struct ll_config_enforce, NULL, enforce_keys);

static const struct ll_config_key ungoverned_keys[] = {
    {WORD("action", struct ll_config_ungoverned, action, actions), .fallback = "report",
     .help = "What happens to a program that uses a card outside loadline."},
    {DURATION("after", struct ll_config_ungoverned, after_ns), .fallback = "0s", .help = "How long after it was seen."},
    {SCALAR("allow", LL_CONFIG_PATH, struct ll_config_ungoverned, allow, struct ll_config_texts), .is_list = true,
     .is_set = true, .help = "Programs that are left alone."},
    END,
};
DEFINE_MAP(ungoverned, struct ll_config_ungoverned, NULL, ungoverned_keys);

static const struct ll_config_key mismatch_keys[] = {
    {WORD("action", struct ll_config_mismatch, action, mismatch_actions), .fallback = "report",
     .help = "What happens to a job whose reports contradict what the driver says."},
    END,
};
DEFINE_MAP(mismatch, struct ll_config_mismatch, NULL, mismatch_keys);

static const struct ll_config_key health_keys[] = {
    {SCALAR("drain-xid", LL_CONFIG_UINT, struct ll_config_health, drain_xid, struct ll_config_numbers), .is_list = true,
     .is_set = true, .min = 1, .max = 1000, .help = "Xids that drain a card."},
    {LIST_OF_WORDS("drain", struct ll_config_health, drain, ll_config_conditions), .is_set = true,
     .help = "Conditions that drain a card."},
    {LIST_OF_WORDS("warn", struct ll_config_health, warn, ll_config_conditions), .is_set = true,
     .help = "Conditions that are reported."},
    END,
};
DEFINE_MAP(health, struct ll_config_health, NULL, health_keys);

static const struct ll_config_key notify_keys[] = {
    {LIST_OF_WORDS("events", struct ll_config_notify, events, ll_config_events), .is_set = true, .is_needed = true,
     .help = "Which events."},
    {WORD("to", struct ll_config_notify, to, targets), .help = "tty: the terminal of the job. Either to or command."},
    {SCALAR("command", LL_CONFIG_PATH, struct ll_config_notify, command, char *),
     .help = "A program that gets the event as JSON."},
    END,
};
DEFINE_MAP(notify, struct ll_config_notify, NULL, notify_keys);

static const struct ll_config_key idle_holder_keys[] = {
    {BYTES("memory", struct ll_config_idle_holder, memory_bytes), .is_needed = true,
     .help = "A job that holds so much"},
    {DURATION("idle", struct ll_config_idle_holder, idle_ns), .is_needed = true,
     .help = "and has launched nothing for so long is an idle holder."},
    {DURATION("again", struct ll_config_idle_holder, again_ns), .fallback = "12h",
     .help = "The event comes again after so long."},
    END,
};
DEFINE_MAP(idle_holder, struct ll_config_idle_holder, NULL, idle_holder_keys);

static const struct ll_config_key endless_kernel_keys[] = {
    {DURATION("after", struct ll_config_endless_kernel, after_ns), .is_needed = true,
     .help = "A job that has had work on a card for so long, and completed none of it, has such a kernel."},
    {WORD("action", struct ll_config_endless_kernel, action, mismatch_actions), .fallback = "report",
     .help = "stop: the job is stopped as reclaim.stop says."},
    END,
};
DEFINE_MAP(endless_kernel, struct ll_config_endless_kernel, NULL, endless_kernel_keys);

static const struct ll_config_key low_use_keys[] = {
    {SHARE("mean", struct ll_config_low_use, mean_permille), .is_needed = true, .max = 100,
     .help = "Use below this mean"},
    {DURATION("over", struct ll_config_low_use, over_ns), .is_needed = true, .help = "over so long is low."},
    {WORD("of", struct ll_config_low_use, of, low_use_of), .fallback = "tenant", .help = "Whose use is meant."},
    END,
};
DEFINE_MAP(low_use, struct ll_config_low_use, NULL, low_use_keys);

static const struct ll_config_key accounts_keys[] = {
    {DURATION("keep", struct ll_config_accounts, keep_ns), .fallback = "400d", .is_in_force = true,
     .help = "How long accounts are kept."},
    {WORD("projects", struct ll_config_accounts, projects, projects), .fallback = "optional",
     .help = "Whether a job names a project (`run --project`): with no one that does is refused, with required one "
	     "that does not."},
    {TEXT("currency", struct ll_config_accounts, currency), .help = "The currency of the prices."},
    {DECIMAL("price-gpu-hour", struct ll_config_accounts, price_gpu_hour), .max = 1e9,
     .help = "The price of a granted GPU hour. With prices `loadline report` has a column of costs."},
    {DECIMAL("price-gib-hour", struct ll_config_accounts, price_gib_hour), .max = 1e9,
     .help = "The price of a GiB of memory for an hour."},
    END,
};
DEFINE_MAP(accounts, struct ll_config_accounts, NULL, accounts_keys);

static const struct ll_config_key serve_keys[] = {
    {SCALAR("metrics", LL_CONFIG_ADDRESS, struct ll_config_serve, metrics, char *),
     .help = "Where loadline-exporter serves metrics to Prometheus."},
    {SCALAR("page", LL_CONFIG_PATH, struct ll_config_serve, page, char *), .was_address = true,
     .help = "The folder in which loadline-exporter writes a page for people, index.html, and its data, each 10 s, "
	     "such as /run/loadline-exporter/page. Any web server shows it, and so does a browser that opens the file. "
	     "It has what `visibility` shows to any user."},
    END,
};
DEFINE_MAP(serve, struct ll_config_serve, NULL, serve_keys);

static const struct ll_config_key slurm_keys[] = {
    {WORD("fence", struct ll_config_slurm, fence, fences), .fallback = "none",
     .help = "What of Slurm a job's share follows."},
    {WORD("ungoverned-job", struct ll_config_slurm, ungoverned_job, actions), .fallback = "report",
     .help = "What happens to a job of Slurm outside loadline."},
    END,
};
DEFINE_MAP(slurm, struct ll_config_slurm, NULL, slurm_keys);

static const struct ll_config_key kubernetes_keys[] = {
    {SCALAR("resource", LL_CONFIG_RESOURCE, struct ll_config_kubernetes, resource, char *), .is_needed = true,
     .help = "The name of the resource, DOMAIN/NAME."},
    {NAME("of", struct ll_config_kubernetes, of), .help = "The group of cards. Without it: all cards of the node."},
    {SHARE("memory", struct ll_config_kubernetes, memory_permille), .min = 0.1, .max = 100,
     .help = "Memory, in percent of one card. Without it: all of the card's."},
    {SHARE("compute", struct ll_config_kubernetes, compute_permille), .min = 0.1, .max = 100,
     .help = "Compute, in percent of one card. Without it there is no limit of compute."},
    {UINT("count", struct ll_config_kubernetes, count), .min = 1, .max = 100, .fallback = "1",
     .help = "How many of this size a card has. All sizes of a card must fit in it."},
    {WORD("class", struct ll_config_kubernetes, class, ll_config_classes),
     .help = "The class of the containers that take it."},
    {BOOL("claims", struct ll_config_kubernetes, claims), .fallback = "false",
     .help = "It is no size: of this part of each card ResourceClaims take any size (DRA). Without compute all of it."},
    END,
};
DEFINE_MAP(kubernetes, struct ll_config_kubernetes, "resource", kubernetes_keys);

static const struct ll_config_key root_keys[] = {
    {UINT("version", struct ll_config_policy, version), .is_needed = true, .is_in_force = true, .min = 1, .max = 1,
     .help = "The version of this format: 1."},
    {MAP("admins", struct ll_config_policy, admins, staff), .is_in_force = true,
     .help = "Who may do everything, for everybody."},
    {MAP("operators", struct ll_config_policy, operators, staff), .is_in_force = true,
     .help = "Who may pause, release, move, cancel, evict, drain and reserve."},
    {MAP("visibility", struct ll_config_policy, visibility, visibility), .is_in_force = true,
     .help = "What users see of others."},
    {LIST_OF_MAPS("cards", struct ll_config_policy, cards, group), .is_in_force = true,
     .help = "Groups of cards. Each card of the machine is in one."},
    {WORD("fault-domain", struct ll_config_policy, fault_domain, domains), .fallback = "user",
     .help = "Who may share one MPS server."},
    {MAP("host-memory", struct ll_config_policy, host_memory, host_memory), .is_in_force = true,
     .help = "Memory of the machine that loadline may use."},
    {LIST_OF_MAPS("tenants", struct ll_config_policy, tenants, tenant), .is_in_force = true,
     .help = "Who has which share."},
    {MAP("defaults", struct ll_config_policy, defaults, defaults), .is_in_force = true,
     .help = "Of a job that does not say."},
    {MAP("reclaim", struct ll_config_policy, reclaim, reclaim), .is_in_force = true,
     .help = "What an owner's return does to those who borrow."},
    {MAP("queue", struct ll_config_policy, queue, queue), .is_in_force = true, .help = "Who is next."},
    {LIST_OF_MAPS("reservations", struct ll_config_policy, reservations, reservation), .is_in_force = true,
     .help = "Cards for a tenant at a time."},
    {LIST_OF_MAPS("maintenance", struct ll_config_policy, maintenance, maintenance), .is_in_force = true,
     .help = "Windows in which cards are empty. No job starts that would not end before."},
    {MAP("enforce", struct ll_config_policy, enforce, enforce), .is_in_force = true,
     .help = "What keeps programs outside loadline away from cards."},
    {MAP("ungoverned", struct ll_config_policy, ungoverned, ungoverned), .is_in_force = true,
     .help = "Programs that use a card outside loadline."},
    {MAP("mismatch", struct ll_config_policy, mismatch, mismatch), .is_in_force = true,
     .help = "Jobs whose reports contradict the driver."},
    {MAP("health", struct ll_config_policy, health, health), .is_in_force = true,
     .help = "Cards that get no work any more."},
    {LIST_OF_MAPS("notify", struct ll_config_policy, notify, notify), .is_in_force = true,
     .help = "Who is told of what. Without an entry to: tty the terminals of jobs get evicted, resumed, stopped and "
	     "time-ending."},
    {MAP("idle-holder", struct ll_config_policy, idle_holder, idle_holder), .is_in_force = true,
     .help = "Jobs that hold memory and use nothing."},
    {MAP("endless-kernel", struct ll_config_policy, endless_kernel, endless_kernel), .is_in_force = true,
     .help = "Jobs with a kernel that does not end."},
    {MAP("low-use", struct ll_config_policy, low_use, low_use), .is_in_force = true,
     .help = "Groups that use little of what they hold."},
    {MAP("accounts", struct ll_config_policy, accounts, accounts), .is_in_force = true, .help = "Accounts of use."},
    {MAP("serve", struct ll_config_policy, serve, serve), .is_in_force = true,
     .help = "What loadlined serves by HTTP."},
    {MAP("slurm", struct ll_config_policy, slurm, slurm), .help = "On a node of Slurm."},
    {LIST_OF_MAPS("kubernetes", struct ll_config_policy, kubernetes, kubernetes), .is_in_force = true,
     .help = "On a node of Kubernetes: sizes, of which a container takes one."},
    END,
};
DEFINE_MAP(root_map, struct ll_config_policy, NULL, root_keys);

const struct ll_config_key ll_config_root = {
    .name = "", .kind = LL_CONFIG_MAP, .map = &root_map, .help = "The policy of one machine."};

/* ---- questions ---- */

size_t ll_config_map_count(const struct ll_config_map *map)
{
	size_t count = 0;
	while (map->keys[count].name)
		count++;
	return count;
}

const struct ll_config_key *ll_config_key_find(const struct ll_config_map *map, const char *name)
{
	for (const struct ll_config_key *key = map->keys; key->name; key++) {
		if (strcmp(key->name, name) == 0)
			return key;
	}
	return NULL;
}

static void visit_below(const struct ll_config_map *map, const char *prefix,
			void (*visit)(void *data, const char *path), void *data)
{
	for (const struct ll_config_key *key = map->keys; key->name; key++) {
		char path[PATH_SIZE];
		snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", key->name);
		if (*prefix ? key->is_idle : !key->is_in_force)
			visit(data, path);
		else if (key->kind == LL_CONFIG_MAP)
			visit_below(key->map, path, visit, data);
	}
}

void ll_config_visit_idle(void (*visit)(void *data, const char *path), void *data)
{
	visit_below(ll_config_root.map, "", visit, data);
}

const char *ll_config_kind_example(enum ll_config_kind kind)
{
	static const char *const examples[] = {
	    [LL_CONFIG_MAP] = "a map",
	    [LL_CONFIG_TEXT] = "a text",
	    [LL_CONFIG_NAME] = "a name",
	    [LL_CONFIG_USER] = "a name",
	    [LL_CONFIG_RESOURCE] = "a resource such as example.com/card",
	    [LL_CONFIG_PATH] = "an absolute path",
	    [LL_CONFIG_ADDRESS] = "an address such as 127.0.0.1:9409 or unix:/run/file.sock",
	    [LL_CONFIG_CARDS] = "cards such as \"0-3\", \"0,2\" or \"7:0\"",
	    [LL_CONFIG_TIME] = "a time such as \"2026-12-03 14:00\"",
	    [LL_CONFIG_WORD] = "a word",
	    [LL_CONFIG_BOOL] = "true or false",
	    [LL_CONFIG_UINT] = "a whole number",
	    [LL_CONFIG_DECIMAL] = "a number",
	    [LL_CONFIG_BYTES] = "a size such as 20G",
	    [LL_CONFIG_DURATION] = "a time such as 15m, 2h or 7d",
	    [LL_CONFIG_SHARE] = "a share such as 30%",
	};
	return examples[kind];
}
