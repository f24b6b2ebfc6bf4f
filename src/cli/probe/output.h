/*
 * output.h - the output of `loadline probe`: a table with statements below it, or JSON lines.
 */
#ifndef LOADLINE_CLI_PROBE_OUTPUT_H
#define LOADLINE_CLI_PROBE_OUTPUT_H

#include "base/strbuf.h"
#include "probe/first.h"
#include "probe/report.h"

struct ll_err;

/* ---- text ---- */

void ll_probe_text_begin(const struct ll_probe_report *report);
/* Prints the row of a cell, as soon as it is measured. previous: the cell of the row before; NULL: it is the first. */
int ll_probe_text_cell(const struct ll_probe_result *result, const struct ll_probe_cell *previous, struct ll_err *err);
/* Prints the measurements other than the matrix, and the statements. */
void ll_probe_text_end(const struct ll_probe_report *report);
void ll_probe_text_first(const struct ll_probe_first *first);
/* Prints the cells for --list. */
void ll_probe_text_list(const struct ll_probe_cell *cells, size_t count);

/* ---- JSON: {"event":"card"|"cell"|"slice"|"preemption"|"idle"|"memory"|"statement"|"first"|"list", …} ---- */

int ll_probe_json_begin(const struct ll_probe_report *report, struct ll_err *err);
int ll_probe_json_cell(const struct ll_probe_result *result, struct ll_err *err);
int ll_probe_json_end(const struct ll_probe_report *report, struct ll_err *err);
int ll_probe_json_first(const struct ll_probe_first *first, struct ll_err *err);
int ll_probe_json_list(const struct ll_probe_cell *cells, size_t count, struct ll_err *err);

#endif
