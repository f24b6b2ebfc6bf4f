/*
 * record_files.h - the files of records. Private to src/mps.
 */
#ifndef LOADLINE_MPS_RECORD_FILES_H
#define LOADLINE_MPS_RECORD_FILES_H

#include "mps/record.h"

enum { LL_MPS_RECORD_PATH = LL_MPS_PATH_SIZE + 40 };

#define LL_MPS_RECORD_SUFFIX ".record"

/* FOLDER/<sixteen digits made from the pipe folder's path>.record */
void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH]);

int ll_mps_record_read_file(const char *path, struct ll_mps_record *ret_record, struct ll_err *err);

#endif
