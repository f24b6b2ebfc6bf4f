/*
 * run.h - how a command is started under limits: its arguments, its place, its environment, and its job.
 */
#ifndef LOADLINE_CLI_RUN_RUN_H
#define LOADLINE_CLI_RUN_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advice/advice.h"
#include "base/strbuf.h"
#include "cli/common/still.h"
#include "cli/options/help_text.h"
#include "cli/options/limit_words.h"
#include "cli/options/option.h"
#include "driver/cards.h"
#include "mps/mps.h"
#include "protocol/client.h"
#include "protocol/message.h"
#include "protocol/place.h"
#include "protocol/run_settings.h"

struct ll_err;
struct ll_run_settings;

enum { LL_RUN_NOT_EXECUTABLE = 126, LL_RUN_NOT_FOUND = 127 };

/*
 * Finds the file as execvp does: a word with a slash is a path, any other word is searched for in the folders of PATH.
 * -ENOENT, -EACCES: err's exit status is one of the two above.
 */
int ll_run_find(const char *command, char ret_path[PATH_MAX], struct ll_err *err);

/*
 * Whether a library can be preloaded into the program, or for a script into its interpreter. shim: the path of that
 * library. -EPERM, and err says why not: the program is static, has more rights than its user, is for another machine
 * or word size, or cannot be read. -ELIBBAD: it has another C library. The loader of musl ends such a program if a
 * preloaded library needs glibc, so the library must not be in its LD_PRELOAD. Or it is built
 * with AddressSanitizer, which ends it if another library is loaded before its own. The caller tells the user what that
 * means. If err has one of the statuses above, the program would not run at all, like a script without its interpreter,
 * or half an ELF file.
 */
int ll_run_check_program(const char *path, const char *shim, struct ll_err *err);

/* What decides whether a library can be preloaded into an ELF file. */
struct ll_elf_kind {
	bool is_elf; /* false: all other fields are zero */
	uint8_t word_bits, byte_order;
	uint16_t machine;
	bool is_damaged;       /* the file is cut short or not a whole program; the kernel would not run it */
	bool is_readable_here; /* the file has this program's word size and byte order, so the fields below are known */
	bool has_loader;       /* the file names a dynamic loader; without one nothing can be preloaded */
	char loader[PATH_MAX / 16]; /* the loader's path, perhaps cut */
	char sanitizer[64];         /* the library of AddressSanitizer that the file needs; empty: none */
};

/* Reads the kind of a file. It does not look for damage behind the program headers. -errno: the file cannot be read. */
int ll_elf_kind_read(const char *path, struct ll_elf_kind *ret_kind);

/*
 * The options of `loadline run`, and their translation into the settings of a tenant.
 */

/* What the programs on a card share. */
enum ll_run_by {
	LL_RUN_BY_SLICES, /* the card's time, by its own time slices and by visits */
	LL_RUN_BY_SPACE,  /* the card's SMs at the same time, as clients of MPS */
	LL_RUN_BY_AUTO,   /* by space if an MPS daemon takes the program with these options, otherwise by slices */
};

/* On which of its CPUs the command runs. */
enum ll_run_cpus {
	LL_RUN_CPUS_ALL,
	LL_RUN_CPUS_NEAR, /* those near its cards */
};

/* What the caller of ll_run_start learns before the command starts. */
struct ll_run_watch {
	void *data;
	/* The queue has given the job a number: each time that it tells of the job. */
	void (*on_number)(void *data, uint64_t number, uint64_t job);
	/* The command starts now. job: token[0] */
	void (*on_start)(void *data, uint64_t job);
};

struct ll_run_args {
	char *cards;
	const char *mem, *mem_request, *compute, *weight, *class, *slowdown; /* NULL: not given */
	const char *tenant, *max_kernel, *project, *name;
	int count_context; /* 0: yes, 1: no */
	int by;            /* enum ll_run_by */
	int cpus;          /* enum ll_run_cpus */
	bool allow_ungoverned;
	bool strict;
	bool evictable, no_neighbour;
	bool overcommit;                              /* requests beyond the card's memory are allowed */
	uint64_t card_count, time_ns, wait_ns, after; /* for the queue; 0: not given */
	uint64_t after_ok;
	bool no_wait;
	const char *signal;
	const struct ll_run_watch *watch; /* no option sets it; NULL: nobody watches */
	uint64_t again; /* no option sets it: the number in the queue of a job that is started again; 0: of none */
};

