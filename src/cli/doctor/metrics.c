/* Whether the metrics that the configuration asks for are served (src/exporter). */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/translate.h"
#include "cli/doctor/doctor.h"
#include "protocol/metrics.h"
#include "serve/http.h"

enum { HTTP_OK = 200 };

static const char check[] = "metrics";

/* Returns the address of serve.metrics. -EACCES, -ENOENT: there is none. Other errors are those of the connection. */
static int read_address(const struct ll_daemon_view *view, char ret_address[LL_METRICS_ADDRESS_SIZE])
{
	struct ll_client client = {.fd = -1};
	struct ll_metrics_sums sums = {0};
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_client_open(&client, &view->place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	if (!rc)
		rc = ll_metrics_sums_read(&sums, &client, deadline_ns, NULL);
	if (!rc)
		memcpy(ret_address, sums.end.address, sizeof sums.end.address);
	if (!rc && !*ret_address)
		rc = -ENOENT;
	ll_metrics_sums_fini(&sums);
	ll_client_close(&client);
	return rc;
}

static void say_address(struct ll_doctor *doctor, const char *address)
{
	struct ll_err err = {0};
	int status = ll_http_ask(address, "/healthz", &err);
	if (status == HTTP_OK)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "served at %s", address);
	else if (status > 0)
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check,
			      N_("look at it: systemctl status loadline-exporter; another program may have the port"),
			      "what replies at %s has status %d", address, status);
	else
		ll_doctor_say(doctor, LL_FINDING_WARN, NULL, check,
			      N_("look at it: systemctl status loadline-exporter"), "not served: %s", err.text);
}

void ll_doctor_check_metrics(struct ll_doctor *doctor)
{
	char address[LL_METRICS_ADDRESS_SIZE] = "";
	if (doctor->view.answer != LL_DAEMON_SERVES || !ll_place_is_system(&doctor->view.place))
		return;
	int rc = read_address(&doctor->view, address);
	if (!rc)
		say_address(doctor, address);
	else if (rc == -EACCES || rc == -ENOENT)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, check, NULL, "not served: serve.metrics is not configured");
}
