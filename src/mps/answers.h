/*
 * answers.h - what the daemon's answers say. Pure: text in, values out. Private to src/mps, and tested by itself.
 *
 * The texts are those of driver 580 (doc/facts.md, "MPS"). NVIDIA documents some commands without their answers. For
 * these the parser takes what it can read, and ignores the rest.
 */
#ifndef LOADLINE_MPS_ANSWERS_H
#define LOADLINE_MPS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mps/servers.h"

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

#endif
