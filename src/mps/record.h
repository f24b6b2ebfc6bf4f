/*
 * record.h - files that say what the start of a daemon has changed, so that a later command can put it back.
 *
 * There is one small text file for each place, named after its pipe folder, in ll_mps_state_folder. It is written
 * before anything is changed, and removed after everything is put back, each in one step. So a process may be killed at
 * any instruction: if loadline changed a card's mode, there is always a record with the former mode.
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
	bool is_changed;             /* loadline changed its compute mode and must put it back */
	enum ll_compute_mode before; /* its compute mode before */
};

struct ll_mps_record {
	char pipe[LL_MPS_PATH_SIZE], log[LL_MPS_PATH_SIZE];
	pid_t pid; /* of the daemon; 0 while it is being started */
	uint64_t start_ticks;
	size_t card_count; /* in the order in which the daemon shows them */
	struct ll_mps_record_card cards[LL_MPS_RECORD_CARDS];
};

/* Writes the record, in place of an existing one. The folder must exist. */
int ll_mps_record_write(const char *folder, const struct ll_mps_record *record, struct ll_err *err);

/* Reads the record of the place with this pipe folder. -ENOENT: there is none. -EBADMSG: it cannot be read; err names
 * the file. */
int ll_mps_record_read(const char *folder, const char *pipe, struct ll_mps_record *ret_record, struct ll_err *err);

void ll_mps_record_remove(const char *folder, const char *pipe);

/*
 * Reads all records of the folder, for free(3). A folder that does not exist has none. -EBADMSG: a record cannot be
 * read. Then the former modes of its cards are not known. A person must look at them, and nothing is started until
 * then.
 */
int ll_mps_record_list(const char *folder, struct ll_mps_record **ret_records, size_t *ret_count, struct ll_err *err);

/* Make text of a record, and read it back. -ENOSPC: the text does not fit into size bytes. -EBADMSG: the text is no
 * record. */
int ll_mps_record_format(const struct ll_mps_record *record, char *ret_text, size_t size);
int ll_mps_record_parse(const char *text, struct ll_mps_record *ret_record);

enum { LL_MPS_RECORD_PATH = LL_MPS_PATH_SIZE + 40 };

/* Gives the file of a record: FOLDER/<sixteen digits made from the pipe folder's path>.record. */
void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH]);

/* Reads the record in this file. -ENOENT: there is none. */
int ll_mps_record_read_file(const char *path, struct ll_mps_record *ret_record, struct ll_err *err);

#endif
