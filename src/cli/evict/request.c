#include "cli/evict/request.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/scope.h"
#include "cli/common/json_line.h"
#include "cli/evict/together.h"
#include "cli/set/target.h"
#include "ledger/ledger.h"

enum { CLAIMS = 256 };

static const char *const done_words[] = {"evicted", "suspended", "resumed"};

#define OPTION_PID                                                                                                     \
	{                                                                                                              \
		.name = "pid", .placeholder = "PID", LL_OPTION_UINT(struct ll_evict_args, pid),                        \
		.help = "Any CUDA process of this user, instead of CLAIM: by the driver's checkpoint (driver 570 or "  \
			"newer), which takes all of its memory off all its cards. Slower than a program under "        \
			"`loadline run --evictable`."                                                                  \
	}

const struct ll_option ll_evict_options[] = {
    {.name = "wait",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct ll_evict_args, wait_ns),
     .help = "How long the program may take to become quiet: its threads return from the driver, and its kernels end. "
	     "The default is 10s. After that it goes on, and the command fails. Several programs are asked to stop "
	     "together, "
	     "up to ten times before that, because they may wait for each other; these attempts take at most as long."},
    LL_OPTION_JSON(struct ll_evict_args, json),
    OPTION_PID,
    LL_OPTION_END,
};

const struct ll_option ll_resume_options[] = {
    LL_OPTION_JSON(struct ll_evict_args, json),
    OPTION_PID,
    LL_OPTION_END,
};

static int print_done(const struct ll_evict_args *args, const struct ll_evict_subject *subject, const char *done,
		      struct ll_err *err)
{
	const struct ll_evictor_moved *moved = &subject->moved;
	const char *by = subject->evictor->name;
	double seconds = (double)moved->took_ns / (double)LL_NS_PER_S;
	if (!args->json) {
		bool is_large = moved->bytes >> 30;
		int printed = printf("%s %s: %.*f %s in %.3f s%s\n", done, subject->name, is_large ? 1 : 0,
				     (double)moved->bytes / (is_large ? 1 << 30 : 1 << 20), is_large ? "GiB" : "MiB",
				     seconds, strcmp(by, "mover") == 0 ? "" : ", by the driver's checkpoint");
		return printed < 0 ? ll_err_set(err, -EIO, "standard output: %s", strerror(EIO)) : 0;
	}
	char id[64];
	if (!subject->has_claim)
		return ll_json_line(json_pack("{s:s, s:I, s:s, s:I, s:f}", "event", done, "pid",
					      (json_int_t)subject->target.pid, "by", by, "bytes",
					      (json_int_t)moved->bytes, "seconds", seconds),
				    err);
	snprintf(id, sizeof id, "%s/%u", subject->target.card->label, subject->claim.index);
	return ll_json_line(json_pack("{s:s, s:s, s:s, s:s, s:I, s:f}", "event", done, "claim", id, "tenant",
				      subject->claim.tenant, "by", by, "bytes", (json_int_t)moved->bytes, "seconds",
				      seconds),
			    err);
}

/* Prints what was done. Returns the first failure. */
static int print_all(const struct ll_evict_args *args, const struct ll_evict_subject *subjects, size_t count,
		     enum ll_evict_kind kind, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < count; i++) {
		struct ll_err why = subjects[i].why;
		int code = subjects[i].rc ? subjects[i].rc : print_done(args, &subjects[i], done_words[kind], &why);
		if (code && !rc)
			*err = why;
		rc = rc ? rc : code;
	}
	return rc;
}

/* ---- who is meant ---- */

struct subjects {
	struct ll_evict_subject *items;
	size_t count;
};

/* The claim that the word names, or all of the tenant's. */
static bool is_meant(const struct ll_claim_info *claim, const struct ll_set_target *target, const char *word)
{
	const char *slash = strrchr(word, '/');
	uint64_t index;
	if (slash && ll_parse_uint(slash + 1, 0, CLAIMS - 1, &index, NULL) == 0)
		return claim->index == index;
	return claim->tenant_row == target->row + 1;
}

