#include "cli/set/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "ledger/file.h"

enum { CLAIMS_MAX = 256, TENANTS_MAX = 128 };

static int fail_unknown(const char *word, struct ll_err *err)
{
	ll_err_set(err, -ENOENT, "%.80s: no such claim or tenant", word);
	ll_err_hint(err, "`loadline status` shows them");
	return -ENOENT;
}

static int open_ledger(const struct ll_card *card, struct ll_ledger **ret_ledger, struct ll_err *err)
{
	char folder[LL_FOLDER_SIZE];
	int rc = ll_ledger_folder(ll_driver_sim_folder(card->driver), folder, err);
	return rc ? rc : ll_ledger_open(folder, card->uuid, false, ret_ledger, err);
}

/* Adds a target, and takes over the ledger. */
static int add_target(struct ll_set_targets *targets, const struct ll_card *card, struct ll_ledger *ledger,
		      unsigned row, struct ll_err *err)
{
	struct ll_set_target *items = realloc(targets->items, (targets->count + 1) * sizeof *items);
	if (!items) {
		ll_ledger_close(ledger);
		return ll_err_set(err, -ENOMEM, "set: %s", strerror(ENOMEM));
	}
	targets->items = items;
	items[targets->count++] = (struct ll_set_target){.card = card, .ledger = ledger, .row = row};
	return 0;
}

/* Finds the row of the claim's tenant. */
static int find_row(struct ll_ledger *ledger, uint64_t index, const char *word, unsigned *ret_row, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS_MAX, sizeof *claims);
	size_t count = claims ? ll_ledger_list(ledger, claims, CLAIMS_MAX) : 0;
	for (size_t i = 0; i < count; i++) {
		if (claims[i].index != index)
			continue;
		if (claims[i].tenant_row) {
			*ret_row = claims[i].tenant_row - 1;
			return 0;
		}
		ll_err_set(err, -EBUSY, "%.80s: is a synthetic load, which has no limits", word);
		ll_err_hint(err, "end it and start `loadline hold` again");
		return -EBUSY;
	}
	return fail_unknown(word, err);
}

static int find_claim(struct ll_set_targets *targets, const struct ll_driver *driver, const char *word,
		      struct ll_err *err)
{
	char label[64];
	const char *slash = strrchr(word, '/');
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	struct ll_ledger *ledger = NULL;
	uint64_t index;
	unsigned row = 0;
	size_t count = 0;
	snprintf(label, sizeof label, "%.*s", (int)(slash - word), word);
	if (ll_parse_uint(slash + 1, 0, CLAIMS_MAX - 1, &index, NULL) < 0 ||
	    ll_cards_select(driver, label, &cards, &count, NULL) < 0 || count != 1)
		return fail_unknown(word, err);
	int rc = open_ledger(cards[0], &ledger, err);
	if (rc)
		return rc == -ENOENT ? fail_unknown(word, err) : rc;
	rc = find_row(ledger, index, word, &row, err);
	if (!rc)
		return add_target(targets, cards[0], ledger, row, err);
	ll_ledger_close(ledger);
	return rc;
}

/* Finds the tenant of that name in one ledger. *id: the id of the tenant of that name in earlier ledgers, 0 if there
 * was none. A tenant with the same name and another id is an error. */
static int find_in_ledger(struct ll_ledger *ledger, const char *name, uint64_t *id, unsigned *ret_row,
			  struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_tenant_info *tenants = calloc(TENANTS_MAX, sizeof *tenants);
	size_t count = tenants ? ll_tenant_list(ledger, tenants, TENANTS_MAX) : 0;
	int rc = -ENOENT;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(tenants[i].name, name) != 0)
			continue;
		if (*id && *id != tenants[i].id) {
			ll_err_set(err, -EEXIST, "%.80s: several tenants have this name", name);
			ll_err_hint(err, "choose one by the number of a claim (see `loadline status`)");
			return -EEXIST;
		}
		*id = tenants[i].id;
		*ret_row = tenants[i].row;
		rc = 0;
	}
	return rc;
}

static int find_on_card(struct ll_set_targets *targets, const struct ll_card *card, const char *name, uint64_t *id,
			struct ll_err *err)
{
	struct ll_ledger *ledger = NULL;
	unsigned row = 0;
	struct ll_err why = {0};
	int rc = open_ledger(card, &ledger, &why);
	if (!rc)
		rc = find_in_ledger(ledger, name, id, &row, &why);
	if (!rc)
		return add_target(targets, card, ledger, row, err);
	ll_ledger_close(ledger);
	if (rc != -ENOENT && err)
		*err = why;
	return rc == -ENOENT ? 0 : rc;
}

int ll_set_targets_find(struct ll_set_targets *targets, const struct ll_driver *driver, const char *word,
			struct ll_err *err)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	uint64_t id = 0;
	if (strchr(word, '/'))
		return find_claim(targets, driver, word, err);
	for (size_t i = 0; i < count; i++) {
		int rc = cards[i].fault || cards[i].has_slices ? 0 : find_on_card(targets, &cards[i], word, &id, err);
		if (rc)
			return rc;
	}
	return targets->count ? 0 : fail_unknown(word, err);
}

void ll_set_targets_fini(struct ll_set_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		ll_ledger_close(targets->items[i].ledger);
	free(targets->items);
	*targets = (struct ll_set_targets){0};
}
