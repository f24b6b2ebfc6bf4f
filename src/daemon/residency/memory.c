#include "daemon/residency/residency.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "rules/residency/grants.h"

/* How long memory is reserved for a process after the reply to its want. */
#define PROMISE_NS UINT64_C(20000000)

enum { WORD_BITS = 32 };

/* A process may undo a step at once. The number of steps for each claim is limited; the next ones follow after
 * AGAIN_NS. */
enum { STEPS_PER_CLAIM = 8, STEPS_MIN = 64 };
#define AGAIN_NS UINT64_C(1000000)

static struct ll_orders_card *orders_of(const struct ll_job_card *card)
{
	return &card->job->pages.orders->cards[card->index];
}

/* ---- memory that is leaving ---- */

static uint64_t leaving_units(const struct ll_job_card *card)
{
	uint64_t units = 0;
	for (const struct ll_leaving *leaving = card->leaving; leaving; leaving = leaving->next)
		units += leaving->units;
	return units;
}

uint64_t ll_memory_leaving_bytes(const struct ll_job_card *card)
{
	return leaving_units(card) * LL_MEMORY_UNIT;
}

/* If there is no memory for the entry, the bytes count as freed. The card itself then refuses an allocation that does
 * not fit. */
static void add_leaving(struct ll_job_card *card, uint32_t units, uint64_t since_ns)
{
	struct ll_leaving *leaving = units ? calloc(1, sizeof *leaving) : NULL;
	if (!leaving)
		return;
	*leaving = (struct ll_leaving){.units = units, .until_ns = since_ns + LL_LEAVING_NS};
	struct ll_leaving **at = &card->leaving;
	while (*at)
		at = &(*at)->next;
	*at = leaving;
	atomic_store(&orders_of(card)->leaving_bytes, ll_memory_leaving_bytes(card));
}

static void drop_leaving(struct ll_job_card *card, uint64_t now_ns)
{
	while (card->leaving && card->leaving->until_ns <= now_ns) {
		struct ll_leaving *gone = card->leaving;
		card->leaving = gone->next;
		free(gone);
	}
}

bool ll_memory_release(struct ll_job_claim *claim, bool is_freed)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	uint32_t used = LL_MEMORY_USED(slot->memory);
	if (!is_freed)
		add_leaving(claim->card, used, ll_now_ns());
	return used > 0;
}

void ll_memory_adopt(struct ll_job_card *card, uint64_t death_ns)
{
	uint64_t units = ll_memory_units(orders_of(card)->leaving_bytes), now_ns = ll_now_ns();
	add_leaving(card, units < LL_MEMORY_UNITS_MAX ? (uint32_t)units : LL_MEMORY_UNITS_MAX,
		    death_ns < now_ns ? death_ns : now_ns);
}

void ll_memory_forget(struct ll_job_card *card)
{
	drop_leaving(card, UINT64_MAX);
}

/* ---- the words of one claim ---- */

void ll_memory_begin(struct ll_job_claim *claim)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	claim->granted = LL_MEMORY_GRANTED(slot->memory);
	claim->answered = (uint32_t)(slot->memory_reply >> WORD_BITS);
	claim->asked = slot->reserve_asked;
}

/* Sets the grant, but never below the used memory. The process changes its part of the word at the same time. */
static void set_grant(struct ll_job_claim *claim, uint32_t granted)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	uint64_t old = slot->memory, new;
	do {
		uint32_t used = LL_MEMORY_USED(old);
		new = LL_MEMORY_WORD(granted > used ? granted : used, used);
	} while (!atomic_compare_exchange_weak(&slot->memory, &old, new));
	claim->granted = LL_MEMORY_GRANTED(new);
}

/* The grant in the page is for the process to read. If it differs from the granted value, another process wrote it. */
static void repair_grant(struct ll_job_claim *claim)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	bool is_changed = LL_MEMORY_GRANTED(slot->memory) != claim->granted;
	if (slot->token != claim->token || slot->card != claim->card->index) {
		slot->card = claim->card->index;
		slot->token = claim->token;
		is_changed = true;
	}
	if (!is_changed)
		return;
	set_grant(claim, claim->granted);
	claim->card->repairs++;
}

bool ll_memory_has_want(const struct ll_job_claim *claim)
{
	uint64_t word = ll_claim_slot(claim)->memory_want;
	return (uint32_t)word && (uint32_t)(word >> WORD_BITS) != claim->answered;
}

