/*
 * findings.h - what is true on this card and driver, in sentences, each made from measured cells. Pure.
 *
 * A sentence says what was seen, also where that is not what is usual; where its cells were not measured there is none.
 */
#ifndef LOADLINE_PROBE_FINDINGS_H
#define LOADLINE_PROBE_FINDINGS_H

#include "base/strbuf.h"
#include "probe/report.h"

enum { LL_PROBE_FINDINGS = 12 };

struct ll_probe_finding {
	const char *name;    /* "contexts": what it is about, one word */
	const char *command; /* what measures it again: "loadline probe --parallel processes --under default" */
	struct ll_strbuf text;
};

struct ll_probe_findings {
	struct ll_probe_finding items[LL_PROBE_FINDINGS];
	size_t count;
};

/* For ll_probe_findings_fini. -ENOMEM. */
int ll_probe_findings_make(const struct ll_probe_report *report, struct ll_probe_findings *ret_findings);
void ll_probe_findings_fini(struct ll_probe_findings *findings);

#endif
