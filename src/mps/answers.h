/*
 * answers.h - what the daemon's answers say. Pure: text in, values out. Private to src/mps, and tested by itself.
 *
 * The texts are those of driver 580 (doc/facts.md, "MPS"); where NVIDIA documents a command without its answer the
 * parser takes what can be read and leaves the rest out.
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

/* The process ids of a list, one a line. Returns how many there are, of which the first capacity are stored; -1 where a
 * line is no number. */
int ll_mps_answer_pids(const char *text, pid_t *pids, size_t capacity);

/* "ACTIVE", "INITIALIZING", "FAULT", in any case, alone or in a sentence. */
enum ll_mps_status ll_mps_answer_status(const char *text);

/* "50.0", "50", "50%". False where the first word is no number. */
bool ll_mps_answer_percent(const char *text, double *ret_percent);

/* "8G", "8192M", "0": bytes. False otherwise. */
bool ll_mps_answer_bytes(const char *text, uint64_t *ret_bytes);

/* The card's limit is told in whole GiB, rounded down, where it is at least that much: whether told means wanted. */
bool ll_mps_answer_same_bytes(uint64_t told_bytes, uint64_t wanted_bytes);

/*
 * One row of `ps`: "PID ID SERVER DEVICE NAMESPACE COMMAND [ATTRIBUTES]". False for its heading and for anything else.
 * *rest is moved behind the line.
 */
bool ll_mps_answer_ps(const char **rest, struct ll_mps_client *ret_client);

/* terminate_client: "0" alone is success. */
bool ll_mps_answer_is_done(const char *text);

/* terminate_client: its last line is CUDA's status, and says that there is no such client (201) or server (1). */
bool ll_mps_answer_is_gone(const char *text);

/* terminate_client: the daemon takes off another client just now, and will take this one when that is done. */
bool ll_mps_answer_is_busy(const char *text);

#endif