extern const struct ll_option ll_run_options[];

/* Option rows that `run` and `mps run` share. They fill struct ll_run_args. */
#define LL_RUN_OPTION_WEIGHT                                                                                           \
	{                                                                                                              \
		.name = "weight", .letter = 'w', .placeholder = "NUMBER", LL_OPTION_TEXT(struct ll_run_args, weight),  \
		.help = LL_LIMIT_WEIGHT_HELP, .more = N_("The default is 1.")                                          \
	}
#define LL_RUN_OPTION_CLASS                                                                                            \
	{                                                                                                              \
		.name = "class", .alias = "priority", .letter = 'p', .placeholder = "CLASS",                           \
		LL_OPTION_TEXT(struct ll_run_args, class), .choices = ll_limit_classes, .help = LL_LIMIT_CLASS_HELP,   \
		.more = N_("The default is normal.")                                                                   \
	}
#define LL_RUN_OPTION_SLOWDOWN                                                                                         \
	{                                                                                                              \
		.name = "slowdown", .placeholder = "NUMBER", LL_OPTION_TEXT(struct ll_run_args, slowdown),             \
		.help = LL_LIMIT_SLOWDOWN_HELP, .more = N_("The default is 1.3.")                                      \
	}

/* Reads args->signal, which must be given: "USR1@60s", "USR1". *ret_before_s: so long before the end. -EINVAL. */
int ll_run_args_signal(const struct ll_run_args *args, uint16_t *ret_signal, uint16_t *ret_before_s,
		       struct ll_err *err);

/*
 * Makes the settings of a new tenant, with a random id. Without --tenant the name is made of the command and this
 * process's id. The folder stays empty, and without --compute the share of space does too. -EINVAL: the error names the
 * option.
 */
int ll_run_args_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 struct ll_err *err);

/*
 * Checks the options of a `run` inside a tenant (outer). All programs that a tenant starts stay in it, so limits and a
 * new name are not allowed: -EPERM.
 */
int ll_run_args_check_nested(const struct ll_run_args *args, const struct ll_run_settings *outer, struct ll_err *err);

/* Checks the memory limit and the request for this card. -EINVAL: one is larger than the card's memory, or the limit is
 * smaller than a context. */
int ll_run_args_check_card(const struct ll_run_settings *settings, const struct ll_card *card, struct ll_err *err);

/*
 * Chooses the cards that `loadline run` gives to its command.
 */

/*
 * Finds the cards that text names, or all cards if text is NULL. Of all cards it leaves out those that
 * CUDA_VISIBLE_DEVICES hides. A hidden card that text names is an error (-ENODEV). The cards are in the order of
 * CUDA_VISIBLE_DEVICES if that is set, otherwise in PCI order. *ret_cards is one allocation for free(3).
 */
int ll_run_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
			size_t *ret_count, struct ll_err *err);

/* The value of CUDA_DEVICE_ORDER by which CUDA numbers the cards as `-i` does. */
#define LL_RUN_CARDS_ORDER "PCI_BUS_ID"

/*
 * Adds the new value of CUDA_VISIBLE_DEVICES, by which the program sees these cards, in this order. Adds nothing if it
 * sees them as it is: then the user's words stay, because programs read them as numbers. text: as in
 * ll_run_cards_choose. is_client: of an MPS daemon.
 *
 * The value has the cards' indices, and CUDA_DEVICE_ORDER must be what is returned. It has their UUIDs, and NULL is
 * returned, for a slice, for a client of MPS, which counts its daemon's cards, and beside slices and cards that do not
 * answer, where CUDA's numbers are not the indices.
 */
