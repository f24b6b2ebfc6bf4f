#include "protocol/message.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/utf8.h"
#include "protocol/page.h"
#include "protocol/words.h"

enum { PERMILLE_MAX = 1000, WEIGHT_MAX = 100000, SLOWDOWN_MIN = 1000, SLOWDOWN_MAX = 10000 };

int ll_message_text_is_valid(const char *text, size_t size)
{
	uint32_t character;
	size_t length;
	if (!memchr(text, '\0', size))
		return false;
	for (; (length = ll_utf8_next(text, &character)); text += length) {
		if (!ll_utf8_is_printable(character))
			return false;
	}
	return true;
}

void ll_message_text_set(char *ret_text, size_t size, const char *text)
{
	memset(ret_text, 0, size);
	snprintf(ret_text, size, "%s", text);
	ll_utf8_clean(ret_text);
}

/* ---- the checks of each kind ---- */

bool ll_limits_are_valid(const struct ll_limits *limits)
{
	return limits->compute_permille <= PERMILLE_MAX && limits->space_permille <= PERMILLE_MAX &&
	       limits->weight_permille <= WEIGHT_MAX && limits->priority <= LL_LIMIT_CLASS_LOW &&
	       limits->sharing <= LL_LIMIT_SHARING_HELD_ALL && limits->slowdown_permille <= SLOWDOWN_MAX &&
	       (limits->slowdown_permille >= SLOWDOWN_MIN || !limits->slowdown_permille);
}

static bool is_hello_valid(const union ll_message *message)
{
	const struct ll_message_hello *hello = &message->hello;
	return hello->protocol && hello->role <= LL_ROLE_SENSOR && hello->role &&
	       ll_message_text_is_valid(hello->version_text, sizeof hello->version_text);
}

static bool is_welcome_valid(const union ll_message *message)
{
	const struct ll_message_welcome *welcome = &message->welcome;
	return welcome->protocol && ll_message_text_is_valid(welcome->version_text, sizeof welcome->version_text) &&
	       ll_message_text_is_valid(welcome->policy_fault, sizeof welcome->policy_fault);
}

static bool is_refused_valid(const union ll_message *message)
{
	return message->refused.code < 0 &&
	       ll_message_text_is_valid(message->refused.reason, sizeof message->refused.reason);
}

static bool are_facts_valid(const struct ll_job_facts *job)
{
	return (job->token[0] || job->token[1]) && ll_limits_are_valid(&job->limits) && job->state >= LL_JOB_QUEUED &&
	       job->state <= LL_JOB_ENDED && job->tenant[0] &&
	       ll_message_text_is_valid(job->tenant, sizeof job->tenant) &&
	       ll_message_text_is_valid(job->command, sizeof job->command) &&
	       ll_message_text_is_valid(job->cgroup, sizeof job->cgroup);
}

/* And the name of a job. */
static bool is_project_valid(const char *project)
{
	return ll_message_text_is_valid(project, LL_NAME_SIZE);
}

static bool is_job_valid(const union ll_message *message)
{
	return are_facts_valid(&message->job.job) && is_project_valid(message->job.project) &&
	       is_project_valid(message->job.name) &&
	       ll_message_text_is_valid(message->job.program_name, sizeof message->job.program_name);
}

static bool is_accepted_valid(const union ll_message *message)
{
	return ll_limits_are_valid(&message->accepted.limits) &&
	       ll_message_text_is_valid(message->accepted.tenant, sizeof message->accepted.tenant);
}

static bool is_job_row_valid(const union ll_message *message)
{
	return message->job_row.number && are_facts_valid(&message->job_row.job) &&
	       is_project_valid(message->job_row.project) &&
	       ll_message_text_is_valid(message->job_row.tenant, sizeof message->job_row.tenant);
}

static bool is_tenant_row_valid(const union ll_message *message)
{
	const struct ll_message_tenant_row *row = &message->tenant_row;
	return row->number && ll_limits_are_valid(&row->limits) &&
	       ll_message_text_is_valid(row->name, sizeof row->name);
}

