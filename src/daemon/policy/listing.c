#include <string.h>

#include "config/check.h"
#include "daemon/core/connection.h"
#include "daemon/policy/policy.h"

_Static_assert(LL_CONFIG_NONE == UINT64_MAX, "a limit that there is not, in messages too");

/* The groups of cards in which the tenant has a guarantee, and then those in which it has a limit alone. NULL: no more.
 */
static const char *part_group(const struct ll_config_tenant *tenant, size_t number)
{
	if (number < tenant->guarantee.count)
		return tenant->guarantee.items[number].of;
	number -= tenant->guarantee.count;
	for (size_t i = 0; i < tenant->limit.count; i++) {
		const char *of = tenant->limit.items[i].of;
		if (!ll_allowance_part(&tenant->guarantee, of) && number-- == 0)
			return of;
	}
	return NULL;
}

static void make_tenant(const struct ll_server *server, const struct ll_config_tenant *tenant, uint32_t uid,
			union ll_message *ret_message)
{
	static const uint32_t classes[] = {LL_LIMIT_CLASS_NORMAL, LL_LIMIT_CLASS_HIGH, LL_LIMIT_CLASS_LOW};
	const struct ll_department *department = &server->department;
	const struct ll_config_each_user *each = &tenant->each_user;
	bool is_mine = ll_department_has(department, &tenant->members, uid);
	bool is_first = is_mine && ll_department_tenant(department, uid, NULL, NULL) == tenant;
	struct ll_job_sum mine, all;
	struct ll_department_scope scope = {.tenant = tenant->name};
	ll_department_sum(server, &scope, &all);
	scope.is_of_user = true;
	scope.uid = uid;
	ll_department_sum(server, &scope, &mine);
	ll_message_init(ret_message, LL_MESSAGE_POLICY_TENANT);
	struct ll_message_policy_tenant *row = &ret_message->policy_tenant;
	row->weight = tenant->weight;
	row->user_cards = each->cards;
	row->user_memory_bytes = each->memory_bytes;
	row->user_compute_permille = each->compute_permille;
	row->user_running = each->running;
	row->used_cards = mine.cards;
	row->used_memory_bytes = mine.memory_bytes;
	row->used_compute_permille = mine.compute_permille;
	row->used_jobs = mine.jobs;
	row->jobs = all.jobs;
	row->flags = (is_mine ? LL_POLICY_IS_MINE : 0U) | (is_first ? LL_POLICY_IS_FIRST : 0U);
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		row->classes |= (uint32_t)ll_allowance_has_class(tenant, ll_allowance_class(classes[i])) << classes[i];
	while (part_group(tenant, row->parts))
		row->parts++;
	ll_message_text_set(row->name, sizeof row->name, tenant->name);
}

static void make_part(const struct ll_server *server, const struct ll_config_tenant *tenant, const char *name,
		      union ll_message *ret_message)
{
	static const struct ll_config_part none = {
	    .cards = LL_CONFIG_NONE, .memory_bytes = LL_CONFIG_NONE, .compute_permille = LL_CONFIG_NONE};
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	const struct ll_config_part *guarantee = ll_allowance_part(&tenant->guarantee, name);
	const struct ll_config_part *limit = ll_allowance_part(&tenant->limit, name);
	struct ll_department_scope scope = {.tenant = tenant->name, .group = ll_config_group_find(policy, name)};
	struct ll_job_sum used = {0};
	guarantee = guarantee ? guarantee : &none;
	limit = limit ? limit : &none;
	ll_message_init(ret_message, LL_MESSAGE_POLICY_PART);
	struct ll_message_policy_part *row = &ret_message->policy_part;
	row->is_known = ll_department_knows_cards(server);
	if (row->is_known)
		ll_department_sum(server, &scope, &used);
	row->guaranteed_cards = guarantee->cards;
	row->guaranteed_memory_bytes = guarantee->memory_bytes;
	row->guaranteed_compute_permille = guarantee->compute_permille;
	row->limit_cards = limit->cards;
	row->limit_memory_bytes = limit->memory_bytes;
	row->limit_compute_permille = limit->compute_permille;
	row->used_cards = used.cards;
	row->used_memory_bytes = used.memory_bytes;
	row->used_compute_permille = used.compute_permille;
	row->gives_cards = scope.group && scope.group->give == LL_CONFIG_BY_CARD;
	for (size_t i = 0; scope.group && i < scope.group->cards.count; i++)
		row->card_mask |= UINT64_C(1) << (scope.group->cards.items[i].index & 63);
	ll_message_text_set(row->tenant, sizeof row->tenant, tenant->name);
	ll_message_text_set(row->group, sizeof row->group, name);
}

void ll_list_policy_rows(struct ll_connection *connection, uint32_t uid, bool of_all)
{
	const struct ll_server *server = connection->server;
	const struct ll_department *department = &server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	bool sees_all = of_all || ll_department_is_operator(department, uid);
	union ll_message row;
	for (size_t i = 0; policy && i < policy->tenants.count; i++) {
		const struct ll_config_tenant *tenant = &policy->tenants.items[i];
		const char *group;
		if (!sees_all && !ll_department_has(department, &tenant->members, uid))
			continue;
		make_tenant(server, tenant, uid, &row);
		ll_connection_row(connection, &row);
		if (ll_spending_describe(server, tenant, &row))
			ll_connection_row(connection, &row);
		for (size_t part = 0; (group = part_group(tenant, part)); part++) {
			make_part(server, tenant, group, &row);
			ll_connection_row(connection, &row);
		}
	}
}

void ll_list_policy(struct ll_connection *connection)
{
	union ll_message end;
	ll_list_policy_rows(connection, connection->uid, false);
	ll_message_init(&end, LL_MESSAGE_POLICY_END);
	ll_connection_row(connection, &end);
}
