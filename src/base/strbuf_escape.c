#include "base/strbuf.h"

void ll_strbuf_add_escaped(struct ll_strbuf *sb, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			ll_strbuf_adds(sb, "&amp;");
			break;
		case '<':
			ll_strbuf_adds(sb, "&lt;");
			break;
		case '>':
			ll_strbuf_adds(sb, "&gt;");
			break;
		case '"':
			ll_strbuf_adds(sb, "&quot;");
			break;
		case '\'':
			ll_strbuf_adds(sb, "&#39;");
			break;
		default:
			ll_strbuf_addc(sb, (unsigned char)*text < ' ' ? ' ' : *text);
		}
	}
}
