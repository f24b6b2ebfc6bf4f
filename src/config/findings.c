#include "config/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/translate.h"

static void add_finding(struct ll_config_findings *findings, struct ll_config_mark mark, enum ll_config_level level,
			const char *fmt, va_list words)
{
	char *text = NULL;
	if (findings->count == findings->capacity) {
		size_t capacity = findings->capacity ? 2 * findings->capacity : 16;
		struct ll_config_finding *items = realloc(findings->items, capacity * sizeof *items);
		if (!items) {
			findings->failed = true;
			return;
		}
		findings->items = items;
		findings->capacity = capacity;
	}
	if (vasprintf(&text, fmt, words) < 0) {
		findings->failed = true;
		return;
	}
	findings->items[findings->count++] = (struct ll_config_finding){.mark = mark, .level = level, .text = text};
	if (level == LL_CONFIG_FAULT)
		findings->fault_count++;
	else
		findings->warning_count++;
}

void ll_config_fault(struct ll_config_findings *findings, struct ll_config_mark mark, const char *fmt, ...)
{
	va_list words;
	va_start(words, fmt);
	add_finding(findings, mark, LL_CONFIG_FAULT, _(fmt), words);
	va_end(words);
}

void ll_config_warn(struct ll_config_findings *findings, struct ll_config_mark mark, const char *fmt, ...)
{
	va_list words;
	va_start(words, fmt);
	add_finding(findings, mark, LL_CONFIG_WARNING, _(fmt), words);
	va_end(words);
}

void ll_config_finding_add_place(const struct ll_config_finding *finding, struct ll_strbuf *out)
{
	if (!finding->mark.file)
		return;
	ll_strbuf_adds(out, finding->mark.file);
	if (finding->mark.line)
		ll_strbuf_addf(out, ":%u:%u", finding->mark.line, finding->mark.column);
	ll_strbuf_adds(out, ": ");
}

static int compare_marks(const struct ll_config_mark *a, const struct ll_config_mark *b)
{
	if (!a->file || !b->file)
		return (a->file != NULL) - (b->file != NULL);
	int files = strcmp(a->file, b->file);
	if (files)
		return files;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->column > b->column) - (a->column < b->column);
}

/* An insertion sort: it keeps the order of equals, and most findings come in order. */
void ll_config_findings_sort(struct ll_config_findings *findings)
{
	for (size_t i = 1; i < findings->count; i++) {
		struct ll_config_finding moved = findings->items[i];
		size_t at = i;
		for (; at && compare_marks(&findings->items[at - 1].mark, &moved.mark) > 0; at--)
			findings->items[at] = findings->items[at - 1];
		findings->items[at] = moved;
	}
}

void ll_config_findings_fini(struct ll_config_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		free(findings->items[i].text);
	free(findings->items);
	*findings = (struct ll_config_findings){0};
}