static bool is_uuid_valid(const char uuid[LL_CARD_UUID_SIZE])
{
	return uuid[0] && ll_message_text_is_valid(uuid, LL_CARD_UUID_SIZE);
}

static bool is_own_settings_valid(const union ll_message *message)
{
	return ll_message_text_is_valid(message->own_settings.text, sizeof message->own_settings.text);
}

static bool is_bind_valid(const union ll_message *message)
{
	return message->bind.job && is_uuid_valid(message->bind.uuid);
}

static bool is_claim_valid(const union ll_message *message)
{
	const struct ll_message_claim *claim = &message->claim;
	return claim->job && claim->slot < LL_PAGE_SLOTS && ll_message_text_is_valid(claim->uuid, sizeof claim->uuid) &&
	       ll_message_text_is_valid(claim->first_card, sizeof claim->first_card);
}

static bool is_claimed_valid(const union ll_message *message)
{
	const struct ll_message_claimed *claimed = &message->claimed;
	return claimed->slot < LL_PAGE_SLOTS && claimed->card < LL_PAGE_CARDS;
}

static bool is_slot_valid(const union ll_message *message)
{
	return message->slot.slot_token && message->slot.slot < LL_PAGE_SLOTS;
}

static bool is_set_valid(const union ll_message *message)
{
	return message->set.job_number && ll_limits_are_valid(&message->set.limits) &&
	       ll_message_text_is_valid(message->set.reason, sizeof message->set.reason);
}

static bool is_checkpoint_valid(const union ll_message *message)
{
	return message->checkpoint.state <= LL_CHECKPOINT_EVICTED;
}

static bool is_page_valid(const union ll_message *message)
{
	return message->page.job_number;
}

static bool is_card_row_valid(const union ll_message *message)
{
	return message->card_row.job_number && is_uuid_valid(message->card_row.uuid) &&
	       message->card_row.shared <= LL_SHARED_LAST;
}

static bool is_claim_row_valid(const union ll_message *message)
{
	const struct ll_message_claim_row *row = &message->claim_row;
	return row->job_number && is_uuid_valid(row->uuid) && ll_message_text_is_valid(row->note, sizeof row->note) &&
	       row->state <= LL_CLAIM_ENDING && row->residency <= LL_CLAIM_EVICTED &&
	       row->checkpoint <= LL_CHECKPOINT_EVICTED &&
	       ll_message_text_is_valid(row->neighbour, sizeof row->neighbour);
}

static bool is_move_valid(const union ll_message *message)
{
	const struct ll_message_move *move = &message->move;
	return move->slot < LL_PAGE_SLOTS && ll_message_text_is_valid(move->uuid, sizeof move->uuid) &&
	       ll_message_text_is_valid(move->reason, sizeof move->reason);
}

static bool is_share_valid(const union ll_message *message)
{
	return message->share.count <= LL_MESSAGE_FDS;
}

static bool is_decisions_valid(const union ll_message *message)
{
	return is_uuid_valid(message->decisions.uuid);
}

static bool is_decisions_state_valid(const union ll_message *message)
{
	const struct ll_message_decisions_state *state = &message->decisions_state;
	bool are_finite = isfinite(state->gain);
	for (size_t i = 0; i < LL_DECISION_MIXES; i++)
		are_finite = are_finite && isfinite(state->mixes[i].gain);
	return are_finite && state->mix <= LL_DECISION_MIXES;
}

static bool is_decision_valid(const union ll_message *message)
{
	const struct ll_message_decision *decision = &message->decision;
	return decision->number && isfinite(decision->gain) && isfinite(decision->part) &&
	       isfinite(decision->from_part) && isfinite(decision->busy) && isfinite(decision->weighed_s);
}

static bool is_decision_job_valid(const union ll_message *message)
{
	const struct ll_message_decision_job *job = &message->decision_job;
	return job->number && isfinite(job->slices) && isfinite(job->visits) && isfinite(job->alone) &&
	       isfinite(job->held_launches) && isfinite(job->held_s) && isfinite(job->open_launches) &&
	       isfinite(job->open_s) && ll_message_text_is_valid(job->tenant, sizeof job->tenant);
}

