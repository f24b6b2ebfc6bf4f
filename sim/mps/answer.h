/*
 * answer.h - the commands of nvidia-cuda-mps-control.
 *
 * Their effects are those of NVIDIA's documentation. If `bench/run mps-answers` has recorded a reply of driver 580, the
 * reply here is the same, word by word; other replies are the model's own. An unknown command gets a reply too.
 */
#ifndef LOADLINE_SIM_MPS_ANSWER_H
#define LOADLINE_SIM_MPS_ANSWER_H

#include "mps/servers.h"

struct ll_strbuf;

/* The version of CUDA that introduced static partitions: SMs of a card in chunks of 8. A client that names a partition
 * in CUDA_MPS_SM_PARTITION has these SMs for itself. A daemon has partitions if it was started with -S. */
enum { SIM_MPS_PARTITIONS_SINCE = 13010 };

/* Runs the command of this peer. The answer is a text for the user; it may be empty. The world must be locked and
 * brought up to now. */
void sim_mps_answer(struct sim_mps_daemon *daemon, struct sim_mps_peer *peer, struct ll_strbuf *answer);

#endif
