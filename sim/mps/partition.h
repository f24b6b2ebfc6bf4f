/*
 * partition.h - the commands about static partitions of MPS (answer.h). The world must be locked.
 */
#ifndef LOADLINE_SIM_MPS_PARTITION_H
#define LOADLINE_SIM_MPS_PARTITION_H

struct ll_strbuf;
struct sim_mps_daemon;

/* `lspart`: adds a table of cards and partitions to the answer. */
void sim_mps_partition_list(const struct sim_mps_daemon *daemon, struct ll_strbuf *answer);

/* `sm_partition add UUID CHUNKS` and `sm_partition rm UUID PARTITION`: carries out the command, and adds its output to
 * the answer. */
void sim_mps_partition_command(const struct sim_mps_daemon *daemon, const char *const *words, int count,
			       struct ll_strbuf *answer);

#endif