static bool is_policy_tenant_valid(const union ll_message *message)
{
	return ll_message_text_is_valid(message->policy_tenant.name, sizeof message->policy_tenant.name);
}

static bool is_policy_part_valid(const union ll_message *message)
{
	const struct ll_message_policy_part *part = &message->policy_part;
	return ll_message_text_is_valid(part->tenant, sizeof part->tenant) &&
	       ll_message_text_is_valid(part->group, sizeof part->group);
}

static bool is_policy_budget_valid(const union ll_message *message)
{
	const struct ll_message_policy_budget *budget = &message->policy_budget;
	return ll_message_text_is_valid(budget->tenant, sizeof budget->tenant) && budget->per <= LL_POLICY_MONTH &&
	       isfinite(budget->gpu_hours) && isfinite(budget->granted_hours);
}

static bool is_report_prices_valid(const union ll_message *message)
{
	const struct ll_message_report_prices *prices = &message->report_prices;
	return ll_message_text_is_valid(prices->currency, sizeof prices->currency) && isfinite(prices->gpu_hour) &&
	       isfinite(prices->gib_hour);
}

static bool is_sense_card_valid(const union ll_message *message)
{
	const struct ll_message_sense_card *card = &message->sense_card;
	return is_uuid_valid(card->uuid) && ll_message_text_is_valid(card->bus_id, sizeof card->bus_id) &&
	       ll_message_text_is_valid(card->name, sizeof card->name) && card->slice >= -1 && card->numa_node >= -1;
}

static bool is_sense_process_valid(const union ll_message *message)
{
	const struct ll_message_sense_process *process = &message->sense_process;
	return is_uuid_valid(process->uuid) && process->pid && process->last <= LL_SENSE_LAST_AT_LEAST &&
	       ll_message_text_is_valid(process->command, sizeof process->command) &&
	       ll_message_text_is_valid(process->program, sizeof process->program) &&
	       ll_message_text_is_valid(process->cgroup, sizeof process->cgroup);
}

static bool is_sense_health_valid(const union ll_message *message)
{
	return is_uuid_valid(message->sense_health.uuid);
}

static bool is_sense_conditions_valid(const union ll_message *message)
{
	return is_uuid_valid(message->sense_conditions.uuid);
}

static bool is_sense_drained_valid(const union ll_message *message)
{
	return ll_message_text_is_valid(message->sense_drained.reason, sizeof message->sense_drained.reason);
}

static bool is_sense_end_valid(const union ll_message *message)
{
	return ll_message_text_is_valid(message->sense_end.reason, sizeof message->sense_end.reason);
}

enum { REPORT_BYS = 6 };

static bool is_report_valid(const union ll_message *message)
{
	return message->report.by < REPORT_BYS && message->report.since_s <= message->report.until_s;
}

static bool is_amount(double value)
{
	return isfinite(value) && value >= 0;
}

static bool is_amount_or_unknown(double value)
{
	return isnan(value) || is_amount(value);
}

static bool is_report_row_valid(const union ll_message *message)
{
	const struct ll_message_report_row *row = &message->report_row;
	return ll_message_text_is_valid(row->key, sizeof row->key) && is_amount(row->granted_s) &&
	       is_amount(row->used_s) && is_amount(row->idle_held_s) && is_amount(row->memory_byte_s) &&
	       is_amount_or_unknown(row->joules) && is_amount_or_unknown(row->lent_s) &&
	       is_amount_or_unknown(row->borrowed_s);
}

static bool is_admit_valid(const union ll_message *message)
{
	return ll_admit_is_valid(&message->admit);
}

static bool is_admitted_valid(const union ll_message *message)
{
	return ll_admitted_is_valid(&message->admitted);
}

static bool is_history_valid(const union ll_message *message)
{
	const struct ll_message_history *history = &message->history;
	return history->since_s <= history->until_s && history->how <= LL_HISTORY_HOWS &&
	       ll_message_text_is_valid(history->tenant, sizeof history->tenant);
}

