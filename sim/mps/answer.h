/*
 * answer.h - the commands of nvidia-cuda-mps-control.
 *
 * Their effects are those of NVIDIA's documentation. Their answers are those of driver 580, word by word, if
 * `bench/run mps-answers` has asked it; the others are the model's own. An unknown command is answered too.
 */
#ifndef LOADLINE_SIM_MPS_ANSWER_H
#define LOADLINE_SIM_MPS_ANSWER_H

#include "mps/servers.h"

struct ll_strbuf;

/* The version of CUDA that brought static partitions: SMs of a card in chunks of 8. A client gets them for itself if it
 * names the partition in CUDA_MPS_SM_PARTITION. A daemon that was started with -S has them. */
enum { SIM_MPS_PARTITIONS_SINCE = 13010 };

/* Runs the command of this peer. The answer is text for the user; "": none. World locked and brought up to now. */
void sim_mps_answer(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, struct ll_strbuf *answer);

#endif
