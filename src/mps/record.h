/*
 * record.h - what a started daemon has changed, on disk, so that whoever comes later can put it back.
 *
 * One small text file for each place, named after its pipe folder, in ll_mps_state_folder. It is written before
 * anything is changed and removed after everything is put back, each in one step, so a process may be killed at any
 * instruction: a card in a mode that we gave it always has a record that says which mode it had.
 */
#ifndef LOADLINE_MPS_RECORD_H
#define LOADLINE_MPS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/readings.h"
#include "mps/place.h"

struct ll_err;

enum { LL_MPS_RECORD_CARDS = 64 };

struct ll_mps_record_card {
	char uuid[LL_UUID_SIZE];
	bool is_changed;             /* its compute mode is ours to put back */
	enum ll_compute_mode before; /* what it was */
};

struct ll_mps_record {
	char pipe[LL_MPS_PATH_SIZE], log[LL_MPS_PATH_SIZE];
	pid_t pid; /* of the daemon; 0 while it is being started */
	uint64_t start_ticks;
	size_t card_count; /* in the order in which the daemon shows them */
	struct ll_mps_record_card cards[LL_MPS_RECORD_CARDS];
};

/* Writes it in place of the one that is there. The folder exists. */
int ll_mps_record_write(const char *folder, const struct ll_mps_record *record, struct ll_err *err);

/* The record of the place with this pipe folder. -ENOENT: there is none. -EBADMSG: it cannot be read; the text names
 * the file. */
int ll_mps_record_read(const char *folder, const char *pipe, struct ll_mps_record *ret_record, struct ll_err *err);

void ll_mps_record_remove(const char *folder, const char *pipe);

/*
 * All records of the folder, for free(3); a folder that is not there has none. -EBADMSG: one of them cannot be read;
 * which mode its cards had is not known then, so it has to be seen to by a person, and nothing is started over it.
 */
int ll_mps_record_list(const char *folder, struct ll_mps_record **ret_records, size_t *ret_count, struct ll_err *err);

/* As text and back, without a file. text is size bytes; -ENOSPC. -EBADMSG. */
int ll_mps_record_format(const struct ll_mps_record *record, char *ret_text, size_t size);
int ll_mps_record_parse(const char *text, struct ll_mps_record *ret_record);

enum { LL_MPS_RECORD_PATH = LL_MPS_PATH_SIZE + 40 };

/* Gives the file of a record: FOLDER/<sixteen digits made from the pipe folder's path>.record. */
void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH]);

/* Reads the record in this file. -ENOENT: there is none. */
int ll_mps_record_read_file(const char *path, struct ll_mps_record *ret_record, struct ll_err *err);

#endif
