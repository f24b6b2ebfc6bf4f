/*
 * svg.h - a picture of which party was on the card at which time: a panel for each cell, a row for each party, on the
 * card's own clock. Pure.
 *
 * The picture has a title, a legend, an axis and a caption for each panel, and colours for light and for dark
 * backgrounds. Of few cells it has all. Of a whole matrix it has the cells with equal priorities and the middle number
 * of connections.
 */
#ifndef LOADLINE_PROBE_SVG_H
#define LOADLINE_PROBE_SVG_H

#include "base/strbuf.h"
#include "probe/report.h"

enum { LL_PROBE_SVG_PANELS = 16 }; /* more cells than that are a whole matrix, and chosen from */

/* Appends the picture. */
void ll_probe_svg(const struct ll_probe_report *report, struct ll_strbuf *out);

#endif
