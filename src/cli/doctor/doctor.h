/*
 * doctor.h - the checks of `loadline doctor`. Each finding is printed as one line, as soon as it is made.
 *
 *     ok: card 0: compute mode: default
 *     warn: vulkan: no loader: ...; install libvulkan1
 *
 * As text, what is well with several cards is one line:
 *
 *     ok: cards 0-7: card, compute mode, persistence, gpm
 *
 * The checks are the rows of checks.def. Each is a function in this folder, which prints one or more findings.
 */
#ifndef LOADLINE_CLI_DOCTOR_DOCTOR_H
#define LOADLINE_CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/common/daemon.h"
#include "driver/cards.h"

enum ll_finding {
	LL_FINDING_OK,
	LL_FINDING_WARN, /* something works less well than it could */
	LL_FINDING_FAIL, /* a card cannot be held, limits do not hold, or nothing works */
};

enum { LL_DOCTOR_FOLDED_CARDS = 64, LL_DOCTOR_FOLDED_CHECKS = 10 };

struct ll_doctor {
	bool is_json;
	/* What the findings are about: a name of checks.def, and the card, or NULL. A check may put others there. */
	const char *check;
	const struct ll_card *card;
	/* The cards whose good findings are told together, and for each check (cmd_doctor.c) a bit for each card that
	 * is well. folded_count 0: each finding is a line */
	const struct ll_card *folded[LL_DOCTOR_FOLDED_CARDS];
	size_t folded_count;
	uint64_t well[LL_DOCTOR_FOLDED_CHECKS];
	unsigned counts[3];   /* by enum ll_finding */
	unsigned limit_fails; /* of these fails those about limits; they do not prevent a hold */
	bool tries_limits;
	bool has_no_cuda;         /* CUDA cannot be used; the finding "cuda" says why */
	bool is_refusing;         /* `run` refuses limits; the finding "loadlined" says why */
	int rc;                   /* the first error of the output */
	struct ll_driver *driver; /* NULL: there is none */
	const char *sim_folder;   /* of the simulated world; NULL: the real cards */
	bool is_simulated;        /* known also if the driver could not be opened */
	unsigned untried;         /* of limit_fails those in which the trial could not show whether limits hold */
	struct ll_err *err;
	struct ll_daemon_view view; /* ll_doctor_check_daemon reads it; the caller of the checks calls its fini */
};

/* Why a card is in exclusive mode. */
enum ll_doctor_mps {
	LL_DOCTOR_MPS_NONE, /* not because of MPS */
	LL_DOCTOR_MPS_LIVE, /* for an MPS daemon that runs */
	LL_DOCTOR_MPS_LEFT, /* for an MPS daemon that is gone */
};
enum ll_doctor_mps ll_doctor_mps_of_card(const struct ll_card *card);

/* Prints a finding. todo: the advice, or NULL. fmt: the detail. */
void ll_doctor_say(struct ll_doctor *doctor, enum ll_finding finding, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#define ll_doctor_ok(doctor, ...) ll_doctor_say(doctor, LL_FINDING_OK, NULL, __VA_ARGS__)
#define ll_doctor_warn(doctor, ...) ll_doctor_say(doctor, LL_FINDING_WARN, __VA_ARGS__)
#define ll_doctor_fail(doctor, ...) ll_doctor_say(doctor, LL_FINDING_FAIL, __VA_ARGS__)

/* Prints a finding made from an error: the detail is the error's text, the advice its hint. */
void ll_doctor_say_err(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_err *err);

/* Returns the advice for a real card or, if the card is simulated, the one for the simulator. Either may be NULL: no
 * advice. */
const char *ll_doctor_advice(const struct ll_card *card, const char *real, const char *simulated);

/* The checks. None of them starts loadlined; those of limits and slices alone make contexts. */
#define LL_CHECK(name, when, function) void ll_doctor_check_##function(struct ll_doctor *doctor);
#include "cli/doctor/checks.def"
#undef LL_CHECK

/* Whether this process shall be the trial of limits (trial.c), which runs it, or the part of it that has a word of its
 * own. -EINVAL: a user typed the word. */
bool ll_trial_is_asked(int argc, char **argv);
int ll_trial_main(const char *word, struct ll_err *err);

#endif
