/* A page with everything in it: no script, no style sheet and no picture from elsewhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/report/parts.h"

enum { WIDTH = 960, MARGIN = 24, DAYS_HEIGHT = 220, DAYS_TOP = 20, LABELS = 180, BAR = 18, ROW = 26, TENANTS = 20 };
enum { DAY_LABELS = 12, KEY_SIZE = 160 };

#define S_PER_H 3600.0

static const char style[] =
    "body{font:14px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;"
    "background:#fff}\n"
    "svg{width:100%;height:auto}\ntext{font:12px system-ui,sans-serif;fill:currentColor}\n"
    "table{border-collapse:collapse;width:100%}\nth,td{text-align:right;padding:.2rem .6rem;"
    "border-bottom:1px solid #8886}\nth:first-child,td:first-child{text-align:left}\n"
    ".granted{fill:#9bb8d3}.used{fill:#1f6fb2}.idle{fill:#d98a2b}.axis{stroke:#8888}\n"
    "@media(prefers-color-scheme:dark){body{color:#dde3ea;background:#14181d}.granted{fill:#3c556d}"
    ".used{fill:#5aa5e0}}\n";

static void add_escaped_key(struct ll_strbuf *out, enum ll_use_by by, const struct ll_use_sum *sum)
{
	LL_SCOPE_STRBUF struct ll_strbuf key = LL_STRBUF_INIT;
	ll_report_add_key(&key, by, sum);
	ll_strbuf_add_escaped(out, key.buf);
	out->failed |= key.failed;
}

static double most_of(const struct ll_use_report *report)
{
	double most = 0;
	for (size_t i = 0; i < report->count; i++)
		most = fmax(most, fmax(report->sums[i].granted_s, report->sums[i].used_s));
	return most;
}

static void add_bar(struct ll_strbuf *out, const char *kind, double x, double y, double width, double height)
{
	ll_strbuf_addf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", kind, x, y,
		       fmax(width, 0), fmax(height, 0));
}

/* What a browser shows at the pointer. */
static void add_title(struct ll_strbuf *out, enum ll_use_by by, const struct ll_use_sum *sum)
{
	ll_strbuf_adds(out, "<title>");
	add_escaped_key(out, by, sum);
	ll_strbuf_addf(out, _(": %.2f h used, %.2f h granted, %.2f h idle held"), sum->used_s / S_PER_H,
		       sum->granted_s / S_PER_H, sum->idle_held_s / S_PER_H);
	ll_strbuf_adds(out, "</title>");
}

/* ---- by day ---- */

static void add_day(struct ll_strbuf *out, const struct ll_use_sum *sum, double x, double width, double scale)
{
	double bottom = DAYS_TOP + DAYS_HEIGHT, third = width / 3;
	ll_strbuf_adds(out, "<g>");
	add_title(out, LL_USE_BY_DAY, sum);
	add_bar(out, "granted", x, bottom - sum->granted_s * scale, third, sum->granted_s * scale);
	add_bar(out, "used", x + third, bottom - sum->used_s * scale, third, sum->used_s * scale);
	add_bar(out, "idle", x + 2 * third, bottom - sum->idle_held_s * scale, third, sum->idle_held_s * scale);
	ll_strbuf_adds(out, "</g>\n");
}

static void add_days(struct ll_strbuf *out, const struct ll_use_report *days)
{
	double most = most_of(days), step = (WIDTH - 2.0 * MARGIN) / (double)days->count;
	double scale = most > 0 ? DAYS_HEIGHT / most : 0;
	size_t every = (days->count + DAY_LABELS - 1) / DAY_LABELS;
	ll_strbuf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, DAYS_TOP + DAYS_HEIGHT + 24);
	ll_strbuf_addf(out, "<text x=\"%d\" y=\"12\">%.2f h</text>\n", MARGIN, most / S_PER_H);
	ll_strbuf_addf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", MARGIN, WIDTH - MARGIN,
		       DAYS_TOP + DAYS_HEIGHT, DAYS_TOP + DAYS_HEIGHT);
	for (size_t i = 0; i < days->count; i++) {
		double x = MARGIN + (double)i * step;
		add_day(out, &days->sums[i], x, fmin(step * 0.9, 60), scale);
		if (i % every == 0)
			ll_strbuf_addf(out, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x, DAYS_TOP + DAYS_HEIGHT + 16,
				       days->sums[i].key + strlen("20yy-"));
	}
	ll_strbuf_adds(out, "</svg>\n");
}

/* ---- by tenant ---- */

static void add_tenants(struct ll_strbuf *out, const struct ll_use_report *tenants)
{
	size_t count = tenants->count < TENANTS ? tenants->count : TENANTS;
	double most = most_of(tenants), scale = most > 0 ? (WIDTH - LABELS - 2.0 * MARGIN) / most : 0;
	ll_strbuf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, (int)count * ROW + MARGIN);
	for (size_t i = 0; i < count; i++) {
		const struct ll_use_sum *sum = &tenants->sums[i];
		double y = (double)i * ROW + 4;
		ll_strbuf_adds(out, "<g>");
		add_title(out, LL_USE_BY_TENANT, sum);
		add_bar(out, "granted", LABELS + MARGIN, y, sum->granted_s * scale, BAR);
		add_bar(out, "used", LABELS + MARGIN, y + BAR / 4.0, sum->used_s * scale, BAR / 2.0);
		ll_strbuf_addf(out, "<text x=\"%d\" y=\"%.1f\">", MARGIN, y + BAR - 4);
		add_escaped_key(out, LL_USE_BY_TENANT, sum);
		ll_strbuf_adds(out, "</text></g>\n");
	}
	ll_strbuf_adds(out, "</svg>\n");
}

