/*
 * version.h - what a daemon can do, told by what it answers: a control program does not say its version.
 */
#ifndef LOADLINE_MPS_VERSION_H
#define LOADLINE_MPS_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "mps/place.h"

struct ll_err;

struct ll_mps_version {
	unsigned protocol;          /* 2: the commands that we speak; 3: it does not know them (drivers from 615 on) */
	bool has_static_partitions; /* it knows lspart: CUDA 13.1 and later */
};

/*
 * partitions: what lspart says, emptied first; its lines are not read any further. Errors of ll_mps_ask.
 */
int ll_mps_version_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_version *ret_version,
			struct ll_strbuf *partitions, struct ll_err *err);

#endif