static void read_want(struct ll_job_claim *claim)
{
	uint64_t word = ll_claim_slot(claim)->memory_want;
	uint32_t serial = (uint32_t)(word >> WORD_BITS), units = (uint32_t)word;
	if (!units || serial == claim->answered) {
		claim->want = (struct ll_want){0};
		return;
	}
	if (!claim->want.units || claim->want.serial != serial)
		claim->want = (struct ll_want){.serial = serial, .number = ++claim->card->last_want};
	claim->want.units = units;
}

static void reply_to_want(struct ll_job_claim *claim, int code)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	claim->answered = claim->want.serial;
	claim->want = (struct ll_want){0};
	atomic_store(&slot->memory_reply, (uint64_t)claim->answered << WORD_BITS | (uint32_t)code);
	ll_page_wake(&slot->wake_count);
}

/* ---- the reserves of others ---- */

static bool is_asking(const struct ll_job_card *card, uint64_t now_ns)
{
	if (now_ns >= card->asking_until_ns)
		return false;
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		const struct ll_page_slot *slot = ll_claim_slot(claim);
		if (LL_MEMORY_USED(slot->memory) && slot->reserve_given != claim->asked)
			return true;
	}
	return false;
}

/* One round of requests serves all wants: each process frees all that it can. The process for which the round is made
 * is not asked. */
static void request_reserves(struct ll_job_card *card, struct ll_job_claim *who, uint64_t now_ns)
{
	who->want.has_asked = true;
	if (is_asking(card, now_ns))
		return;
	card->asking_until_ns = now_ns + LL_RESERVES_NS;
	for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		struct ll_page_slot *slot = ll_claim_slot(claim);
		if (claim == who || !LL_MEMORY_USED(slot->memory))
			continue;
		claim->asked = slot->reserve_given + 1;
		atomic_store(&slot->reserve_asked, claim->asked);
		ll_page_wake(&slot->wake_count);
	}
}

/* ---- decisions ---- */

static struct ll_grants_step next_step(struct ll_job_card *card, struct ll_grants_member *members, uint64_t now_ns)
{
	struct ll_grants grants = {.members = members,
				   .limit = card->job->facts.limits.memory_bytes / LL_MEMORY_UNIT,
				   .leaving = leaving_units(card),
				   .is_asking = is_asking(card, now_ns)};
	for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		uint64_t word = ll_claim_slot(claim)->memory, want = ll_claim_slot(claim)->memory_want;
		/* The process has what was promised if it wants nothing more, or something new. */
		bool has_thanked = !(uint32_t)want || (uint32_t)(want >> WORD_BITS) != claim->answered;
		if (now_ns >= claim->promised_until_ns || LL_MEMORY_USED(word) >= claim->promised || has_thanked)
			claim->promised = 0;
		members[grants.count++] = (struct ll_grants_member){.granted = claim->granted,
								    .used = LL_MEMORY_USED(word),
								    .promised = claim->promised,
								    .want = claim->want.units,
								    .want_number = claim->want.number,
								    .has_asked = claim->want.has_asked};
	}
	if (!grants.limit && card->job->facts.limits.memory_bytes)
		grants.limit = 1;
	return ll_grants_next(&grants);
}

static void make_step(struct ll_job_card *card, const struct ll_grants_step *step, uint64_t now_ns)
{
	struct ll_job_claim *who = card->claims;
	for (size_t i = step->who; who && i > 0; i--)
		who = who->next;
	if (!who)
		return;
	switch (step->kind) {
	case LL_GRANTS_SET:
		set_grant(who, step->granted);
		break;
	case LL_GRANTS_SERVE:
		who->promised = step->granted;
		who->promised_until_ns = now_ns + PROMISE_NS;
		reply_to_want(who, 0);
		break;
	case LL_GRANTS_REQUEST_RESERVES:
		request_reserves(card, who, now_ns);
		break;
	case LL_GRANTS_REFUSE:
		who->card->job->refused_ns = ll_now_ns();
		reply_to_want(who, ENOMEM);
		break;
	case LL_GRANTS_REST:
		break;
	}
}

/* ---- time ---- */