static bool is_history_row_valid(const union ll_message *message)
{
	const struct ll_message_history_row *row = &message->history_row;
	return row->number && row->how && row->how <= LL_HISTORY_HOWS && is_amount(row->memory_byte_s) &&
	       ll_message_text_is_valid(row->tenant, sizeof row->tenant) &&
	       ll_message_text_is_valid(row->command, sizeof row->command) &&
	       ll_message_text_is_valid(row->name, sizeof row->name) &&
	       ll_message_text_is_valid(row->project, sizeof row->project) &&
	       ll_message_text_is_valid(row->cards, sizeof row->cards) &&
	       ll_message_text_is_valid(row->why, sizeof row->why);
}

static bool is_queued_valid(const union ll_message *message)
{
	return ll_queued_is_valid(&message->queued);
}

static bool is_queue_row_valid(const union ll_message *message)
{
	return ll_queue_row_is_valid(&message->queue_row);
}

static bool is_queue_window_valid(const union ll_message *message)
{
	const struct ll_message_queue_window *window = &message->queue_window;
	return ll_message_text_is_valid(window->tenant, sizeof window->tenant) &&
	       ll_message_text_is_valid(window->name, sizeof window->name);
}

static bool is_event_valid(const union ll_message *message)
{
	return ll_event_is_valid(&message->event);
}

static bool is_metrics_tenant_valid(const union ll_message *message)
{
	return ll_metrics_tenant_is_valid(&message->metrics_tenant);
}

static bool is_metrics_end_valid(const union ll_message *message)
{
	return ll_metrics_end_is_valid(&message->metrics_end);
}

static bool is_anything_valid(const union ll_message *message)
{
	(void)message;
	return true;
}

struct kind {
	uint16_t first_size; /* in version 1 */
	uint16_t size;       /* now */
	bool (*is_valid)(const union ll_message *message);
};

