/*
 * run_settings.h - what `loadline run` tells the programs that it starts: one environment variable, inherited by the
 * whole process tree.
 *
 *     LOADLINE_RUN=id=5f21c9;tenant=train;mem=21474836480;compute=250;weight=2000;priority=normal;...;folder=/run/loadline
 *
 * Limits in it are those that the job began with; what holds now is in its orders (`loadline set`).
 */
#ifndef LOADLINE_PROTOCOL_RUN_SETTINGS_H
#define LOADLINE_PROTOCOL_RUN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/runtime_folder.h"
#include "protocol/place.h"
#include "protocol/words.h"

#define LL_RUN_VARIABLE "LOADLINE_RUN"

enum { LL_TENANT_NAME_SIZE = 64, LL_CARD_NAME_SIZE = 96, LL_RUN_TEXT_SIZE = 1024 };

struct ll_run_settings {
	uint64_t id;
	char tenant[LL_TENANT_NAME_SIZE]; /* of characters as below */
	enum ll_priority priority;
	uint64_t memory_limit_bytes;   /* 0: none */
	uint64_t memory_request_bytes; /* promised to it on the card (control/residency.h); 0: nothing */
	unsigned compute_cap_permille; /* 0: none */
	unsigned weight_permille;      /* 0: 1000 */
	unsigned slowdown_permille;    /* it may become so much slower than alone for lower classes; 0: 1300 */
	unsigned space_permille;       /* its part of the SMs as a client of MPS; 0: it shares by slices */
	bool counts_context;           /* what contexts take counts against the memory limit */
	uint64_t max_kernel_ns;        /* 0: none */
	bool kills_at_max_kernel;
	bool is_evictable;                  /* its memory can be taken off the card (LL_MESSAGE_EVICTABLE) */
	bool avoids_neighbours;             /* its memory does not go to other cards */
	bool is_strict;                     /* a launch without a claim is refused, and does not go on ungoverned */
	char first_card[LL_CARD_NAME_SIZE]; /* UUID of the first of several cards; empty: there is one */
	char place[LL_PLACE_SIZE];          /* where loadlined is reached (place.h); empty: nowhere */
	char folder[LL_FOLDER_SIZE];        /* the user's runtime folder (base/runtime_folder.h) */
};

/* -ENAMETOOLONG when it does not fit, -EINVAL for a tenant's name with other letters. */
int ll_run_settings_write(const struct ll_run_settings *settings, char ret_text[LL_RUN_TEXT_SIZE]);

/*
 * -EINVAL: garbled. Each key must be there, once, with a value that ll_run_settings_write could have written: a limit
 * that cannot be read must not be taken for no limit. A key that is not known may be a limit of a newer loadline, which
 * this one could not hold the program to, so the text is garbled too.
 */
int ll_run_settings_read(const char *text, struct ll_run_settings *ret_settings);

/* Letters, digits and ._-+@: of ASCII; beyond ASCII, UTF-8 that can be shown, but for blanks (base/utf8.h). */
bool ll_tenant_name_may_have(uint32_t character);

/* At most 63 bytes of these. */
bool ll_tenant_name_is_valid(const char *name);

/* Whether they hold anything that a program could break: a limit, a class or a weight that is not everybody's. */
bool ll_run_settings_ask_limits(const struct ll_run_settings *settings);

#endif
