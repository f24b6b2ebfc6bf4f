#include "cli/evict/evictor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/packet.h"
#include "base/scope.h"
#include "cli/mover/start.h"
#include "mover/folder.h"
#include "mover/protocol.h"

/* A mover that was killed left its programs on the card: they connect to the one that is started here. */
static int connect_to_mover(const struct ll_evictor_target *target, int *ret_fd, struct ll_err *err)
{
	const struct ll_card *card = target->card;
	char folder[LL_FOLDER_SIZE], name[LL_UUID_SIZE + sizeof LL_MOVER_SOCKET_SUFFIX];
	int rc = ll_mover_folder(ll_driver_sim_folder(card->driver), folder, err);
	if (!rc && target->is_evictable)
		rc = ll_mover_start(card, folder, err);
	if (rc)
		return rc;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, card->uuid);
	rc = ll_packet_connect(folder, name, ret_fd);
	return rc ? ll_err_set(err, -EOPNOTSUPP, "no mover serves the card") : 0;
}

/* Returns false if the user has interrupted it. */
static bool wait_for_answer(int fd, const struct ll_evict_interrupt *interrupt)
{
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = interrupt ? interrupt->fd : -1, .events = POLLIN}};
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return fds[0].revents || !fds[1].revents;
}

static int exchange_packets(int fd, const struct ll_mover_message *message, const struct ll_evict_interrupt *interrupt,
			    struct ll_mover_message *ret_answer)
{
	size_t fd_count;
	/* A mover that has no descriptor for this connection answers before it is asked, and closes. */
	ll_packet_send(fd, message, sizeof *message, NULL, 0);
	if (!wait_for_answer(fd, interrupt))
		return -EINTR;
	int rc = ll_packet_receive(fd, true, ret_answer, sizeof *ret_answer, NULL, 0, &fd_count);
	return rc == -ECONNRESET ? ll_packet_receive(fd, true, ret_answer, sizeof *ret_answer, NULL, 0, &fd_count) : rc;
}

static int ask_mover(const struct ll_evictor_target *target, enum ll_mover_kind kind,
		     struct ll_evictor_moved *ret_moved, struct ll_err *err)
{
	struct ll_mover_message answer;
	struct ll_mover_message message = {.kind = kind, .number = target->claim, .value = target->wait_ns};
	LL_SCOPE_CLOSE int fd = -1;
	if (!target->card)
		return ll_err_set(err, -EOPNOTSUPP, "it has no claim");
	int rc = connect_to_mover(target, &fd, err);
	if (rc)
		return rc;
	rc = exchange_packets(fd, &message, target->interrupt, &answer);
	if (rc == -EINTR)
		return ll_err_set(err, rc, "interrupted");
	if (rc)
		return ll_err_set(err, rc, "the mover has ended");
	if (answer.value)
		return ll_err_set(err, answer.value == ENOENT ? -EOPNOTSUPP : -(int)answer.value, "%.*s",
				  (int)sizeof answer.text, answer.text);
	*ret_moved =
	    (struct ll_evictor_moved){.bytes = answer.bytes,
				      .took_ns = answer.number,
				      .is_already = strncmp(answer.text, LL_MOVER_ALREADY, sizeof answer.text) == 0};
	return 0;
}

static int evict_by_mover(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			  struct ll_err *err)
{
	return ask_mover(target, LL_MOVER_EVICT, ret_moved, err);
}

static int suspend_by_mover(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			    struct ll_err *err)
{
	return ask_mover(target, LL_MOVER_SUSPEND, ret_moved, err);
}

static int resume_by_mover(const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved,
			   struct ll_err *err)
{
	return ask_mover(target, LL_MOVER_RESUME, ret_moved, err);
}

const struct ll_evictor ll_evictor_mover = {
    .name = "mover", .evict = evict_by_mover, .suspend = suspend_by_mover, .resume = resume_by_mover};
