/*
 * policy.h - the configuration of the machine (config/config.h) as the system's loadlined has it in force, and who
 * is who in it.
 *
 * It is read when loadlined starts, and again at SIGHUP. A file with faults does not come into force: at the start
 * loadlined refuses to serve, later the old configuration stays. What a configuration points to lives until the next
 * one comes into force, so nobody keeps a pointer into it beyond one turn of the loop.
 */
#ifndef LOADLINE_DAEMON_POLICY_POLICY_H
#define LOADLINE_DAEMON_POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/core/identity.h"

struct ll_err;
struct ll_server;

enum { LL_DEPARTMENT_FAULT_SIZE = 200 };

struct ll_department {
	struct ll_config config; /* root NULL: none is in force */
	struct ll_identities identities;
	uint32_t admin;    /* a uid that is an admin besides; 0, root: none is */
	int64_t since_s;   /* seconds since 1970: when it came into force */
	uint64_t number;   /* rises with each configuration that comes into force */
	int64_t refused_s; /* since when the file on the disk is not the one in force; 0: it is */
	/* Finds the number of a card by its UUID (machine.h). Returns false if it is not known. NULL: none is known */
	bool (*find_card)(const struct ll_server *server, const char *uuid, struct ll_config_card *ret_card);
	char fault[LL_DEPARTMENT_FAULT_SIZE]; /* the first fault of that file: FILE:LINE:COLUMN: TEXT */
};

/*
 * Reads and checks the configuration, and takes it over if it has no faults. path NULL: LL_CONFIG_FILE if it exists,
 * else no configuration is in force. now_s: seconds since 1970. Faults and warnings are logged, each with its place.
 * -EINVAL: it has faults, or cannot be read; then the former one stays in force, and err has the first fault.
 */
int ll_department_load(struct ll_department *department, const char *path, int64_t now_s, struct ll_err *err);

/* The two steps of it. A thread may call ll_department_read. config: zeroed; ll_department_put takes it over, with what
 * ll_department_read returned. */
int ll_department_read(struct ll_config *config, const char *path, int64_t now_s, struct ll_err *err);
int ll_department_put(struct ll_department *department, struct ll_config *config, int rc, const struct ll_err *why,
		      int64_t now_s);

/* Frees the configuration. The identities have their own init and fini. A zeroed department is fine. */
void ll_department_fini(struct ll_department *department);

/* Returns the policy in force; NULL: none is. */
const struct ll_config_policy *ll_department_policy(const struct ll_department *department);

/*
 * Returns the tenant of a user: the first that has the user, or, with a wanted name, the one of that name. wanted:
 * NULL or empty: none. NULL is returned with
 *   -ENOENT    no configuration is in force
 *   -EAGAIN    the user's groups are being looked up (identity.h)
 *   -EACCES    there is no tenant of that name, or the user is not in it; err says in which tenants the user is
 *   other      the lookup failed and there is no earlier answer
 */
const struct ll_config_tenant *ll_department_tenant(const struct ll_department *department, uint32_t uid,
						    const char *wanted, struct ll_err *err);

/* Returns the tenant of that name; NULL: there is none. */
const struct ll_config_tenant *ll_department_find(const struct ll_department *department, const char *name);

/* Whether the user is among these people. False if the user's groups are not known. */
bool ll_department_has(const struct ll_department *department, const struct ll_config_people *people, uint32_t uid);

/* Root is an admin, and department->admin. */
bool ll_department_is_admin(const struct ll_department *department, uint32_t uid);

/* An admin is an operator. */
bool ll_department_is_operator(const struct ll_department *department, uint32_t uid);

#endif
