/*
 * A fuzz target for the messages, in both directions: what the daemon and what monitors and commands receive goes
 * through the same decoder.
 *
 * Under libFuzzer (meson setup -Dfuzz=…, or clang -fsanitize=fuzzer) it is given any bytes. Without, it is an ordinary
 * test: it replays the files of the corpus, each of them with each byte changed, and each cut.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/message.h"
#include "target.h"

/* What every receiver relies on. */
static void check_facts(const struct ll_job_facts *facts)
{
	expect(facts->token[0] || facts->token[1], "a job has a token");
	expect(facts->state >= LL_JOB_QUEUED && facts->state <= LL_JOB_ENDED, "its state has a name");
	expect(facts->limits.priority <= LL_LIMIT_CLASS_LOW, "its class has a name");
	expect(ll_message_text_is_valid(facts->tenant, sizeof facts->tenant), "its tenant can be shown");
	expect(ll_message_text_is_valid(facts->command, sizeof facts->command), "its command can be shown");
	expect(ll_message_text_is_valid(facts->cgroup, sizeof facts->cgroup), "its group can be shown");
}

static void check_text(const char *text, size_t size)
{
	expect(ll_message_text_is_valid(text, size), "a text can be shown");
}

static void check_sensed(const union ll_message *message)
{
	const struct ll_message_sense_process *process = &message->sense_process;
	if (message->header.kind == LL_MESSAGE_SENSE_CARD) {
		expect(message->sense_card.uuid[0], "a card has a name");
		check_text(message->sense_card.name, sizeof message->sense_card.name);
		check_text(message->sense_card.bus_id, sizeof message->sense_card.bus_id);
		return;
	}
	expect(process->pid && process->uuid[0], "a process has a number and a card");
	check_text(process->command, sizeof process->command);
	check_text(process->program, sizeof process->program);
	check_text(process->cgroup, sizeof process->cgroup);
}

static void check_queued(const union ll_message *message)
{
	if (message->header.kind == LL_MESSAGE_ADMIT) {
		expect(message->admit.job != 0, "a job has a token");
		expect(message->admit.limits.priority <= LL_LIMIT_CLASS_LOW, "its class has a name");
		check_text(message->admit.tenant, sizeof message->admit.tenant);
		check_text(message->admit.command, sizeof message->admit.command);
	} else if (message->header.kind == LL_MESSAGE_ADMITTED) {
		expect(message->admitted.card_count <= LL_QUEUE_CARDS_OF_JOB, "the cards have room");
	} else if (message->header.kind == LL_MESSAGE_QUEUED) {
		check_text(message->queued.why.of, sizeof message->queued.why.of);
		check_text(message->queued.why.cards, sizeof message->queued.why.cards);
	} else {
		check_text(message->queue_row.why.of, sizeof message->queue_row.why.of);
		check_text(message->queue_row.why.cards, sizeof message->queue_row.why.cards);
		check_text(message->queue_row.tenant, sizeof message->queue_row.tenant);
		check_text(message->queue_row.command, sizeof message->queue_row.command);
	}
}

static void check_message(const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_JOB:
		check_facts(&message->job.job);
		break;
	case LL_MESSAGE_JOB_ROW:
		check_facts(&message->job_row.job);
		break;
	case LL_MESSAGE_WELCOME:
		expect(ll_message_text_is_valid(message->welcome.version_text, LL_VERSION_SIZE),
		       "a version can be shown");
		break;
	case LL_MESSAGE_REFUSED:
		expect(message->refused.code < 0, "a refusal is an error");
		expect(ll_message_text_is_valid(message->refused.reason, LL_REASON_SIZE), "a reason can be shown");
		break;
	case LL_MESSAGE_ADMIT:
	case LL_MESSAGE_ADMITTED:
	case LL_MESSAGE_QUEUED:
	case LL_MESSAGE_QUEUE_ROW:
		check_queued(message);
		break;
	case LL_MESSAGE_SENSE_CARD:
	case LL_MESSAGE_SENSE_PROCESS:
		check_sensed(message);
		break;
	case LL_MESSAGE_REPORT:
		expect(message->report.since_s <= message->report.until_s, "a period has a length");
		break;
	case LL_MESSAGE_REPORT_ROW:
		expect(message->report_row.used_s >= 0, "use is an amount");
		check_text(message->report_row.key, sizeof message->report_row.key);
		break;
	case LL_MESSAGE_EVENT:
		check_text(message->event.text, sizeof message->event.text);
		check_text(message->event.command, sizeof message->event.command);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	union ll_message message, again;
	int rc = ll_message_decode(bytes, length, &message);
	expect(rc == 0 || rc == -EPROTO || rc == -ENOTSUP, "there are three answers");
	if (rc)
		return 0;
	check_message(&message);
	/* What was decoded is a message: as this version sends it, it decodes to the same. */
	union ll_message sent = message;
	ll_message_init(&again, (enum ll_message_kind)message.header.kind);
	sent.header.size = again.header.size;
	expect(ll_message_decode(&sent, sent.header.size, &again) == 0, "a decoded message is good");
	expect(memcmp((const char *)&sent, (const char *)&again, sizeof sent) == 0, "and the same");
	return 0;
}

#ifndef LL_LIBFUZZER
static void replay(const char *path)
{
	uint8_t bytes[LL_MESSAGE_MAX];
	FILE *file = fopen(path, "re");
	expect(file != NULL, path);
	size_t length = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, length);
	for (size_t cut = 0; cut <= length; cut++) {
		/* On the heap, so that a sanitizer sees a byte too many. */
		uint8_t *copy = malloc(cut ? cut : 1);
		expect(copy != NULL, "memory");
		memcpy(copy, bytes, cut);
		LLVMFuzzerTestOneInput(copy, cut);
		free(copy);
	}
	for (size_t i = 0; i < length; i++) {
		uint8_t was = bytes[i];
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[i] = (uint8_t)(was ^ (1U << bit));
			LLVMFuzzerTestOneInput(bytes, length);
		}
		bytes[i] = was;
	}
}

int main(int argc, char **argv)
{
	expect(argc > 1, "there is a corpus");
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%d files\n", argc - 1);
	return 0;
}
#endif
