#include "mps/version.h"

#include <errno.h>

#include "base/err.h"
#include "mps/exchange.h"

static bool is_final(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNREFUSED || rc == -ENOENT || rc == -ENOMEM;
}

int ll_mps_version_read(const struct ll_mps_place *place, uint64_t deadline_ns, struct ll_mps_version *ret_version,
			struct ll_strbuf *partitions, struct ll_err *err)
{
	struct ll_mps_version version = {.protocol = 2};
	struct ll_err why = {0};
	int rc = ll_mps_ask(place, deadline_ns, partitions, &why, "get_server_list");
	if (rc == -EOPNOTSUPP)
		version.protocol = 3;
	if (!is_final(rc) && version.protocol == 2) {
		rc = ll_mps_ask(place, deadline_ns, partitions, &why, "lspart");
		/* A refusal means that the daemon knows the command: it has static partitions, but was started without
		 * them. */
		version.has_static_partitions = rc != -EOPNOTSUPP;
	}
	if (is_final(rc)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		ll_strbuf_reset(partitions);
	*ret_version = version;
	return 0;
}
