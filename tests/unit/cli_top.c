#include "cli/top/top.h"

#include <math.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "test.h"

static const uint64_t gib = UINT64_C(1) << 30;

/* Two cards, three tenants; a job of two processes, one of one with a Chinese name, a synthetic load, a stranger and
 * two that wait. */
static struct ll_card driver_cards[2];
static struct ll_status_card readings[2];
static struct ll_top_card cards[2];
static struct ll_top_tenant tenants[3];
static struct ll_top_row rows[8];
static struct ll_top top;

static struct ll_top_row row_of(enum ll_top_kind kind, size_t root, uint64_t number, const char *claim)
{
	struct ll_top_row row = {.kind = kind,
				 .root = root,
				 .number = number,
				 .used_bytes = number * gib,
				 .age_ns = (20 - number) * LL_NS_PER_S,
				 .share_percent = (double)NAN};
	snprintf(row.claim, sizeof row.claim, "%s", claim);
	snprintf(row.user, sizeof row.user, "ann");
	snprintf(row.tenant, sizeof row.tenant, "train");
	snprintf(row.state, sizeof row.state, "running");
	snprintf(row.command, sizeof row.command, "python train.py --of a --very long --list of --words");
	return row;
}

static void make_scene(void)
{
	memset(tenants, 0, sizeof tenants);
	for (size_t i = 0; i < 2; i++) {
		snprintf(driver_cards[i].label, sizeof driver_cards[i].label, "%zu", i);
		snprintf(driver_cards[i].name, sizeof driver_cards[i].name, "NVIDIA H200 NVL with a long name");
		readings[i] = (struct ll_status_card){.card = &driver_cards[i],
						      .is_simulated = true,
						      .util_percent = 63,
						      .power_watts = 512,
						      .power_limit_watts = 700,
						      .celsius = 61,
						      .has_memory = true,
						      .memory = {.used_bytes = 100 * gib, .total_bytes = 140 * gib}};
		cards[i] = (struct ll_top_card){.status = &readings[i]};
		for (int k = 0; k < 200; k++)
			ll_top_history_add(&cards[i].util, k % 100);
	}
	snprintf(tenants[0].name, sizeof tenants[0].name, "train");
	snprintf(tenants[1].name, sizeof tenants[1].name, "训练任务训练任务训练任务");
	snprintf(tenants[2].name, sizeof tenants[2].name, "synthetic");
	tenants[0].running = tenants[1].running = 1;
	tenants[1].share_percent = 71;
	tenants[2].is_synthetic = true;
	rows[0] = row_of(LL_TOP_JOB, 0, 3, "");
	rows[0].processes = 2;
	rows[0].share_percent = 20;
	rows[1] = row_of(LL_TOP_PROCESS, 0, 3, "0/1");
	rows[1].pid = 100;
	rows[2] = row_of(LL_TOP_PROCESS, 0, 3, "1/0");
	rows[2].pid = 101;
	rows[2].is_last = true;
	snprintf(rows[2].command, sizeof rows[2].command, "loader");
	rows[3] = row_of(LL_TOP_JOB, 3, 7, "0/2");
	rows[3].share_percent = 71;
	rows[3].processes = 1;
	snprintf(rows[3].tenant, sizeof rows[3].tenant, "训练任务训练任务训练任务");
	snprintf(rows[3].user, sizeof rows[3].user, "bob");
	rows[4] = row_of(LL_TOP_HOLD, 4, 0, "0/hold");
	rows[4].pid = 55;
	rows[5] = row_of(LL_TOP_STRANGER, 5, 0, "1/-");
	rows[5].used_bytes = LL_MEMORY_UNKNOWN;
	rows[6] = row_of(LL_TOP_WAITING, 6, 0, "");
	rows[6].number = 9;
	rows[6].is_queued = true;
	rows[6].position = 2;
	rows[7] = row_of(LL_TOP_WAITING, 7, 0, "");
	rows[7].number = 8;
	rows[7].is_queued = true;
	rows[7].position = 1;
	top = (struct ll_top){.cards = cards,
			      .card_count = 2,
			      .tenants = tenants,
			      .tenant_count = 3,
			      .rows = rows,
			      .row_count = 8,
			      .notes = LL_STRBUF_INIT};
}

static const char *order_of(const struct ll_top_view *view)
{
	static char text[64];
	const struct ll_top_row *arranged[8];
	size_t count = ll_top_arrange(&top, view, arranged);
	for (size_t i = 0; i < count; i++) {
		text[2 * i] = (char)('0' + (arranged[i] - rows));
		text[2 * i + 1] = ' ';
	}
	text[2 * count] = '\0';
	return text;
}

