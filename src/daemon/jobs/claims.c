#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/server.h"
#include "daemon/residency/residency.h"
#include "protocol/accounts.h"

static void count_change(const struct ll_job *job)
{
	atomic_fetch_add(&job->pages.orders->slot_changes, 1);
}

/* ---- cards ---- */

struct ll_job_card *ll_job_card_find(const struct ll_job *job, const char *uuid)
{
	const struct ll_job_claims *claims = job->claims;
	for (unsigned i = 0; claims && i < claims->card_count; i++) {
		if (strcmp(claims->cards[i]->uuid, uuid) == 0)
			return claims->cards[i];
	}
	return NULL;
}

/* Adds the card that has the next index. Its UUID is in the orders already if the page was adopted. */
static int add_card(struct ll_server *server, struct ll_job *job, const char *uuid, struct ll_job_card **ret_card)
{
	struct ll_job_claims *claims = job->claims;
	if (claims->card_count == LL_PAGE_CARDS)
		return -ENOSPC;
	struct ll_job_card *card = calloc(1, sizeof *card);
	if (!card)
		return -ENOMEM;
	card->job = job;
	card->index = claims->card_count;
	ll_message_text_set(card->uuid, sizeof card->uuid, uuid);
	struct ll_card_join join = {.uuid = card->uuid,
				    .id = job->number,
				    .tenant = job->facts.tenant,
				    .page = job->pages.page,
				    .orders = job->pages.orders,
				    .index = card->index,
				    .uid = job->facts.uid,
				    .limits = job->facts.limits};
	server->wants_tick = true; /* other jobs may be on the card */
	int rc = ll_cards_join(&server->cards, &join, &card->share);
	if (rc) {
		free(card);
		return rc;
	}
	uint64_t words[LL_CARD_UUID_SIZE / 8];
	memcpy(words, card->uuid, sizeof words);
	for (size_t i = sizeof words / sizeof *words; i-- > 0;)
		atomic_store(&job->pages.orders->cards[card->index].uuid[i], words[i]);
	claims->cards[claims->card_count++] = card;
	ll_accounting_note_card(server->accounting);
	*ret_card = card;
	return 0;
}

int ll_job_card_get(struct ll_server *server, struct ll_job *job, const char *uuid, const char *first_card,
		    struct ll_job_card **ret_card)
{
	struct ll_job_card *first;
	int rc = 0;
	if (*first_card && !ll_job_card_find(job, first_card))
		rc = add_card(server, job, first_card, &first);
	struct ll_job_card *card = rc ? NULL : ll_job_card_find(job, uuid);
	if (!rc && !card)
		rc = add_card(server, job, uuid, &card);
	if (!rc)
		*ret_card = card;
	return rc;
}

/* ---- claims ---- */

struct ll_page_slot *ll_claim_slot(const struct ll_job_claim *claim)
{
	return &claim->card->job->pages.page->slots[claim->slot];
}

void ll_claim_identify(const struct ll_job_claim *claim, struct ll_claim_identity *ret_identity)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	*ret_identity = (struct ll_claim_identity){
	    .pid = slot->pid, .namespaces = slot->namespaces, .start_ticks = slot->start_ticks};
}

struct ll_job_claim *ll_claims_find(const struct ll_job *job, unsigned slot, uint64_t token)
{
	struct ll_job_claim *claim = slot < LL_PAGE_SLOTS ? job->claims->slots[slot] : NULL;
	return claim && claim->token == token ? claim : NULL;
}

/* Adds a claim for a slot whose identity is written. */
static int add_claim(struct ll_job_card *card, unsigned slot, uint64_t token, struct ll_job_claim **ret_claim)
{
	struct ll_job_claims *claims = card->job->claims;
	struct ll_job_claim *claim = calloc(1, sizeof *claim);
	const char *first = card->index ? claims->cards[0]->uuid : NULL;
	if (!claim || ll_card_claim_add(card->share, slot, first, &claim->share)) {
		free(claim);
		return -ENOMEM;
	}
	claim->card = card;
	claim->slot = slot;
	claim->token = token;
	struct ll_job_claim **at = &card->claims;
	while (*at && (*at)->slot < slot)
		at = &(*at)->next;
	claim->next = *at;
	*at = claim;
	claims->slots[slot] = claim;
	claims->claim_count++;
	card->claim_count++;
	ll_memory_begin(claim);
	*ret_claim = claim;
	return 0;
}

/* wake_count keeps counting, because threads of an ended process may have slept on it until now. */
static void clear_slot(struct ll_page_slot *slot)
{
	uint32_t wake_count = slot->wake_count;
	memset((void *)slot, 0, sizeof *slot);
	slot->wake_count = wake_count + 1;
}

static uint64_t write_identity(struct ll_page_slot *slot, unsigned card, const struct ll_claim_identity *identity)
{
	uint64_t token = 0;
	while (!token) {
		if (getrandom(&token, sizeof token, 0) != sizeof token)
			token = ll_wall_ns();
	}
	clear_slot(slot);
	slot->card = card;
	slot->pid = identity->pid;
	slot->namespaces = identity->namespaces;
	slot->start_ticks = identity->start_ticks;
	slot->taken_ns = ll_now_ns();
	atomic_store_explicit(&slot->token, token, memory_order_release);
	return token;
}

