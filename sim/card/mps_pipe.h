/*
 * mps_pipe.h - the folders of an MPS daemon: the folder of its pipe with the messages on it, and the folder of its logs
 * (CUDA_MPS_LOG_DIRECTORY, else /var/log/nvidia-mps). It also reads the texts that configure MPS.
 *
 * The files have NVIDIA's names. The messages on `control` are the model's own: one text each. A user's command is one
 * message and its reply another, which may be empty. The other messages are:
 *
 *     client -> daemon   "client UID"   a program in cuInit; keeps the connection while it lives
 *     daemon -> client   "server SLOT GENERATION", "refused STATUS"
 *     daemon -> server   "start SLOT", "client PID", "gone PID", "exit"
 *     server -> daemon   "ready"
 *
 * These functions never connect to a daemon of another world, or to NVIDIA's own.
 */
#ifndef LOADLINE_SIM_CARD_MPS_PIPE_H
#define LOADLINE_SIM_CARD_MPS_PIPE_H

#include <stddef.h>
#include <stdint.h>

#include "card/world.h"

enum { SIM_MPS_MESSAGE_BYTES = 1 << 16, SIM_MPS_SERVER_FD = 3 };

/* Returns CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps. */
const char *sim_mps_pipe_folder(void);

/* Connects to the daemon of the pipe folder if it is of this world. Returns a descriptor, or -ENOENT. */
int sim_mps_connect(struct sim_world *w);

/* Sends one message. False: the other side has closed the connection. */
bool sim_mps_send(int fd, const char *text);
/* Waits for one message, and adds a NUL. False: the other side has closed the connection. */
bool sim_mps_receive(int fd, char *text, size_t size);

/* Parses "2G" or "512M": a whole number and one of the two letters, as in the driver. */
bool sim_mps_parse_limit(const char *text, uint64_t *ret_bytes);
/* Parses "25" or "12.5": above 0, at most 100; into permille. */
bool sim_mps_parse_percent(const char *text, uint32_t *ret_permille);
/* Parses CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=2G,1=512M": each card by its ordinal in cards[], or its UUID. If one card
 * does not exist or one value is wrong, no limit holds (NVIDIA's list of known issues). ret_bytes: by card; 0: none. */
void sim_mps_parse_limits(const struct sim_world *w, const char *text, const uint32_t *cards, uint32_t count,
			  uint64_t ret_bytes[SIM_CARDS]);
/* Returns the card that a user names by its ordinal in cards[], or by its UUID. SIM_NONE: there is none. */
uint32_t sim_mps_parse_card(const struct sim_world *w, const char *text, const uint32_t *cards, uint32_t count);

/* Opens the log NAME in the log folder, and makes the folder if possible. If that fails, nothing is logged. echo: log
 * to standard output too. */
void sim_mps_log_open(const char *name, bool echo);

/* Adds a line to the log, in NVIDIA's words if they are known. who: "Control", "Server" or "Other". */
void sim_mps_log(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
