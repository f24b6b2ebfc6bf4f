#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/common/env_sim.h"
#include "cli/report/parts.h"
#include "config/config.h"
#include "driver/cards.h"

/* A report of a year of a busy machine takes a second or two. */
#define REPORT_NS (60 * LL_NS_PER_S)
#define PAUSE_NS (200 * LL_NS_PER_MS)

static char own_database[] = LL_REPORT_DATABASE;
static char *own_files[] = {own_database, NULL};

static int find_place(struct ll_place *place, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	int rc = ll_sim_is_entered() ? ll_driver_open(&driver, err) : 0;
	if (!rc)
		rc = ll_place_find(driver ? ll_driver_sim_folder(driver) : NULL, place, err);
	ll_driver_close(driver);
	return rc;
}

static int explain_absence(struct ll_err *err)
{
	ll_err_set(err, -ENOENT, "report: no loadlined with accounts serves here");
	return ll_err_hint(err,
			   "the system's loadlined keeps accounts (systemctl start loadlined.socket); or name a file, "
			   "such as %s",
			   LL_REPORT_DATABASE);
}

/* Without a configuration, and with one that has faults, there are no prices. */
static void read_prices(struct ll_use_prices *ret_prices)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	const struct ll_config_accounts *accounts = &config.policy.accounts;
	int rc = ll_config_load(&config, NULL, &findings, NULL);
	if (!rc && !findings.fault_count) {
		*ret_prices = (struct ll_use_prices){accounts->price_gpu_hour, accounts->price_gib_hour, ""};
		snprintf(ret_prices->currency, sizeof ret_prices->currency, "%s",
			 accounts->currency ? accounts->currency : "");
	}
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
}

int ll_report_source_open(struct ll_report_source *source, int count, char **files, struct ll_err *err)
{
	struct ll_place place;
	*source = (struct ll_report_source){.files = files, .file_count = count, .client = {.fd = -1}};
	if (count) {
		read_prices(&source->prices);
		return 0;
	}
	int rc = find_place(&place, err);
	if (!rc)
		rc = ll_client_open(&source->client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
				    ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	if (rc != -ECONNREFUSED)
		return rc;
	if (ll_sim_is_entered() || access(LL_REPORT_DATABASE, R_OK))
		return explain_absence(err);
	source->files = own_files;
	source->file_count = 1;
	read_prices(&source->prices);
	return 0;
}

void ll_report_source_close(struct ll_report_source *source)
{
	ll_client_close(&source->client);
}

/* ---- loadlined ---- */

static int add_row(struct ll_use_report *report, const struct ll_message_report_row *row)
{
	struct ll_use_sum sum = {.granted_s = row->granted_s,
				 .used_s = row->used_s,
				 .idle_held_s = row->idle_held_s,
				 .memory_byte_s = row->memory_byte_s,
				 .joules = row->joules,
				 .lent_s = row->lent_s,
				 .borrowed_s = row->borrowed_s,
				 .number = row->number};
	memcpy(sum.key, row->key, sizeof sum.key);
	return ll_use_report_add(report, &sum);
}

static int receive_rows(struct ll_report_source *source, struct ll_use_report *report, uint64_t deadline_ns,
			struct ll_err *err)
{
	union ll_message message;
	int rc;
	while ((rc = ll_client_receive(&source->client, &message, deadline_ns, err)) == 0) {
		if (message.header.kind == LL_MESSAGE_REPORT_END) {
			source->is_of_one_user = message.report_end.is_of_one_user;
			return 0;
		}
		if (message.header.kind == LL_MESSAGE_REPORT_PRICES) {
			source->prices =
			    (struct ll_use_prices){message.report_prices.gpu_hour, message.report_prices.gib_hour, ""};
			memcpy(source->prices.currency, message.report_prices.currency, sizeof source->prices.currency);
		}
		if (message.header.kind == LL_MESSAGE_REFUSED)
			return ll_err_set(err, message.refused.code, "report: %s", message.refused.reason);
		if (message.header.kind == LL_MESSAGE_REPORT_ROW && add_row(report, &message.report_row))
			return ll_err_set(err, -ENOMEM, "out of memory");
	}
	return rc;
}

static int ask_once(struct ll_report_source *source, const struct ll_report_period *period, enum ll_use_by by,
		    struct ll_use_report *report, uint64_t deadline_ns, struct ll_err *err)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REPORT);
	message.report.since_s = period->since_s;
	message.report.until_s = period->until_s;
	message.report.by = (uint32_t)by;
	int rc = ll_client_send(&source->client, &message, deadline_ns, err);
	return rc ? rc : receive_rows(source, report, deadline_ns, err);
}

/* loadlined reads a few reports at a time. */
static int ask_loadlined(struct ll_report_source *source, const struct ll_report_period *period, enum ll_use_by by,
			 struct ll_use_report *report, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + REPORT_NS;
	int rc;
	while ((rc = ask_once(source, period, by, report, deadline_ns, err)) == -EBUSY && ll_now_ns() < deadline_ns)
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	return rc == -ENOENT ? explain_absence(err) : rc;
}

/* ---- both ---- */

int ll_report_source_read(struct ll_report_source *source, const struct ll_report_period *period, enum ll_use_by by,
			  struct ll_use_report *ret_report, struct ll_err *err)
{
	const struct ll_use_query query = {
	    .since_s = period->since_s, .until_s = period->until_s, .by = by, .until_ns = ll_now_ns() + REPORT_NS};
	int rc = 0;
	*ret_report = (struct ll_use_report){0};
	for (int i = 0; i < source->file_count && !rc; i++) {
		rc = ll_use_report_read(ret_report, source->files[i], &query, err);
		if (rc)
			ll_err_exit_with(err, LL_EXIT_FAILED);
	}
	if (!source->file_count)
		rc = ask_loadlined(source, period, by, ret_report, err);
	ll_use_report_sort(ret_report, by);
	return rc;
}
