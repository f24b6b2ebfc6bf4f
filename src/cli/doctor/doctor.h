/*
 * doctor.h - the findings of `loadline doctor`: one line each, as they are made.
 *
 *     ok: card 0: compute mode: default
 *     warn: vulkan: no loader: ...; install libvulkan1
 *
 * A check is a function of doctor_*.c that says one finding or several; what each says is stable, for scripts: the
 * `check` key of the JSON lines.
 */
#ifndef LOADLINE_CLI_DOCTOR_DOCTOR_H
#define LOADLINE_CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "driver/cards.h"

enum ll_finding {
	LL_FINDING_OK,
	LL_FINDING_WARN, /* something works less well than it could */
	LL_FINDING_FAIL, /* a card cannot be held, limits do not hold, or nothing works */
};

struct ll_doctor {
	bool is_json;
	unsigned counts[3];   /* by enum ll_finding */
	unsigned limit_fails; /* those of them that are about limits, and prevent no hold */
	bool tries_limits;
	bool has_no_cuda;               /* the finding "cuda" says why */
	bool has_no_folder;             /* for ledgers: `run` is refused on every card */
	const struct ll_card *refusing; /* the last one in whose ledger `run` would take no place */
	int rc;                         /* the first output error */
	bool is_simulated;              /* also where the driver could not be opened */
	unsigned untried;               /* of limit_fails those where the trial could not show whether limits hold */
	struct ll_err *err;
};

/* Why a card may be in exclusive mode. */
enum ll_doctor_mps {
	LL_DOCTOR_MPS_NONE, /* MPS has nothing to do with it */
	LL_DOCTOR_MPS_LIVE, /* for a daemon that runs */
	LL_DOCTOR_MPS_LEFT, /* for one that is gone */
};
enum ll_doctor_mps ll_doctor_mps_of_card(const struct ll_card *card);

/* card may be NULL; todo is what to do about it, or NULL. */
void ll_doctor_say(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		   const char *todo, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* A finding from an error: its text is the detail, its hint what to do. */
void ll_doctor_say_err(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		       const struct ll_err *err);

/* What to do about a card's state: where it is simulated, the simulator's own way. NULL: nothing else is to be done. */
const char *ll_doctor_advice(const struct ll_card *card, const char *real, const char *simulated);

/* Device nodes, runtime folder, PID namespace, MPS. driver is NULL where there is none. */
void ll_doctor_check_system(struct ll_doctor *doctor, const struct ll_driver *driver);

/* MPS: its program, the daemon that this environment means, its servers, cards left in exclusive mode. Part of system.
 */
void ll_doctor_check_mps(struct ll_doctor *doctor, const struct ll_driver *driver);

/* The driver's CUDA library and the Vulkan loader, without making a context. */
void ll_doctor_check_libraries(struct ll_doctor *doctor, struct ll_driver *driver);

/*
 * Whether Vulkan reaches a card, without making a device on it: an instance takes no GPU memory. 0: the loader, or
 * NVIDIA's own library in its place, shows a device of this UUID. -ENODEV, with a hint.
 */
int ll_doctor_find_vulkan(const uint8_t uuid[16], struct ll_err *err);

/* One card: modes, GPM, MIG, heat, what could hold it, and its ledger. */
void ll_doctor_check_card(struct ll_doctor *doctor, const struct ll_card *card);

/* Whether limits hold there: starts a program that tries to exceed them (limit_trial.h). */
void ll_doctor_check_limits(struct ll_doctor *doctor, const struct ll_card *card);

/* Its ledger alone: dead claims, owners that do not answer, tenants that are not held to their limits, what `run` would
 * say of it. Makes none. Part of card. */
void ll_doctor_check_ledger(struct ll_doctor *doctor, const struct ll_card *card);

#endif
