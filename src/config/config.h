/*
 * config.h - the policy of a machine, as /etc/loadline/loadline.yaml and its drop-ins describe it, read and checked.
 *
 *     struct ll_config config = {0};
 *     struct ll_config_findings findings = {0};
 *     rc = ll_config_load(&config, NULL, &findings, err);
 *     if (!rc && !findings.fault_count)
 *             for (size_t i = 0; i < config.policy.tenants.count; i++)
 *                     use(&config.policy.tenants.items[i]);
 *     ll_config_findings_fini(&findings);
 *     ll_config_fini(&config);
 *
 * The keys, with types, ranges, defaults and help, are the table of keys.c. A key that is in force in this version has
 * is_in_force there; the fields of the others are filled, and nothing acts on them yet.
 *
 * Units: bytes, nanoseconds, permille of one card's compute (1500 is a card and a half), seconds since 1970 for a
 * moment. A number that the file does not have, and that has no default, is LL_CONFIG_NONE; a decimal is NAN, a word
 * -1, a text NULL, a list empty. Everything that a configuration points to belongs to it, and is freed by
 * ll_config_fini. A map that is not in the file has its defaults; its field `from` is NULL then.
 */
#ifndef LOADLINE_CONFIG_CONFIG_H
#define LOADLINE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/arena.h"
#include "config/findings.h"

struct ll_err;
struct ll_config_value;

#define LL_CONFIG_NONE UINT64_MAX
#define LL_CONFIG_FILE "/etc/loadline/loadline.yaml"

struct ll_config_texts {
	size_t count;
	const char **items;
};

struct ll_config_words { /* indices of words, in the order of the file */
	size_t count;
	int *items;
};

struct ll_config_numbers {
	size_t count;
	uint64_t *items;
};

/* A card of this machine in PCI order, or a MIG slice of it, as `-i` names them. */
struct ll_config_card {
	unsigned index;
	int slice; /* -1: the whole card */
};

struct ll_config_cards {
	size_t count;
	struct ll_config_card *items; /* ascending, none twice */
};

struct ll_config_time {
	bool is_daily; /* a time of day, for `every` */
	bool is_given;
	int64_t at_s; /* seconds since 1970, read in the machine's time zone; of a time of day: since midnight */
};

enum ll_config_class { LL_CONFIG_HIGH, LL_CONFIG_NORMAL, LL_CONFIG_LOW };
enum ll_config_give { LL_CONFIG_BY_CARD, LL_CONFIG_BY_MEMORY };
enum ll_config_sharing { LL_CONFIG_SLICES, LL_CONFIG_SPACE, LL_CONFIG_AUTO };
enum ll_config_domain { LL_CONFIG_DOMAIN_USER, LL_CONFIG_DOMAIN_TENANT };
enum ll_config_others { LL_CONFIG_SEE_NOTHING, LL_CONFIG_SEE_USER_AND_SHARE, LL_CONFIG_SEE_ALL };
enum ll_config_commands { LL_CONFIG_COMMANDS_OWN, LL_CONFIG_COMMANDS_TENANT, LL_CONFIG_COMMANDS_ALL };
enum ll_config_spent { LL_CONFIG_BORROW_ONLY, LL_CONFIG_REFUSE };
enum ll_config_step {
	LL_CONFIG_STEP_COMPUTE,
	LL_CONFIG_STEP_EVICT_IDLE,
	LL_CONFIG_STEP_EVICT,
	LL_CONFIG_STEP_STOP,
	LL_CONFIG_STEP_KILL
};
enum ll_config_order {
	LL_CONFIG_ORDER_RESERVATION,
	LL_CONFIG_ORDER_GUARANTEE,
	LL_CONFIG_ORDER_FAIRSHARE,
	LL_CONFIG_ORDER_AGE
};
enum ll_config_day { LL_CONFIG_MONDAY, LL_CONFIG_SUNDAY = 6, LL_CONFIG_EVERY_DAY, LL_CONFIG_WEEKDAYS };
enum ll_config_action { LL_CONFIG_REPORT, LL_CONFIG_ACTION_STOP, LL_CONFIG_ACTION_KILL };

