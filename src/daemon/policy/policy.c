#include "daemon/policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "config/check.h"

enum { UID_SIZE = 16 };

/* ---- the file ---- */

int ll_department_read(struct ll_config *config, const char *path, int64_t now_s, struct ll_err *err)
{
	struct ll_config_findings findings = {0};
	bool has_file = path || access(LL_CONFIG_FILE, F_OK) == 0 || errno != ENOENT;
	int rc = has_file ? ll_config_load(config, path, &findings, err) : 0;
	if (!rc && config->root)
		ll_config_check(&config->policy, now_s, &findings);
	ll_config_findings_sort(&findings);
	if (!rc && findings.failed)
		rc = ll_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < findings.count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
		bool is_fault = findings.items[i].level == LL_CONFIG_FAULT;
		ll_config_finding_add_place(&findings.items[i], &line);
		ll_strbuf_adds(&line, findings.items[i].text);
		ll_log(is_fault ? LL_LOG_ERROR : LL_LOG_WARN, "%s", line.buf);
		if (is_fault && !rc) /* the first one by its place */
			rc = ll_err_set(err, -EINVAL, "%s", line.buf);
	}
	ll_config_findings_fini(&findings);
	return rc ? -EINVAL : 0;
}

int ll_department_put(struct ll_department *department, struct ll_config *config, int rc, const struct ll_err *why,
		      int64_t now_s)
{
	if (rc) {
		ll_config_fini(config);
		if (!department->refused_s)
			department->refused_s = now_s;
		snprintf(department->fault, sizeof department->fault, "%.*s", LL_DEPARTMENT_FAULT_SIZE - 1, why->text);
		ll_utf8_clean(department->fault);
		return rc;
	}
	ll_config_fini(&department->config);
	department->config = *config;
	*config = (struct ll_config){0};
	department->since_s = department->config.root ? now_s : 0;
	department->number++;
	department->refused_s = 0;
	department->fault[0] = '\0';
	return 0;
}

int ll_department_load(struct ll_department *department, const char *path, int64_t now_s, struct ll_err *err)
{
	struct ll_config config = {0};
	struct ll_err why = {0};
	int rc = ll_department_read(&config, path, now_s, &why);
	if (rc)
		ll_err_set(err, rc, "%s", why.text);
	return ll_department_put(department, &config, rc, &why, now_s);
}

void ll_department_fini(struct ll_department *department)
{
	ll_config_fini(&department->config);
}

const struct ll_config_policy *ll_department_policy(const struct ll_department *department)
{
	return department->config.root ? &department->config.policy : NULL;
}

/* ---- who is who ---- */

static bool has_text(const struct ll_config_texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->count; i++) {
		if (strcmp(texts->items[i], text) == 0)
			return true;
	}
	return false;
}

static bool has_identity(const struct ll_config_people *people, const struct ll_identity *identity)
{
	char uid[UID_SIZE];
	snprintf(uid, sizeof uid, "%" PRIu32, identity->uid);
	if (has_text(&people->users, "*") || has_text(&people->users, ll_identity_name(identity)) ||
	    has_text(&people->users, uid))
		return true;
	for (size_t i = 0; i < people->groups.count; i++) {
		if (ll_identity_has_group(identity, people->groups.items[i]))
			return true;
	}
	return false;
}

bool ll_department_has(const struct ll_department *department, const struct ll_config_people *people, uint32_t uid)
{
	const struct ll_identity *identity = ll_identities_find(&department->identities, uid, NULL);
	return identity && has_identity(people, identity);
}

/* Pods are root's, and their containers name their tenants, by their namespaces (doc/kubernetes.md). */
static bool is_of_pods(const struct ll_config_tenant *tenant, uint32_t uid, const char *wanted)
{
	return uid == 0 && wanted && *wanted && tenant->members.kubernetes_namespaces.count;
}

const struct ll_config_tenant *ll_department_tenant(const struct ll_department *department, uint32_t uid,
						    const char *wanted, struct ll_err *err)
{
	const struct ll_config_policy *policy = ll_department_policy(department);
	if (!policy) {
		ll_err_set(err, -ENOENT, "no configuration is in force");
		return NULL;
	}
	const struct ll_identity *identity = ll_identities_find(&department->identities, uid, err);
	if (!identity)
		return NULL;
	for (size_t i = 0; i < policy->tenants.count; i++) {
		const struct ll_config_tenant *tenant = &policy->tenants.items[i];
		bool is_wanted = !wanted || !*wanted || strcmp(tenant->name, wanted) == 0;
		if (is_wanted && (has_identity(&tenant->members, identity) || is_of_pods(tenant, uid, wanted)))
			return tenant;
	}
	LL_SCOPE_STRBUF struct ll_strbuf own = LL_STRBUF_INIT;
	for (size_t i = 0; i < policy->tenants.count; i++) {
		if (has_identity(&policy->tenants.items[i].members, identity))
			ll_strbuf_addf(&own, "%s%s", own.length ? ", " : "", policy->tenants.items[i].name);
	}
	const char *name = ll_identity_name(identity);
	if (!own.length)
		ll_err_set(err, -EACCES, "user %s is in no tenant", name);
	else
		ll_err_set(err, -EACCES, "user %s is not in a tenant %s, but in %s", name, wanted ? wanted : "",
			   own.buf);
	return NULL;
}

const struct ll_config_tenant *ll_department_find(const struct ll_department *department, const char *name)
{
	const struct ll_config_policy *policy = ll_department_policy(department);
	for (size_t i = 0; policy && i < policy->tenants.count; i++) {
		if (strcmp(policy->tenants.items[i].name, name) == 0)
			return &policy->tenants.items[i];
	}
	return NULL;
}

bool ll_department_is_admin(const struct ll_department *department, uint32_t uid)
{
	const struct ll_config_policy *policy = ll_department_policy(department);
	return uid == 0 || uid == department->admin || (policy && ll_department_has(department, &policy->admins, uid));
}

bool ll_department_is_operator(const struct ll_department *department, uint32_t uid)
{
	const struct ll_config_policy *policy = ll_department_policy(department);
	return ll_department_is_admin(department, uid) ||
	       (policy && ll_department_has(department, &policy->operators, uid));
}
