#include "shim/slices/stays.h"

#include "base/clock.h"

/* Company that pauses counts as company for so long. */
#define COMPANY_NS (1 * LL_NS_PER_S)
/* Of a stay that ends, what is the saving of the context's state: 0.05 ms of little state, 0.15 of all registers
 * (doc/facts.md). */
#define SAVING_NS UINT64_C(130000)
/* How far the two clocks may run apart, in parts of a million. */
enum { DRIFT_PPM = 100, RECORDS_AT_ONCE = 64 };

static uint64_t host_ns(const struct ll_stays *stays, uint64_t card_ns)
{
	return card_ns - (uint64_t)stays->offset_ns;
}

static void note_clock(struct ll_stays *stays, uint64_t newest_ns, uint64_t now_ns)
{
	int64_t least_ns = (int64_t)(newest_ns - now_ns);
	int64_t drift_ns = (int64_t)((now_ns - stays->offset_at_ns) / (1000000 / DRIFT_PPM));
	if (!stays->has_offset || least_ns > stays->offset_ns - drift_ns) {
		stays->offset_ns = least_ns;
		stays->has_offset = true;
		stays->offset_at_ns = now_ns;
	}
}

static void come_back(struct ll_stays *stays, struct ll_claim *claim, uint64_t at_ns)
{
	if (stays->away_ns && at_ns > stays->away_ns)
		ll_port_note_away(claim, stays->away_ns, at_ns);
	stays->away_ns = 0;
}

static void note_record(struct ll_stays *stays, struct ll_claim *claim, const struct ll_rm_switch_record *record,
			bool is_own)
{
	uint64_t at_ns = host_ns(stays, record->ns);
	if (record->tag == LL_RM_SWITCH_START && is_own)
		come_back(stays, claim, at_ns);
	else if (record->tag == LL_RM_SWITCH_START && !stays->away_ns)
		stays->away_ns = at_ns;
	else if (record->tag == LL_RM_SWITCH_END && is_own && !stays->away_ns)
		stays->away_ns = at_ns - SAVING_NS;
}

/* The first records that come only tell of the clock. After records that are missing the contexts count as on the card
 * until the next ones. Returns 0, or the error of the trace. */
static int read_records(struct ll_stays *stays, struct ll_claim *claim, ll_stays_is_own_fn *is_own, const void *of)
{
	struct ll_rm_switch_record records[RECORDS_AT_ONCE];
	bool had_offset = stays->has_offset, has_lost = false;
	int count;
	do {
		bool are_missing = false;
		count = ll_trace_read(stays->trace, records, RECORDS_AT_ONCE, &are_missing);
		if (count > 0)
			note_clock(stays, records[count - 1].ns, ll_now_ns());
		for (int i = 0; i < count; i++) {
			bool is_ours = is_own(of, records[i].context);
			stays->has_own |= is_ours;
			if (had_offset)
				note_record(stays, claim, &records[i], is_ours);
		}
		has_lost |= are_missing;
	} while (count == RECORDS_AT_ONCE);
	if (has_lost)
		stays->away_ns = 0;
	return count < 0 ? count : 0;
}

static bool follow_none(struct ll_stays *stays, struct ll_claim *claim)
{
	ll_port_note_traced(claim, 0);
	stays->away_ns = 0;
	return false;
}

bool ll_stays_follow(struct ll_stays *stays, ll_ioctl_fn next, const char *uuid, struct ll_claim *claim,
		     bool has_company, ll_stays_is_own_fn *is_own, const void *of)
{
	uint64_t now_ns = ll_now_ns();
	if (has_company)
		stays->company_ns = now_ns;
	bool is_wanted = stays->company_ns && now_ns - stays->company_ns < COMPANY_NS;
	if (is_wanted && !stays->trace && !stays->has_failed)
		stays->has_failed = ll_trace_open(next, uuid, &stays->trace) != 0;
	if (!is_wanted || stays->has_failed)
		return follow_none(stays, claim);
	now_ns = ll_now_ns();
	if (read_records(stays, claim, is_own, of)) {
		stays->has_failed = true;
		ll_trace_close(stays->trace);
		stays->trace = NULL;
		return follow_none(stays, claim);
	}
	if (!stays->has_own) {
		follow_none(stays, claim);
		return true;
	}
	if (stays->away_ns && stays->away_ns < now_ns) {
		ll_port_note_away(claim, stays->away_ns, now_ns);
		stays->away_ns = now_ns;
	}
	ll_port_note_traced(claim, now_ns);
	return true;
}