const char *ll_run_cards_show(const struct ll_driver *driver, const char *text, const struct ll_card *const *cards,
			      size_t count, bool is_client, struct ll_strbuf *value);

/*
 * The conversation with loadlined by which a command becomes a job: its place in the queue, the job, its cards. All of
 * it goes over the one connection of the job's monitor, which asks the next loadlined again if that ends meanwhile.
 */

struct ll_run_talk {
	struct ll_place place;   /* of loadlined */
	struct ll_client client; /* to the monitor; it answers as loadlined does */
	int lifeline_fd;         /* the writable end (monitor.h) */
	pid_t pid;               /* the job's first process; 0: this one */
};

#define LL_RUN_TALK_NONE                                                                                               \
	{                                                                                                              \
		.client = {.fd = -1}, .lifeline_fd = -1                                                                \
	}

/* Starts the monitor, unless it is started. It connects with the first request. */
int ll_run_talk_start(struct ll_run_talk *talk, struct ll_err *err);

/* The next reply to the last request: as ll_client_receive. */
int ll_run_talk_receive(const struct ll_run_talk *talk, union ll_message *ret_reply, uint64_t deadline_ns,
			struct ll_err *err);

/* The monitor of a job that is registered stays, and any other ends. */
void ll_run_talk_end(struct ll_run_talk *talk);

/*
 * Asks the queue of the machine for a place, and waits for it.
 */

struct ll_run_admit {
	const struct ll_run_args *args;
	const struct ll_run_settings *settings;
	const struct ll_driver *driver;
	const char *command;
	uint64_t said;  /* as in struct ll_message_job */
	bool has_place; /* the talk has that of loadlined, which is the system's */
};

/*
 * Waits until the job has its place. Meanwhile it prints to stderr its position, who it waits for and when it will
 * start. cards: gets the UUIDs of the place, with commas; empty: this machine has no queue, and the job starts as it
 * is. -EACCES: the configuration does not allow the job, or it would never start. -EAGAIN: no place now (--no-wait).
 * -ECANCELED: none in the time of --timeout, or the job was canceled. -EINVAL: an option needs a queue, and there is
 * none; or no card can serve the limits. Finds the place of loadlined for the talk, and starts it where there is a
 * queue to ask. The place on the cards is free again when the talk ends before the job has registered.
 */
int ll_run_admit(const struct ll_run_admit *wish, struct ll_run_talk *talk, struct ll_strbuf *cards,
		 struct ll_err *err);

/* A place is lost if loadlined is killed before the job registers, or if the job comes for it too late:
 * ll_run_job_start returns -ESTALE. The job asks again, so many times in all, with empty cards. */
enum { LL_RUN_ASKS = 5 };

/* Says that the job asks again. */
void ll_run_admit_again(void);

/*
 * Tells loadlined which cards a job may use.
 */

struct ll_run_binding {
	struct ll_run_settings *settings; /* of the job, which is registered; get the limits that it has on the cards */
	const struct ll_card *const *cards;
	size_t count;
	bool may_overcommit; /* the requests of all jobs on a card may be more than it has */
};

/*
 * Binds the job to the cards, the first one first. A talk that is not started: the command is inside the job. Waits at
 * most 5 s, also for a daemon that is being started again. -EDQUOT: the requests would be more than the card has; the
 * text says how much is left. -ETIMEDOUT: loadlined does not answer. *ret_card: on an error, the card that it is about.
 */
int ll_run_bind(struct ll_run_talk *talk, const struct ll_run_binding *binding, const struct ll_card **ret_card,
		struct ll_err *err);

/*
 * Makes the environment of a governed program.
 */

/* Finds the library that is preloaded into governed programs: the file that LOADLINE_SHIM names, or the library
 * installed with loadline. -ENOENT, -EINVAL. */
int ll_run_find_shim(char ret_path[PATH_MAX], struct ll_err *err);

