/*
 * screen.h - a terminal's screen, as far as our display needs one: what is on it after some output.
 *
 * Knows CR, LF, UTF-8 (a column each) and the CSI sequences A, H, J, K, m, ?25h, ?25l; anything else fails the test,
 * and so does text that reaches the right edge, where terminals disagree.
 */
#ifndef LOADLINE_TESTS_UNIT_SCREEN_H
#define LOADLINE_TESTS_UNIT_SCREEN_H

#include "test.h"

#include <stdbool.h>

enum { SCREEN_ROWS = 40, SCREEN_COLUMNS = 200 };

struct screen {
	unsigned rows, columns;
	unsigned row, column;
	bool is_cursor_hidden;
	unsigned colors; /* m sequences seen */
	char cells[SCREEN_ROWS][SCREEN_COLUMNS][5];
	char text[SCREEN_ROWS * (SCREEN_COLUMNS * 4 + 1) + 1];
};

static inline void screen_clear_cells(struct screen *screen, unsigned row, unsigned column)
{
	for (; column < SCREEN_COLUMNS; column++)
		strcpy(screen->cells[row][column], " ");
}

static inline void screen_init(struct screen *screen, unsigned rows, unsigned columns)
{
	memset(screen, 0, sizeof *screen);
	screen->rows = rows;
	screen->columns = columns;
	for (unsigned row = 0; row < SCREEN_ROWS; row++)
		screen_clear_cells(screen, row, 0);
}

static inline void screen_line_feed(struct screen *screen)
{
	if (screen->row + 1 < screen->rows) {
		screen->row++;
		return;
	}
	memmove(screen->cells[0], screen->cells[1], sizeof screen->cells[0] * (screen->rows - 1));
	screen_clear_cells(screen, screen->rows - 1, 0);
}

/* The sequence after ESC [; returns its last byte. */
static inline const char *screen_csi(struct screen *screen, const char *c)
{
	bool is_private = *c == '?';
	unsigned number = 0;
	c += is_private;
	for (; (*c >= '0' && *c <= '9') || *c == ';'; c++)
		number = *c == ';' ? 0 : number * 10 + (unsigned)(*c - '0');
	if (is_private && number == 25 && (*c == 'h' || *c == 'l')) {
		screen->is_cursor_hidden = *c == 'l';
	} else if (*c == 'A') {
		assert_true(number >= 1 && number <= screen->row);
		screen->row -= number;
	} else if (*c == 'H') {
		screen->row = screen->column = 0;
	} else if (*c == 'J') {
		for (unsigned row = number == 2 ? 0 : screen->row + 1; row < screen->rows; row++)
			screen_clear_cells(screen, row, 0);
		screen_clear_cells(screen, screen->row, screen->column);
	} else if (*c == 'K') {
		screen_clear_cells(screen, screen->row, screen->column);
	} else if (*c == 'm') {
		screen->colors++;
	} else {
		fail_msg("unknown sequence ending in '%c'", *c);
	}
	return c;
}

static inline const char *screen_put(struct screen *screen, const char *c)
{
	size_t length = 1;
	while (((unsigned char)c[length] & 0xc0) == 0x80)
		length++;
	assert_true(length <= 4);
	if (screen->column + 1 >= screen->columns)
		fail_msg("text reaches column %u of %u", screen->column + 1, screen->columns);
	memcpy(screen->cells[screen->row][screen->column], c, length);
	screen->cells[screen->row][screen->column][length] = '\0';
	screen->column++;
	return c + length - 1;
}

static inline void screen_write(struct screen *screen, const char *text)
{
	for (const char *c = text; *c; c++) {
		if (*c == '\r')
			screen->column = 0;
		else if (*c == '\n')
			screen_line_feed(screen);
		else if (c[0] == '\033' && c[1] == '[')
			c = screen_csi(screen, c + 2);
		else if ((unsigned char)*c < ' ')
			fail_msg("control character %d", *c);
		else
			c = screen_put(screen, c);
	}
}

/* Row by row, without blanks at line ends and without empty rows at the bottom. */
static inline const char *screen_text(struct screen *screen)
{
	char *end = screen->text;
	char *kept = end;
	for (unsigned row = 0; row < screen->rows; row++) {
		char *row_end = end;
		for (unsigned column = 0; column < screen->columns; column++) {
			end = stpcpy(end, screen->cells[row][column]);
			if (strcmp(screen->cells[row][column], " ") != 0)
				row_end = end;
		}
		bool is_blank = row_end == kept || row_end[-1] == '\n';
		end = row_end;
		*end++ = '\n';
		if (!is_blank)
			kept = end;
	}
	*kept = '\0';
	return screen->text;
}

#endif
