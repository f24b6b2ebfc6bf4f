#include "serve/prometheus.h"

#include <math.h>
#include <stdbool.h>

void ll_prometheus_head(struct ll_strbuf *text, const char *name, const char *type, const char *help)
{
	ll_strbuf_addf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The format allows to escape these three characters only. */
static void add_escaped(struct ll_strbuf *text, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n') {
			ll_strbuf_adds(text, "\\n");
			continue;
		}
		if (*value == '"' || *value == '\\')
			ll_strbuf_addc(text, '\\');
		ll_strbuf_addc(text, *value);
	}
}

void ll_prometheus_label(struct ll_strbuf *labels, const char *name, const char *value)
{
	ll_strbuf_addf(labels, "%s%s=\"", labels->length ? "," : "", name);
	add_escaped(labels, value);
	ll_strbuf_addc(labels, '"');
}

void ll_prometheus_sample(struct ll_strbuf *text, const char *name, const char *labels, double value)
{
	if (*labels)
		ll_strbuf_addf(text, "%s{%s} %.15g\n", name, labels, value);
	else
		ll_strbuf_addf(text, "%s %.15g\n", name, value);
}

static void add_family(struct ll_strbuf *text, const struct ll_prometheus_family *family,
		       const struct ll_prometheus_rows *rows)
{
	LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
	bool has_head = false;
	for (size_t i = 0; i < rows->count; i++) {
		const void *row = (const char *)rows->rows + i * rows->size;
		double value = family->value(row);
		if (!isfinite(value))
			continue;
		if (!has_head)
			ll_prometheus_head(text, family->name, family->type, family->help);
		has_head = true;
		ll_strbuf_reset(&labels);
		rows->label(&labels, row);
		ll_prometheus_sample(text, family->name, labels.buf, value);
	}
}

void ll_prometheus_families(struct ll_strbuf *text, const struct ll_prometheus_family *families, size_t count,
			    const struct ll_prometheus_rows *rows)
{
	for (size_t i = 0; i < count; i++)
		add_family(text, &families[i], rows);
}
