/*
 * database.h - the accounts of a machine in an SQLite file, as loadlined writes them. Reports read it with report.h.
 *
 * The file is in WAL mode: readers and the one writer do not wait for each other. A transaction is on the disk when
 * ll_use_database_write returns, and is there as a whole or not at all. A column that nothing measures in this version
 * (lent_ns) is NULL, not 0; so are joules while they are unknown, and columns that came later in rows from before. A
 * file of an earlier loadline gets the columns that it lacks when it is opened here.
 *
 * The functions may wait for the disk. A database is used by one thread at a time.
 */
#ifndef LOADLINE_ACCOUNTS_DATABASE_H
#define LOADLINE_ACCOUNTS_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "accounts/batch.h"

struct ll_err;
struct ll_use_database;

enum { LL_USE_SCHEMA = 1, LL_USE_PATH_SIZE = 4096 };

/* "llac": SQLite's application_id of such a file. */
#define LL_USE_APPLICATION_ID 0x6c6c6163

/*
 * Opens the file, or makes it (mode 0600), and checks its integrity. A damaged file, or one that is no database of
 * accounts, is renamed to "PATH.damaged-TIME" and a new one is made; ret_moved then has the new name, and is empty
 * otherwise. *ret_is_new: the accounts begin in this file, because there was none, or it was empty, or it was moved.
 * -EPROTONOSUPPORT: a newer loadline has written it; it is left as it is. -ENOSPC, -EIO.
 */
int ll_use_database_open(const char *path, struct ll_use_database **ret_database, bool *ret_is_new,
			 char ret_moved[LL_USE_PATH_SIZE], struct ll_err *err);

/* Whether the file is no longer under its name: somebody has removed or replaced it. What is written then is lost. */
bool ll_use_database_is_gone(struct ll_use_database *database);

/* Closes the file. NULL is allowed. */
void ll_use_database_close(struct ll_use_database *database);

/* Adds the rows and stores the counters, in one transaction. -ENOSPC: the disk is full. -EUCLEAN: the file is damaged;
 * the caller closes it and opens it again. -EIO. After an error nothing of the batch is in the file. */
int ll_use_database_write(struct ll_use_database *database, const struct ll_use_batch *batch, struct ll_err *err);

/* Reads the counters of all jobs that had not ended. The caller frees the batch, whose rows are empty. */
int ll_use_database_read_counters(struct ll_use_database *database, struct ll_use_batch *ret_batch, struct ll_err *err);

/* The jobs that ran when the former loadlined wrote last. */
struct ll_use_former {
	int64_t last_row; /* of the table of jobs; 0: no job ran */
	int64_t last_s;   /* when it wrote last, in seconds since 1970; 0: no such job was on a card */
};

int ll_use_database_read_former(struct ll_use_database *database, struct ll_use_former *ret_former, struct ll_err *err);

/* Those of them that have not been written since have ended, at an unknown moment after that. */
int ll_use_database_end_former(struct ll_use_database *database, const struct ll_use_former *former,
			       struct ll_err *err);

/* Removes rows of hours and jobs before that time, and counters that were stored before it. */
int ll_use_database_forget(struct ll_use_database *database, int64_t before_s, struct ll_err *err);

/* For tests: the file has at most so many pages, which is what a full disk is to SQLite. 0: no such limit. */
void ll_use_database_limit_pages(struct ll_use_database *database, unsigned pages);

#endif
