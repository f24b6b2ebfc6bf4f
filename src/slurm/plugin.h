/*
 * plugin.h - what the Slurm plugin spank_loadline.so is made of: what a job may have of its cards, the process that
 * stands for the job in loadlined, and what is kept about it between the plugin's hooks (doc/slurm.md).
 *
 * Hooks run in different processes, as root: of a job's prolog and epilog, of each step, of each task. What one hook
 * hands to a later one is in a file of the node.
 */
#ifndef LOADLINE_SLURM_PLUGIN_H
#define LOADLINE_SLURM_PLUGIN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "protocol/client.h"

struct ll_err;

/* ---- the line of plugstack.conf ---- */

struct ll_spank_config {
	const char *program; /* loadline=: path of the program; /usr/bin/loadline */
	const char *folder;  /* state=: folder of root's; /run/loadline-slurm */
	char sim[PATH_MAX]; /* sim=: folder of the simulated world, in which %n is the node's name; empty: real cards */
	unsigned shards;    /* shards=: of a card, however many the node counts; 0: as many as the node counts */
	const char *borrow; /* borrow=: QOS and partitions, with commas between, whose jobs borrow; NULL: none */
	bool in_containers; /* containers=yes: oci.conf brings the library into Slurm's; else none has a card */
};

/* Reads the words. node: the name of the node; NULL: not known here. -EINVAL: an unknown word. */
int ll_spank_config_read(int count, char *const *words, const char *node, struct ll_spank_config *ret_config,
			 struct ll_err *err);

/* ---- options ---- */

/* The texts that a user gave; NULL: not given. */
struct ll_spank_options {
	const char *mem, *compute, *weight, *class, *by;
};

/* Checks the text of one option, "mem" to "by". -EINVAL: err says why. */
int ll_spank_option_check(const char *name, const char *text, struct ll_err *err);

/* ---- the job, as Slurm has it ---- */

enum { LL_SPANK_CARDS = 64, LL_SPANK_NAME = 256 };

struct ll_spank_job {
	uint32_t id;
	uid_t uid;
	gid_t gid;
	unsigned cards[LL_SPANK_CARDS]; /* numbers, as in SLURM_JOB_GPUS */
	size_t card_count;              /* 0: the job has no card */
	unsigned shards, of_shards;     /* its part of each card; of_shards 0: it has the cards whole */
	bool borrows;                   /* what others do not use of it */
	char account[LL_SPANK_NAME];    /* empty: none */
};

/* Reads "0,2-3". -EINVAL. */
int ll_spank_cards_read(const char *text, struct ll_spank_job *job);

/*
 * Finds the part of a card from Slurm's texts. job_gres: what the job has on this node, such as
 * "shard:h200:4(4/16,0/16)", or "shard:4(IDX:0)" of Slurm 22.05. node_gres: what the node has, such as
 * "gpu:h200:2,shard:32". Of several cards with different parts the smallest counts. -EINVAL: there are shards, and how
 * many a card has is not in the texts.
 */
int ll_spank_part_read(const char *job_gres, const char *node_gres, struct ll_spank_job *job, struct ll_err *err);

/* Asks slurmctld for the account and the part, and whether the job borrows (two requests). */
int ll_spank_part_ask(const struct ll_spank_config *config, const char *node, struct ll_spank_job *job,
		      struct ll_err *err);

/* ---- the job in loadlined ---- */

/* What a later hook needs to know. */
struct ll_spank_record {
	pid_t pid;             /* of the process that stands for the job; 0: the job is refused */
	uint64_t start_ticks;  /* of it (base/process_id.h) */
	struct ll_strbuf text; /* NAME=VALUE for each variable of a task, each ended by a NUL; or why it is refused */
};

/* Four of these are not for the task: the job's cards on this node, as Slurm numbers them, their UUIDs in the same
 * order, what the job has of each: "own 4" or "lent 4", in shards, and in which boot (base/host.h). */
#define LL_SPANK_CARDS_NAME "SPANK_LOADLINE_CARDS"
#define LL_SPANK_UUIDS_NAME "SPANK_LOADLINE_UUIDS"
#define LL_SPANK_HALF_NAME "SPANK_LOADLINE_HALF"
#define LL_SPANK_BOOT_NAME "SPANK_LOADLINE_BOOT"

/* Where jobs borrow, so much of a card's memory is nobody's part: contexts of borrowers that sleep stay there, some 530
 * MiB each on an H200, where it is 4.4 GiB. */
enum { LL_SPANK_KEPT_OF = 32 };

/* LL_SPANK_NODE: what the error is about is the node: it is to be drained, and the job may run elsewhere. LL_SPANK_JOB:
 * the job asks for what it cannot have. */
enum ll_spank_blame { LL_SPANK_NODE, LL_SPANK_JOB };

/*
 * Makes the job in loadlined: starts `loadline run` with its limits as the job's user, which becomes a process that
 * sleeps. The job lasts as long as this process, and those that Slurm starts in it. If loadlined ends meanwhile, the
 * next one is waited for, up to 10 s. text of *ret_record is freed by the caller.
 *
 * With shards=, jobs that do not borrow have at most so many shards of a card together, and those that borrow as many
 * again: a job beyond is refused. The caller holds the lock until the record is written.
 */
int ll_spank_start(const struct ll_spank_config *config, const struct ll_spank_job *job,
		   const struct ll_spank_options *options, struct ll_spank_record *ret_record,
		   enum ll_spank_blame *ret_blame, struct ll_err *err);

/* Puts the process into the control group of the extern step, in whose stepd this is called. Then Slurm ends it with
 * the job, and loadlined knows the job's other processes by their group. -ENOENT: Slurm uses no control groups. */
int ll_spank_bind(const struct ll_spank_record *record, struct ll_err *err);

/* Whether the process is in the control group of this Slurm job, or Slurm uses none. */
bool ll_spank_is_bound(const struct ll_spank_record *record);

/* Ends the process, if it is still the same. */
void ll_spank_end(const struct ll_spank_record *record);

/* ---- what is kept ---- */

/* Returns a file that is locked until it is closed: another prolog of the node waits for it. -errno. */
int ll_spank_lock(const struct ll_spank_config *config, struct ll_err *err);

/* Returns the value of a variable of the record's text; NULL: it has none. */
const char *ll_spank_record_value(const struct ll_strbuf *text, const char *name);

/* -ENOENT: there is none, because no hook has made the job. */
int ll_spank_record_read(const struct ll_spank_config *config, uint32_t job, struct ll_spank_record *ret_record,
			 struct ll_err *err);
int ll_spank_record_write(const struct ll_spank_config *config, uint32_t job, const struct ll_spank_record *record,
			  struct ll_err *err);
void ll_spank_record_remove(const struct ll_spank_config *config, uint32_t job);

/* Removes those whose process has ended: Slurm runs no epilog for a job if slurmd is killed amid it. */
void ll_spank_records_sweep(const struct ll_spank_config *config);

#endif
