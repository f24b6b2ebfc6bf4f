/*
 * identity.h - the names of users and of their groups, as this machine's databases (NSS) have them.
 *
 * A directory such as LDAP can hang. So loadlined asks no database itself: it starts `loadlined --lookup UID`
 * (ll_identity_print), and kills that process if it has not answered in wait_ms. An answer counts for keep_ms. After a
 * lookup that failed the last answer goes on counting, and the next lookup is retry_ms later. A new job waits for the
 * answer; commands wait for slow_ms alone, and monitors of jobs, which may have been admitted before, for late_ms.
 */
#ifndef LOADLINE_DAEMON_CORE_IDENTITY_H
#define LOADLINE_DAEMON_CORE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct ll_err;

#define LL_IDENTITY_SLOW_MS 500
#define LL_IDENTITY_LATE_MS 2000
#define LL_IDENTITY_WAIT_MS 30000
#define LL_IDENTITY_KEEP_MS 60000
#define LL_IDENTITY_RETRY_MS 10000

struct ll_identity {
	struct ll_identity *next;
	uint32_t uid;
	bool is_known; /* there is an answer */
	char *texts;   /* of the answer: the name and the groups, each with its NUL */
	size_t length;
	bool is_asked;         /* a lookup runs */
	bool is_slow, is_late; /* it has run for slow_ms, for late_ms */
	bool has_ended;
	uint64_t due_ms; /* on the loop's clock: when the next lookup is due */
	int code;        /* of the last lookup: 0, or a negative errno; -ETIMEDOUT: it did not answer */
};

/* How to look up. The words of the process are `program`, --lookup and the number. */
struct ll_identity_source {
	const char *program; /* NULL: this program */
	uint64_t slow_ms,
	    late_ms; /* each more than the one before: who cannot wait longer goes on without the answer */
	uint64_t wait_ms, keep_ms, retry_ms;
};

/* What on_ready is told of a lookup. */
enum ll_identity_news {
	LL_IDENTITY_IS_SLOW,   /* it has run for slow_ms */
	LL_IDENTITY_IS_LATE,   /* for late_ms */
	LL_IDENTITY_HAS_ENDED, /* with or without an answer */
};

typedef void (*ll_identity_ready_fn)(void *data, uint32_t uid, enum ll_identity_news news);

struct ll_identity_lookup;

struct ll_identities {
	uv_loop_t *loop;
	struct ll_identity_source source;
	ll_identity_ready_fn on_ready;
	void *data;
	struct ll_identity *first;
	struct ll_identity_lookup *lookups;
};

/* source NULL: this program, with the times above. */
void ll_identities_init(struct ll_identities *identities, uv_loop_t *loop, const struct ll_identity_source *source,
			ll_identity_ready_fn on_ready, void *data);

/* Kills lookups that run. The caller lets the loop run until it is empty. */
void ll_identities_fini(struct ll_identities *identities);

/* Starts a lookup if one is due. Returns whether on_ready will be called for this user with these news, or with the
 * end: until then the answer is missing or old. */
bool ll_identities_ask(struct ll_identities *identities, uint32_t uid, enum ll_identity_news news);

/* Returns what is known of the user. NULL: nothing; err says why: -EAGAIN, a lookup runs, or none was started;
 * otherwise the lookup failed. The result lives until the next lookup of the user ends. */
const struct ll_identity *ll_identities_find(const struct ll_identities *identities, uint32_t uid, struct ll_err *err);

/* The user's name; the number in decimal if no database has one. */
const char *ll_identity_name(const struct ll_identity *identity);

bool ll_identity_has_group(const struct ll_identity *identity, const char *group);

/* The process of a lookup: prints the name of the user and the names of all groups of the user, each with a NUL. May
 * block. Returns the exit status. */
int ll_identity_print(const char *uid);

#endif