int ll_claims_grant(struct ll_server *server, struct ll_job_card *card, struct ll_user *user,
		    const struct ll_claim_identity *identity, struct ll_job_claim **ret_claim)
{
	unsigned index = 0;
	while (index < LL_PAGE_SLOTS && card->job->claims->slots[index])
		index++;
	if (index == LL_PAGE_SLOTS)
		return -ENOSPC;
	struct ll_job_pages *pages = &card->job->pages;
	struct ll_page_slot *slot = &pages->page->slots[index];
	/* Sets the orders first: processes may read the page's value. */
	if (index >= pages->orders->slot_end)
		atomic_store(&pages->orders->slot_end, index + 1);
	atomic_store(&pages->page->slot_end, pages->orders->slot_end);
	int rc = add_claim(card, index, write_identity(slot, card->index, identity), ret_claim);
	if (rc) {
		clear_slot(slot);
		return rc;
	}
	(*ret_claim)->user = user;
	user->claims++;
	count_change(card->job);
	ll_minutes_wake(server);
	ll_memory_settle(server, card);
	return 0;
}

void ll_claims_wake(struct ll_server *server, struct ll_job_claim *claim)
{
	ll_memory_wake(server, claim);
	ll_card_claim_wake(claim->share);
}

/* Frees the claim, and leaves its slot unchanged. */
static void free_claim(struct ll_job_claim *claim)
{
	struct ll_job_card *card = claim->card;
	struct ll_job_claims *claims = card->job->claims;
	struct ll_job_claim **at = &card->claims;
	while (*at != claim)
		at = &(*at)->next;
	*at = claim->next;
	claims->slots[claim->slot] = NULL;
	claims->claim_count--;
	card->claim_count--;
	ll_card_claim_remove(claim->share);
	if (claim->user)
		ll_user_drop(claim->user);
	free(claim);
}

/* Memory that is leaving is written first, so that the books include it at each moment. The death is written last: a
 * reader of it then sees that the slot is released, and need not read again. */
void ll_claims_end(struct ll_server *server, struct ll_job_claim *claim, bool is_freed)
{
	struct ll_job_card *card = claim->card;
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (card->account) /* while the claim still counts as held */
		ll_account_read(card->account, ll_now_ns());
	bool had_memory = ll_memory_release(claim, is_freed);
	ll_residency_end(server, claim);
	ll_accounts_end(card->job->pages.page, slot, ll_now_ns());
	atomic_store(&slot->token, 0);
	if (had_memory)
		ll_card_job_note_death(card->share, ll_now_ns());
	count_change(card->job);
	ll_page_wake(&slot->wake_count);
	free_claim(claim);
	ll_memory_settle(server, card);
}

/* ---- pages of a former daemon, and the end ---- */

static int adopt_cards(struct ll_server *server, struct ll_job *job)
{
	int rc = 0;
	for (unsigned i = 0; i < LL_PAGE_CARDS && !rc; i++) {
		char uuid[LL_PAGE_UUID_SIZE];
		struct ll_job_card *card;
		struct ll_orders_card *orders = &job->pages.orders->cards[i];
		uint64_t death_ns = orders->death_ns;
		ll_orders_read_uuid(orders, uuid);
		if (!*uuid)
			break;
		rc = add_card(server, job, uuid, &card);
		if (rc)
			break;
		if (death_ns > orders->death_ns)
			orders->death_ns = death_ns;
		ll_memory_adopt(card, death_ns);
	}
	return rc;
}

static int adopt_slot(struct ll_job *job, unsigned index)
{
	struct ll_page_slot *slot = &job->pages.page->slots[index];
	struct ll_job_claims *claims = job->claims;
	struct ll_job_claim *claim;
	uint64_t token = slot->token;
	unsigned card = slot->card;
	if (!token)
		return 0;
	if (card >= claims->card_count) { /* the slot has no valid card: its process will request another slot */
		slot->token = 0;
		count_change(job);
		ll_page_wake(&slot->wake_count);
		return 0;
	}
	return add_claim(claims->cards[card], index, token, &claim);
}

int ll_claims_adopt(struct ll_server *server, struct ll_job *job)
{
	job->claims = calloc(1, sizeof *job->claims);
	if (!job->claims)
		return -ENOMEM;
	int rc = adopt_cards(server, job);
	unsigned end = job->pages.orders->slot_end;
	for (unsigned i = 0; i < end && i < LL_PAGE_SLOTS && !rc; i++)
		rc = adopt_slot(job, i);
	for (unsigned i = 0; i < job->claims->card_count && !rc; i++)
		ll_memory_settle(server, job->claims->cards[i]);
	if (!rc && ll_users_adopt(server, job))
		server->wants_tick = true;
	ll_minutes_wake(server);
	return rc;
}

void ll_claims_fini(struct ll_server *server, struct ll_job *job)
{
	struct ll_job_claims *claims = job->claims;
	for (unsigned i = 0; claims && i < claims->card_count; i++) {
		struct ll_job_card *card = claims->cards[i];
		/* Releases the slots, so that a remaining process sees that it has none. */
		for (struct ll_job_claim *claim; (claim = card->claims);) {
			struct ll_page_slot *slot = ll_claim_slot(claim);
			ll_residency_end(server, claim);
			atomic_store(&slot->token, 0);
			free_claim(claim);
			ll_page_wake(&slot->wake_count);
		}
		ll_card_job_leave(card->share);
		ll_memory_forget(card);
		free(card);
	}
	free(claims);
	job->claims = NULL;
}
