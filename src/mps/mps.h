/*
 * mps.h - NVIDIA's MPS daemon: where it is, its processes, questions and answers, its servers and limits, start and
 * stop, and what loadline remembers of a daemon that it has started.
 */
#ifndef LOADLINE_MPS_MPS_H
#define LOADLINE_MPS_MPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "driver/cards.h"
#include "driver/readings.h"

struct ll_err;

/* ---- place ---- */

/*
 * Where an MPS daemon is: the folder of its pipes, the folder of its logs, its program.
 *
 * A client finds its daemon by the pipe folder alone. If no daemon listens in a folder, the driver silently uses
 * neither MPS nor limits. So everything here is about one place, which is chosen in one function. doc/mps.md gives the
 * reasons for the choice.
 *
 * The driver's sockets are in the pipe folder, and a socket's path has at most 107 letters. So a folder with a path
 * longer than LL_MPS_PIPE_MAX is refused.
 */

/* Where the driver looks for a daemon if CUDA_MPS_PIPE_DIRECTORY is unset. */
#define LL_MPS_NVIDIA_PIPE "/tmp/nvidia-mps"

enum { LL_MPS_PATH_SIZE = 256, LL_MPS_PIPE_MAX = 90 };

struct ll_mps_place {
	char pipe[LL_MPS_PATH_SIZE];    /* CUDA_MPS_PIPE_DIRECTORY */
	char log[LL_MPS_PATH_SIZE];     /* CUDA_MPS_LOG_DIRECTORY */
	char program[LL_MPS_PATH_SIZE]; /* nvidia-cuda-mps-control; empty where there is none */
	bool is_named;                  /* the caller's environment names the pipe folder */
};

/*
 * Gives the place of this user's daemon: CUDA_MPS_PIPE_DIRECTORY if the environment has it; else in the simulated
 * world's folder (sim_folder, from ll_driver_sim_folder); else for root NVIDIA's default, /tmp/nvidia-mps; else
 * $XDG_RUNTIME_DIR/loadline/mps, or /tmp/loadline-UID/mps. Makes nothing. -ENAMETOOLONG. A missing program is no error
 * here.
 */
int ll_mps_place_find(const char *sim_folder, struct ll_mps_place *ret_place, struct ll_err *err);

/* Gives a private place: FOLDER/pipe and FOLDER/log, for a daemon of the caller's own. Makes nothing. */
int ll_mps_place_at(const char *sim_folder, const char *folder, struct ll_mps_place *ret_place, struct ll_err *err);

/*
 * Makes both folders, and those of their parents that are missing. New folders have mode 0700; NVIDIA's own, which
 * every user's client must reach, have 0755. Existing folders keep their mode. -EPERM: a folder is somebody else's, or
 * others may write to it.
 */
int ll_mps_place_make(const struct ll_mps_place *place, struct ll_err *err);

/* Gives the folder of this user's records (mps.h): the simulated world's folder, /run/loadline/mps for root, else as
 * for ll_mps_place_find. */
int ll_mps_state_folder(const char *sim_folder, char ret_folder[LL_MPS_PATH_SIZE], struct ll_err *err);

/* Makes a folder with its parents, and checks it as ll_mps_place_make does. */
int ll_mps_folder_make(const char *path, unsigned mode, struct ll_err *err);

/* Returns -ENOENT, with a hint, if the machine has no nvidia-cuda-mps-control. */
int ll_mps_place_need_program(const struct ll_mps_place *place, struct ll_err *err);

/* Takes an exclusive lock on the folder itself, so that no file is left behind. It is free when *ret_fd is closed or
 * its holder has ended. -EAGAIN: another process held it until deadline_ns (ll_now_ns). */
int ll_mps_lock(const char *folder, uint64_t deadline_ns, int *ret_fd, struct ll_err *err);

/* ---- environment ---- */

/*
 * The variables by which a program becomes a client: checking those of the caller, and making those of
 * a program that we start.
 */

