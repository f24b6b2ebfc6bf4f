#include "mover/books.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define ANSWER_NS (100 * LL_NS_PER_MS)
/* After no answer, as from a daemon that is stopped. */
#define PAUSE_NS (2 * LL_NS_PER_S)
/* Processes have 5 s to come back to a new daemon. */
#define SETTLE_NS (6 * LL_NS_PER_S)

void ll_mover_books_init(struct ll_mover_books *books, const char *sim_folder, const char *version)
{
	*books = (struct ll_mover_books){.version = version, .client = {.fd = -1}};
	books->has_place = ll_place_find(sim_folder, &books->place, NULL) == 0;
}

void ll_mover_books_fini(struct ll_mover_books *books)
{
	ll_client_close(&books->client);
	ll_list_fini(&books->list);
}

void ll_mover_books_rest(struct ll_mover_books *books)
{
	ll_client_close(&books->client);
}

static int connect_daemon(struct ll_mover_books *books, uint64_t now_ns)
{
	int rc =
	    ll_client_open(&books->client, &books->place, LL_CLIENT_COMMAND(books->version), now_ns + ANSWER_NS, NULL);
	uint64_t age_ns = books->client.welcome.age_ns;
	if (rc)
		ll_client_close(&books->client);
	else
		books->settled_ns = age_ns < SETTLE_NS ? now_ns + SETTLE_NS - age_ns : now_ns;
	return rc;
}

static int read_list(struct ll_mover_books *books, uint64_t now_ns)
{
	struct ll_list list;
	int rc = books->client.fd < 0 ? connect_daemon(books, now_ns) : 0;
	if (rc)
		return rc;
	rc = ll_client_list(&books->client, &list, now_ns + ANSWER_NS, NULL);
	if (rc) {
		ll_list_fini(&list);
		ll_client_close(&books->client);
		return rc;
	}
	ll_list_fini(&books->list);
	books->list = list;
	books->list_ns = now_ns;
	books->unserved_ns = 0;
	return 0;
}

/* No jobs, as far as can be seen: a daemon that was killed is there again within some ms. */
static void note_unserved(struct ll_mover_books *books, uint64_t now_ns)
{
	if (!books->unserved_ns)
		books->unserved_ns = now_ns;
	books->settled_ns = books->unserved_ns + SETTLE_NS;
	if (now_ns < books->settled_ns)
		return;
	ll_list_fini(&books->list);
	books->list_ns = now_ns;
}

bool ll_mover_books_read(struct ll_mover_books *books)
{
	uint64_t now_ns = ll_now_ns();
	if (!books->has_place || now_ns < books->again_ns)
		return false;
	int rc = -EPIPE;
	for (int i = 0; i < 2 && ll_client_is_lost(rc); i++)
		rc = read_list(books, now_ns);
	if (rc == -ECONNREFUSED)
		note_unserved(books, now_ns);
	else if (rc)
		books->again_ns = now_ns + PAUSE_NS;
	return !rc || rc == -ECONNREFUSED;
}

bool ll_mover_books_are_settled(const struct ll_mover_books *books)
{
	return books->list_ns && books->list_ns >= books->settled_ns;
}

const struct ll_message_claim_row *ll_mover_books_find(const struct ll_mover_books *books, const char *uuid,
						       unsigned number)
{
	for (size_t i = 0; i < books->list.claim_count; i++) {
		const struct ll_message_claim_row *claim = &books->list.claims[i];
		if (claim->index == number && strcmp(claim->uuid, uuid) == 0)
			return claim;
	}
	return NULL;
}

bool ll_mover_books_is_claimed(struct ll_mover_books *books, const char *uuid)
{
	if (!ll_mover_books_read(books))
		return true;
	for (size_t i = 0; i < books->list.claim_count; i++) {
		if (strcmp(books->list.claims[i].uuid, uuid) == 0)
			return true;
	}
	return false;
}
