#include "mps/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "mps/answers.h"
#include "mps/exchange.h"

enum { MIB_SHIFT = 20, QUOTE = 60 };

static int check_percent(const struct ll_mps_place *place, uint64_t deadline_ns, const char *question, double wanted,
			 struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	double told;
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "%s", question);
	if (rc)
		return rc;
	/* The daemon may round the value to one that the card can do, but may not set another value. */
	if (!ll_mps_answer_percent(answer.buf, &told) || fabs(told - wanted) >= 1)
		return ll_err_set(err, -EIO, "MPS: active thread percentage: asked for %g, the daemon holds '%.*s'",
				  wanted, QUOTE, answer.buf);
	return 0;
}

static int check_bytes(const struct ll_mps_place *place, uint64_t deadline_ns, const char *question, uint64_t wanted,
		       struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	uint64_t told;
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "%s", question);
	if (rc)
		return rc;
	if (!ll_mps_answer_bytes(answer.buf, &told) || !ll_mps_answer_same_bytes(told, wanted))
		return ll_err_set(err, -EIO, "MPS: limit of device memory: asked for %llu MiB, the daemon holds '%.*s'",
				  (unsigned long long)(wanted >> MIB_SHIFT), QUOTE, answer.buf);
	return 0;
}

static int set_percent(const struct ll_mps_place *place, uint64_t deadline_ns, double percent,
		       const struct ll_mps_list *list, struct ll_err *err)
{
	int rc = ll_mps_order(place, deadline_ns, percent, err, "set_default_active_thread_percentage %g", percent);
	if (!rc)
		rc = check_percent(place, deadline_ns, "get_default_active_thread_percentage", percent, err);
	for (size_t i = 0; !rc && list && i < list->server_count; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf question = LL_STRBUF_INIT;
		int pid = (int)list->servers[i].pid;
		ll_strbuf_addf(&question, "get_active_thread_percentage %d", pid);
		rc = ll_mps_order(place, deadline_ns, percent, err, "set_active_thread_percentage %d %g", pid, percent);
		if (!rc)
			rc = check_percent(place, deadline_ns, question.buf, percent, err);
	}
	return rc;
}

static int set_card_memory(const struct ll_mps_place *place, uint64_t deadline_ns, size_t card, uint64_t bytes,
			   const struct ll_mps_list *list, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf question = LL_STRBUF_INIT;
	uint64_t mib = bytes >> MIB_SHIFT;
	ll_strbuf_addf(&question, "get_default_device_pinned_mem_limit %zu", card);
	int rc = ll_mps_order(place, deadline_ns, (double)bytes, err,
			      "set_default_device_pinned_mem_limit %zu %" PRIu64 "M", card, mib);
	if (!rc)
		rc = check_bytes(place, deadline_ns, question.buf, mib << MIB_SHIFT, err);
	for (size_t i = 0; !rc && list && i < list->server_count; i++) {
		int pid = (int)list->servers[i].pid;
		ll_strbuf_reset(&question);
		ll_strbuf_addf(&question, "get_device_pinned_mem_limit %d %zu", pid, card);
		rc = ll_mps_order(place, deadline_ns, (double)bytes, err,
				  "set_device_pinned_mem_limit %d %zu %" PRIu64 "M", pid, card, mib);
		if (!rc)
			rc = check_bytes(place, deadline_ns, question.buf, mib << MIB_SHIFT, err);
	}
	return rc;
}

int ll_mps_limits_set(const struct ll_mps_place *place, uint64_t deadline_ns, const struct ll_mps_limits *limits,
		      const struct ll_mps_list *list, struct ll_err *err)
{
	int rc = 0;
	if (limits->compute_percent > 0)
		rc = set_percent(place, deadline_ns, limits->compute_percent, list, err);
	for (size_t i = 0; !rc && limits->memory_bytes && i < limits->card_count; i++)
		rc = set_card_memory(place, deadline_ns, limits->cards[i], limits->memory_bytes, list, err);
	return rc;
}

int ll_mps_limits_read(const struct ll_mps_place *place, uint64_t deadline_ns, size_t card, double *ret_percent,
		       uint64_t *ret_bytes, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf answer = LL_STRBUF_INIT;
	double percent = 0;
	uint64_t bytes = 0;
	int rc = ll_mps_ask(place, deadline_ns, &answer, err, "get_default_active_thread_percentage");
	if (rc)
		return rc;
	if (!ll_mps_answer_percent(answer.buf, &percent))
		percent = 0;
	struct ll_err why = {0};
	rc = ll_mps_ask(place, deadline_ns, &answer, &why, "get_default_device_pinned_mem_limit %zu", card);
	if (rc == -ETIMEDOUT || rc == -ECONNREFUSED) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc || !ll_mps_answer_bytes(answer.buf, &bytes))
		bytes = 0;
	*ret_percent = percent;
	*ret_bytes = bytes;
	return 0;
}

/* ---- a client's share of the SMs ---- */

/* Percentages have one decimal. A result that is less than that below a whole number counts as this number. */
#define ROUNDING 1e-6

unsigned ll_mps_share_sms(unsigned sm_count, double percent)
{
	if (percent >= 100)
		return sm_count;
	unsigned sms = (unsigned)(sm_count * percent / 100 + ROUNDING) & ~1u;
	unsigned least = sm_count < LL_MPS_LEAST_SMS ? sm_count : LL_MPS_LEAST_SMS;
	return sms > least ? sms : least;
}

bool ll_mps_share_is_floor(unsigned sm_count, double percent)
{
	return ll_mps_share_sms(sm_count, percent) > sm_count * percent / 100 + ROUNDING;
}

void ll_mps_share_add(struct ll_strbuf *out, const char *label, unsigned sm_count, double percent)
{
	unsigned sms = ll_mps_share_sms(sm_count, percent);
	ll_strbuf_addf(out, "%g %% of card %s's %u SMs: %u for each client", percent, label, sm_count, sms);
	if (ll_mps_share_is_floor(sm_count, percent))
		ll_strbuf_addf(out, ", which is %.1f %%: MPS gives no client fewer", 100.0 * sms / sm_count);
	else if (sms + ROUNDING < sm_count * percent / 100)
		ll_strbuf_adds(out, ", because MPS rounds down to pairs of SMs");
}
