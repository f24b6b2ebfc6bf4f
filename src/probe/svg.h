/*
 * svg.h - a picture of who was on the card when: for each cell a panel, in it a row for each party, on the card's own
 * clock. Pure.
 *
 * The picture explains itself (title, legend, axis, a caption for each panel) and has its own colours for light and
 * dark surroundings. Of a whole matrix the panels are the cells with equal priorities and the middle number of
 * connections; of few cells all.
 */
#ifndef LOADLINE_PROBE_SVG_H
#define LOADLINE_PROBE_SVG_H

#include "base/strbuf.h"
#include "probe/report.h"

enum { LL_PROBE_SVG_PANELS = 16 }; /* more cells than that are a whole matrix, and chosen from */

void ll_probe_svg(const struct ll_probe_report *report, struct ll_strbuf *out);

/* Appends text with what XML needs escaped; control characters, which it has not, become blanks. */
void ll_probe_svg_text(struct ll_strbuf *out, const char *text);

#endif