struct ll_run_environment {
	const struct ll_run_settings *settings;
	const char *shim;    /* path of the library; NULL: none is preloaded */
	const char *visible; /* the new value of CUDA_VISIBLE_DEVICES; NULL: as in this process's environment */
	const char *order;   /* of CUDA_DEVICE_ORDER; NULL: as in this process's environment */
	/* the values for a client of MPS; NULL: as in this process's environment */
	const char *mps_pipe, *mps_log, *mps_percent;
};

/*
 * Makes a copy of this process's environment with LOADLINE_RUN, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, the
 * variables of MPS, and the library last in LD_PRELOAD. *ret_environment is NULL-ended; the caller frees it by
 * ll_run_environment_free.
 */
int ll_run_environment_make(const struct ll_run_environment *wish, char ***ret_environment, struct ll_err *err);
void ll_run_environment_free(char **environment); /* NULL is fine */

/*
 * Finds loadline's preloaded libraries, and edits the list LD_PRELOAD.
 */

struct ll_preload_library {
	const char *name;
	const char *variable; /* name of the variable that may name another file */
	const char *const
	    *places; /* folders to search, relative to the program's: in a build folder, and installed; NULL-ended */
};

/* Finds the library, and writes its real path. -ENOENT: not found. -EINVAL: the path has a blank or a colon, at which
 * the loader would cut it. */
int ll_preload_find(const struct ll_preload_library *library, char ret_path[PATH_MAX], struct ll_err *err);

/* Returns the first word of a list in the format of LD_PRELOAD, and its length, 0 at the list's end. list may be NULL.
 */
const char *ll_preload_word(const char *list, size_t *ret_length);

/* Returns the list with this library at the end, and at no other place; for free(3). Only the simulated kernel driver's
 * comes after it (env_sim.h). NULL: out of memory. */
char *ll_preload_append(const char *list, const char *path);

/* The same, but the library comes before the first library whose file name is `name`, if the list has one. */
char *ll_preload_insert(const char *list, const char *path, const char *name);

/*
 * Leaves the settings of `loadline run` to the command in a second way: protocol/inherited.h finds them if
 * the environment is lost.
 */

/* Descriptors that the command inherits are from here on: programs may rely on low numbers of their own. */
enum { LL_RUN_FIRST_FD = 100 };

/*
 * Opens a file in memory with the settings, which nobody can change. Its descriptor stays open over exec. Without such
 * files (Linux before 3.17, no descriptor left) it does nothing: the environment is the first way.
 */
void ll_run_bequeath(const struct ll_run_settings *settings);

/*
 * Makes the command of `run` a job: its monitor registers it with loadlined.
 */

struct ll_run_job {
	const struct ll_run_settings *settings;
	const char *command;
	const char *path;    /* of the executable */
	char *const *words;  /* the command with its arguments, NULL-ended */
	bool is_named;       /* the user named the tenant */
	bool is_container;   /* LL_JOB_CONTAINER */
	const char *project; /* NULL: none */
	const char *name;    /* NULL: none */
	const char *pod;     /* as in struct ll_message_job; NULL: none */
	uint64_t said;       /* as in struct ll_message_job */
};

/* The limits of a job with these settings. */
void ll_run_job_limits(const struct ll_run_settings *settings, struct ll_limits *ret_limits);

/* Makes the message that registers the job, of this process. */
void ll_run_job_describe(const struct ll_run_job *job, union ll_message *ret_message);

/* Puts the limits that loadlined made of the request in place of those of the settings. */
void ll_run_job_take_limits(struct ll_run_settings *settings, const struct ll_message_accepted *accepted);

/*
 * Waits until the job is registered, at most 5 s. On success *ret_accepted is the reply. -EACCES: the configuration of
 * the machine does not allow the job. The lifeline stays open in this process, and the command inherits it. An error
 * says why the job is not known: the monitor goes on trying, if there is one. Calls no function of the driver.
 */
int ll_run_job_start(const struct ll_run_job *job, struct ll_run_talk *talk, struct ll_message_accepted *ret_accepted,
		     struct ll_err *err);