#define LL_MPS_PIPE_VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define LL_MPS_LOG_VARIABLE "CUDA_MPS_LOG_DIRECTORY"
#define LL_MPS_PERCENT_VARIABLE "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define LL_MPS_MEMORY_VARIABLE "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
#define LL_MPS_PROTOCOL_VARIABLE "CUDA_MPS_PROTOCOL_VERSION"

/*
 * Checks that the caller's own variables do what they seem to do. -EINVAL for a percentage that is not above 0 and at
 * most 100, because the driver takes it for 100. -EINVAL for a memory limit that cannot be read, or that names a card
 * which the client cannot see, because the driver then drops every memory limit and says nothing. uuids: the cards that
 * the client will see, in its order.
 */
int ll_mps_environment_check(const char *const *uuids, size_t count, struct ll_err *err);

/* The same for a given text of the memory limit: "0=8G,GPU-8f6a…=512M". */
int ll_mps_memory_text_check(const char *text, const char *const *uuids, size_t count, struct ll_err *err);

/*
 * Runs the control program, with the caller's environment and this place in it, but without the variables that would
 * govern, limit or preload into it: the caller's limits must not hold for a daemon that serves all. input: a command;
 * NULL: the program leaves a daemon, which shows the cards of `visible` (CUDA_VISIBLE_DEVICES; NULL: all). output gets
 * what it prints. *ret_status as in ll_child_run. -ETIMEDOUT: it was killed at deadline_ns, or at once if that had
 * passed. -ENOENT: there is no control program. -ENOMEM.
 */
int ll_mps_program_run(const struct ll_mps_place *place, const char *input, const char *visible, uint64_t deadline_ns,
		       struct ll_strbuf *output, int *ret_status, struct ll_err *err);

/* ---- process ---- */

/* What /proc says of processes: of one with a known process id, and which MPS processes there are. */

/* Returns field 22 of /proc/PID/stat; 0: there is no such process, or it is a zombie. A process id and this start time
 * together are unique. */
uint64_t ll_mps_process_start(pid_t pid);

/* Whether that process lives, and is not a later one with the same process id. */
static inline bool ll_mps_process_is(pid_t pid, uint64_t start_ticks)
{
	return start_ticks && ll_mps_process_start(pid) == start_ticks;
}

/* Returns the process's user; (uid_t)-1: not known. */
uid_t ll_mps_process_user(pid_t pid);

/* Gives the name of its program: whole for MPS's own programs, else as the kernel has it, up to 15 characters; empty:
 * not known. Waits for no lock of another program than MPS's. */
void ll_mps_process_name(pid_t pid, char *ret_name, size_t size);

/* Gives the file of its program. False: /proc does not show it to this user. */
bool ll_mps_process_program(pid_t pid, char *ret_path, size_t size);

/* Gives the value of a variable in the environment with which it was started. False: the variable is not set, or this
 * user may not read it. */
bool ll_mps_process_variable(pid_t pid, const char *name, char *ret_value, size_t size);

/* Sends the signal if the process id still belongs to that process. */
void ll_mps_process_signal(pid_t pid, uint64_t start_ticks, int number);

struct ll_mps_found {
	pid_t pid;
	uint64_t start_ticks;
	uid_t owner;
	bool is_server;              /* nvidia-cuda-mps-server; else the control daemon */
	char pipe[LL_MPS_PATH_SIZE]; /* "": this user may not read its environment */
};

/* Finds control daemons and servers, and stores at most `capacity`. Returns how many were stored. Takes milliseconds.
 * */
size_t ll_mps_search(struct ll_mps_found *found, size_t capacity);

/* ---- servers ---- */

/* The servers of a daemon and their clients: listing them, and taking a client off its server. */

enum ll_mps_status {
	LL_MPS_UNKNOWN,
	LL_MPS_INITIALIZING,
	LL_MPS_ACTIVE,
	LL_MPS_FAULT, /* a client's fault: no new clients until the affected ones are gone */
};

enum { LL_MPS_CARD_SIZE = 96, LL_MPS_COMMAND_SIZE = 64 };

