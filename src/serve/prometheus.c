#include "serve/prometheus.h"

#include <math.h>

void ll_prometheus_head(struct ll_strbuf *text, const char *name, const char *type, const char *help)
{
	ll_strbuf_addf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The format allows to escape these three characters only. */
void ll_prometheus_label(struct ll_strbuf *labels, const char *name, const char *value)
{
	ll_strbuf_addf(labels, "%s%s=\"", labels->length ? "," : "", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\' || *value == '\n')
			ll_strbuf_addc(labels, '\\');
		ll_strbuf_addc(labels, *value == '\n' ? 'n' : *value);
	}
	ll_strbuf_addc(labels, '"');
}

void ll_prometheus_sample(struct ll_strbuf *text, const char *name, const char *labels, double value)
{
	if (*labels)
		ll_strbuf_addf(text, "%s{%s} %.15g\n", name, labels, value);
	else
		ll_strbuf_addf(text, "%s %.15g\n", name, value);
}

void ll_prometheus_row(struct ll_strbuf *text, const struct ll_prometheus_rows *rows, const void *row, bool *has_head,
		       const char *name, const char *type, const char *help, double value)
{
	LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
	if (!isfinite(value))
		return;
	if (!*has_head)
		ll_prometheus_head(text, name, type, help);
	*has_head = true;
	rows->label(&labels, row);
	ll_prometheus_sample(text, name, labels.buf, value);
}
