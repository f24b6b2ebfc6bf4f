#include "cli/status/decisions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

enum { TRIES = 5 };

/* ---- asking ---- */

/* Returns 1 at the end. */
static int take_message(struct ll_decision_list *list, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_DECISIONS_STATE:
		list->has_state = true;
		list->state = message->decisions_state;
		return 0;
	case LL_MESSAGE_DECISION:
		return ll_client_add_row(&list->decisions, &list->decision_count, &message->decision,
					 sizeof message->decision);
	case LL_MESSAGE_DECISION_JOB:
		return ll_client_add_row(&list->jobs, &list->job_count, &message->decision_job,
					 sizeof message->decision_job);
	case LL_MESSAGE_DECISIONS_END:
		return 1;
	default:
		return 0;
	}
}

static int read_once(struct ll_decision_list *list, struct ll_client *client, const char *uuid, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	union ll_message message;
	*list = (struct ll_decision_list){.has_state = false};
	ll_message_init(&message, LL_MESSAGE_DECISIONS);
	snprintf(message.decisions.uuid, sizeof message.decisions.uuid, "%s", uuid);
	int rc = ll_client_send(client, &message, deadline_ns, err);
	while (!rc) {
		rc = ll_client_receive(client, &message, deadline_ns, err);
		if (rc)
			return rc;
		rc = take_message(list, &message);
		if (rc < 0)
			return ll_err_set(err, rc, "loadlined: %s", strerror(-rc));
	}
	return rc == 1 ? 0 : rc;
}

/* Whether each decision and each of its jobs is there: some may have gone while they were sent. */
static bool is_whole(const struct ll_decision_list *list)
{
	size_t jobs = 0;
	for (size_t i = 0; i < list->decision_count; i++) {
		const struct ll_message_decision *decision = &list->decisions[i];
		if (decision->number != list->state.number + i)
			return false;
		for (uint32_t k = 0; k < decision->jobs; k++, jobs++) {
			if (jobs == list->job_count || list->jobs[jobs].number != decision->number)
				return false;
		}
	}
	return jobs == list->job_count;
}

int ll_decision_list_read(struct ll_decision_list *list, struct ll_client *client, const char *uuid, struct ll_err *err)
{
	*list = (struct ll_decision_list){.has_state = false};
	for (int i = 0; i < TRIES; i++) {
		ll_decision_list_fini(list);
		int rc = read_once(list, client, uuid, err);
		if (rc || is_whole(list))
			return rc;
	}
	return ll_err_set(err, -EAGAIN, "decisions come faster than they can be read");
}

void ll_decision_list_fini(struct ll_decision_list *list)
{
	free(list->decisions);
	free(list->jobs);
	*list = (struct ll_decision_list){.has_state = false};
}

/* ---- all cards ---- */

struct shown {
	const struct ll_card *const *cards;
	size_t count;
	bool is_json;
};

static int show_text(const struct ll_decision_list *list, const struct ll_card *card, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_decision_list_add_text(&text, list, card->label, ll_wall_ns());
	if (text.failed)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	fwrite(text.buf, 1, text.length, stdout);
	return 0;
}

static int show(const struct shown *shown, struct ll_client *client, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < shown->count; i++) {
		struct ll_decision_list list;
		if (!shown->cards[i]->uuid[0]) /* it does not answer */
			continue;
		rc = ll_decision_list_read(&list, client, shown->cards[i]->uuid, err);
		if (!rc)
			rc = shown->is_json ? ll_decision_list_print_json(&list, shown->cards[i], ll_wall_ns(), err)
					    : show_text(&list, shown->cards[i], err);
		ll_decision_list_fini(&list);
	}
	return rc;
}

static int request_decisions(void *data, struct ll_client *client, const struct ll_list *list, struct ll_err *err)
{
	(void)list;
	return client ? show(data, client, err) : 0;
}

int ll_status_decisions(const struct ll_driver *driver, const struct ll_card *const *cards, size_t count, bool is_json,
			struct ll_err *err)
{
	struct shown shown = {.cards = cards, .count = count, .is_json = is_json};
	return ll_daemon_look(ll_driver_sim_folder(driver), false, request_decisions, &shown, err);
}