/* One client on one card; a client on two cards is listed twice. */
struct ll_mps_client {
	pid_t pid, server;
	char card[LL_MPS_CARD_SIZE];       /* the beginning of its UUID, as the daemon shortens it; "" unknown */
	char command[LL_MPS_COMMAND_SIZE]; /* "" unknown */
};

struct ll_mps_server {
	pid_t pid;
	enum ll_mps_status status;
	uid_t user;             /* whose clients it serves; (uid_t)-1: not known */
	double compute_percent; /* limit of later clients; 0: not known */
};

/* Zeroed before first use; fini frees and zeroes. */
struct ll_mps_list {
	struct ll_mps_server *servers;
	size_t server_count;
	struct ll_mps_client *clients; /* ordered by server, then as the daemon lists them */
	size_t client_count;
};

void ll_mps_list_fini(struct ll_mps_list *list);

/* Reads the daemon's servers and clients. The list is emptied first. Errors of ll_mps_ask. A server that ends meanwhile
 * is left out. */
int ll_mps_list_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_list *list,
		     struct ll_err *err);

/* Adds the clients, each once and at most so many: "8 (train), 9". Returns how many there are. */
size_t ll_mps_list_add_clients(const struct ll_mps_list *list, size_t most, struct ll_strbuf *out);

/* "active", "fault", "initializing", "unknown". */
const char *ll_mps_status_text(enum ll_mps_status status);

/*
 * Sends terminate_client for the server of this client. The client's contexts are destroyed. Its process goes on, and
 * gets an error from its next CUDA call. The command was seen to hang, and refuses callers that come at the same time,
 * so callers take a lock on the pipe folder. There are at most three tries; a try that the daemon refuses because it
 * takes off another client does not count. The call ends within within_ns. Nothing stronger is done instead.
 *
 * -ESRCH: there is no such client; err names those that there are. -ETIMEDOUT: no try was answered. -EIO: the daemon
 * refused; err has its last answer. -EAGAIN: other callers held the lock all the time.
 */
int ll_mps_client_end(const struct ll_mps_place *place, pid_t client, uint64_t within_ns, struct ll_err *err);

/* ---- answers ---- */

/*
 * What the daemon's answers say. Pure: text in, values out. Private to src/mps, and tested by itself.
 *
 * The texts are those of driver 580 (doc/facts.md, "MPS"). NVIDIA documents some commands without their answers. For
 * these the parser takes what it can read, and ignores the rest.
 */

enum ll_mps_answer {
	LL_MPS_ANSWER_PLAIN,     /* an answer to what was asked, perhaps empty */
	LL_MPS_ANSWER_NO_DAEMON, /* "Cannot find MPS control daemon process" */
	LL_MPS_ANSWER_UNKNOWN,   /* "Unknown command": with exit status 0, and on standard output */
	LL_MPS_ANSWER_DENIED,    /* not for this user */
	LL_MPS_ANSWER_BUSY,      /* "Cannot send command to MPS control daemon process": it listens to another caller */
	LL_MPS_ANSWER_REFUSED,   /* any other sentence of refusal, such as "Server 17 not found" */
};

enum ll_mps_answer ll_mps_answer_kind(const char *text);

/* Reads a list of process ids, one in each line. Returns their number, of which the first `capacity` are stored.
 * Returns -1 if a line is no number. */
int ll_mps_answer_pids(const char *text, pid_t *pids, size_t capacity);

/* Reads "ACTIVE", "INITIALIZING" or "FAULT", in upper or lower case, alone or in a sentence. */
enum ll_mps_status ll_mps_answer_status(const char *text);

/* Reads "50.0", "50" or "50%". False: the first word is no number. */
bool ll_mps_answer_percent(const char *text, double *ret_percent);

/* Reads "8G", "8192M" or "0" as bytes. False: the text is something else. */
bool ll_mps_answer_bytes(const char *text, uint64_t *ret_bytes);

