/*
 * version.h - what a daemon can do. A control program does not report its version, so its answers are used.
 */
#ifndef LOADLINE_MPS_VERSION_H
#define LOADLINE_MPS_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "mps/place.h"

struct ll_err;

struct ll_mps_version {
	unsigned protocol;          /* 2: the daemon knows loadline's commands; 3: it does not (drivers from 615 on) */
	bool has_static_partitions; /* it knows lspart: CUDA 13.1 and later */
};

/*
 * Asks the daemon. partitions is emptied and gets the answer to lspart, which is not parsed. Errors of ll_mps_ask.
 */
int ll_mps_version_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_version *ret_version,
			struct ll_strbuf *partitions, struct ll_err *err);

#endif
