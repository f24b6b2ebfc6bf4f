#include "cli/evict/evict.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/common/daemon.h"
#include "protocol/client.h"

/* loadlined says each second how far it is. */
#define SILENCE_NS (5 * LL_NS_PER_S)
/* One that was killed is followed by another within some ms. */
#define RETRY_NS (20 * LL_NS_PER_MS)

/* -EINTR: the user has interrupted it. -EBUSY: the deadline has passed. */
static int wait_for_answer(int fd, const struct ll_evict_interrupt *interrupt, uint64_t deadline_ns, struct ll_err *err)
{
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = interrupt ? interrupt->fd : -1, .events = POLLIN}};
	uint64_t now_ns = ll_now_ns(), left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
	int timeout_ms = (int)((left_ns < SILENCE_NS ? left_ns : SILENCE_NS) / LL_NS_PER_MS);
	while (poll(fds, 2, timeout_ms + 1) < 0 && errno == EINTR)
		;
	if (!fds[0].revents && fds[1].revents)
		return ll_err_set(err, -EINTR, "interrupted");
	if (!fds[0].revents && ll_now_ns() >= deadline_ns)
		return ll_err_set(err, -EBUSY, "there is no room for it yet: it returns as soon as the card has room");
	return 0;
}

static void note_progress(struct ll_evict_interrupt *interrupt, const struct ll_message_move *progress)
{
	if (!interrupt)
		return;
	pthread_mutex_lock(&interrupt->lock);
	snprintf(interrupt->waits_for, sizeof interrupt->waits_for, "%s", progress->reason);
	pthread_mutex_unlock(&interrupt->lock);
}

static void init_request(const struct ll_evictor_target *target, enum ll_message_kind kind,
			 union ll_message *ret_message)
{
	ll_message_init(ret_message, kind);
	ret_message->move.job = target->job_token;
	ret_message->move.index = target->claim;
	ret_message->move.value = kind == LL_MESSAGE_RESUME ? 0 : target->wait_ns;
	ret_message->move.slot_token = target->batch.number;
	ret_message->move.slot = target->batch.count;
	ll_message_text_set(ret_message->move.reason, sizeof ret_message->move.reason,
			    target->reason ? target->reason : "");
	snprintf(ret_message->move.uuid, sizeof ret_message->move.uuid, "%s", target->card->uuid);
}

static int send_request(struct ll_client *client, struct ll_evict_interrupt *interrupt, union ll_message *message,
			struct ll_err *err)
{
	if (interrupt)
		pthread_mutex_lock(&interrupt->lock);
	int rc = interrupt && atomic_load(&interrupt->is_set)
		     ? ll_err_set(err, -EINTR, "interrupted")
		     : ll_client_send(client, message, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	if (interrupt)
		pthread_mutex_unlock(&interrupt->lock);
	return rc;
}

/* Waits for the end of it, as long as loadlined says how far it is. The deadline is for room alone. */
static int await_end(struct ll_client *client, struct ll_evict_interrupt *interrupt, uint64_t deadline_ns,
		     union ll_message *message, struct ll_err *err)
{
	int rc = send_request(client, interrupt, message, err);
	bool has_room = false;
	while (!rc) {
		rc = wait_for_answer(client->fd, interrupt, has_room ? UINT64_MAX : deadline_ns, err);
		if (!rc)
			rc = ll_client_receive(client, message, ll_now_ns() + LL_NS_PER_MS, err);
		if (!rc && message->header.kind == LL_MESSAGE_MOVED)
			return 0;
		if (!rc && message->header.kind == LL_MESSAGE_PROGRESS) {
			has_room = message->move.flags & LL_MOVE_HAS_ROOM;
			note_progress(interrupt, &message->move);
		}
	}
	return rc;
}

static int ask_once(const struct ll_evictor_target *target, enum ll_message_kind kind, uint64_t end_ns,
		    union ll_message *ret_message, struct ll_err *err)
{
	struct ll_client client;
	int rc = ll_daemon_open(ll_driver_sim_folder(target->card->driver), &client, err);
	init_request(target, kind, ret_message);
	if (!rc)
		rc = await_end(&client, target->interrupt, end_ns, ret_message, err);
	ll_client_close(&client);
	return rc;
}

int ll_evictor_program_send(const struct ll_evictor_target *target, enum ll_message_kind kind, struct ll_err *err)
{
	struct ll_client client;
	union ll_message message;
	int rc = ll_daemon_open(ll_driver_sim_folder(target->card->driver), &client, err);
	init_request(target, kind, &message);
	if (!rc)
		rc = ll_client_send(&client, &message, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	ll_client_close(&client);
	return rc;
}

/* Another loadlined than was asked has to be asked anew. */
static int ask_program(const struct ll_evictor_target *target, enum ll_message_kind kind,
		       struct ll_evictor_moved *ret_moved, struct ll_err *err)
{
	union ll_message message;
	if (!target->card || !target->job_token)
		return ll_err_set(err, -EOPNOTSUPP, "it has no claim");
	uint64_t now_ns = ll_now_ns(), deadline_ns = now_ns + LL_CLIENT_REPLY_NS;
	uint64_t end_ns = kind == LL_MESSAGE_RESUME && target->wait_ns ? now_ns + target->wait_ns : UINT64_MAX;
	int rc = ask_once(target, kind, end_ns, &message, err);
	while ((ll_client_is_lost(rc) || rc == -ECONNREFUSED) && ll_now_ns() < deadline_ns) {
		ll_sleep_until_ns(ll_now_ns() + RETRY_NS);
		rc = ask_once(target, kind, end_ns, &message, err);
	}
	if (rc)
		return rc;
	*ret_moved = (struct ll_evictor_moved){.bytes = message.move.bytes,
					       .took_ns = message.move.value,
					       .is_already = message.move.flags & LL_MOVE_ALREADY};
	return 0;
}

static int evict_program(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved, struct ll_err *err)
{
	return ask_program(target, LL_MESSAGE_EVICT, ret_moved, err);
}

static int suspend_program(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			   struct ll_err *err)
{
	return ask_program(target, LL_MESSAGE_SUSPEND, ret_moved, err);
}

static int resume_program(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			  struct ll_err *err)
{
	return ask_program(target, LL_MESSAGE_RESUME, ret_moved, err);
}

const struct ll_evictor ll_evictor_program = {
    .name = "program", .evict = evict_program, .suspend = suspend_program, .resume = resume_program};
