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
#include "cli/evict/evictor.h"
#include "cli/set/target.h"
#include "ledger/ledger.h"

enum { CLAIMS = 256, NAME_SIZE = 128 };

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
	     "The default is 10s. After that it goes on, and the command fails."},
    LL_OPTION_JSON(struct ll_evict_args, json),
    OPTION_PID,
    LL_OPTION_END,
};

const struct ll_option ll_resume_options[] = {
    LL_OPTION_JSON(struct ll_evict_args, json),
    OPTION_PID,
    LL_OPTION_END,
};

/* Who is meant. claim: NULL with --pid. */
struct subject {
	struct ll_evictor_target target;
	const struct ll_claim_info *claim;
	char name[NAME_SIZE];
};

static int print_done(const struct ll_evict_args *args, const struct subject *subject, const char *done, const char *by,
		      const struct ll_evictor_moved *moved, struct ll_err *err)
{
	double seconds = (double)moved->took_ns / (double)LL_NS_PER_S;
	if (!args->json) {
		bool is_large = moved->bytes >> 30;
		int printed = printf("%s %s: %.*f %s in %.3f s%s\n", done, subject->name, is_large ? 1 : 0,
				     (double)moved->bytes / (is_large ? 1 << 30 : 1 << 20), is_large ? "GiB" : "MiB",
				     seconds, strcmp(by, "mover") == 0 ? "" : ", by the driver's checkpoint");
		return printed < 0 ? ll_err_set(err, -EIO, "standard output: %s", strerror(EIO)) : 0;
	}
	char id[64];
	if (!subject->claim)
		return ll_json_line(json_pack("{s:s, s:I, s:s, s:I, s:f}", "event", done, "pid",
					      (json_int_t)subject->target.pid, "by", by, "bytes",
					      (json_int_t)moved->bytes, "seconds", seconds),
				    err);
	snprintf(id, sizeof id, "%s/%u", subject->target.card->label, subject->claim->index);
	return ll_json_line(json_pack("{s:s, s:s, s:s, s:s, s:I, s:f}", "event", done, "claim", id, "tenant",
				      subject->claim->tenant, "by", by, "bytes", (json_int_t)moved->bytes, "seconds",
				      seconds),
			    err);
}

static int call_evictor(const struct ll_evictor *evictor, enum ll_evict_kind kind,
			const struct ll_evictor_target *target, struct ll_evictor_moved *ret_moved, struct ll_err *err)
{
	const ll_evictor_fn functions[] = {evictor->evict, evictor->suspend, evictor->resume};
	return functions[kind](target, ret_moved, err);
}

static int request_one(const struct ll_evict_args *args, const struct subject *subject, enum ll_evict_kind kind,
		       struct ll_err *err)
{
	const struct ll_evictor *evictor = &ll_evictor_mover;
	struct ll_evictor_moved moved;
	struct ll_err why = {0};
	int rc = call_evictor(evictor, kind, &subject->target, &moved, &why);
	if (rc == -EOPNOTSUPP) {
		struct ll_err mover_why = why;
		evictor = &ll_evictor_checkpoint;
		rc = call_evictor(evictor, kind, &subject->target, &moved, &why);
		if (rc == -EOPNOTSUPP && subject->claim)
			ll_err_wrap(&why, "%s", mover_why.text);
	}
	if (!rc)
		return print_done(args, subject, done_words[kind], evictor->name, &moved, err);
	ll_err_wrap(&why, "%s", subject->name);
	if (err)
		*err = why;
	return rc;
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

/* Asks for all that are meant, also after a failure. Returns the first failure; -ENOENT: the card has none of them. */
static int request_of(const struct ll_evict_args *args, struct ll_driver *driver, const struct ll_set_target *target,
		      const char *word, enum ll_evict_kind kind, struct ll_err *err)
{
	int rc = 0;
	bool is_any = false;
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS, sizeof *claims);
	size_t count = claims ? ll_ledger_list(target->ledger, claims, CLAIMS) : 0;
	for (size_t i = 0; i < count && i < CLAIMS; i++) {
		if (!is_meant(&claims[i], target, word))
			continue;
		is_any = true;
		struct subject subject = {.target = {.driver = driver,
						     .card = target->card,
						     .claim = claims[i].index,
						     .is_evictable = claims[i].residency != LL_CLAIM_FIXED,
						     .pid = claims[i].is_pid_ours ? claims[i].pid : 0,
						     .wait_ns = args->wait_ns},
					  .claim = &claims[i]};
		snprintf(subject.name, sizeof subject.name, "%s/%u, tenant %s", target->card->label, claims[i].index,
			 claims[i].tenant);
		int code = request_one(args, &subject, kind, rc ? NULL : err);
		rc = rc ? rc : code;
	}
	return is_any ? rc : ll_err_set(err, -ENOENT, "%.80s: has no process on card %s", word, target->card->label);
}

static int request_pid(const struct ll_evict_args *args, struct ll_driver *driver, enum ll_evict_kind kind,
		       struct ll_err *err)
{
	struct subject subject = {.target = {.driver = driver, .pid = (pid_t)args->pid, .wait_ns = args->wait_ns}};
	snprintf(subject.name, sizeof subject.name, "pid %d", (int)subject.target.pid);
	return request_one(args, &subject, kind, err);
}

static int request_word(const struct ll_evict_args *args, struct ll_driver *driver, const char *word,
			enum ll_evict_kind kind, struct ll_err *err)
{
	struct ll_set_targets targets = {0};
	struct ll_err why = {0};
	bool is_any = false;
	int rc = ll_set_targets_find(&targets, driver, word, err);
	for (size_t i = 0, count = rc ? 0 : targets.count; i < count; i++) {
		int code = request_of(args, driver, &targets.items[i], word, kind, rc ? NULL : &why);
		if (code == -ENOENT) /* a tenant is known on all cards that it may use */
			continue;
		is_any = true;
		if (code && !rc)
			*err = why;
		rc = rc ? rc : code;
	}
	ll_set_targets_fini(&targets);
	if (rc || is_any)
		return rc;
	*err = why;
	return -ENOENT;
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
