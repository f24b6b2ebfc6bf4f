#include "probe/svg.h"

#include <inttypes.h>

#include "probe/svg_panel.h"

enum { TITLE = 86, LEGEND = 34, FOOT = 16 };

/* Hues that stay apart for most eyes, on light and on dark. No variables: many viewers know none. */
static const char style[] = "<style>\n"
			    "text{fill:#1a1a1a;font:12px system-ui,sans-serif}\n"
			    ".paper{fill:#ffffff}\n"
			    ".title{font-size:18px;font-weight:600}.heading{font-size:13px}.word{font-weight:700}\n"
			    ".caption,.unit,.number{fill:#5c5c5c;font-size:11px}\n"
			    ".label,.unit{text-anchor:end}.number{text-anchor:middle}\n"
			    ".row,.tick{stroke:#dddddd;stroke-width:1}.edge{stroke:#ffffff;stroke-width:1}\n"
			    ".away{fill:none;stroke:#8a8a8a;stroke-width:1;stroke-dasharray:3 2}\n"
			    ".p0{fill:#2f6fb7}.p1{fill:#d97b1f}.p2{fill:#2d9a68}.p3{fill:#b94a8f}\n"
			    ".p4{fill:#7a6cc4}.p5{fill:#a08a1e}.p6{fill:#27939c}.p7{fill:#c2504a}\n"
			    "@media (prefers-color-scheme:dark){.paper{fill:#16181b}text{fill:#ececec}\n"
			    ".caption,.unit,.number{fill:#a5a9af}.row,.tick{stroke:#33373d}.edge{stroke:#16181b}}\n"
			    "</style>\n";

void ll_probe_svg_text(struct ll_strbuf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			ll_strbuf_adds(out, "&amp;");
			break;
		case '<':
			ll_strbuf_adds(out, "&lt;");
			break;
		case '>':
			ll_strbuf_adds(out, "&gt;");
			break;
		case '"':
			ll_strbuf_adds(out, "&quot;");
			break;
		default:
			ll_strbuf_addc(out, (unsigned char)*text < ' ' ? ' ' : *text);
		}
	}
}

/* Of the matrix the cells with the middle number of connections. */
static unsigned middle_connections(const struct ll_probe_report *report)
{
	unsigned seen[LL_PROBE_CHOICES];
	size_t count = 0;
	for (size_t i = 0; i < report->count; i++) {
		unsigned connections = report->results[i].cell.connections;
		size_t k = 0;
		while (k < count && seen[k] != connections)
			k++;
		if (k == count && count < LL_PROBE_CHOICES)
			seen[count++] = connections;
	}
	return count ? seen[count / 2] : 0;
}

static bool is_shown(const struct ll_probe_report *report, const struct ll_probe_result *result, unsigned connections)
{
	if (report->count <= LL_PROBE_SVG_PANELS)
		return true;
	return !result->cell.has_priorities && result->cell.connections == connections;
}

static void add_title(struct ll_strbuf *out, const struct ll_probe_report *report, int height)
{
	ll_strbuf_addf(out,
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		       "role=\"img\" aria-labelledby=\"title about\">\n<title id=\"title\">Who was on the card when: ",
		       LL_SVG_WIDTH, height, LL_SVG_WIDTH, height);
	ll_probe_svg_text(out, report->card_name);
	ll_strbuf_adds(out,
		       "</title>\n<desc id=\"about\">Each panel is one experiment, each row in it a stream, thread or "
		       "process that launches kernels; a bar is a kernel on the card.</desc>\n");
	ll_strbuf_adds(out, style);
	ll_strbuf_adds(out, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
	ll_strbuf_addf(out, "<text class=\"title\" x=\"%d\" y=\"34\">Who was on the card when</text>\n", LL_SVG_MARGIN);
	ll_strbuf_addf(out, "<text class=\"caption\" x=\"%d\" y=\"54\">card ", LL_SVG_MARGIN);
	ll_probe_svg_text(out, report->card_label);
	ll_strbuf_adds(out, ", ");
	ll_probe_svg_text(out, report->card_name);
	ll_strbuf_addf(out, "%s, %u SMs, driver ", report->is_simulated ? " (simulated)" : "", report->sm_count);
	ll_probe_svg_text(out, report->driver_version);
	uint64_t step_ns = ll_probe_report_step_ns(report);
	if (step_ns)
		ll_strbuf_addf(out, ", clock in steps of %" PRIu64 " ns", step_ns);
	ll_strbuf_addf(
	    out,
	    "</text>\n<text class=\"caption\" x=\"%d\" y=\"72\">All of a panel&#8217;s kernels are launched at the "
	    "same moment. Rows whose bars stand above each other ran together; bars that take turns shared the "
	    "card by time.</text>\n",
	    LL_SVG_MARGIN);
}

static void add_legend(struct ll_strbuf *out, int y)
{
	int x = LL_SVG_MARGIN;
	ll_strbuf_addf(out,
		       "<g class=\"legend\">\n<rect class=\"p0\" x=\"%d\" y=\"%d\" width=\"28\" height=\"12\"/>"
		       "<text x=\"%d\" y=\"%d\">a kernel on the card (a colour for each party)</text>\n",
		       x, y, x + 36, y + 10);
	ll_strbuf_addf(
	    out,
	    "<rect class=\"away\" x=\"%d\" y=\"%d\" width=\"28\" height=\"12\"/>"
	    "<text x=\"%d\" y=\"%d\">begun, but off the card: interrupted, or its next blocks wait</text>\n</g>\n",
	    x + 340, y, x + 376, y + 10);
}

void ll_probe_svg(const struct ll_probe_report *report, struct ll_strbuf *out)
{
	unsigned connections = middle_connections(report);
	int height = TITLE + LEGEND + FOOT;
	for (size_t i = 0; i < report->count; i++) {
		if (is_shown(report, &report->results[i], connections))
			height += ll_svg_panel_height(&report->results[i]);
	}
	add_title(out, report, height);
	add_legend(out, TITLE);
	int y = TITLE + LEGEND;
	for (size_t i = 0; i < report->count; i++) {
		if (!is_shown(report, &report->results[i], connections))
			continue;
		ll_svg_panel(out, &report->results[i], y);
		y += ll_svg_panel_height(&report->results[i]);
	}
	ll_strbuf_adds(out, "</svg>\n");
}
