/*
 * partition.h - static partitions of MPS: SMs of a card in chunks of 8 that clients get to themselves by naming the
 * partition in CUDA_MPS_SM_PARTITION. CUDA 13.1 brought them; a daemon has them that was started with -S.
 */
#ifndef LOADLINE_SIM_MPS_PARTITION_H
#define LOADLINE_SIM_MPS_PARTITION_H

struct ll_strbuf;
struct sim_mps_daemon;

enum { SIM_MPS_PARTITIONS_SINCE = 13010 };

/* `lspart`. World locked, as below. */
void sim_mps_partition_list(const struct sim_mps_daemon *daemon, struct ll_strbuf *answer);
/* `sm_partition add UUID CHUNKS`, `sm_partition rm UUID PARTITION`. */
void sim_mps_partition_command(const struct sim_mps_daemon *daemon, const char *const *words, int count,
			       struct ll_strbuf *answer);

#endif
