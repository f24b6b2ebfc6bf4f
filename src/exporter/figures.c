#include "exporter/figures.h"

#include <string.h>

#include "base/clock.h"

/* loadlined may look up the groups of this user for 2 s. */
#define REPLY_NS (4 * LL_NS_PER_S)

static int read_replies(struct ll_figures *figures, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err)
{
	int rc = ll_metrics_sums_read(&figures->sums, client, deadline_ns, err);
	if (!rc)
		rc = ll_sensed_read(&figures->sensed, client, deadline_ns, err);
	if (!rc && !figures->sums.end.hides_others)
		rc = ll_client_list(client, &figures->list, deadline_ns, err);
	return rc;
}

int ll_figures_read(struct ll_figures *figures, const struct ll_place *place, struct ll_err *err)
{
	struct ll_client client = {.fd = -1};
	uint64_t begin_ns = ll_now_ns(), deadline_ns = begin_ns + REPLY_NS;
	*figures = (struct ll_figures){.sensed.end.silent_ns = UINT64_MAX};
	int rc = ll_client_open(&client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	if (!rc)
		rc = read_replies(figures, &client, deadline_ns, err);
	figures->welcome = client.welcome;
	figures->is_up = !rc;
	figures->asked_ns = ll_now_ns() - begin_ns;
	ll_client_close(&client);
	return rc;
}

void ll_figures_fini(struct ll_figures *figures)
{
	ll_list_fini(&figures->list);
	ll_sensed_fini(&figures->sensed);
	ll_metrics_sums_fini(&figures->sums);
}
