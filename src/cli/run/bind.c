#include "cli/run/bind.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/run/job.h"
#include "protocol/client.h"

#define PAUSE_NS (5 * LL_NS_PER_MS)

/* What a daemon says, or who is missing, between the end of one and the moment at which the job's monitor has
 * registered the job with the next. */
static bool may_pass(int rc)
{
	return ll_client_is_lost(rc) || rc == -ECONNREFUSED || rc == -EAGAIN || rc == -ESRCH;
}

/* The configuration of the machine may give the job other limits on a card that is given whole. */
static int bind_card(struct ll_client *client, struct ll_run_settings *settings, const struct ll_card *card,
		     bool may_overcommit, uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message message, reply;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = settings->id;
	message.bind.promisable_bytes = may_overcommit ? 0 : card->usable_bytes;
	message.bind.usable_bytes = card->usable_bytes;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, card->uuid);
	int rc = ll_client_request(client, &message, NULL, 0, &reply, deadline_ns, err);
	if (!rc && reply.header.kind == LL_MESSAGE_ACCEPTED)
		ll_run_job_take_limits(settings, &reply.accepted);
	return rc;
}

/* Binds those from *next on. */
static int bind_rest(const struct ll_place *place, struct ll_run_settings *settings, const struct ll_card *const *cards,
		     size_t count, bool may_overcommit, size_t *next, uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_client client;
	struct ll_place system;
	int rc = ll_client_open(&client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	/* The job may have moved to the system's loadlined since it began. */
	if (rc == -ECONNREFUSED && ll_place_system_beside(place->name, settings->folder, &system)) {
		ll_client_close(&client);
		rc = ll_client_open(&client, &system, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	}
	for (; !rc && *next < count; *next += !rc)
		rc = bind_card(&client, settings, cards[*next], may_overcommit, deadline_ns, err);
	ll_client_close(&client);
	return rc;
}

int ll_run_bind(struct ll_run_settings *settings, const struct ll_card *const *cards, size_t count, bool may_overcommit,
		const struct ll_card **ret_card, struct ll_err *err)
{
	struct ll_place place;
	size_t next = 0;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	if (ll_place_read(settings->place, &place) < 0)
		return ll_err_set(err, -EINVAL, "%s: does not say where loadlined is", LL_RUN_VARIABLE);
	for (;;) {
		int rc = bind_rest(&place, settings, cards, count, may_overcommit, &next, deadline_ns, err);
		if (rc && next < count)
			*ret_card = cards[next];
		if (!may_pass(rc) || ll_now_ns() >= deadline_ns)
			return rc;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
}