static void add_claim(struct subjects *subjects, const struct ll_evict_args *args, struct ll_driver *driver,
		      const struct ll_set_target *target, const struct ll_claim_info *claim)
{
	struct ll_evict_subject *subject = &subjects->items[subjects->count++];
	*subject = (struct ll_evict_subject){.target = {.driver = driver,
							.card = target->card,
							.claim = claim->index,
							.is_evictable = claim->residency != LL_CLAIM_FIXED,
							.pid = claim->is_pid_ours ? claim->pid : 0,
							.wait_ns = args->wait_ns},
					     .claim = *claim,
					     .has_claim = true};
	snprintf(subject->name, sizeof subject->name, "%s/%u, tenant %s", target->card->label, claim->index,
		 claim->tenant);
}

/* Adds those of one card. */
static int add_claims(struct subjects *subjects, const struct ll_evict_args *args, struct ll_driver *driver,
		      const struct ll_set_target *target, const char *word, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS, sizeof *claims);
	struct ll_evict_subject *items =
	    claims ? realloc(subjects->items, (subjects->count + CLAIMS) * sizeof *items) : NULL;
	if (!items)
		return ll_err_set(err, -ENOMEM, "a list of programs: %s", strerror(ENOMEM));
	subjects->items = items;
	size_t count = ll_ledger_list(target->ledger, claims, CLAIMS);
	for (size_t i = 0; i < count && i < CLAIMS; i++) {
		if (is_meant(&claims[i], target, word))
			add_claim(subjects, args, driver, target, &claims[i]);
	}
	return 0;
}

/* ---- asking ---- */

/* Several programs of a mover are stopped together before anything leaves. */
static int ask_and_print(const struct ll_evict_args *args, struct subjects *subjects, enum ll_evict_kind kind,
			 struct ll_err *err)
{
	struct ll_evict_subject *items = subjects->items;
	size_t stopped = 0, count = subjects->count, first = 0;
	int rc = kind == LL_RESUME ? 0 : ll_evict_stop_together(items, count, args->wait_ns, &stopped);
	for (size_t i = 0; rc && i < count; i++) {
		if (items[i].rc == rc) {
			*err = items[i].why;
			return rc;
		}
	}
	if (kind == LL_SUSPEND) /* those are */
		first = stopped;
	ll_evict_ask(items + first, count - first, kind);
	if (kind == LL_EVICT)
		ll_evict_let_failed_go_on(items, stopped);
	return print_all(args, items, count, kind, err);
}

static int request_pid(const struct ll_evict_args *args, struct ll_driver *driver, enum ll_evict_kind kind,
		       struct ll_err *err)
{
	struct ll_evict_subject subject = {
	    .target = {.driver = driver, .pid = (pid_t)args->pid, .wait_ns = args->wait_ns}};
	snprintf(subject.name, sizeof subject.name, "pid %d", (int)subject.target.pid);
	ll_evict_ask(&subject, 1, kind);
	return print_all(args, &subject, 1, kind, err);
}

static int request_word(const struct ll_evict_args *args, struct ll_driver *driver, const char *word,
			enum ll_evict_kind kind, struct ll_err *err)
{
	struct ll_set_targets targets = {0};
	struct subjects subjects = {0};
	int rc = ll_set_targets_find(&targets, driver, word, err);
	for (size_t i = 0; !rc && i < targets.count; i++)
		rc = add_claims(&subjects, args, driver, &targets.items[i], word, err);
	if (!rc && !subjects.count)
		rc = ll_err_set(err, -ENOENT, "%.80s: has no process on %s%s", word,
				targets.count == 1 ? "card " : "a card of this machine",
				targets.count == 1 ? targets.items[0].card->label : "");
	if (!rc)
		rc = ask_and_print(args, &subjects, kind, err);
	free(subjects.items);
	ll_set_targets_fini(&targets);
	return rc;
}

int ll_evict_request(const struct ll_evict_args *args, const struct ll_operands *operands, enum ll_evict_kind kind,
		     struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	if (operands->count != (args->pid ? 0 : 1) || args->pid > INT_MAX)
		return ll_err_set(err, -EINVAL, "name one claim, such as 0/17, or one tenant, or give --pid");
	int rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = args->pid ? request_pid(args, driver, kind, err)
			       : request_word(args, driver, operands->words[0], kind, err);
	ll_driver_close(driver);
	return rc;
}
