/*
 * top.c - the program loadline-top.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/options/program.h"
#include "cli/top/top.h"

#define LEAST_EVERY_NS (100 * LL_NS_PER_MS)
enum { FILE_COLUMNS = 120, ANY_LINES = 1 << 20 };

/* Without the bytes that say how the text looks. */
static int print_plain(struct ll_top *top, struct ll_top_view *view, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf frame = LL_STRBUF_INIT, text = LL_STRBUF_INIT;
	unsigned columns, rows;
	uint64_t told;
	if (!ll_status_terminal(&columns, &rows)) {
		const char *wish = getenv("COLUMNS");
		columns = wish && ll_parse_uint(wish, 1, 10000, &told, NULL) == 0 ? (unsigned)told : FILE_COLUMNS;
	}
	int rc = ll_top_read(top, err);
	if (rc)
		return rc;
	ll_top_add_frame(&frame, top, view, columns, ANY_LINES);
	for (const char *part = frame.buf; *part; part++) {
		if (*part > LL_TOP_SELECTED || *part < 0)
			ll_strbuf_addc(&text, *part);
	}
	text.failed |= frame.failed;
	return ll_print_text(&text, err);
}

static int run_top(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct ll_top_args *args = data;
	struct ll_driver *driver = NULL;
	struct ll_top top = {.notes = LL_STRBUF_INIT};
	struct ll_top_view view = {.order = (enum ll_top_order)args->order, .is_still = args->is_plain};
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count = 0;
	(void)operands;
	if (args->every_ns < LEAST_EVERY_NS)
		return ll_err_set(err, -EINVAL, "--every: less than 100ms");
	snprintf(view.filter, sizeof view.filter, "%s", args->filter ? args->filter : "");
	int rc = ll_cards_open(-EACCES, &driver, err); /* behind the fence: what the sensor tells */
	if (!rc)
		rc = ll_cards_list(driver, args->cards, &chosen, &count, err);
	if (!rc)
		rc = ll_top_init(&top, chosen, count, err);
	if (!rc) {
		top.has_all = !args->cards;
		top.every_ns = args->every_ns;
		top.sim_folder = ll_driver_sim_folder(driver);
		rc = args->is_plain ? print_plain(&top, &view, err) : ll_top_screen(&top, &view, err);
	}
	ll_top_fini(&top);
	ll_driver_close(driver);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct ll_command *const commands[] = {&ll_command_top, NULL};
	static const struct ll_program program = {.commands = commands, .run = run_top};
	return ll_program_main(&program, argc, argv);
}
