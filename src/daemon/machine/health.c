#include "daemon/machine/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/keys.h"
#include "daemon/core/server.h"
#include "daemon/machine/events.h"
#include "daemon/machine/machine.h"
#include "daemon/queue/admission.h"

#define WARN_AGAIN_NS (3600 * LL_NS_PER_S)

struct ll_health_card {
	struct ll_health_card *next;
	char uuid[LL_CARD_UUID_SIZE];
	bool is_known;                         /* a first report has come */
	uint64_t values[LL_SENSE_CONDITIONS];  /* that have been told */
	uint64_t told_ns[LL_SENSE_CONDITIONS]; /* when; 0: never */
};

static const struct ll_config_health *policy_of(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	return policy && policy->health.from ? &policy->health : NULL;
}

static void drain_card(struct ll_server *server, const struct ll_machine_card *card, const char *reason)
{
	struct ll_event_about about = {.card = card->uuid};
	int rc = ll_admission_drain_card(server, card->index, reason);
	if (rc == 0)
		ll_events_tell(server, LL_EVENT_DRAINED, &about, "card %u (%s) gets no more jobs: %s", card->index,
			       card->uuid, reason);
	else if (rc > 0)
		ll_warn("card %u (%s) is drained already: %s", card->index, card->uuid, reason);
	else
		ll_error("card %u (%s) cannot be drained: %s: %s", card->index, card->uuid, reason, strerror(-rc));
}

/* ---- Xids ---- */

void ll_health_xid(struct ll_server *server, const struct ll_machine_card *card, uint64_t xid)
{
	const struct ll_config_health *policy = policy_of(server);
	char reason[LL_NAME_SIZE];
	snprintf(reason, sizeof reason, "Xid %llu", (unsigned long long)xid);
	for (size_t i = 0; policy && i < policy->drain_xid.count; i++) {
		if (policy->drain_xid.items[i] == xid) {
			drain_card(server, card, reason);
			return;
		}
	}
}

/* ---- conditions ---- */

static bool has_word(const struct ll_config_words *words, int word)
{
	for (size_t i = 0; i < words->count; i++) {
		if (words->items[i] == word)
			return true;
	}
	return false;
}

static struct ll_health_card *find_card(struct ll_server *server, const char *uuid)
{
	struct ll_health_card *card = server->health;
	while (card && strcmp(card->uuid, uuid) != 0)
		card = card->next;
	if (card)
		return card;
	card = calloc(1, sizeof *card);
	if (!card)
		return NULL;
	memcpy(card->uuid, uuid, sizeof card->uuid);
	card->next = server->health;
	server->health = card;
	return card;
}

static void warn_of(struct ll_server *server, const struct ll_machine_card *card, const char *name, uint64_t rise)
{
	ll_events_tell(server, LL_EVENT_UNHEALTHY, &(struct ll_event_about){.card = card->uuid},
		       "card %u (%s) reports %s (%llu)", card->index, card->uuid, name, (unsigned long long)rise);
}

static void note_value(struct ll_server *server, struct ll_health_card *seen, int condition, uint64_t value)
{
	if (seen->values[condition] == value)
		return;
	seen->values[condition] = value;
	ll_admission_keep_change(server);
}

/* A value below the one that was told is a repair, or a reset of the card. */
static void take_condition(struct ll_server *server, const struct ll_machine_card *card, struct ll_health_card *seen,
			   int condition, uint64_t value)
{
	const struct ll_config_health *policy = policy_of(server);
	uint64_t now_ns = ll_now_ns(), told = seen->values[condition], told_ns = seen->told_ns[condition];
	if (value < told || (condition == LL_SENSE_NVLINK_ERRORS && !seen->is_known))
		note_value(server, seen, condition, value);
	if (!policy || value <= seen->values[condition])
		return;
	if (has_word(&policy->drain, condition)) {
		drain_card(server, card, ll_config_conditions[condition]);
	} else if (has_word(&policy->warn, condition)) {
		if (told_ns && now_ns - told_ns < WARN_AGAIN_NS && condition == LL_SENSE_NVLINK_ERRORS)
			return;
		warn_of(server, card, ll_config_conditions[condition], value - seen->values[condition]);
	} else {
		return;
	}
	note_value(server, seen, condition, value);
	seen->told_ns[condition] = now_ns;
}

void ll_health_conditions(struct ll_server *server, const struct ll_machine_card *card,
			  const struct ll_message_sense_conditions *conditions)
{
	struct ll_health_card *seen = find_card(server, card->uuid);
	if (!seen)
		return;
	for (int i = 0; i < LL_SENSE_CONDITIONS; i++) {
		if (conditions->values[i] != UINT64_MAX)
			take_condition(server, card, seen, i, conditions->values[i]);
	}
	seen->is_known = true;
}

/* ---- what outlives loadlined ---- */

json_t *ll_health_pack(const struct ll_server *server)
{
	json_t *list = json_array();
	for (const struct ll_health_card *card = server->health; card; card = card->next) {
		json_t *values = json_object();
		for (int i = 0; i < LL_SENSE_CONDITIONS; i++)
			json_object_set_new(values, ll_config_conditions[i], json_integer((json_int_t)card->values[i]));
		json_array_append_new(list, json_pack("{s:s, s:o}", "uuid", card->uuid, "values", values));
	}
	return list;
}

void ll_health_unpack(struct ll_server *server, const json_t *list)
{
	size_t i;
	const json_t *object;
	json_array_foreach(list, i, object)
	{
		char uuid[LL_CARD_UUID_SIZE];
		const char *text = json_string_value(json_object_get(object, "uuid"));
		snprintf(uuid, sizeof uuid, "%s", text ? text : "");
		struct ll_health_card *card = uuid[0] ? find_card(server, uuid) : NULL;
		const json_t *values = json_object_get(object, "values");
		for (int condition = 0; card && condition < LL_SENSE_CONDITIONS; condition++)
			card->values[condition] =
			    (uint64_t)json_integer_value(json_object_get(values, ll_config_conditions[condition]));
		if (card)
			card->is_known = true;
	}
}

void ll_health_fini(struct ll_server *server)
{
	while (server->health) {
		struct ll_health_card *card = server->health;
		server->health = card->next;
		free(card);
	}
}
