#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/packet.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/doctor/doctor.h"
#include "cli/hold/words.h"
#include "mover/folder.h"
#include "mover/host.h"
#include "mover/pool.h"
#include "mover/protocol.h"

enum { ANSWER_MS = 2000 };

static const char check[] = "mover";

void ll_doctor_check_pool(struct ll_doctor *doctor)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	uint64_t budget = ll_mover_pool_default_budget();
	uint64_t host = ll_host_memory_bytes(), limit = ll_host_group_limit_bytes();
	bool is_limited = limit < host;
	ll_hold_add_bytes(&text, budget);
	ll_strbuf_adds(&text,
		       is_limited ? ": half of what the control group allows, " : ": half of the host's memory, ");
	ll_hold_add_bytes(&text, is_limited ? limit : host);
	if (text.failed)
		return;
	if (budget)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "pool", NULL, "for programs' memory off the card %s",
			      text.buf);
	else
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, "pool",
			      "programs cannot be evicted; give the group more memory",
			      "for programs' memory off the card %s", text.buf);
}

/* -ECONNREFUSED, -ENOENT: no mover. */
static int ask_mover(const struct ll_card *card, struct ll_mover_message *ret_answer, struct ll_err *err)
{
	char folder[LL_FOLDER_SIZE], name[LL_UUID_SIZE + sizeof LL_MOVER_SOCKET_SUFFIX];
	struct ll_mover_message message = {.kind = LL_MOVER_ASK};
	LL_SCOPE_CLOSE int fd = -1;
	size_t fd_count;
	int rc = ll_mover_folder(ll_driver_sim_folder(card->driver), folder, err);
	if (rc)
		return rc;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, card->uuid);
	rc = ll_packet_connect(folder, name, &fd);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return -ENOENT;
	if (!rc)
		rc = ll_packet_send(fd, &message, sizeof message, NULL, 0);
	if (!rc && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ANSWER_MS) <= 0)
		rc = -ETIMEDOUT;
	if (!rc)
		rc = ll_packet_receive(fd, true, ret_answer, sizeof *ret_answer, NULL, 0, &fd_count);
	return rc ? ll_err_set(err, rc, "the mover does not answer: %s", strerror(-rc)) : 0;
}

void ll_doctor_check_mover(struct ll_doctor *doctor, const struct ll_card *card)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_mover_message answer = {0};
	struct ll_err err = {0};
	int rc = ask_mover(card, &answer, &err);
	if (rc == -ENOENT) {
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "none; `loadline run --evictable` starts one");
	} else if (rc) {
		ll_err_hint(&err, "its programs take their memory back by themselves if it is killed");
		ll_doctor_say_err(doctor, LL_FINDING_WARN, card, check, &err);
	} else {
		ll_strbuf_adds(&text, "serves the card, with a pool of at most ");
		ll_hold_add_bytes(&text, answer.bytes);
		ll_strbuf_adds(&text, ", pinned ");
		ll_hold_add_bytes(&text, answer.number);
		if (*answer.text)
			ll_strbuf_addf(&text, "; on neighbours: %.*s", (int)sizeof answer.text - 1, answer.text);
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "%s",
			      text.failed ? "serves the card" : text.buf);
	}
}
