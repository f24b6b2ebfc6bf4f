/*
 * doctor.h - the checks of `loadline doctor`. Each finding is printed as one line, as soon as it is made.
 *
 *     ok: card 0: compute mode: default
 *     warn: vulkan: no loader: ...; install libvulkan1
 *
 * As text, what is well with several cards is one line (ll_doctor_fold):
 *
 *     ok: cards 0-7: card, compute mode, persistence, gpm
 *
 * A check is a function in this folder that prints one or more findings. The name of a check is the `check` key of its
 * JSON lines. Scripts use these names, so they do not change.
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
	/* The cards whose good findings are told together, and for each check (doctor.c) a bit for each card that is
	 * well. folded_count 0: each finding is a line */
	const struct ll_card *folded[LL_DOCTOR_FOLDED_CARDS];
	size_t folded_count;
	uint64_t well[LL_DOCTOR_FOLDED_CHECKS];
	unsigned counts[3];   /* by enum ll_finding */
	unsigned limit_fails; /* of these fails those about limits; they do not prevent a hold */
	bool tries_limits;
	bool has_no_cuda;  /* CUDA cannot be used; the finding "cuda" says why */
	bool is_refusing;  /* `run` refuses limits; the finding "loadlined" says why */
	int rc;            /* the first error of the output */
	bool is_simulated; /* known also if the driver could not be opened */
	unsigned untried;  /* of limit_fails those in which the trial could not show whether limits hold */
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

/* Prints a finding. card: the card that it is about, or NULL. todo: the advice, or NULL. fmt: the detail. */
void ll_doctor_say(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		   const char *todo, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Keeps good findings of these cards back until ll_doctor_say_well, which tells them together. For one card, many cards
 * and JSON it does nothing. */
void ll_doctor_fold(struct ll_doctor *doctor, const struct ll_card *const *cards, size_t count);
void ll_doctor_say_well(struct ll_doctor *doctor);

/* Prints a finding made from an error: the detail is the error's text, the advice its hint. */
void ll_doctor_say_err(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		       const struct ll_err *err);

/* Returns the advice for a real card or, if the card is simulated, the one for the simulator. Either may be NULL: no
 * advice. */
const char *ll_doctor_advice(const struct ll_card *card, const char *real, const char *simulated);

/* Checks the device nodes, the runtime folder, the PID namespace and MPS. driver: NULL if there is none. */
void ll_doctor_check_system(struct ll_doctor *doctor, const struct ll_driver *driver);

/* Checks MPS: its program, the daemon that this environment leads to, the daemon's servers, cards left in exclusive
 * mode. ll_doctor_check_system calls it.
 */
void ll_doctor_check_mps(struct ll_doctor *doctor, const struct ll_driver *driver);

/* Says how much of the host's memory programs that leave their cards may use.
 * ll_doctor_check_system calls it. */
void ll_doctor_check_pool(struct ll_doctor *doctor);

/* Checks whether device files of the cards open for jobs alone (src/fence), and the sensor of the system's loadlined.
 * After ll_doctor_check_daemon. */
void ll_doctor_check_fence(struct ll_doctor *doctor);
void ll_doctor_check_sensor(struct ll_doctor *doctor);

/* Says whether metrics of the system's loadlined are served. After ll_doctor_check_daemon. */
void ll_doctor_check_metrics(struct ll_doctor *doctor);

/* Says whether loadlined runs, and what may keep it from its work: its control group, limits, other users' ones, a
 * network namespace of its own. It does not start it. sim_folder: of the simulated world; NULL: the real cards.
 * ll_doctor_check_system calls it. */
void ll_doctor_check_daemon(struct ll_doctor *doctor, const char *sim_folder);

/* Says what programs that share the card did the other way, by slices or by space, in an earlier run.
 * ll_doctor_check_claims calls it. */
void ll_doctor_check_sharing(struct ll_doctor *doctor, const struct ll_card *card);

/* Reports a damaged file of earlier runs. sim_folder: of the simulated world; NULL: the real cards.
 * ll_doctor_check_system calls it. */
void ll_doctor_check_earlier(struct ll_doctor *doctor, const char *sim_folder);

/* Checks the driver's CUDA library and the Vulkan loader. It makes no context. */
void ll_doctor_check_libraries(struct ll_doctor *doctor, struct ll_driver *driver);

/*
 * Looks whether Vulkan shows the card with this UUID, by the Vulkan loader or by NVIDIA's own library. It makes a
 * Vulkan instance only, which takes no GPU memory. 0: a device has this UUID. -ENODEV, with a hint: none has.
 */
int ll_doctor_find_vulkan(const uint8_t uuid[16], struct ll_err *err);

/* Checks one card: its modes, GPM, MIG, heat, the payloads that can hold it, and its claims. */
void ll_doctor_check_card(struct ll_doctor *doctor, const struct ll_card *card);

/* Checks whether programs can set their own time on the card (sensor/trial.h), if nobody uses it. Takes some 3 s. */
void ll_doctor_check_slices(struct ll_doctor *doctor, const struct ll_card *card);

/* Checks whether limits hold on the card: starts a program that tries to exceed them (limit_trial.h). */
void ll_doctor_check_limits(struct ll_doctor *doctor, const struct ll_card *card);

/* Checks the claims of the card: holds that do not answer, tenants that are not held to their limits, programs that an
 * older loadline governs. ll_doctor_check_card calls it. */
void ll_doctor_check_claims(struct ll_doctor *doctor, const struct ll_card *card);

#endif
