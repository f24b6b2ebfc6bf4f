/*
 * run_settings.h - the settings that `loadline run` passes to the programs that it starts: one environment variable,
 * which the whole process tree inherits.
 *
 *     LOADLINE_RUN=id=5f21c9;tenant=train;mem=21474836480;compute=250;weight=2000;priority=normal;...;folder=/run/loadline
 *
 * Its limits are those with which the job began. The job's orders have the present limits (`loadline set`).
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
	char tenant[LL_TENANT_NAME_SIZE]; /* characters of ll_tenant_name_may_have */
	enum ll_priority priority;
	uint64_t memory_limit_bytes;   /* 0: none */
	uint64_t memory_request_bytes; /* guaranteed on the card (rules/residency/residency.h); 0: nothing */
	unsigned compute_cap_permille; /* 0: none */
	unsigned weight_permille;      /* 0: 1000 */
	unsigned slowdown_permille; /* how many times slower than alone it may run because of lower classes; 0: 1300 */
	unsigned space_permille;    /* its part of the SMs as a client of MPS; 0: it shares by slices */
	bool counts_context;        /* the memory of contexts counts against the memory limit */
	uint64_t max_kernel_ns;     /* 0: none */
	bool kills_at_max_kernel;
	bool is_evictable;                  /* its memory can be moved off the card (LL_MESSAGE_EVICTABLE) */
	bool avoids_neighbours;             /* its memory is not moved to other cards */
	bool is_strict;                     /* a launch without a claim is refused; otherwise it runs ungoverned */
	char first_card[LL_CARD_NAME_SIZE]; /* UUID of the first of several cards; empty: there is one */
	char place[LL_PLACE_SIZE];          /* the address of loadlined (place.h); empty: none */
	char folder[LL_FOLDER_SIZE];        /* the user's runtime folder (base/runtime_folder.h) */
};

/* -ENAMETOOLONG: the text does not fit. -EINVAL: the tenant's name has other characters. */
int ll_run_settings_write(const struct ll_run_settings *settings, char ret_text[LL_RUN_TEXT_SIZE]);

/*
 * -EINVAL: the text is malformed. Each key must be there once, with a value that ll_run_settings_write could have
 * written: a limit that cannot be read must not be taken for no limit. An unknown key is -EINVAL too: it may be a limit
 * of a newer loadline, which this version cannot enforce.
 */
int ll_run_settings_read(const char *text, struct ll_run_settings *ret_settings);

/* ASCII letters, digits and ._-+@: are allowed; beyond ASCII, each printable UTF-8 character that is not a blank
 * (base/utf8.h). */
bool ll_tenant_name_may_have(uint32_t character);

/* At most 63 bytes of such characters. */
bool ll_tenant_name_is_valid(const char *name);

/* Whether the settings have anything that a program could break: a limit, or a class or weight other than the
 * default. */
bool ll_run_settings_ask_limits(const struct ll_run_settings *settings);

#endif
