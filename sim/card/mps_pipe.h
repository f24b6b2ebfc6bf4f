/*
 * mps_pipe.h - the folder in which an MPS daemon is met, and what is said there.
 *
 * The files have the real ones' names; what passes through `control` is the model's own: texts, one a message. A user's
 * command is one message and its answer another (empty: nothing to say). Others begin:
 *
 *     client -> daemon   "client UID"   a program in cuInit; keeps the connection while it lives
 *     daemon -> client   "server SLOT GENERATION", "refused STATUS"
 *     daemon -> server   "start SLOT", "client PID", "gone PID", "exit"
 *     server -> daemon   "ready"
 *
 * A daemon of another world, or NVIDIA's own, is never spoken to.
 */
#ifndef LOADLINE_SIM_CARD_MPS_PIPE_H
#define LOADLINE_SIM_CARD_MPS_PIPE_H

#include <stddef.h>
#include <stdint.h>

#include "card/world.h"

enum { SIM_MPS_MESSAGE_BYTES = 1 << 16, SIM_MPS_SERVER_FD = 3 };

/* CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps; CUDA_MPS_LOG_DIRECTORY, else /var/log/nvidia-mps. */
const char *sim_mps_pipe_folder(void);
const char *sim_mps_log_folder(void);

/* Connects to the daemon of the pipe folder, if one of this world is there. A descriptor, or -ENOENT. */
int sim_mps_connect(struct sim_world *w);

/* One message. False: the other side is gone. */
bool sim_mps_send(int fd, const char *text);
/* Waits for one, NUL-ended. False: the other side is gone. */
bool sim_mps_receive(int fd, char *text, size_t size);

/* Who the process says it is to MPS: LOADLINE_SIM_UID, else its user. A world belongs to one user; this plays others.
 */
uint32_t sim_mps_uid(void);

/* "2G", "512M": as the driver has it, a whole number and one of the two letters. */
bool sim_mps_parse_limit(const char *text, uint64_t *ret_bytes);
/* "25", "12.5": above 0, at most 100. In permille. */
bool sim_mps_parse_percent(const char *text, uint32_t *ret_permille);
/* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=2G,1=512M": an ordinal in cards[], or a UUID. One card that is not there, or one
 * value that is none, and no limit holds (NVIDIA's list of known issues). ret_bytes by card, 0: none. */
void sim_mps_parse_limits(const struct sim_world *w, const char *text, const uint32_t *cards, uint32_t count,
			  uint64_t ret_bytes[SIM_CARDS]);
/* A card as users name it: its ordinal in cards[], or its UUID. SIM_NONE: there is none. */
uint32_t sim_mps_parse_card(const struct sim_world *w, const char *text, const uint32_t *cards, uint32_t count);

#endif
