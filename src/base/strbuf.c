#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char ll_strbuf_empty[1];

/* Makes room for `extra` more bytes and the NUL. */
static bool make_room(struct ll_strbuf *sb, size_t extra)
{
	size_t needed;
	if (sb->failed || __builtin_add_overflow(sb->length, extra, &needed) ||
	    __builtin_add_overflow(needed, 1, &needed))
		goto failed;
	if (needed <= sb->capacity)
		return true;
	size_t capacity = sb->capacity < 64 ? 64 : sb->capacity + sb->capacity / 2;
	if (capacity < needed)
		capacity = needed;
	char *buf = realloc(sb->capacity ? sb->buf : NULL, capacity);
	if (!buf)
		goto failed;
	sb->buf = buf;
	sb->buf[sb->length] = '\0';
	sb->capacity = capacity;
	return true;
failed:
	sb->failed = true;
	return false;
}

void ll_strbuf_add(struct ll_strbuf *sb, const char *data, size_t length)
{
	if (length == 0 || !make_room(sb, length))
		return;
	memcpy(sb->buf + sb->length, data, length);
	sb->length += length;
	sb->buf[sb->length] = '\0';
}

void ll_strbuf_adds(struct ll_strbuf *sb, const char *text)
{
	ll_strbuf_add(sb, text, strlen(text));
}

void ll_strbuf_addc(struct ll_strbuf *sb, char c)
{
	ll_strbuf_add(sb, &c, 1);
}

void ll_strbuf_addf(struct ll_strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int length = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (length < 0) {
		sb->failed = true;
		return;
	}
	if (length == 0 || !make_room(sb, (size_t)length))
		return;
	va_start(ap, fmt);
	vsnprintf(sb->buf + sb->length, (size_t)length + 1, fmt, ap);
	va_end(ap);
	sb->length += (size_t)length;
}

void ll_strbuf_reset(struct ll_strbuf *sb)
{
	sb->length = 0;
	sb->failed = false;
	if (sb->capacity)
		sb->buf[0] = '\0';
}

char *ll_strbuf_detach(struct ll_strbuf *sb)
{
	char *text = NULL;
	if (!sb->failed && make_room(sb, 0)) {
		text = sb->buf;
		sb->buf = ll_strbuf_empty;
		sb->capacity = 0;
	}
	ll_strbuf_fini(sb);
	return text;
}

void ll_strbuf_fini(struct ll_strbuf *sb)
{
	if (sb->capacity)
		free(sb->buf);
	*sb = (struct ll_strbuf)LL_STRBUF_INIT;
}
