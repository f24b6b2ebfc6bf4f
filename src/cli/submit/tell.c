#include "cli/submit/tell.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/err.h"
#include "protocol/client.h"

#define TRY_NS (10 * LL_NS_PER_S)
#define PAUSE_NS (LL_NS_PER_S / 2)

static int tell_once(uint64_t job, uint32_t status)
{
	struct ll_client client = {.fd = -1};
	struct ll_place place;
	union ll_message message;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, NULL);
	if (!rc && !ll_place_is_system(&place))
		rc = -ECONNREFUSED;
	if (!rc)
		rc = ll_client_open(&client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	ll_message_init(&message, LL_MESSAGE_JOB_STATUS);
	message.job_status.job = job;
	message.job_status.status = status;
	if (!rc)
		rc = ll_client_request(&client, &message, NULL, 0, NULL, deadline_ns, NULL);
	ll_client_close(&client);
	return rc;
}

void ll_submit_tell_status(uint64_t job, uint32_t status)
{
	uint64_t end_ns = ll_now_ns() + TRY_NS;
	int rc;
	while ((rc = tell_once(job, status)) && (rc == -ECONNREFUSED || ll_client_is_lost(rc)) && ll_now_ns() < end_ns)
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
}

bool ll_submit_is_in_session(const char *cgroup)
{
	const char *session = strstr(cgroup, "/session-");
	return session && strstr(session, ".scope");
}

bool ll_submit_dies_at_logout(void)
{
	char cgroup[PATH_MAX], answer[16] = "";
	if (ll_cgroup_read(0, cgroup, sizeof cgroup) || !ll_submit_is_in_session(cgroup) ||
	    access("/run/systemd/system", F_OK))
		return false;
	FILE *bus = popen("busctl get-property org.freedesktop.login1 /org/freedesktop/login1 "
			  "org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null",
			  "re");
	if (!bus)
		return false;
	bool is_read = fgets(answer, sizeof answer, bus);
	pclose(bus);
	return is_read && strncmp(answer, "b true", strlen("b true")) == 0;
}
