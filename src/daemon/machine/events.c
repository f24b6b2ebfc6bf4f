#include "daemon/machine/events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/keys.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/machine/notify_link.h"

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

/* ---- the message ---- */

static void describe_card(const struct ll_server *server, const char *uuid, struct ll_message_event *event)
{
	const struct ll_machine_card *card = server->machine ? ll_machine_card_find(server, uuid) : NULL;
	event->flags |= LL_EVENT_HAS_CARD;
	event->card = card ? card->index : UINT32_MAX;
	event->slice = card ? card->slice : LL_MACHINE_NO_SLICE;
	ll_message_text_set(event->uuid, sizeof event->uuid, uuid);
}

static void describe_job(const struct ll_job *job, struct ll_message_event *event)
{
	event->job = job->number;
	event->flags |= LL_EVENT_HAS_USER;
	event->uid = job->facts.uid;
	ll_message_text_set(event->tenant, sizeof event->tenant, job->department_tenant);
	ll_message_text_set(event->command, sizeof event->command, job->facts.command);
}

static void describe_event(const struct ll_server *server, enum ll_event_kind kind, const struct ll_event_about *about,
			   struct ll_message_event *event)
{
	event->at_s = ll_wall_ns() / LL_NS_PER_S;
	event->slice = LL_MACHINE_NO_SLICE;
	ll_message_text_set(event->name, sizeof event->name, ll_config_events[kind]);
	if (about->has_uid) {
		event->flags |= LL_EVENT_HAS_USER;
		event->uid = about->uid;
	}
	if (about->tenant)
		ll_message_text_set(event->tenant, sizeof event->tenant, about->tenant);
	if (about->command)
		ll_message_text_set(event->command, sizeof event->command, about->command);
	if (about->job)
		describe_job(about->job, event);
	if (about->card)
		describe_card(server, about->card, event);
}

/* ---- terminals ---- */

static bool has_card(const struct ll_job *job, const char *uuid)
{
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		if (strcmp(job->claims->cards[i]->uuid, uuid) == 0)
			return true;
	}
	return false;
}

static bool is_concerned(const struct ll_job *job, const struct ll_event_about *about)
{
	if (about->job)
		return about->job == job;
	if (about->tenant || about->has_uid)
		return (!about->tenant || strcmp(job->department_tenant, about->tenant) == 0) &&
		       (!about->has_uid || job->facts.uid == about->uid);
	return about->card && has_card(job, about->card);
}

static void tell_terminals(const struct ll_server *server, const struct ll_event_about *about,
			   const union ll_message *message)
{
	for (const struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		if (connection->role == LL_ROLE_MONITOR && connection->job && is_concerned(connection->job, about) &&
		    ll_message_send(connection->fd, message, NULL, 0))
			ll_debug("job %llu is not told: its monitor does not listen",
				 (unsigned long long)connection->job->number);
	}
}

/* ---- all ---- */

static bool has_kind(const struct ll_config_notify *notify, enum ll_event_kind kind)
{
	for (size_t i = 0; i < notify->events.count; i++) {
		if (notify->events.items[i] == (int)kind)
			return true;
	}
	return false;
}

/* What is done to a job is told on its terminal, unless the configuration says what goes to terminals. */
static bool is_told_by_default(enum ll_event_kind kind)
{
	return kind == LL_EVENT_EVICTED || kind == LL_EVENT_RESUMED || kind == LL_EVENT_STOPPED ||
	       kind == LL_EVENT_TIME_ENDING;
}

static void pass_on(const struct ll_server *server, enum ll_event_kind kind, const struct ll_event_about *about,
		    const union ll_message *message)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	bool has_terminals = false;
	for (size_t i = 0; policy && i < policy->notify.count; i++) {
		const struct ll_config_notify *notify = &policy->notify.items[i];
		has_terminals |= !notify->command;
		if (!has_kind(notify, kind))
			continue;
		if (notify->command)
			ll_notify_link_send(server->notify, message, notify->command);
		else
			tell_terminals(server, about, message);
	}
	if (!has_terminals && is_told_by_default(kind))
		tell_terminals(server, about, message);
}

void ll_events_tell(const struct ll_server *server, enum ll_event_kind kind, const struct ll_event_about *about,
		    const char *format, ...)
{
	static const struct ll_event_about nothing = {NULL, NULL, NULL, NULL, false, 0};
	char text[LL_EVENT_TEXT_SIZE];
	union ll_message message;
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	ll_warn("%s: %s", ll_config_events[kind], text);
	if (!server->is_system)
		return;
	ll_message_init(&message, LL_MESSAGE_EVENT);
	describe_event(server, kind, about ? about : &nothing, &message.event);
	ll_message_text_set(message.event.text, sizeof message.event.text, text);
	pass_on(server, kind, about ? about : &nothing, &message);
}

void ll_event_duration(uint64_t ns, char ret_text[LL_EVENT_DURATION_SIZE])
{
	uint64_t s = (ns + LL_NS_PER_S / 2) / LL_NS_PER_S;
	if (s < 2 * MINUTE_S)
		snprintf(ret_text, LL_EVENT_DURATION_SIZE, "%" PRIu64 " s", s);
	else if (s < 2 * HOUR_S)
		snprintf(ret_text, LL_EVENT_DURATION_SIZE, "%" PRIu64 " min", s / MINUTE_S);
	else if (s < 2 * DAY_S)
		snprintf(ret_text, LL_EVENT_DURATION_SIZE, "%.1f h", (double)s / HOUR_S);
	else
		snprintf(ret_text, LL_EVENT_DURATION_SIZE, "%.1f d", (double)s / DAY_S);
}
