#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/common/still.h"
#include "mps/command/words.h"
#include "mps/mps.h"

enum { USER_TEXT_SIZE = 4096, UNDO_S = 5 };

struct start_args {
	char *cards;
	bool exclusive;
	double compute_percent;
	uint64_t memory_bytes;
	const char *user;
	uint64_t within_ns;
};

static const struct ll_option start_options[] = {
    LL_OPTION_CARDS(struct start_args, cards),
    {.name = "exclusive",
     LL_OPTION_FLAG(struct start_args, exclusive),
     .help = N_("Put the cards into exclusive-process mode, so that no program can bypass MPS, until "
		"`loadline mps stop` restores their mode. Needs root, and cards that no program uses.")},
    {.name = "compute",
     .letter = 'c',
     .placeholder = "SHARE",
     LL_OPTION_PERCENT(struct start_args, compute_percent),
     .min = 0.1,
     .max = 100,
     .help = N_("Share of each card's SMs that every client may use, such as 50%. MPS rounds down to "
		"pairs of SMs and gives a client at least 8. The default is all SMs.")},
    {.name = "mem",
     .letter = 'm',
     .placeholder = "SIZE",
     LL_OPTION_BYTES(struct start_args, memory_bytes),
     .help = N_("Device memory that every client may have on each card, such as 8G.")},
    {.name = "user",
     .letter = 'u',
     .placeholder = "USER",
     LL_OPTION_TEXT(struct start_args, user),
     .help = N_("Start the server for this user at once, by name or number. A daemon serves one user at "
		"a time. The default is the user of the first client.")},
    LL_OPTION_TIMEOUT(struct start_args, within_ns, N_("Give up if the daemon does not answer within this time.")),
    LL_OPTION_END,
};

static int read_user(const char *text, uid_t *ret_user, struct ll_err *err)
{
	uint64_t number;
	char buf[USER_TEXT_SIZE];
	struct passwd own;
	struct passwd *entry = NULL;
	if (getpwnam_r(text, &own, buf, sizeof buf, &entry) == 0 && entry)
		number = entry->pw_uid;
	else if (ll_parse_uint(text, 0, UINT32_MAX - 1, &number, NULL) < 0)
		return ll_err_set(err, -EINVAL, "--user: '%.60s': no such user", text);
	if (geteuid() != 0 && number != geteuid()) {
		ll_err_set(err, -EPERM, "--user: only root may start a server for another user");
		return ll_err_hint(err, "leave it out: the server will be yours");
	}
	*ret_user = (uid_t)number;
	return 0;
}

static void print_daemon(const struct ll_mps_desk *desk, const struct ll_mps_wish *wish,
			 const struct ll_mps_daemon *daemon)
{
	fputs(ll_translate_count("MPS runs on card ", "MPS runs on cards ", wish->count), stdout);
	for (size_t i = 0; i < wish->count; i++)
		printf("%s%s", i ? ", " : "", wish->cards[i]->label);
	printf(_("%s: daemon %d, pipe directory %s\n"), wish->is_exclusive ? _(" (exclusive)") : "", (int)daemon->pid,
	       desk->place.pipe);
	ll_sim_print_advice(
	    _("programs join it by `loadline mps run -- COMMAND`, or after eval \"$(loadline mps env)\"\n"));
	if (wish->compute_percent > 0)
		ll_mps_print_shares(wish->cards, wish->count, wish->compute_percent);
	if (wish->memory_bytes)
		ll_sim_print_advice(_(LL_MPS_TOTAL_NOTE));
}

/* Blocks the signals until the start is complete. A daemon without its limits is worse than a late reaction to Ctrl-C.
 */
static void hold_back_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Returns the number of the signal that came, 0 if none did. */
static int signal_that_came(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t set;
	sigpending(&set);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (sigismember(&set, numbers[i]) == 1)
			return numbers[i];
	}
	return 0;
}

/* Undoes the start after a signal. rc: the result of the start. A failed start has undone its changes itself, and its
 * text says if it could not. */
static int take_back(struct ll_mps_desk *desk, int rc, int number, struct ll_err *err)
{
	struct ll_mps_stopped stopped;
	if (rc)
		ll_err_wrap(err, "interrupted");
	else if (ll_mps_session_stop(&desk->session, true, UNDO_S * LL_NS_PER_S, &stopped, err))
		ll_err_wrap(err, "interrupted, and the changes are not undone");
	else
		ll_err_set(err, -EINTR, "interrupted; all changes are undone");
	err->status = 128 + number;
	return -EINTR;
}

static int start_daemon(const struct start_args *args, struct ll_mps_desk *desk, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	struct ll_mps_daemon daemon = {0};
	struct ll_still still;
	struct ll_mps_wish wish = {.is_exclusive = args->exclusive,
				   .compute_percent = args->compute_percent,
				   .memory_bytes = args->memory_bytes,
				   .has_user = args->user != NULL};
	int rc = args->user ? read_user(args->user, &wish.user, err) : 0;
	if (!rc)
		rc = ll_cards_select(desk->driver, args->cards, &cards, &wish.count, err);
	if (!rc)
		rc = ll_mps_check_memory(cards, wish.count, args->memory_bytes, err);
	wish.cards = cards;
	ll_still_begin(&still, N_("waits for the MPS daemon at %s to start"), desk->place.pipe);
	if (!rc)
		rc = ll_mps_session_start(&desk->session, &wish, args->within_ns, &daemon, err);
	ll_still_end(&still);
	int number = signal_that_came();
	if (number)
		return take_back(desk, rc, number, err);
	if (!rc)
		print_daemon(desk, &wish, &daemon);
	return rc;
}

static int run_start(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_mps_desk desk;
	(void)operands;
	hold_back_signals(); /* before the driver starts threads, which would receive the signals */
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = start_daemon(data, &desk, err);
	ll_mps_desk_fini(&desk);
	return rc;
}

