#include "cli/probe_mps.h"

#include <errno.h>

#include "base/err.h"

int ll_probe_mps_start(const struct ll_driver *driver, const struct ll_card *card, struct ll_probe_mps **ret_mps,
		       struct ll_err *err)
{
	(void)driver;
	(void)card;
	(void)ret_mps;
	return ll_err_set(err, -EOPNOTSUPP, "this build cannot start an MPS daemon");
}

const char *ll_probe_mps_pipe(const struct ll_probe_mps *mps)
{
	(void)mps;
	return "";
}

int ll_probe_mps_stop(struct ll_probe_mps *mps, struct ll_err *err)
{
	(void)mps;
	(void)err;
	return 0;
}
