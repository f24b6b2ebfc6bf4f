/*
 * submit.h - the commands about submitted jobs, and what they share.
 */
#ifndef LOADLINE_CLI_SUBMIT_SUBMIT_H
#define LOADLINE_CLI_SUBMIT_SUBMIT_H

#include "cli/options/command.h"
#include "cli/submit/record.h"

extern const struct ll_command ll_submit_list, ll_submit_wait, ll_submit_stop, ll_submit_log;

/* Finds the folder of the records, and reads the record of the job that the word names. -EINVAL: the word is no number.
 * Other errors: ll_submit_read. */
int ll_submit_find(const char *word, char ret_folder[PATH_MAX], struct ll_submit_record *ret_record,
		   struct ll_err *err);

#endif
