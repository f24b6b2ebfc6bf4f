/*
 * strbuf.h - a string that grows.
 *
 *     struct ll_strbuf text = LL_STRBUF_INIT;
 *     ll_strbuf_addf(&text, "card %d", 0);
 *     puts(text.buf);
 *     ll_strbuf_fini(&text);
 *
 * buf is always a valid NUL-ended string, even before anything was added. length does not count the NUL. If memory runs
 * out, failed is set, and this text and all later ones are dropped. Check failed once, at the end.
 */
#ifndef LOADLINE_BASE_STRBUF_H
#define LOADLINE_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct ll_strbuf {
	char *buf;
	size_t length;
	size_t capacity; /* 0: buf is not ours to free */
	bool failed;
};

extern char ll_strbuf_empty[1];

#define LL_STRBUF_INIT                                                                                                 \
	{                                                                                                              \
		.buf = ll_strbuf_empty                                                                                 \
	}

/* For a declaration: freed when it goes out of scope. */
#define LL_SCOPE_STRBUF __attribute__((cleanup(ll_strbuf_fini)))

void ll_strbuf_add(struct ll_strbuf *sb, const char *data, size_t length);
void ll_strbuf_adds(struct ll_strbuf *sb, const char *text);

/* Appends text for XML and HTML, inside an element or an attribute in either quotes. Control characters, which XML does
 * not have, become blanks. */
void ll_strbuf_add_escaped(struct ll_strbuf *sb, const char *text);

/* Appends a field of CSV in quotes. A spreadsheet takes a text for a formula if it begins with one of =+-@, also as a
 * full-width character and after blanks, and does not do so after an apostrophe: such a text gets one in front. */
void ll_strbuf_add_csv(struct ll_strbuf *sb, const char *text);

/* Appends what the file has, relative to the folder, which may be AT_FDCWD. A file such as those of /proc tells its
 * length by its end alone. -E2BIG: it has more than `most` bytes. -ENOMEM; errors of open and read. After an error the
 * text may have a part. */
int ll_strbuf_add_file(struct ll_strbuf *sb, int folder_fd, const char *name, size_t most);

void ll_strbuf_addc(struct ll_strbuf *sb, char c);
void ll_strbuf_addf(struct ll_strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Empties the string, keeps its memory, and clears failed. */
void ll_strbuf_reset(struct ll_strbuf *sb);

/* Returns the string, which the caller frees, and empties sb. NULL: it had failed. */
char *ll_strbuf_detach(struct ll_strbuf *sb);

void ll_strbuf_fini(struct ll_strbuf *sb);

#endif
