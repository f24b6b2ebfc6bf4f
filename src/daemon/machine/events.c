#include "daemon/machine/machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/keys.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

/* ---- the message ---- */

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
	if (about->job) {
		event->job = about->job->number;
		event->flags |= LL_EVENT_HAS_USER;
		event->uid = about->job->facts.uid;
		ll_message_text_set(event->tenant, sizeof event->tenant, about->job->department_tenant);
		ll_message_text_set(event->command, sizeof event->command, about->job->facts.command);
	}
	if (about->card) {
		const struct ll_machine_card *card = server->machine ? ll_machine_card_find(server, about->card) : NULL;
		event->flags |= LL_EVENT_HAS_CARD;
		event->card = card ? card->index : UINT32_MAX;
		event->slice = card ? card->slice : LL_MACHINE_NO_SLICE;
		ll_message_text_set(event->uuid, sizeof event->uuid, about->card);
	}
}

/* ---- terminals ---- */

static void tell_terminals(const struct ll_server *server, const struct ll_event_about *about,
			   const union ll_message *message)
{
	for (const struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		const struct ll_job *job = connection->job;
		if (connection->role != LL_ROLE_MONITOR || !job)
			continue;
		bool is_concerned = about->card && ll_job_card_find(job, about->card);
		if (about->tenant || about->has_uid)
			is_concerned = (!about->tenant || strcmp(job->department_tenant, about->tenant) == 0) &&
				       (!about->has_uid || job->facts.uid == about->uid);
		if (about->job)
			is_concerned = about->job == job;
		if (is_concerned && ll_message_send(connection->fd, message, NULL, 0))
			ll_debug("job %llu is not told: its monitor does not listen", (unsigned long long)job->number);
	}
}

void ll_events_tell(const struct ll_server *server, enum ll_event_kind kind, const struct ll_event_about *about,
		    const char *format, ...)
{
	static const struct ll_event_about nothing = {NULL, NULL, NULL, NULL, false, 0};
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	char text[LL_EVENT_TEXT_SIZE];
	union ll_message message;
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	ll_warn("%s: %s", ll_config_events[kind], text);
	if (!server->is_system)
		return;
	about = about ? about : &nothing;
	ll_message_init(&message, LL_MESSAGE_EVENT);
	describe_event(server, kind, about, &message.event);
	ll_message_text_set(message.event.text, sizeof message.event.text, text);
	/* What is done to a job is told on its terminal, unless the configuration says what goes to terminals. */
	bool is_for_terminals = kind == LL_EVENT_RECLAIM || kind == LL_EVENT_EVICTED || kind == LL_EVENT_RESUMED ||
				kind == LL_EVENT_STOPPED || kind == LL_EVENT_TIME_ENDING;
	for (size_t i = 0; policy && i < policy->notify.count; i++) {
		const struct ll_config_notify *notify = &policy->notify.items[i];
		bool has_kind = false;
		for (size_t k = 0; k < notify->events.count; k++)
			has_kind |= notify->events.items[k] == (int)kind;
		is_for_terminals = is_for_terminals && notify->command;
		if (has_kind && notify->command)
			ll_notify_link_send(server->notify, &message, notify->command);
		else if (has_kind)
			tell_terminals(server, about, &message);
	}
	if (is_for_terminals)
		tell_terminals(server, about, &message);
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