/* Whether the limit that the daemon reports is the one that was set. The daemon reports limits of 1 GiB and more in
 * whole GiB, rounded down. */
bool ll_mps_answer_same_bytes(uint64_t told_bytes, uint64_t wanted_bytes);

/*
 * Reads one row of `ps`: "PID ID SERVER DEVICE NAMESPACE COMMAND [ATTRIBUTES]". False: the line is the heading, or
 * something else. *rest is moved behind the line.
 */
bool ll_mps_answer_ps(const char **rest, struct ll_mps_client *ret_client);

/* Whether terminate_client has succeeded: its answer is "0" alone. */
bool ll_mps_answer_is_done(const char *text);

/* Whether terminate_client found no such client or server. The last line of its answer is then CUDA's status 201
 * (client) or 1 (server). */
bool ll_mps_answer_is_gone(const char *text);

/* Whether terminate_client was refused because the daemon is ending another client. It will accept the command when
 * that is done. */
bool ll_mps_answer_is_busy(const char *text);

/* ---- exchange ---- */

/*
 * One command to an MPS daemon and its answer, within a time.
 *
 * The driver's only interface for this is its program nvidia-cuda-mps-control: a command goes to its standard input,
 * and it prints the answer. This module works around four faults of the program. It may wait for ever, so it is killed
 * at the deadline. It answers an unknown or refused command on standard output with exit status 0, so the answer is
 * read. It reports a missing daemon as a sentence in the same way. And while the daemon listens to one caller, it
 * refuses all others: so commands of loadline come one after the other, by a lock on the log folder, and are repeated
 * if another program's command is in the way.
 */

/*
 * Sends one command line, without a newline, and waits until the program has ended or deadline_ns (ll_now_ns) has
 * passed. ret_answer, an initialised string, is emptied and gets what the program printed, without trailing blank
 * lines.
 *
 * -ECONNREFUSED: there is no daemon at this place. -ETIMEDOUT: there was no answer in time; the program is killed, and
 * what the daemon does with the command is not known. -EAGAIN: the daemon listened to other callers all the time.
 * -EOPNOTSUPP: this daemon does not know the command. -ENOENT: there is no control program. -EPERM: the daemon is
 * another user's. -EIO: any other refusal, which err quotes.
 */
