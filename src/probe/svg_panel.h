/*
 * svg_panel.h - one cell of the picture: its rows, its axis, its caption. Private to svg.c.
 */
#ifndef LOADLINE_PROBE_SVG_PANEL_H
#define LOADLINE_PROBE_SVG_PANEL_H

#include "base/strbuf.h"
#include "probe/measure.h"

enum {
	LL_SVG_WIDTH = 960,
	LL_SVG_MARGIN = 24,
	LL_SVG_LABELS = 104, /* from the margin to the rows */
	LL_SVG_ROW = 22,
	LL_SVG_PALETTE = 8,
};

/* Pixels that it takes. */
int ll_svg_panel_height(const struct ll_probe_result *result);

/* Draws it with its upper edge at y. */
void ll_svg_panel(struct ll_strbuf *out, const struct ll_probe_result *result, int y);

#endif
