/*
 * lost_tenant.c - of a job with a claim on card UUID, another process has lost its claim: loadline run -- lost_tenant
 * UUID. It says "ready", and goes on until it is killed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process_id.h"
#include "protocol/client.h"
#include "protocol/inherited.h"
#include "protocol/page.h"
#include "protocol/run_settings.h"
#include "protocol/words.h"

static int fail(const char *what, int rc)
{
	fprintf(stderr, "lost_tenant: %s: %s\n", what, strerror(-rc));
	return 1;
}

/* Takes a slot as the library does. */
static int take_slot(struct ll_client *client, const struct ll_run_settings *settings, const char *uuid,
		     struct ll_page **ret_page, struct ll_message_claimed *ret_claimed)
{
	const struct ll_process_id self = ll_process_self();
	union ll_message message, answer;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = settings->id;
	message.claim.pid = self.pid;
	message.claim.namespaces = self.namespaces;
	message.claim.start_ticks = self.start_ticks;
	ll_message_text_set(message.claim.uuid, sizeof message.claim.uuid, uuid);
	int rc = ll_message_send(client->fd, &message, NULL, 0);
	while (!rc && (rc = ll_message_receive(client->fd, &answer, fds, &count)) == -EAGAIN) {
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
		rc = 0;
	}
	if (!rc && answer.header.kind == LL_MESSAGE_REFUSED)
		return answer.refused.code < 0 ? answer.refused.code : -EPROTO;
	if (!rc)
		rc = ll_page_map(fds[0], true, ret_page);
	ll_message_close_fds(fds, count);
	if (!rc)
		*ret_claimed = answer.claimed;
	return rc;
}

int main(int argc, char **argv)
{
	struct ll_run_settings settings;
	struct ll_place place;
	struct ll_client client;
	struct ll_page *page = NULL;
	struct ll_message_claimed claimed = {.slot = 0};
	const struct ll_client_self self = {"1.0.0", LL_ROLE_PROCESS, -1, NULL};
	if (argc != 2 || ll_run_settings_find(&settings) || ll_place_read(settings.place, &place))
		return 2;
	int rc = ll_client_open(&client, &place, &self, ll_now_ns() + LL_CLIENT_REPLY_NS, NULL);
	if (rc)
		return fail("connect", rc);
	rc = take_slot(&client, &settings, argv[1], &page, &claimed);
	if (rc)
		return fail("claim", rc);
	page->slots[claimed.slot].state = LL_CLAIM_RUNNING;
	page->cards[claimed.card].lost_since_ns = ll_now_ns();
	for (bool is_ready = false;; is_ready = true) {
		uint64_t now_ns = ll_now_ns();
		page->cards[claimed.card].lost_seen_ns = now_ns;
		if (!is_ready)
			puts("ready");
		fflush(stdout);
		ll_sleep_until_ns(now_ns + LL_NS_PER_S / 5);
	}
}
