/*
 * subjects.h - the programs that the operand of evict, suspend or resume means.
 */
#ifndef LOADLINE_CLI_EVICT_SUBJECTS_H
#define LOADLINE_CLI_EVICT_SUBJECTS_H

#include "base/strbuf.h"
#include "cli/evict/together.h"

struct ll_evict_subjects {
	struct ll_evict_subject *items;
	size_t count;
};

/*
 * Finds them. "0/17" is one process, the name of a tenant all of its processes on all cards. -ENOENT: there is no such
 * program. Free with fini, also after a failure.
 */
int ll_evict_subjects_find(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			   struct ll_driver *driver, const char *word, struct ll_err *err);

/* Finds the claims of a process of this PID namespace. It may have none. */
int ll_evict_subjects_find_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			       struct ll_driver *driver, struct ll_err *err);

/* Makes the process itself the one subject, without a claim. */
int ll_evict_subjects_set_pid(struct ll_evict_subjects *subjects, const struct ll_evict_args *args,
			      struct ll_driver *driver, struct ll_err *err);
void ll_evict_subjects_fini(struct ll_evict_subjects *subjects);

/* Names the program, or says how many there are. */
void ll_evict_subjects_name(const struct ll_evict_subjects *subjects, char ret_name[LL_SUBJECT_NAME_SIZE]);

/* How much of the memory of evictable programs is away, as their claims say. */
struct ll_evict_progress {
	uint64_t evictable_bytes, away_bytes;
};
void ll_evict_subjects_progress(const struct ll_evict_subjects *subjects, struct ll_evict_progress *ret_progress);

#endif
