#include "protocol/sensed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Returns 1 at the end. */
static int take_row(struct ll_sensed *sensed, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_SENSE_CARD:
		return ll_client_add_row(&sensed->cards, &sensed->card_count, &message->sense_card,
					 sizeof message->sense_card);
	case LL_MESSAGE_SENSE_PROCESS:
		return ll_client_add_row(&sensed->processes, &sensed->process_count, &message->sense_process,
					 sizeof message->sense_process);
	case LL_MESSAGE_SENSE_DRAINED:
		return ll_client_add_row(&sensed->drained, &sensed->drained_count, &message->sense_drained,
					 sizeof message->sense_drained);
	case LL_MESSAGE_SENSE_END:
		sensed->end = message->sense_end;
		return 1;
	default:
		return 0;
	}
}

int ll_sensed_read(struct ll_sensed *sensed, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message message;
	*sensed = (struct ll_sensed){.end.silent_ns = UINT64_MAX};
	ll_message_init(&message, LL_MESSAGE_SENSED);
	int rc = ll_client_send(client, &message, deadline_ns, err);
	while (!rc) {
		rc = ll_client_receive(client, &message, deadline_ns, err);
		if (rc)
			return rc;
		rc = take_row(sensed, &message);
		if (rc == -ENOMEM)
			return ll_err_set(err, rc, "loadlined: %s", strerror(ENOMEM));
	}
	return rc == 1 ? 0 : rc;
}

void ll_sensed_fini(struct ll_sensed *sensed)
{
	free(sensed->cards);
	free(sensed->processes);
	free(sensed->drained);
	*sensed = (struct ll_sensed){.end.silent_ns = UINT64_MAX};
}

const struct ll_message_sense_process *ll_sensed_find(const struct ll_sensed *sensed, const char *uuid, uint32_t pid)
{
	for (size_t i = 0; sensed->end.silent_ns < LL_SENSED_FRESH_NS && i < sensed->process_count; i++) {
		if (sensed->processes[i].pid == pid && strcmp(sensed->processes[i].uuid, uuid) == 0)
			return &sensed->processes[i];
	}
	return NULL;
}