/*
 * Commands that have the work started by somebody else: a daemon, another host, a container's runtime.
 *
 * `run` governs a command and all that it starts. What such a command has started is none of its children, or has an
 * environment of its own, so the limits of `run` do not reach it. `run` knows the usual ones by their names, also
 * behind programs that run another command (env, nice, timeout, ...). A script that starts one of them is not known.
 */

/*
 * Looks whether a command is one of them. words: the command and its arguments, NULL-ended. -EREMOTE: it is; err says
 * who starts the work, and its hint how to put loadline inside.
 */
int ll_launchers_check(char *const *words, struct ll_err *err);

/*
 * `--cpus near`: the command runs on the CPUs near its cards, and its memory is preferably there.
 */

/*
 * Binds this process to those of its CPUs that are near one of the cards, and lets it prefer the memory nodes there.
 * The command that it becomes keeps both. If the kernel does not say what is near, a warning says so, and nothing is
 * changed.
 */
void ll_run_near_bind(const struct ll_card *const *cards, size_t count);

/*
 * Prepares a program that shares a card by space: finds the daemon, the cards that it shows, and the share of
 * their SMs.
 */

struct ll_run_space {
	bool is_client;
	char pipe[LL_MPS_PATH_SIZE], log[LL_MPS_PATH_SIZE];
	char percent[16]; /* percentage of active threads; empty: the daemon's share for each client */
};

/*
 * Reads the state of the daemon that the caller's environment leads to; with --by space one is started where none runs
 * and the environment names none. Removes cards that the daemon does not show
 * from cards, and reduces *count. Completes settings->space_permille. Fails if the program would not get what the user
 * asked for; the error's text says why:
 *
 *   -ECONNREFUSED   no daemon
 *   -ENODEV         the user named a card that clients do not see
 *   -EINVAL         a share or a memory limit is more than the daemon gives; the driver would misunderstand a variable
 *   -EBUSY          the server is in FAULT, or serves another user's clients
 */
int ll_run_space_choose(const struct ll_driver *driver, const struct ll_run_args *args,
			struct ll_run_settings *settings, const struct ll_card **cards, size_t *count,
			struct ll_run_space *ret_space, struct ll_err *err);

/*
 * Starts the governed command, for `run` and `mps run`.
 */

enum { LL_RUN_OWN_FAILURE = 125 };

/* The exit statuses of both commands. */
extern const struct ll_help_status ll_run_statuses[];

/* Executes the command that the operands name, in this process. It returns on failure only. */
int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err);

/*
 * Tells on stderr what a job waits for: one line, which is replaced on a terminal.
 */

struct ll_run_waiting {
	bool is_answered; /* loadlined has said something */
	bool is_shown;    /* something was printed */
	bool is_unended;  /* the line on the terminal has no end yet */
	struct ll_message_queued last;
	struct ll_still still; /* until the first line */
};

/* Prints the line. Elsewhere than on a terminal it is printed if it says something new. */
void ll_run_waiting_show(struct ll_run_waiting *waiting, const struct ll_message_queued *queued);

/* The job has its place: says so if it had to wait, and when it will be ended. */
void ll_run_waiting_end(struct ll_run_waiting *waiting, const struct ll_message_admitted *admitted);

/* Removes an unended line. */
void ll_run_waiting_clear(struct ll_run_waiting *waiting);

/* Adds what a job waits for, and by which rule: "waits for job 7 of ann (until 14:05): ...". */
void ll_run_waiting_add(struct ll_strbuf *text, const struct ll_queue_waits *waits,
			const struct ll_queue_why_told *why);

/* Adds by which rule it waits: "guarantee of research on whole: 2 cards kept, 0 left, 1 wanted". If loadlined does not
 * tell that, what it waits for. */
void ll_run_waiting_add_why(struct ll_strbuf *text, const struct ll_queue_waits *waits,
			    const struct ll_queue_why_told *why);

/* Adds when it starts: "starts about 14:05", or how many jobs ahead have no time. */
void ll_run_waiting_add_start(struct ll_strbuf *text, uint64_t start_s, uint32_t untimed);

#endif
