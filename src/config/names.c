#include "config/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "config/value.h"

/* getent's words: program, database, names. */
struct question {
	const char *database;
	const struct ll_config_value **values;
	size_t count, capacity;
};

static void add_list(struct question *question, const struct ll_config_value *list)
{
	for (size_t i = 0; list && i < list->count; i++) {
		if (strcmp(list->items[i]->text, "*") == 0)
			continue;
		if (question->count == question->capacity) {
			size_t capacity = question->capacity ? 2 * question->capacity : 16;
			void *values = realloc(question->values, capacity * sizeof *question->values);
			if (!values)
				return;
			question->values = values;
			question->capacity = capacity;
		}
		question->values[question->count++] = list->items[i];
	}
}

static void add_all(struct question *question, const struct ll_config_policy *policy, const char *key)
{
	add_list(question, ll_config_value_get(policy->admins.from, key));
	add_list(question, ll_config_value_get(policy->operators.from, key));
	for (size_t i = 0; i < policy->tenants.count; i++)
		add_list(question, ll_config_value_get(policy->tenants.items[i].members.from, key));
}

static int ask_getent(const struct question *question, const char *getent, uint64_t wait_ns, struct ll_strbuf *out,
		      struct ll_err *err)
{
	int status;
	LL_SCOPE_FREE const char **words = calloc(question->count + 4, sizeof *words);
	if (!words)
		return ll_err_set(err, -ENOMEM, "out of memory");
	words[0] = getent;
	words[1] = question->database;
	words[2] = "--";
	for (size_t i = 0; i < question->count; i++)
		words[3 + i] = question->values[i]->text;
	struct ll_child_run run = {.child = {.path = getent,
					     .words = words,
					     .in = LL_CHILD_NULL,
					     .out = LL_CHILD_COLLECTED,
					     .err = LL_CHILD_NULL,
					     .flags = LL_CHILD_OWN_GROUP | LL_CHILD_MORTAL},
				   .deadline_ns = ll_now_ns() + wait_ns};
	int rc = ll_child_run(&run, out, &status, err);
	if (rc == -ETIMEDOUT)
		return ll_err_set(err, rc, "no answer in %g s", (double)wait_ns / (double)LL_NS_PER_S);
	/* 0: all are known; 2: some are not. */
	return !rc && status != 0 && status != 2 ? ll_err_set(err, -EIO, "%s", strerror(EIO)) : rc;
}

static bool is_field(const char *at, const char *text, size_t length)
{
	return strncmp(at, text, length) == 0 && at[length] == ':';
}

/* Whether a line of the answer begins with "name:"; with has_uids also "other:x:name:". */
static bool has_name(const char *answer, const char *name, bool has_uids)
{
	size_t length = strlen(name);
	for (const char *line = answer; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *second = strchr(line, ':'), *third = second ? strchr(second + 1, ':') : NULL;
		if (is_field(line, name, length) || (has_uids && third && is_field(third + 1, name, length)))
			return true;
	}
	return false;
}

static void check_database(const struct ll_config_policy *policy, const char *key, const char *database,
			   const char *getent, uint64_t wait_ns, struct ll_config_findings *findings)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	struct question question = {.database = database};
	struct ll_err err = {0};
	bool is_user = strcmp(key, "users") == 0;
	add_all(&question, policy, key);
	int rc = question.count ? ask_getent(&question, getent, wait_ns, &answer, &err) : 0;
	if (rc)
		ll_config_warn(findings, (struct ll_config_mark){policy->from ? policy->from->mark.file : NULL, 0, 0},
			       "%s: not looked up: %s", key, err.text);
	for (size_t i = 0; !rc && i < question.count; i++) {
		const struct ll_config_value *value = question.values[i];
		if (has_name(answer.buf, value->text, is_user))
			continue;
		if (is_user)
			ll_config_warn(findings, value->mark, "user '%s' is not known on this machine", value->text);
		else
			ll_config_warn(findings, value->mark, "group '%s' is not known on this machine", value->text);
	}
	free(question.values);
}

void ll_config_check_names(const struct ll_config_policy *policy, const char *getent, uint64_t wait_ns,
			   struct ll_config_findings *findings)
{
	check_database(policy, "users", "passwd", getent, wait_ns, findings);
	check_database(policy, "groups", "group", getent, wait_ns, findings);
}
