/*
 * work_samples.h - notes when a card worked for a job (struct ll_work_samples of the page), for the accounts.
 *
 * Only files of this folder include it.
 */
#ifndef LOADLINE_SHIM_LINK_WORK_SAMPLES_H
#define LOADLINE_SHIM_LINK_WORK_SAMPLES_H

#include <stdint.h>

#include "protocol/page.h"

/*
 * Notes that the card worked from start_ns to end_ns. Returns the part of that time that no other process of the job
 * has noted: in proportion to the samples that are new, and all of it if it contains no sample. Of time that is further
 * back than the words reach (1.9 s) nothing is noted, and all of it counts. Threads of several processes may call it at
 * the same time.
 */
uint64_t ll_work_samples_add(struct ll_work_samples *samples, uint64_t start_ns, uint64_t end_ns);

#endif