/* Who: a user in one of the lists belongs to it. */
struct ll_config_people {
	const struct ll_config_value *from;
	struct ll_config_texts users; /* "*": everybody */
	struct ll_config_texts groups;
	struct ll_config_texts slurm_accounts, kubernetes_namespaces; /* of members alone */
};

struct ll_config_visibility {
	const struct ll_config_value *from;
	int others;   /* enum ll_config_others */
	int commands; /* enum ll_config_commands */
};

/* A group of cards. */
struct ll_config_group {
	const struct ll_config_value *from;
	const char *name;
	struct ll_config_cards cards;
	int give; /* enum ll_config_give */
	int by;   /* enum ll_config_sharing, of cards that are given by memory */
};

struct ll_config_host_memory {
	const struct ll_config_value *from;
	uint64_t for_eviction_bytes;
};

/* A part of a group of cards. Of a group that is given by card: cards. Of one by memory: memory, compute. */
struct ll_config_part {
	const struct ll_config_value *from;
	const char *of;
	uint64_t cards;
	uint64_t memory_bytes;     /* of all cards of the group together */
	uint64_t compute_permille; /* of one card; 1500: a card and a half */
};

struct ll_config_parts {
	size_t count;
	struct ll_config_part *items;
};

/* The limits of each user of a tenant. */
struct ll_config_each_user {
	const struct ll_config_value *from;
	uint64_t cards, memory_bytes, compute_permille;
	uint64_t running, queued; /* jobs */
	uint64_t max_time_ns;     /* of a job */
};

struct ll_config_budget {
	const struct ll_config_value *from;
	double gpu_hours;
	int per;  /* 0 day, 1 week, 2 month */
	int then; /* enum ll_config_spent */
};

struct ll_config_tenant {
	const struct ll_config_value *from;
	const char *name;
	struct ll_config_people members;
	struct ll_config_parts guarantee, limit; /* at most one part of each group of cards */
	uint64_t weight;
	struct ll_config_words classes; /* enum ll_config_class */
	uint64_t keep_free_bytes;
	struct ll_config_each_user each_user;
	struct ll_config_budget budget;
};

struct ll_config_defaults {
	const struct ll_config_value *from;
	uint64_t memory_bytes;
	uint64_t compute_permille;
	int class; /* enum ll_config_class */
	uint64_t time_ns;
	bool is_evictable;
};

struct ll_config_warn_signal {
	const struct ll_config_value *from;
	int signal; /* index into ll_config_signals */
	uint64_t before_ns;
};

struct ll_config_stop_signal {
	const struct ll_config_value *from;
	int signal;
	uint64_t grace_ns;
	bool requeue;
};

struct ll_config_reclaim {
	const struct ll_config_value *from;
	struct ll_config_words steps; /* enum ll_config_step; none: nothing is lent */
	bool does_observe;
	uint64_t idle_after_ns, min_runtime_ns, max_sleep_ns;
	int multi_card; /* 0: together */
	struct ll_config_warn_signal warn;
	struct ll_config_stop_signal stop;
};

struct ll_config_queue {
	const struct ll_config_value *from;
	struct ll_config_words order; /* enum ll_config_order */
	uint64_t half_life_ns, wait_ns;
	bool backfill;
};

struct ll_config_reservation {
	const struct ll_config_value *from;
	const char *name, *tenant, *of;
	uint64_t cards;
	int every; /* enum ll_config_day; -1: once */
	struct ll_config_time begin;
	uint64_t for_ns;
};

struct ll_config_maintenance {
	const struct ll_config_value *from;
	const char *name, *note;
	struct ll_config_cards cards;
	struct ll_config_time begin;
	uint64_t for_ns;
};

struct ll_config_ungoverned {
	const struct ll_config_value *from;
	int action; /* enum ll_config_action */
	uint64_t after_ns;
	struct ll_config_texts allow; /* paths of programs */
};

struct ll_config_mismatch {
	const struct ll_config_value *from;
	int action; /* enum ll_config_action */
};

struct ll_config_enforce {
	const struct ll_config_value *from;
	bool devices;
	bool containers;
};

struct ll_config_health {
	const struct ll_config_value *from;
	struct ll_config_numbers drain_xid;
	struct ll_config_words drain, warn; /* indices of ll_config_conditions */
};

