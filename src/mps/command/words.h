/*
 * words.h - parts that the subcommands of 'loadline mps' share.
 */
#ifndef LOADLINE_CLI_MPS_WORDS_H
#define LOADLINE_CLI_MPS_WORDS_H

#include <stdint.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/options/command.h"
#include "mps/mps.h"

extern const struct ll_command ll_command_mps, ll_mps_start, ll_mps_stop, ll_mps_status, ll_mps_set, ll_mps_clients,
    ll_mps_kill, ll_mps_env, ll_mps_run;

/* The inputs of a subcommand: the driver, the daemon's folders, loadline's records about daemons. */
struct ll_mps_desk {
	struct ll_driver *own; /* the driver that fini closes; NULL: the caller owns the driver */
	const struct ll_driver *driver;
	struct ll_mps_place place;
	char folder[LL_MPS_PATH_SIZE]; /* the folder of loadline's records about daemons */
	struct ll_mps_session session; /* made of the three fields above */
};

/* Opens the driver and finds the daemon's folders. fini accepts a zeroed desk. */
int ll_mps_desk_init(struct ll_mps_desk *desk, struct ll_err *err);
void ll_mps_desk_fini(struct ll_mps_desk *desk);

/* The same with an open driver, which the caller keeps and closes. */
int ll_mps_desk_use(struct ll_mps_desk *desk, const struct ll_driver *driver, struct ll_err *err);

/*
 * Checks that a daemon answers at the place. If none does, the error says in one sentence which pipe folder was tried,
 * why that one, and where another daemon runs. If the daemon speaks another protocol, the error says that.
 */
int ll_mps_desk_need_daemon(const struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err);

/*
 * The same where a program of this user needs a daemon, and none is named by the environment: takes the one that this
 * user has started elsewhere, else starts one for all cards, without limits, and logs that. It stays until
 * `loadline mps stop`.
 */
int ll_mps_desk_have_daemon(struct ll_mps_desk *desk, uint64_t deadline_ns, struct ll_err *err);

/* The time for a question in a command without --timeout. A daemon that is alive needs far less. */
#define LL_MPS_ASK_NS UINT64_C(10000000000)

/* The option row that stop, kill and start share. */
#define LL_OPTION_TIMEOUT(type, field, what)                                                                           \
	{                                                                                                              \
		.name = "timeout", .alias = "within", .placeholder = "TIME", LL_OPTION_DURATION(type, field),          \
		.fallback = "10s", .help = what                                                                        \
	}

/* The note of every command that gives the driver a memory limit. */
#define LL_MPS_TOTAL_NOTE                                                                                              \
	N_("a client still sees the whole card as its total memory; `loadline run --by space --mem SIZE` corrects "    \
	   "that\n")

/* Checks --mem, 0 if it was not given, for these cards. -EINVAL. */
int ll_mps_check_memory(const struct ll_card *const *cards, size_t count, uint64_t bytes, struct ll_err *err);

/* Prints one line for each card whose number of SMs is known: the number of SMs that this percentage gives a client. */
void ll_mps_print_shares(const struct ll_card *const *cards, size_t count, double percent);

#endif