/* Finds what must be done even if no process sends WAKE. */
static void find_due(struct ll_job_card *card, bool has_more, uint64_t now_ns)
{
	bool has_want = false;
	uint64_t due_ns = has_more ? now_ns + AGAIN_NS : UINT64_MAX, wants_ns = UINT64_MAX;
	if (card->leaving && card->leaving->until_ns < due_ns)
		due_ns = card->leaving->until_ns;
	if (card->asking_until_ns)
		wants_ns = card->asking_until_ns;
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		has_want |= claim->want.units > 0;
		if (claim->promised && claim->promised_until_ns < wants_ns)
			wants_ns = claim->promised_until_ns;
	}
	if (has_want && wants_ns < due_ns)
		due_ns = wants_ns;
	card->due_ns = due_ns == UINT64_MAX ? 0 : due_ns;
}

static void on_due(uv_timer_t *timer);

/* Starts the timer for the earliest due time. */
static void set_timer(struct ll_server *server)
{
	uint64_t first_ns = 0, now_ns = ll_now_ns();
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		const struct ll_job_claims *claims = job->claims;
		for (unsigned i = 0; claims && i < claims->card_count; i++) {
			uint64_t due_ns = claims->cards[i]->due_ns;
			if (due_ns && (!first_ns || due_ns < first_ns))
				first_ns = due_ns;
		}
	}
	if (first_ns)
		uv_timer_start(&server->memory_timer, on_due,
			       first_ns > now_ns ? (first_ns - now_ns) / LL_NS_PER_MS + 1 : 0, 0);
	else
		uv_timer_stop(&server->memory_timer);
}

static void settle_card(struct ll_job_card *card, uint64_t now_ns)
{
	drop_leaving(card, now_ns);
	for (struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		repair_grant(claim);
		read_want(claim);
	}
	struct ll_grants_member *members = card->claims ? calloc(card->claim_count, sizeof *members) : NULL;
	struct ll_grants_step step = {.kind = card->claims ? LL_GRANTS_SET : LL_GRANTS_REST};
	unsigned left = STEPS_MIN + STEPS_PER_CLAIM * card->claim_count;
	while (members && step.kind != LL_GRANTS_REST && left-- > 0) {
		step = next_step(card, members, now_ns);
		make_step(card, &step, now_ns);
	}
	free(members);
	if (!is_asking(card, now_ns))
		card->asking_until_ns = 0;
	find_due(card, step.kind != LL_GRANTS_REST, now_ns);
	atomic_store(&orders_of(card)->used_bytes, ll_memory_used_bytes(card));
	atomic_store(&orders_of(card)->leaving_bytes, ll_memory_leaving_bytes(card));
}

static void on_due(uv_timer_t *timer)
{
	struct ll_server *server = timer->data;
	uint64_t now_ns = ll_now_ns();
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		struct ll_job_claims *claims = job->claims;
		for (unsigned i = 0; claims && i < claims->card_count; i++) {
			if (claims->cards[i]->due_ns && claims->cards[i]->due_ns <= now_ns)
				settle_card(claims->cards[i], now_ns);
		}
	}
	set_timer(server);
}

void ll_memory_settle(struct ll_server *server, struct ll_job_card *card)
{
	settle_card(card, ll_now_ns());
	set_timer(server);
}

/* Decides only if something about memory has changed, because most WAKE messages are about launches. */
void ll_memory_wake(struct ll_server *server, struct ll_job_claim *claim)
{
	uint64_t word = ll_claim_slot(claim)->memory, limit_bytes = claim->card->job->facts.limits.memory_bytes;
	bool is_charged = LL_MEMORY_USED(word) > claim->granted, is_spoilt = LL_MEMORY_GRANTED(word) != claim->granted;
	/* More than the limit was used at the last look: each byte that is freed since then counts. */
	bool was_over = limit_bytes && orders_of(claim->card)->used_bytes > limit_bytes;
	if (is_charged || is_spoilt || ll_memory_has_want(claim) || claim->card->asking_until_ns || was_over)
		ll_memory_settle(server, claim->card);
}

uint64_t ll_memory_used_bytes(const struct ll_job_card *card)
{
	uint64_t units = leaving_units(card);
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next)
		units += LL_MEMORY_USED(ll_claim_slot(claim)->memory);
	return units * LL_MEMORY_UNIT;
}

int ll_memory_init(struct ll_server *server)
{
	server->memory_timer.data = server;
	return uv_timer_init(&server->loop, &server->memory_timer);
}

void ll_memory_fini(struct ll_server *server)
{
	uv_close((uv_handle_t *)&server->memory_timer, NULL);
}
