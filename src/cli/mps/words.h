/*
 * words.h - what the subcommands of `loadline mps` have in common.
 */
#ifndef LOADLINE_CLI_MPS_WORDS_H
#define LOADLINE_CLI_MPS_WORDS_H

#include <stdint.h>

#include "cli/options/command.h"
#include "mps/servers.h"
#include "mps/session.h"

extern const struct ll_command ll_command_mps, ll_mps_start, ll_mps_stop, ll_mps_status, ll_mps_set, ll_mps_clients,
    ll_mps_kill, ll_mps_env, ll_mps_run;

struct ll_mps_desk {
	struct ll_driver *own; /* closed by fini; NULL: the driver is the caller's */
	const struct ll_driver *driver;
	struct ll_mps_place place;
	char folder[LL_MPS_PATH_SIZE]; /* of the records */
	struct ll_mps_session session; /* the three above */
};

/* Opens the driver, finds the place. fini takes a zeroed one. */
int ll_mps_desk_init(struct ll_mps_desk *desk, struct ll_err *err);
void ll_mps_desk_fini(struct ll_mps_desk *desk);

/* The same with a driver that is open already and stays the caller's. */
int ll_mps_desk_use(struct ll_mps_desk *desk, const struct ll_driver *driver, struct ll_err *err);

/*
 * A daemon answers at the place. Where none does, the error says in one sentence where one was looked for, why there,
 * and where another one runs; where it speaks another protocol, that.
 */
int ll_mps_desk_need_daemon(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err);

/* For what is only asked, and has no --within: far more than a daemon takes that is alive. */
#define LL_MPS_ASK_NS UINT64_C(10000000000)

/* The row that stop, kill and start share. */
#define LL_OPTION_WITHIN(type, field, what)                                                                            \
	{                                                                                                              \
		.name = "within", .placeholder = "TIME", LL_OPTION_DURATION(type, field), .fallback = "10s",           \
		.help = what                                                                                           \
	}

/* Said wherever the driver is given a limit of memory. */
#define LL_MPS_TOTAL_NOTE                                                                                              \
	"a client still sees the whole card as its total memory; `loadline run --by space --mem SIZE` corrects that"

/* A line for each card whose SMs are known: how many a percentage gives a client. */
void ll_mps_print_shares(const struct ll_card *const *cards, size_t count, double percent);

/* "8 (train), 9": clients, each once; "none". */
void ll_mps_add_clients(struct ll_strbuf *out, const struct ll_mps_list *list);

#endif
