#include "cli/evict/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/packet.h"
#include "base/parse.h"
#include "base/scope.h"
#include "cli/common/json_line.h"
#include "cli/set/target.h"
#include "ledger/file.h"
#include "ledger/ledger.h"

enum { CLAIMS = 256 };

const struct ll_option ll_evict_options[] = {
    LL_OPTION_JSON(struct ll_evict_args, json),
    LL_OPTION_END,
};

static int connect_to(const struct ll_card *card, int *ret_fd, struct ll_err *err)
{
	char folder[LL_FOLDER_SIZE], name[LL_UUID_SIZE + sizeof LL_MOVER_SOCKET_SUFFIX];
	int rc = ll_ledger_folder(ll_driver_sim_folder(card->driver), folder, err);
	if (rc)
		return rc;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, card->uuid);
	rc = ll_packet_connect(folder, name, ret_fd);
	if (!rc)
		return 0;
	ll_err_set(err, -ESRCH, "card %s: has no evictable program: no mover serves it", card->label);
	return ll_err_hint(err, "start the program with `loadline run --evictable`");
}

static int exchange(int fd, enum ll_mover_kind kind, unsigned claim, struct ll_mover_message *ret_answer)
{
	struct ll_mover_message message = {.kind = kind, .number = claim};
	size_t fd_count;
	int rc = ll_packet_send(fd, &message, sizeof message, NULL, 0);
	return rc ? rc : ll_packet_receive(fd, true, ret_answer, sizeof *ret_answer, NULL, 0, &fd_count);
}

static int print_done(const struct ll_evict_args *args, const struct ll_card *card, const struct ll_claim_info *claim,
		      const struct ll_mover_message *answer, const char *done, struct ll_err *err)
{
	double seconds = (double)answer->number / (double)LL_NS_PER_S;
	char id[64];
	snprintf(id, sizeof id, "%s/%u", card->label, claim->index);
	if (!args->json) {
		int printed = printf("%s %s, tenant %s: %.1f GiB in %.3f s\n", done, id, claim->tenant,
				     (double)answer->bytes / (1 << 30), seconds);
		return printed < 0 ? ll_err_set(err, -EIO, "standard output: %s", strerror(EIO)) : 0;
	}
	json_t *line = json_pack("{s:s, s:s, s:s, s:I, s:f}", "event", done, "claim", id, "tenant", claim->tenant,
				 "bytes", (json_int_t)answer->bytes, "seconds", seconds);
	return ll_json_line(line, err);
}

static int request_one(const struct ll_evict_args *args, const struct ll_card *card, const struct ll_claim_info *claim,
		       enum ll_mover_kind kind, const char *done, struct ll_err *err)
{
	struct ll_mover_message answer;
	LL_SCOPE_CLOSE int fd = -1;
	int rc = connect_to(card, &fd, err);
	if (rc)
		return rc;
	rc = exchange(fd, kind, claim->index, &answer);
	if (rc)
		return ll_err_set(err, rc, "%s/%u: the mover has ended", card->label, claim->index);
	if (answer.value)
		return ll_err_set(err, answer.value == EBUSY ? -EBUSY : -(int)answer.value, "%s/%u, tenant %s: %.*s",
				  card->label, claim->index, claim->tenant, (int)sizeof answer.text, answer.text);
	return print_done(args, card, claim, &answer, done, err);
}

/* The claim that the word names, or all of the tenant's. */
static bool is_meant(const struct ll_claim_info *claim, const struct ll_set_target *target, const char *word)
{
	const char *slash = strrchr(word, '/');
	uint64_t index;
	if (slash && ll_parse_uint(slash + 1, 0, CLAIMS - 1, &index, NULL) == 0)
		return claim->index == index;
	return claim->tenant_row == target->row + 1;
}

static int request_of(const struct ll_evict_args *args, const struct ll_set_target *target, const char *word,
		      enum ll_mover_kind kind, const char *done, struct ll_err *err)
{
	int rc = 0;
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS, sizeof *claims);
	size_t count = claims ? ll_ledger_list(target->ledger, claims, CLAIMS) : 0;
	for (size_t i = 0; i < count && i < CLAIMS && !rc; i++) {
		if (is_meant(&claims[i], target, word))
			rc = request_one(args, target->card, &claims[i], kind, done, err);
	}
	return rc;
}

int ll_evict_request(const struct ll_evict_args *args, const struct ll_operands *operands, enum ll_mover_kind kind,
		     const char *done, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	struct ll_set_targets targets = {0};
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "name one claim, such as 0/17, or one tenant");
	const char *word = operands->words[0];
	int rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = ll_set_targets_find(&targets, driver, word, err);
	for (size_t i = 0; i < targets.count && !rc; i++)
		rc = request_of(args, &targets.items[i], word, kind, done, err);
	ll_set_targets_fini(&targets);
	ll_driver_close(driver);
	return rc;
}