static const struct ll_example start_examples[] = {
    {"loadline mps start -i 0,1 --compute 50% --mem 8G",
     N_("Two cards; each client may use half of the SMs and 8 GiB.")},
    {"sudo loadline mps start --exclusive", N_("All cards, and no program can bypass MPS.")},
    {NULL, NULL},
};

const struct ll_command ll_mps_start = {
    .name = "start",
    .group = &ll_command_mps,
    .summary = N_("start the daemon, with limits for every client"),
    .description =
	N_("Starts NVIDIA's control daemon for the chosen cards (default: all), waits until it answers, sets "
	   "the limits that every client starts with, and reads each of them back. The daemon's server starts "
	   "with the first client.\n\n"
	   "It works without root and without exclusive mode. Only --exclusive changes a card's compute mode. "
	   "The old mode is saved first, and `loadline mps stop` restores it, also after a crash."),
    .examples = start_examples,
    .options = start_options,
    .args_size = sizeof(struct start_args),
    .run = run_start,
};

/* ---- stop ---- */

struct stop_args {
	bool force;
	uint64_t within_ns;
};

static const struct ll_option stop_options[] = {
    {.name = "force",
     .letter = 'f',
     LL_OPTION_FLAG(struct stop_args, force),
     .help = N_("End the daemon even if clients are at work or it does not answer. The clients' CUDA "
		"calls fail from then on. Processes that have not ended after half of the time get "
		"signals.")},
    LL_OPTION_TIMEOUT(struct stop_args, within_ns,
		      N_("Give up if the daemon and its servers have not ended within this time.")),
    LL_OPTION_END,
};

static int run_stop(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct stop_args *args = data;
	struct ll_mps_desk desk;
	struct ll_mps_stopped stopped = {.had_daemon = false};
	struct ll_still still = {.is_begun = false};
	(void)operands;
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc) {
		ll_still_begin(&still, N_("waits for the end of the MPS daemon at %s"), desk.place.pipe);
		rc = ll_mps_session_stop(&desk.session, args->force, args->within_ns, &stopped, err);
	}
	ll_still_end(&still);
	ll_mps_desk_fini(&desk);
	if (rc)
		return rc;
	if (!stopped.had_daemon)
		puts(_("no MPS daemon ran here"));
	else
		puts(stopped.was_signalled ? _("MPS has ended; it did not end when asked, so signals ended it")
					   : _("MPS has ended"));
	if (stopped.restored)
		printf(ll_translate_count("compute mode restored on %zu card\n", "compute mode restored on %zu cards\n",
					  stopped.restored),
		       stopped.restored);
	return 0;
}

static const struct ll_example stop_examples[] = {
    {"loadline mps stop", N_("End it if it has no clients.")},
    {"loadline mps stop --force --timeout 5s", N_("End it within five seconds, with its clients at work or not.")},
    {NULL, NULL},
};

const struct ll_command ll_mps_stop = {
    .name = "stop",
    .group = &ll_command_mps,
    .summary = N_("end the daemon and restore compute modes"),
    .description =
	N_("Ends the daemon and its servers, waits until their processes are gone, and restores the compute "
	   "mode that the cards had before `loadline mps start --exclusive`. If clients are at work, it refuses "
	   "and names them.\n\n"
	   "If an earlier daemon of loadline, or loadline itself, was killed and left cards in exclusive mode, "
	   "their mode is restored too."),
    .examples = stop_examples,
    .options = stop_options,
    .args_size = sizeof(struct stop_args),
    .run = run_stop,
};

/* ---- kill ---- */

struct kill_args {
	uint64_t within_ns;
};

static const struct ll_option kill_options[] = {
    LL_OPTION_TIMEOUT(struct kill_args, within_ns,
		      N_("Give up if the daemon has not ended the client within this time.")),
    LL_OPTION_END,
};

static int run_kill(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct kill_args *args = data;
	struct ll_mps_desk desk;
	struct ll_still still;
	uint64_t pid;
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "mps kill: %s",
				  operands->count ? _("one client at a time") : _("no client named"));
	if (ll_parse_uint(operands->words[0], 1, INT_MAX, &pid, NULL) < 0)
		return ll_err_set(err, -EINVAL, "mps kill: '%.60s': not a process id", operands->words[0]);
	uint64_t from_ns = ll_now_ns();
	int rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = ll_mps_desk_need_daemon(&desk, from_ns + args->within_ns, err);
	uint64_t used_ns = ll_now_ns() - from_ns;
	ll_still_begin(&still, N_("waits for the MPS daemon at %s to end client %d"), desk.place.pipe, (int)pid);
	if (!rc)
		rc = ll_mps_client_end(&desk.place, (pid_t)pid,
				       used_ns < args->within_ns ? args->within_ns - used_ns : 0, err);
	ll_still_end(&still);
	ll_mps_desk_fini(&desk);
	if (!rc)
		printf(_("client %d is off MPS: its contexts are gone, its process goes on\n"), (int)pid);
	return rc;
}

const struct ll_command ll_mps_kill = {
    .name = "kill",
    .group = &ll_command_mps,
    .summary = N_("take one client off its server"),
    .operands = "PID",
    .description =
	N_("Asks the daemon to destroy the contexts of one client (terminate_client). The client's process gets "
	   "an error from its next CUDA call. Other clients go on.\n\n"
	   "terminate_client has been seen to hang, and it refuses concurrent callers. So it is tried up to "
	   "three times, one caller after the other, within the given time. If it fails, loadline reports that "
	   "and does nothing stronger: it never kills the process itself."),
    .options = kill_options,
    .args_size = sizeof(struct kill_args),
    .run = run_kill,
};