#define KIND(kind, type, check)                                                                                        \
	[LL_MESSAGE_##kind] = {sizeof(struct ll_message_##type), sizeof(struct ll_message_##type), check}

/* When a kind gets a new field, its first_size becomes the number that its size was before. */
static const struct kind kinds[] = {
    KIND(HELLO, hello, is_hello_valid),
    [LL_MESSAGE_WELCOME] = {104, sizeof(struct ll_message_welcome), is_welcome_valid},
    KIND(REFUSED, refused, is_refused_valid),
    [LL_MESSAGE_JOB] = {480, sizeof(struct ll_message_job), is_job_valid},
    [LL_MESSAGE_ACCEPTED] = {16, sizeof(struct ll_message_accepted), is_accepted_valid},
    KIND(JOB_ENDED, job_ended, is_anything_valid),
    KIND(LIST, plain, is_anything_valid),
    [LL_MESSAGE_JOB_ROW] = {504, sizeof(struct ll_message_job_row), is_job_row_valid},
    KIND(PROCESS_ROW, process_row, is_anything_valid),
    KIND(TENANT_ROW, tenant_row, is_tenant_row_valid),
    KIND(LIST_END, list_end, is_anything_valid),
    KIND(HANDOVER, handover, is_anything_valid),
    KIND(HANDED_OVER, plain, is_anything_valid),
    KIND(BIND, bind, is_bind_valid),
    KIND(CLAIM, claim, is_claim_valid),
    KIND(CLAIMED, claimed, is_claimed_valid),
    KIND(RELEASE, slot, is_slot_valid),
    KIND(WAKE, slot, is_slot_valid),
    [LL_MESSAGE_SET] = {72, sizeof(struct ll_message_set), is_set_valid},
    KIND(CHECKPOINT, checkpoint, is_checkpoint_valid),
    KIND(WATCH, plain, is_anything_valid),
    KIND(PAGE, page, is_page_valid),
    KIND(PAGE_GONE, page, is_page_valid),
    [LL_MESSAGE_CARD_ROW] = {224, sizeof(struct ll_message_card_row), is_card_row_valid},
    [LL_MESSAGE_CLAIM_ROW] = {328, sizeof(struct ll_message_claim_row), is_claim_row_valid},
    KIND(EVICTABLE, move, is_move_valid),
    KIND(SIZES, move, is_move_valid),
    KIND(QUIET, move, is_move_valid),
    KIND(BUSY, move, is_move_valid),
    KIND(COPIED, move, is_move_valid),
    KIND(AWAY, move, is_move_valid),
    KIND(NO_ROOM, move, is_move_valid),
    KIND(BACK, move, is_move_valid),
    KIND(WANT, move, is_move_valid),
    KIND(SHORT, move, is_move_valid),
    KIND(MEASURED, move, is_move_valid),
    KIND(EVICT, move, is_move_valid),
    KIND(SUSPEND, move, is_move_valid),
    KIND(RESUME, move, is_move_valid),
    KIND(STAY, move, is_move_valid),
    KIND(ROOM, move, is_move_valid),
    KIND(MEASURE, move, is_move_valid),
    KIND(PROGRESS, move, is_move_valid),
    KIND(MOVED, move, is_move_valid),
    KIND(SHARE, share, is_share_valid),
    KIND(UNSHARE, share, is_share_valid),
    KIND(OPEN, share, is_share_valid),
    KIND(OPENED, share, is_share_valid),
    KIND(NEIGHBOUR, move, is_move_valid),
    KIND(DESTINATION, move, is_move_valid),
    KIND(DECISIONS, decisions, is_decisions_valid),
    KIND(DECISIONS_STATE, decisions_state, is_decisions_state_valid),
    [LL_MESSAGE_DECISION] = {64, sizeof(struct ll_message_decision), is_decision_valid},
    [LL_MESSAGE_DECISION_JOB] = {152, sizeof(struct ll_message_decision_job), is_decision_job_valid},
    KIND(DECISIONS_END, plain, is_anything_valid),
    KIND(POLICY, plain, is_anything_valid),
    KIND(POLICY_TENANT, policy_tenant, is_policy_tenant_valid),
    KIND(POLICY_PART, policy_part, is_policy_part_valid),
    KIND(POLICY_END, plain, is_anything_valid),
    KIND(POLICY_BUDGET, policy_budget, is_policy_budget_valid),
    KIND(REPORT_PRICES, report_prices, is_report_prices_valid),
    KIND(REPORT, report, is_report_valid),
    KIND(REPORT_ROW, report_row, is_report_row_valid),
    [LL_MESSAGE_REPORT_END] = {16, sizeof(struct ll_message_report_end), is_anything_valid},
    KIND(HISTORY, history, is_history_valid),
    KIND(HISTORY_ROW, history_row, is_history_row_valid),
    KIND(OWN_JOB, plain, is_anything_valid),
    KIND(OWN_SETTINGS, own_settings, is_own_settings_valid),
    [LL_MESSAGE_ADMIT] = {248, sizeof(struct ll_message_admit), is_admit_valid},
    [LL_MESSAGE_QUEUED] = {56, sizeof(struct ll_message_queued), is_queued_valid},
    KIND(ADMITTED, admitted, is_admitted_valid),
    KIND(QUEUE, plain, is_anything_valid),
    [LL_MESSAGE_QUEUE_ROW] = {312, sizeof(struct ll_message_queue_row), is_queue_row_valid},
    KIND(QUEUE_WINDOW, queue_window, is_queue_window_valid),
    KIND(QUEUE_END, plain, is_anything_valid),
    KIND(QUEUE_ACT, queue_act, is_anything_valid),
    KIND(SIGNAL, signal, is_anything_valid),
    KIND(JOB_STATUS, job_status, is_anything_valid),
    KIND(SENSE_CARD, sense_card, is_sense_card_valid),
    KIND(SENSE_PROCESS, sense_process, is_sense_process_valid),
    KIND(SENSE_HEALTH, sense_health, is_sense_health_valid),
    KIND(SENSE_END, sense_end, is_sense_end_valid),
    KIND(SENSED, plain, is_anything_valid),
    KIND(EVENT, event, is_event_valid),
    KIND(SENSE_CONDITIONS, sense_conditions, is_sense_conditions_valid),
    KIND(SENSE_DRAINED, sense_drained, is_sense_drained_valid),
    KIND(METRICS, plain, is_anything_valid),
    KIND(METRICS_TENANT, metrics_tenant, is_metrics_tenant_valid),
    KIND(METRICS_END, metrics_end, is_metrics_end_valid),
};
enum { KINDS = sizeof kinds / sizeof *kinds };

_Static_assert(sizeof(struct ll_message_hello) == 64, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_welcome, last_job) == 104, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_card_row, shared) == 224, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_claim_row, neighbour_bytes) == 328, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_decision, part) == 64, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_decision_job, held_launches) == 152, "the sizes of version 1");
_Static_assert(sizeof(struct ll_message_refused) == 136, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_job, program) == 480, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_set, reason) == 72, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_accepted, limits) == 16, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_job_row, tenant) == 504, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_report_end, has_more) == 16, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_admit, name) == 248, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_queued, why) == 56, "the sizes of version 1");
_Static_assert(offsetof(struct ll_message_queue_row, why) == 312, "the sizes of version 1");
_Static_assert(sizeof(struct ll_message_tenant_row) == 144, "the sizes of version 1");
_Static_assert(sizeof(union ll_message) <= LL_MESSAGE_MAX, "a packet holds it");