TEST(rows_are_in_the_chosen_order_processes_below_their_job_and_those_that_wait_last)
{
	make_scene();
	assert_string_equal(order_of(&(struct ll_top_view){.order = LL_TOP_BY_SHARE}), "3 0 1 2 4 5 7 6 ");
	assert_string_equal(order_of(&(struct ll_top_view){.order = LL_TOP_BY_MEMORY}), "3 0 1 2 4 5 7 6 ");
	assert_string_equal(order_of(&(struct ll_top_view){.order = LL_TOP_BY_AGE}), "4 5 0 1 2 3 7 6 ");
	assert_string_equal(order_of(&(struct ll_top_view){.order = LL_TOP_BY_USER}), "0 1 2 4 5 3 7 6 ");
	assert_string_equal(order_of(&(struct ll_top_view){.order = LL_TOP_BY_JOB}), "0 1 2 3 4 5 7 6 ");
	assert_string_equal(order_of(&(struct ll_top_view){.order = LL_TOP_BY_JOB, .is_flat = true}), "0 3 4 5 7 6 ");
}

TEST(a_filter_keeps_a_process_with_its_job_and_a_job_with_all_its_processes)
{
	make_scene();
	assert_string_equal(order_of(&(struct ll_top_view){.filter = "loader"}), "0 2 ");
	assert_string_equal(order_of(&(struct ll_top_view){.filter = "3"}), "0 1 2 ");
	assert_string_equal(order_of(&(struct ll_top_view){.filter = "BOB"}), "3 ");
	assert_string_equal(order_of(&(struct ll_top_view){.filter = "训练"}), "3 ");
	assert_string_equal(order_of(&(struct ll_top_view){.filter = "nobody"}), "");
}

TEST(the_chosen_row_stays_chosen_while_others_come_and_go)
{
	make_scene();
	struct ll_top_view view = {.order = LL_TOP_BY_SHARE};
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[3]);
	ll_top_choose(&top, &view, 2);
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[1]);
	rows[0].share_percent = 99;
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[1]);
	view.order = LL_TOP_BY_AGE;
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[1]);
	/* its process ends: the job is chosen */
	rows[1].pid = 4711;
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[0]);
	ll_top_choose(&top, &view, 1000);
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[6]);
	ll_top_choose(&top, &view, -1000);
	assert_ptr_equal(ll_top_choose(&top, &view, 0), &rows[4]);
	top.row_count = 0;
	ll_top_choose(&top, &view, 1);
	assert_null(ll_top_choose(&top, &view, 0));
}

/* Writes the line without the bytes that say how it looks, and returns the next one. */
static const char *next_line(const char *text, char *ret_line, size_t size)
{
	size_t used = 0;
	for (; *text && *text != '\n'; text++) {
		if ((*text < 0 || *text > LL_TOP_SELECTED) && used + 1 < size)
			ret_line[used++] = *text;
	}
	ret_line[used] = '\0';
	return *text ? text + 1 : text;
}

TEST(a_frame_fits_every_terminal_and_no_number_of_it_is_cut)
{
	make_scene();
	for (size_t columns = 1; columns <= 260; columns += columns < 130 ? 1 : 13) {
		for (size_t lines = 1; lines <= 50; lines += lines < 26 ? 1 : 8) {
			struct ll_top_view view = {.order = LL_TOP_BY_SHARE};
			LL_SCOPE_STRBUF struct ll_strbuf frame = LL_STRBUF_INIT;
			char line[2048];
			size_t count = 0;
			bool has_share = false;
			ll_top_choose(&top, &view, 7);
			ll_top_add_frame(&frame, &top, &view, columns, lines);
			for (const char *text = frame.buf; *text; count++) {
				text = next_line(text, line, sizeof line);
				assert_true(ll_utf8_columns(line) <= columns);
				has_share |= strstr(line, "71 %") != NULL;
			}
			assert_true(count <= (lines > 2 ? lines - 2 : lines));
			assert_true(columns < 40 || lines < 18 || has_share);
			/* the chosen row is in sight */
			assert_true(columns < 30 || lines < 10 || strchr(frame.buf, LL_TOP_SELECTED));
		}
	}
}

/* The columns of the terminal before the text in the line; -1: it does not have it. */
static long column_of(const char *line, const char *text)
{
	const char *found = strstr(line, text);
	char before[2048];
	if (!found)
		return -1;
	snprintf(before, sizeof before, "%.*s", (int)(found - line), line);
	return (long)ll_utf8_columns(before);
}