/* ---- tables ---- */

static void add_cell(struct ll_strbuf *out, double amount)
{
	if (isnan(amount))
		ll_strbuf_adds(out, "<td>-</td>");
	else
		ll_strbuf_addf(out, "<td>%.2f</td>", amount);
}

static void add_row(struct ll_strbuf *out, enum ll_use_by by, const struct ll_use_sum *sum,
		    const struct ll_use_prices *prices, const char *name)
{
	ll_strbuf_adds(out, "<tr><td>");
	if (name)
		ll_strbuf_add_escaped(out, name);
	else
		add_escaped_key(out, by, sum);
	ll_strbuf_adds(out, "</td>");
	for (size_t i = 0; i < LL_REPORT_AMOUNTS; i++)
		add_cell(out, ll_report_amount(&ll_report_amounts[i], sum) / ll_report_amounts[i].unit);
	if (ll_use_prices_are_set(prices))
		add_cell(out, ll_use_cost(prices, sum));
	ll_strbuf_adds(out, "</tr>\n");
}

static void add_table(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
		      const struct ll_use_prices *prices)
{
	struct ll_use_sum total;
	ll_strbuf_adds(out, "<table><thead><tr><th></th>");
	for (size_t i = 0; i < LL_REPORT_AMOUNTS; i++)
		ll_strbuf_addf(out, "<th>%s</th>", _(ll_report_amounts[i].heading));
	if (ll_use_prices_are_set(prices)) {
		LL_SCOPE_STRBUF struct ll_strbuf cost = LL_STRBUF_INIT;
		ll_report_add_cost_heading(&cost, prices);
		ll_strbuf_adds(out, "<th>");
		ll_strbuf_add_escaped(out, cost.buf);
		ll_strbuf_adds(out, "</th>");
	}
	ll_strbuf_adds(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < report->count; i++)
		add_row(out, by, &report->sums[i], prices, NULL);
	ll_report_total(report, &total);
	add_row(out, by, &total, prices, _("total"));
	ll_strbuf_adds(out, "</tbody></table>\n");
}

/* ---- the page ---- */

static void add_moment(struct ll_strbuf *out, int64_t at_s)
{
	char text[64];
	time_t at = (time_t)at_s;
	struct tm parts;
	if (localtime_r(&at, &parts) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts))
		ll_strbuf_adds(out, text);
}

static void add_head(struct ll_strbuf *out, const struct ll_report_period *period, bool is_of_one_user)
{
	ll_strbuf_addf(out,
		       "<!doctype html>\n<html lang=\"%s\"><head><meta charset=\"utf-8\">"
		       "<meta name=\"viewport\" content=\"width=device-width\"><title>%s</title>\n<style>\n%s</style>"
		       "</head><body>\n<h1>%s</h1>\n<p>",
		       _("en"), _("Use of GPUs"), style, _("Use of GPUs"));
	add_moment(out, period->since_s);
	ll_strbuf_adds(out, " - ");
	add_moment(out, period->until_s);
	if (is_of_one_user)
		ll_strbuf_addf(out, ". %s", _("Your own jobs."));
	ll_strbuf_adds(out, "</p>\n");
	ll_strbuf_addf(out,
		       "<p><svg style=\"width:9em\" viewBox=\"0 0 120 12\"><rect class=\"granted\" width=\"36\" "
		       "height=\"12\"/><rect class=\"used\" x=\"42\" width=\"36\" height=\"12\"/><rect class=\"idle\" "
		       "x=\"84\" width=\"36\" height=\"12\"/></svg> %s, %s, %s</p>\n",
		       _("granted"), _("used"), _("idle held"));
}

static void add_section(struct ll_strbuf *out, const struct ll_use_report *report, enum ll_use_by by,
			const struct ll_use_prices *prices)
{
	static const char *const titles[LL_USE_BYS] = {N_("By tenant"),  N_("By user"), N_("By job"),
						       N_("By project"), N_("By card"), N_("By day")};
	ll_strbuf_addf(out, "<h2>%s</h2>\n", _(titles[by]));
	if (!report->count)
		ll_strbuf_addf(out, "<p>%s</p>\n", _("Nothing was used in this time."));
	else if (by == LL_USE_BY_DAY)
		add_days(out, report);
	else if (by == LL_USE_BY_TENANT)
		add_tenants(out, report);
	if (report->count)
		add_table(out, report, by, prices);
}

int ll_report_add_html(struct ll_strbuf *out, struct ll_report_source *source, const struct ll_report_period *period,
		       struct ll_err *err)
{
	static const enum ll_use_by sections[] = {LL_USE_BY_DAY, LL_USE_BY_TENANT, LL_USE_BY_USER, LL_USE_BY_PROJECT,
						  LL_USE_BY_CARD};
	LL_SCOPE_STRBUF struct ll_strbuf body = LL_STRBUF_INIT;
	int rc = 0;
	for (size_t i = 0; i < sizeof sections / sizeof *sections && !rc; i++) {
		struct ll_use_report report;
		rc = ll_report_source_read(source, period, sections[i], &report, err);
		if (!rc)
			add_section(&body, &report, sections[i], &source->prices);
		ll_use_report_fini(&report);
	}
	if (rc)
		return rc;
	add_head(out, period, source->is_of_one_user);
	ll_strbuf_add(out, body.buf, body.length);
	out->failed |= body.failed;
	ll_strbuf_adds(out, "</body></html>\n");
	return 0;
}