static const struct kind *find_kind(unsigned number)
{
	return number < KINDS && kinds[number].size ? &kinds[number] : NULL;
}

uint64_t ll_version_number(const char *text)
{
	uint64_t number = 0;
	for (int part = 0; part < 3; part++) {
		char *end;
		if (*text < '0' || *text > '9')
			return 0;
		unsigned long value = strtoul(text, &end, 10);
		number = (number << 16) | (value < UINT16_MAX ? value : UINT16_MAX);
		if (part < 2 && *end != '.')
			return 0;
		text = end + 1;
	}
	return number;
}

int ll_message_decode(const void *bytes, size_t length, union ll_message *ret_message)
{
	union ll_message message;
	memset(&message, 0, sizeof message);
	if (length < sizeof message.header || length > LL_MESSAGE_MAX)
		return -EPROTO;
	memcpy(&message.header, bytes, sizeof message.header);
	if (message.header.size != length)
		return -EPROTO;
	const struct kind *kind = find_kind(message.header.kind);
	if (!kind) {
		ret_message->header = message.header;
		return -ENOTSUP;
	}
	if (length < kind->first_size)
		return -EPROTO;
	memcpy(&message, bytes, length < kind->size ? length : kind->size);
	if (!kind->is_valid(&message))
		return -EPROTO;
	*ret_message = message;
	return 0;
}

void ll_message_init(union ll_message *message, enum ll_message_kind kind)
{
	const struct kind *known = find_kind(kind);
	memset(message, 0, sizeof *message);
	message->header.kind = (uint16_t)kind;
	message->header.size = known ? known->size : (uint16_t)sizeof message->header;
}

void ll_message_init_hello(union ll_message *message, enum ll_message_role role, const char *version)
{
	ll_message_init(message, LL_MESSAGE_HELLO);
	message->hello.protocol = LL_PROTOCOL_VERSION;
	message->hello.role = role;
	if (!version)
		return;
	message->hello.version = ll_version_number(version);
	ll_message_text_set(message->hello.version_text, sizeof message->hello.version_text, version);
}

int ll_message_send(int fd, const union ll_message *message, const int *fds, size_t fd_count)
{
	return ll_packet_send(fd, message, message->header.size, fds, fd_count);
}

void ll_message_close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

int ll_message_receive(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_fd_count)
{
	char bytes[LL_MESSAGE_MAX];
	size_t length = 0, count = 0;
	int rc = ll_packet_receive_up_to(fd, false, bytes, sizeof bytes, &length, ret_fds, LL_MESSAGE_FDS, &count);
	/* If the other side closed while messages of ours were unread, it may have sent a reason before. The kernel
	 * reports the reset first, once. */
	if (rc == -ECONNRESET)
		rc = ll_packet_receive_up_to(fd, false, bytes, sizeof bytes, &length, ret_fds, LL_MESSAGE_FDS, &count);
	if (rc)
		return rc;
	rc = ll_message_decode(bytes, length, ret_message);
	if (rc) {
		ll_message_close_fds(ret_fds, count);
		count = 0;
	}
	*ret_fd_count = count;
	return rc;
}
