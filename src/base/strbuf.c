#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/utf8.h"

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

/* ---- a file ---- */

int ll_strbuf_add_file(struct ll_strbuf *sb, int folder_fd, const char *name, size_t most)
{
	char part[4096];
	size_t length = 0;
	ssize_t n;
	LL_SCOPE_CLOSE int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, part, sizeof part)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		length += (size_t)n;
		if (length > most)
			return -E2BIG;
		ll_strbuf_add(sb, part, (size_t)n);
	}
	return sb->failed ? -ENOMEM : 0;
}

/* ---- texts for XML and CSV ---- */

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

/* The full-width and the small forms of =, +, - and @ begin a formula where Chinese and Japanese are written. */
static bool begins_formula(uint32_t character)
{
	static const uint32_t characters[] = {'=',    '+',    '-',    '@',    0x2212, 0xfe62, 0xfe63,
					      0xfe66, 0xfe6b, 0xff0b, 0xff0d, 0xff1d, 0xff20};
	for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
		if (character == characters[i])
			return true;
	}
	return false;
}

static bool is_formula(const char *text)
{
	uint32_t character;
	size_t length;
	while ((length = ll_utf8_next(text, &character)) &&
	       (ll_utf8_is_blank(character) || !ll_utf8_is_printable(character)))
		text += length;
	return length && begins_formula(character);
}

void ll_strbuf_add_csv(struct ll_strbuf *sb, const char *text)
{
	ll_strbuf_addc(sb, '"');
	if (is_formula(text))
		ll_strbuf_addc(sb, '\'');
	for (; *text; text++) {
		if (*text == '"')
			ll_strbuf_addc(sb, '"');
		ll_strbuf_addc(sb, *text);
	}
	ll_strbuf_addc(sb, '"');
}