TEST(wide_characters_keep_the_columns)
{
	static const size_t widths[] = {60, 79, 80, 81, 100, 120, 200};
	make_scene();
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		struct ll_top_view view = {.order = LL_TOP_BY_SHARE, .is_still = true};
		LL_SCOPE_STRBUF struct ll_strbuf frame = LL_STRBUF_INIT;
		char line[2048];
		long begin = -1;
		size_t jobs = 0;
		ll_top_add_frame(&frame, &top, &view, widths[i], 1 << 20);
		for (const char *text = frame.buf; *text;) {
			text = next_line(text, line, sizeof line);
			if (strncmp(line, "job ", 4) == 0)
				begin = column_of(line, "state");
			else if (begin >= 0) {
				assert_int_equal(column_of(line, "running"), begin);
				jobs++;
			}
		}
		assert_int_equal(jobs, 8);
	}
}

TEST(the_column_of_the_highest_rank_goes_first_and_room_that_is_left_is_used)
{
	static const struct ll_top_column columns[] = {
	    {"a", 4, 4, 0, false}, {"b", 5, 8, 2, false}, {"c", 6, 6, 1, false}, {"d", 0, 9, 0, false}};
	size_t widths[4];
	static const struct {
		size_t width, a, b, c;
	} cases[] = {{17, 4, 5, 6}, {18, 4, 6, 6}, {20, 4, 8, 6}, {99, 4, 8, 6},
		     {16, 4, 0, 6}, {11, 4, 0, 6}, {10, 4, 0, 0}, {1, 4, 0, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ll_top_fit(columns, 4, cases[i].width, widths);
		assert_int_equal(widths[0], cases[i].a);
		assert_int_equal(widths[1], cases[i].b);
		assert_int_equal(widths[2], cases[i].c);
		assert_int_equal(widths[3], 0);
	}
}

TEST(a_history_has_its_newest_value_at_the_right_and_shows_the_least_value_above_zero)
{
	struct ll_top_history history = {.count = 0};
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	static const double values[] = {100, 0, 0.1, (double)NAN, 50, 120};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		ll_top_history_add(&history, values[i]);
	ll_top_add_history(&text, &history, 8);
	assert_string_equal(text.buf, "  █ ▁ ▄█");
	ll_strbuf_reset(&text);
	ll_top_add_history(&text, &history, 2);
	assert_string_equal(text.buf, "▄█");
	for (int i = 0; i < 3 * LL_TOP_HISTORY; i++)
		ll_top_history_add(&history, i);
	assert_int_equal(history.count, LL_TOP_HISTORY);
	assert_true(history.values[0] == 2 * LL_TOP_HISTORY &&
		    history.values[LL_TOP_HISTORY - 1] == 3 * LL_TOP_HISTORY - 1);
}

TEST(a_question_names_what_will_be_done_or_says_why_it_cannot_be)
{
	static const struct {
		size_t row;
		enum ll_top_act act;
		const char *text;
		bool is_asked;
	} cases[] = {
	    {3, LL_TOP_SET, "set job 7 of t: --mem 8G?", true},
	    {3, LL_TOP_EVICT, "evict the memory of job 7 of t?", true},
	    {3, LL_TOP_KILL, "end job 7 of t: SIGTERM to process 77?", true},
	    {0, LL_TOP_KILL, "job 3 of train: its process is not seen here", false},
	    {1, LL_TOP_PAUSE, "suspend process 100?", true},
	    {1, LL_TOP_SET, "process 100: limits are those of the job", false},
	    {4, LL_TOP_KILL, "end the synthetic load 0/hold: SIGTERM to process 55?", true},
	    {4, LL_TOP_EVICT, "the synthetic load 0/hold: a synthetic load has no limits, and gives way by itself",
	     false},
	    {5, LL_TOP_SET, "process 0: loadline does not govern it; start it with `loadline run`", false},
	    {6, LL_TOP_KILL, "take job 9 of train out of the queue?", true},
	    {6, LL_TOP_PAUSE, "keep job 9 of train from starting?", true},
	    {6, LL_TOP_EVICT, "job 9 of train: it has no memory on a card", false},
	};
	char text[300];
	make_scene();
	rows[3].pid = 77;
	snprintf(rows[3].tenant, sizeof rows[3].tenant, "t");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool is_asked = ll_top_question(&rows[cases[i].row], cases[i].act, "--mem 8G", text, sizeof text);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(is_asked, cases[i].is_asked);
	}
	rows[3].is_evicted = true;
	assert_true(ll_top_question(&rows[3], LL_TOP_PAUSE, "", text, sizeof text));
	assert_string_equal(text, "resume job 7 of t?");
}