int ll_mps_ask(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer, struct ll_err *err,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The same for one question of several: one that this daemon does not answer has an empty answer. An error is one that
 * all questions would have: -ECONNREFUSED, -ETIMEDOUT, -ENOENT, -ENOMEM. */
int ll_mps_ask_softly(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_strbuf *ret_answer,
		      struct ll_err *err, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/*
 * The same as ll_mps_ask for a command that changes something. Success is an empty answer, "0", or the value that was
 * set. Any other answer is -EIO, and err quotes it. wanted: that value, a percentage or bytes; negative: the command
 * sets none.
 */
int ll_mps_order(const struct ll_mps_place *place, uint64_t deadline_ns, double wanted, struct ll_err *err,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- version ---- */

/* What a daemon can do. A control program does not report its version, so its answers are used. */

struct ll_mps_version {
	unsigned protocol;          /* 2: the daemon knows loadline's commands; 3: it does not (drivers from 615 on) */
	bool has_static_partitions; /* it knows lspart: CUDA 13.1 and later */
};

/*
 * Asks the daemon. partitions is emptied and gets the answer to lspart, which is not parsed. Errors of ll_mps_ask.
 */
int ll_mps_version_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_version *ret_version,
			struct ll_strbuf *partitions, struct ll_err *err);

/* ---- limits ---- */

/*
 * What every client of a daemon may have, set and read back.
 *
 * The driver gives these limits to a client when the client starts. A running client keeps its limits.
 */

struct ll_mps_limits {
	double compute_percent; /* active threads of each client; 0: not changed */
	uint64_t memory_bytes;  /* device memory of each client on each card, in whole MiB; 0: not changed */
	const size_t *cards;    /* the cards that the memory limit is for, by the daemon's numbers, from 0 */
	size_t card_count;
};

/*
 * Sets the limits for clients of later servers, and of the servers in list (NULL: none). The daemon answers with status
 * 0 in any case, so each command is followed by a question for the value. -EIO: the daemon has another value. Other
 * errors are those of ll_mps_ask. After an error some limits may be in force. The caller must know that the daemon
 * shows these cards: for a card that it does not show, it drops every limit.
 */
int ll_mps_limits_set(const struct ll_mps_place *place, uint64_t deadline_ns, const struct ll_mps_limits *limits,
		      const struct ll_mps_list *list, struct ll_err *err);

/* Reads the limits for clients of later servers. A figure that the daemon does not report is 0. Errors of ll_mps_ask.
 * */
int ll_mps_limits_read(const struct ll_mps_place *place, uint64_t deadline_ns, size_t card, double *ret_percent,
		       uint64_t *ret_bytes, struct ll_err *err);

/*
 * How many SMs a percentage of active threads gives a client. Measured on an H200 with driver 580 (doc/facts.md,
 * "MPS"): a percentage is rounded down to whole pairs of SMs, which are the card's TPCs, and no client gets fewer than
 * eight. Another generation may have another minimum.
 */
enum { LL_MPS_LEAST_SMS = 8 };

/* Returns that number of SMs. sm_count: the card's. */
unsigned ll_mps_share_sms(unsigned sm_count, double percent);

/* Whether a client gets more SMs than the percentage says. */
bool ll_mps_share_is_floor(unsigned sm_count, double percent);

/* Adds "25 % of card 0's 132 SMs: 32 for each client, because MPS rounds down to pairs of SMs". */
void ll_mps_share_add(struct ll_strbuf *out, const char *label, unsigned sm_count, double percent);

/* ---- cards ---- */

/* Which cards a daemon shows to its clients. Clients see these cards only, numbered from 0 in this order. */

/*
 * Gives the cards that the daemon shows. They are read from the record of its start (mps.h); without a record from
 * the daemon's own CUDA_VISIBLE_DEVICES, if /proc shows it; else they are all cards. *ret_cards is one allocation for
 * free(3); the cards are the driver's. -ENOMEM.
 */
int ll_mps_cards_read(const struct ll_driver *driver, const char *folder, const struct ll_mps_place *place,
		      const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err);

/* Returns the card's number at the daemon; -1: the daemon does not show it. */
int ll_mps_cards_number(const struct ll_card *const *cards, size_t count, const struct ll_card *card);

/* ---- daemon ---- */

/*
 * Starts, finds and ends an MPS control daemon at a place.
 *
 *     struct ll_mps_place place;
 *     ll_mps_place_at(ll_driver_sim_folder(driver), "/tmp/llp.4711", &place, err);
 *     ll_mps_daemon_start(&place, &(struct ll_mps_start){.uuids = uuids, .count = 1}, 5 * LL_NS_PER_S, &pid, err);
 *     ... run clients with CUDA_MPS_PIPE_DIRECTORY ...
 *     ll_mps_daemon_stop(&place, true, 10 * LL_NS_PER_S, NULL, err);
 *
 * These functions change no card's compute mode (mps.h) and keep no record (mps.h). So a private daemon in a
 * temporary folder needs nothing else, and no root.
 *
 * A daemon is identified by the process id in nvidia-cuda-mps-control.pid, in its pipe folder, and by its start time.
 * So a file that a killed daemon left is not taken for a daemon.
 */

struct ll_mps_start {
	const char *const *uuids; /* the cards that clients see, in this order; NULL: all */
	size_t count;
	double compute_percent; /* default active thread percentage of every client; 0: not set (100) */
	uint64_t memory_bytes;  /* limit of device memory of every client on each of the cards; 0: none */
	bool has_user;          /* start the server for this user at once, so that the first client need not wait */
	uid_t user;
};

struct ll_mps_daemon {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
	uid_t owner;
};

/* Finds the daemon. -ESRCH: there is no daemon: there is no file, or a dead daemon left it. */
int ll_mps_daemon_find(const struct ll_mps_place *place, struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/* Whether a program with this process's environment becomes the client of a daemon: one runs where
 * CUDA_MPS_PIPE_DIRECTORY says, else in NVIDIA's folder. */
bool ll_mps_daemon_is_met(void);

/*
 * Makes the place, starts the daemon, waits until it answers, sets the limits, and reads them back. Returns when the
 * daemon answers or has ended, and after within_ns at the latest. If it fails, it ends what it has started. ret_daemon
 * may be NULL. -EALREADY: a daemon runs here. -ENOENT: there is no control program. -ETIMEDOUT. -EIO: the daemon
 * failed; err has its reason.
 */
int ll_mps_daemon_start(const struct ll_mps_place *place, const struct ll_mps_start *start, uint64_t within_ns,
			struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Ends the daemon and its servers, and waits until their processes are gone. First the daemon is asked to quit. With
 * force, processes that have not ended after half of the time get SIGTERM and then SIGKILL, clients get an error from
 * CUDA, and *ret_was_signalled is set; it may be NULL. Without force and with clients it does nothing and fails with
 * -EBUSY; err names the clients. -ESRCH: no daemon runs; files that a dead one left are removed. -ETIMEDOUT: a process
 * is still there after within_ns; err names it.
 */
int ll_mps_daemon_stop(const struct ll_mps_place *place, bool force, uint64_t within_ns, bool *ret_was_signalled,
		       struct ll_err *err);

/*
 * Asks the daemon, whatever /proc shows of it. Returns 0 if it answers, else the error of ll_mps_ask. Without a control
 * pipe the error is -ECONNREFUSED, even if there was no time to ask.
 */
int ll_mps_daemon_answers(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_err *err);

/* ---- record ---- */

/*
 * Files that say what the start of a daemon has changed, so that a later command can put it back.
 *
 * There is one small text file for each place, named after its pipe folder, in ll_mps_state_folder. It is written
 * before anything is changed, and removed after everything is put back, each in one step. So a process may be killed at
 * any instruction: if loadline changed a card's mode, there is always a record with the former mode.
 */

enum { LL_MPS_RECORD_CARDS = 64 };

struct ll_mps_record_card {
	char uuid[LL_UUID_SIZE];
	bool is_changed;             /* loadline changed its compute mode and must put it back */
	enum ll_compute_mode before; /* its compute mode before */
};

struct ll_mps_record {
	char pipe[LL_MPS_PATH_SIZE], log[LL_MPS_PATH_SIZE];
	pid_t pid; /* of the daemon; 0 while it is being started */
	uint64_t start_ticks;
	size_t card_count; /* in the order in which the daemon shows them */
	struct ll_mps_record_card cards[LL_MPS_RECORD_CARDS];
};

/* Writes the record, in place of an existing one. The folder must exist. */
int ll_mps_record_write(const char *folder, const struct ll_mps_record *record, struct ll_err *err);

/* Reads the record of the place with this pipe folder. -ENOENT: there is none. -EBADMSG: it cannot be read; err names
 * the file. */
int ll_mps_record_read(const char *folder, const char *pipe, struct ll_mps_record *ret_record, struct ll_err *err);

void ll_mps_record_remove(const char *folder, const char *pipe);

/*
 * Reads all records of the folder, for free(3). A folder that does not exist has none. -EBADMSG: a record cannot be
 * read. Then the former modes of its cards are not known. A person must look at them, and nothing is started until
 * then.
 */
int ll_mps_record_list(const char *folder, struct ll_mps_record **ret_records, size_t *ret_count, struct ll_err *err);

/* Make text of a record, and read it back. -ENOSPC: the text does not fit into size bytes. -EBADMSG: the text is no
 * record. */
int ll_mps_record_format(const struct ll_mps_record *record, char *ret_text, size_t size);
int ll_mps_record_parse(const char *text, struct ll_mps_record *ret_record);

enum { LL_MPS_RECORD_PATH = LL_MPS_PATH_SIZE + 40 };

/* Gives the file of a record: FOLDER/<sixteen digits made from the pipe folder's path>.record. */
void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH]);

/* ---- exclusive ---- */

/* Puts cards into exclusive-process mode for a daemon, and back. No other file changes a compute mode. */

/*
 * Fills a record's cards with their present modes, and marks the cards whose mode must be changed. -EBUSY: a process is
 * on such a card already, so the server could not start beside it. -EPERM: needs root. -ENOSYS: a card has no compute
 * modes, or is a MIG slice, whose mode is its card's. Changes no mode.
 */
int ll_mps_exclusive_plan(const struct ll_card *const *cards, size_t count, struct ll_mps_record *record,
			  struct ll_err *err);

/* Puts the marked cards into exclusive-process mode. If it fails, some cards may be in it: call restore. */
int ll_mps_exclusive_set(const struct ll_driver *driver, const struct ll_mps_record *record, struct ll_err *err);

/*
 * Gives the marked cards their former modes. A card that is no longer in exclusive-process mode was changed by somebody
 * else, and is left as it is. *ret_restored: the number of cards that were put back. All cards are tried; the first
 * error is returned. -ENODEV: a card is no longer there.
 */
int ll_mps_exclusive_restore(const struct ll_driver *driver, const struct ll_mps_record *record, size_t *ret_restored,
			     struct ll_err *err);

/* Returns how many marked cards are in exclusive-process mode now. */
size_t ll_mps_exclusive_count(const struct ll_driver *driver, const struct ll_mps_record *record);

/* ---- session ---- */

/*
 * `mps start` and `mps stop` as a whole: the record, the compute modes and the daemon, in an order that may
 * be interrupted at any step.
 *
 *     start:  write the record -> set the modes -> start the daemon -> write its number into the record
 *     stop:   end the daemon -> put the modes back -> remove the record
 *
 * A record whose daemon is gone is a leftover. The next start or stop puts its modes back first. All of this is done
 * under a lock on the records' folder.
 */

struct ll_mps_session {
	const struct ll_driver *driver;
	const char *folder; /* of the records; it is made if it does not exist */
	const struct ll_mps_place *place;
};

struct ll_mps_wish {
	const struct ll_card *const *cards; /* the cards that the daemon shows, in this order; at least one */
	size_t count;
	bool is_exclusive; /* put them into exclusive-process mode */
	double compute_percent;
	uint64_t memory_bytes;
	bool has_user;
	uid_t user;
};

struct ll_mps_stopped {
	bool had_daemon;    /* a daemon was running */
	bool was_signalled; /* with force: the daemon did not end when asked, and was ended by signals */
	size_t restored;    /* cards whose compute mode was put back */
};

/*
 * Starts a daemon. Errors of ll_mps_daemon_start, ll_mps_exclusive_plan and ll_mps_exclusive_set. -EBUSY also if
 * another daemon has a card in exclusive mode, or if a card is in prohibited mode. After an error everything is as
 * before, unless err says otherwise.
 */
int ll_mps_session_start(const struct ll_mps_session *session, const struct ll_mps_wish *wish, uint64_t within_ns,
			 struct ll_mps_daemon *ret_daemon, struct ll_err *err);

/*
 * Ends the daemon at the place, and puts back the modes of this user's leftovers. Errors of ll_mps_daemon_stop; after
 * these the modes of its cards stay, because the daemon may still be at work. -ESRCH only if there was nothing to put
 * back either.
 */
int ll_mps_session_stop(const struct ll_mps_session *session, bool force, uint64_t within_ns,
			struct ll_mps_stopped *ret_stopped, struct ll_err *err);

/* Gives the records, for free(3), whose daemon is gone and which still have cards in exclusive mode. */
int ll_mps_session_leftovers(const struct ll_mps_session *session, struct ll_mps_record **ret_records,
			     size_t *ret_count, struct ll_err *err);

#endif