struct ll_config_notify {
	const struct ll_config_value *from;
	struct ll_config_words events; /* indices of ll_config_events */
	int to;                        /* 0: tty; -1: the command */
	const char *command;
};

struct ll_config_idle_holder {
	const struct ll_config_value *from;
	uint64_t memory_bytes, idle_ns, again_ns;
};

struct ll_config_endless_kernel {
	const struct ll_config_value *from;
	uint64_t after_ns;
	int action; /* enum ll_config_action: report or stop */
};

struct ll_config_low_use {
	const struct ll_config_value *from;
	uint64_t mean_permille;
	uint64_t over_ns;
	int of; /* 0: tenant, 1: user */
};

struct ll_config_accounts {
	const struct ll_config_value *from;
	uint64_t keep_ns;
	int projects; /* 0: no, 1: optional, 2: required */
	const char *currency;
	double price_gpu_hour, price_gib_hour;
};

struct ll_config_serve {
	const struct ll_config_value *from;
	const char *metrics; /* HOST:PORT or unix:/PATH */
	const char *page;    /* a folder */
};

struct ll_config_slurm {
	const struct ll_config_value *from;
	int fence;          /* 0: none, 1: shard */
	int ungoverned_job; /* enum ll_config_action */
};

struct ll_config_kubernetes {
	const struct ll_config_value *from;
	const char *resource, *of;
	uint64_t memory_permille, compute_permille; /* of one card */
	uint64_t count;                             /* of this size, on each card */
	int class;                                  /* enum ll_config_class; -1: not said */
	bool claims;                                /* what ResourceClaims may take, in any size */
};

#define LL_CONFIG_LIST_OF_(type)                                                                                       \
	struct {                                                                                                       \
		size_t count;                                                                                          \
		type *items;                                                                                           \
	}

struct ll_config_policy {
	const struct ll_config_value *from;
	uint64_t version;
	struct ll_config_people admins, operators;
	struct ll_config_visibility visibility;
	LL_CONFIG_LIST_OF_(struct ll_config_group) cards;
	int fault_domain; /* enum ll_config_domain */
	struct ll_config_host_memory host_memory;
	LL_CONFIG_LIST_OF_(struct ll_config_tenant) tenants; /* the first that has a user is the user's own */
	struct ll_config_defaults defaults;
	struct ll_config_reclaim reclaim;
	struct ll_config_queue queue;
	LL_CONFIG_LIST_OF_(struct ll_config_reservation) reservations;
	LL_CONFIG_LIST_OF_(struct ll_config_maintenance) maintenance;
	struct ll_config_enforce enforce;
	struct ll_config_ungoverned ungoverned;
	struct ll_config_mismatch mismatch;
	struct ll_config_health health;
	LL_CONFIG_LIST_OF_(struct ll_config_notify) notify;
	struct ll_config_idle_holder idle_holder;
	struct ll_config_endless_kernel endless_kernel;
	struct ll_config_low_use low_use;
	struct ll_config_accounts accounts;
	struct ll_config_serve serve;
	struct ll_config_slurm slurm;
	LL_CONFIG_LIST_OF_(struct ll_config_kubernetes) kubernetes;
};

struct ll_config {
	struct ll_config_arena arena;
	struct ll_config_value *root; /* the effective values with their places (value.h) */
	struct ll_config_policy policy;
};

/*
 * Reads a configuration into config, which the caller has zeroed. path: a file; or a folder, of which loadline.yaml and
 * the files *.yaml in loadline.d are read in the order of their names; NULL: LL_CONFIG_FILE and
 * /etc/loadline/loadline.d. What is wrong in the files is added to findings, and is no error. With faults, config is
 * only good for ll_config_fini and for the names of the files in findings. An error: a file cannot be read, or out of
 * memory.
 */
int ll_config_load(struct ll_config *config, const char *path, struct ll_config_findings *findings, struct ll_err *err);

/* The same of a text. name: of the file, for marks; it must live as long as config. */
int ll_config_load_text(struct ll_config *config, const char *name, const char *text, size_t length,
			struct ll_config_findings *findings, struct ll_err *err);

/* Frees what config has. The marks of findings point into it: finish with them first. A zeroed config is fine. */
void ll_config_fini(struct ll_config *config);

#endif
